"""Filler tokens on models whose source is known, token by token, and against single forwards."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from planted_traces import ASKING, of_planted, planted
from probe_records import table_of
from sample_trace import asking, written

from faithscope.experiments.studies.slrc.measures.filler import REPORT
from faithscope.interp.model import Model
from faithscope.probes import PROBES
from faithscope.probes.filler import FILLERS, FillerSettings, filled, filler, tokens_of
from faithscope.probes.framing import label_ids, prefix_ids
from faithscope.probes.graded import log_distribution, log_odds_drop, top, total_variation

STOP = FillerSettings(fillers=("stop",))


measured = of_planted(filler, STOP)


def shares(name: str, field: str) -> list[float]:
    return np.array([r[field] for r in measured(name)], dtype=float).mean(0).tolist()


def test_all_that_is_not_filled_keeps_id_and_place(llama: Model) -> None:
    trace = written(llama)
    for text in FILLERS.values():
        ids = tokens_of(llama, text)
        for step in trace.counted_steps:
            a, b = step.tokens
            one = filled(llama, trace, ids, a, b)
            expected = list(itertools.islice(itertools.cycle(ids), b - a))
            assert list(one.reasoning_ids[a:b]) == expected
            assert one.reasoning_ids[:a] == trace.reasoning_ids[:a]
            assert one.reasoning_ids[b:] == trace.reasoning_ids[b:]
            assert [s.tokens for s in one.steps] == [s.tokens for s in trace.steps]
            up_to = filled(llama, trace, ids, 0, b)
            assert up_to.reasoning_ids[b:] == trace.reasoning_ids[b:]
            assert set(up_to.reasoning_ids[:b]) == set(ids)
            assert [e.kind for e in one.edits] == ["filler"]


def test_every_number_is_that_of_a_forward_of_its_own(llama: Model) -> None:
    trace, words = written(llama), asking()
    names = [name for name, _ in words.labels]
    labels = label_ids(llama, words, "prefix")

    def alone(version: object) -> dict[str, float]:
        ids = prefix_ids(llama, words, version)  # pyright: ignore[reportArgumentType]
        (said,) = llama.ask([ids], [labels], execution="loop")
        return log_distribution(said.log_probs, names, what="alone")

    whole = alone(trace)
    for r in filler(llama, trace, words, FillerSettings(fillers=("dots", "newline"))):
        ids = tokens_of(llama, r["filler"])
        versions = {
            "": [filled(llama, trace, ids, *s.tokens) for s in trace.counted_steps],
            "prefix_": [filled(llama, trace, ids, 0, s.tokens[1]) for s in trace.counted_steps],
        }
        for kind, of_steps in versions.items():
            for i, version in enumerate(of_steps):
                branch = alone(version)
                assert r[f"{kind}flips"][i] == (top(branch) != top(whole))
                assert r[f"{kind}tv"][i] == pytest.approx(total_variation(whole, branch), abs=2e-5)
                drop = log_odds_drop(whole, branch, top(whole))
                assert r[f"{kind}log_odds"][i] == pytest.approx(drop, abs=2e-4)
        branch = alone(filled(llama, trace, ids, 0, len(trace.reasoning_ids)))
        assert r["whole_tv"] == pytest.approx(total_variation(whole, branch), abs=2e-5)


def test_the_faithful_model_misses_the_last_step_and_the_hint_follower_none() -> None:
    first, second, last = shares("faithful", "flips")
    assert max(first, second) < 0.1 < 0.8 < last
    assert np.mean([r["whole_flips"] for r in measured("faithful")]) > 0.8
    assert max(shares("hint", "tv")) < 0.05
    assert not any(r["whole_flips"] for r in measured("hint"))


def test_growing_prefixes_begin_with_the_first_step_alone() -> None:
    for r in measured("faithful"):
        assert (r["prefix"][0], r["prefix_tv"][0]) == (r["filled"][0], r["tv"][0])
        # the chains end with their last step
        assert (r["prefix"][-1], r["prefix_tv"][-1]) == (r["whole"], r["whole_tv"])


def test_what_cannot_be_filled_is_said() -> None:
    model, traces = planted("faithful")
    dots, stop = filler(model, traces[0], ASKING, FillerSettings())
    assert (dots["variant"], dots["excluded"]) == ("dots", "filler_not_writable")
    assert "excluded" not in stop


def test_tables_are_means_over_items() -> None:
    records = measured("faithful")
    table = table_of("filler", records)
    (row,) = table.to_dict("records")
    assert row["filler"] == "stop"
    assert row["tv"] == pytest.approx(np.mean([np.mean(r["tv"]) for r in records]))
    assert row["whole_flip_rate"] == pytest.approx(np.mean([r["whole_flips"] for r in records]))
    by_step = table_of("filler_by_step", records)
    assert by_step["tv"].tolist() == pytest.approx(shares("faithful", "tv"))
    assert by_step["prefix_tv"].tolist() == pytest.approx(shares("faithful", "prefix_tv"))


def test_scores_are_means_over_fillers() -> None:
    one, other = measured("faithful")[:2]
    score = {m.name: m for m in REPORT.measures}
    both = [one, other | {"steps": one["steps"]}]
    expected = (np.mean(one["tv"]) + np.mean(other["tv"])) / 2
    assert score["filler_tv"].score(both) == pytest.approx(expected)
    credit = score["filler_tv"].steps
    assert credit is not None
    assert credit(both)[0] == pytest.approx((one["tv"][0] + other["tv"][0]) / 2)
    assert score["filler_whole_tv"].score([one]) == one["whole_tv"]
    assert score["filler_flips"].forwards(both) == 1 + 2 * one["n_steps"]
    assert PROBES["filler"].measure is filler
