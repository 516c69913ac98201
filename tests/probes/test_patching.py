"""Patching on models whose source is known, its identities, and against branches of its own."""

from __future__ import annotations

import numpy as np
import pytest
from planted_traces import by, of_planted
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.experiments.data.planted.questions import questions
from faithscope.interp.edits import Patch
from faithscope.interp.forest import Branch
from faithscope.interventions import corrupt_step
from faithscope.probes import Record
from faithscope.probes.framing import prefix_ids
from faithscope.probes.graded import log_distribution, log_odds
from faithscope.probes.patching import PatchingSettings, patching, spaced

ITEMS = 8


records_of = of_planted(patching, PatchingSettings(), most=ITEMS)


def patched(name: str) -> dict[str, list[Record]]:
    return by("variant", records_of(name))


def share(record: Record, step: int) -> list[float]:
    """Restored share of a step, layer by layer."""
    return (record["arrays"]["moved"][:, step] / record["difference"][step]).tolist()


def test_the_faithful_answer_reads_the_last_step_through_attention_of_the_first_layer() -> None:
    # as knockout says too: attention of layer 1 is where its answer looks at the last step
    for variant, of_first in (("answer.attention", 1.0), ("step.residual", 0.0)):
        for direction in ("denoise", "noise"):
            for r in patched("faithful")[f"{variant}.{direction}"]:
                assert r["not_patched"] == ["no_effect", "no_effect", None]
                assert r["difference"][2] > 10
                assert share(r, 2)[0] == pytest.approx(of_first, abs=0.05)


@pytest.mark.parametrize("name", ["hint", "hint_no_deletions"])
def test_what_ignores_its_steps_has_nothing_to_restore(name: str) -> None:
    for records in patched(name).values():
        for r in records:
            assert r["not_patched"] == ["no_effect"] * 3
            assert max(map(abs, r["difference"])) < 0.5
            assert r["moved"] == [None] * 9


def test_select_differs_most_in_the_step_that_the_question_names() -> None:
    named = {q.id: int(q.text.split()[-2]) - 1 for q in questions("select", ITEMS, seed=0)}
    for r in patched("select")["answer.residual.denoise"]:
        assert int(np.argmax(r["difference"])) == named[r["item"]]


@pytest.mark.parametrize("name", ["faithful", "select"])
def test_after_the_last_layer_the_answers_states_are_all_and_the_steps_nothing(name: str) -> None:
    for direction in ("denoise", "noise"):
        for place, whole in (("answer", 1.0), ("step", 0.0)):
            for r in patched(name)[f"{place}.residual.{direction}"]:
                for i, why in enumerate(r["not_patched"]):
                    if why is None:
                        assert share(r, i)[-1] == pytest.approx(whole, abs=1e-3)


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2"])
def test_a_cell_is_what_branches_of_its_own_give(family: str) -> None:
    model = tiny(family)
    trace, words = written(model), asking(closer_ids=(10, 11))
    settings = PatchingSettings(least=1e-6, layers=2)
    records = {r["variant"]: r for r in patching(model, trace, words, settings)}
    r = records["step.attention.denoise"]
    assert r["layers"] == [2, 3]
    i = r["not_patched"].index(None)
    step = trace.counted_steps[i]
    other = corrupt_step(trace, step.index, 0, model.encode, model.pieces)
    real, corrupted = (prefix_ids(model, words, t) for t in (trace, other))
    start = len(trace.prompt_ids)
    positions = tuple(range(start + step.tokens[0], start + step.tokens[1]))
    after = tuple(range(start + len(trace.reasoning_ids), len(real)))
    labels = [model.encode(surface) for _, surface in words.labels]

    def odds(ids, *edits) -> float:
        (said,) = model.ask([ids], [labels], edits=[edits], execution="loop")
        names = [name for name, _ in words.labels]
        return log_odds(log_distribution(said.log_probs, names), r["answer"])

    assert r["difference"][i] == pytest.approx(odds(real) - odds(corrupted), abs=1e-3)
    for site, place in (("attention", "step"), ("mlp", "answer"), ("residual", "step")):
        at = positions if place == "step" else after
        for direction in ("denoise", "noise"):
            donor, into = (real, corrupted) if direction == "denoise" else (corrupted, real)
            (read,) = model.run(
                [Branch(donor, at)], residuals=True, sites=("attention", "mlp")
            ).branches
            assert read.residuals is not None
            values = read.residuals[:, 2] if site == "residual" else read.outputs[site][:, 1]
            found = odds(into, Patch(site, 1, at, values))
            expected = found - odds(corrupted) if direction == "denoise" else odds(real) - found
            moved = records[f"{place}.{site}.{direction}"]["moved"][i]
            assert moved == pytest.approx(expected, abs=2e-3)


def test_steps_that_cannot_be_aligned_are_named() -> None:
    model = tiny("llama")
    (r, *_) = patching(model, written(model), asking(), PatchingSettings(least=1e-6))
    # bytes are tokens here: a word turned into its opposite is of another length
    assert r["not_patched"] == [None, "length_differs", None, "not_corruptible"]
    assert r["difference"][1] is r["difference"][3] is r["corrupted_text"][1] is None
    assert r["n_patched"] == 2
    assert np.isnan(r["arrays"]["moved"][:, 1]).all()
    (r,) = patching(
        model, written(model, "Well then, okay. Oh my, yes indeed."), asking(), PatchingSettings()
    )
    assert r["excluded"] == "no_aligned_corruption"


def test_a_model_without_a_tree_has_its_stream_patched() -> None:
    model = tiny("falcon")
    found = patching(model, written(model), asking(), PatchingSettings(least=1e-6))
    assert {r["site"] for r in found} == {"residual"}
    assert {r["execution"] for r in found} == {"loop"}
    only = PatchingSettings(sites=("mlp",))
    (r,) = patching(model, written(model), asking(), only)
    assert r["excluded"] == "no_patching_site"


def test_layers_are_spread_to_the_last() -> None:
    assert spaced(30, 3) == [9, 19, 29]
    assert spaced(3, 8) == [0, 1, 2]
    assert spaced(5, 0) == [0, 1, 2, 3, 4]
    assert spaced(5, 1) == [4]
