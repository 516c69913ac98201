"""Graded necessity, NLDD and TTS: by hand, against single questions, on planted models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from planted_traces import ASKING, ITEMS, of_planted, planted
from tiny_models import tiny

from faithscope.experiments.data.planted.questions import questions
from faithscope.interp.model import Model
from faithscope.interventions import Question, Trace, corrupt_step, from_ids, truncate_after_step
from faithscope.probes import Asking
from faithscope.probes.causal_effects import (
    STEP_MEASURES,
    CausalEffectsSettings,
    causal_effects,
    effects,
)
from faithscope.probes.framing import BASELINE
from faithscope.probes.graded import logit_difference, nldd, true_thinking_score

STEPS = 3
EFFECTS_OF_CORRUPTION = ("corrupted_log_odds", "corrupted_tv", "nldd", "nldd_own")


def logs(**p: float) -> dict[str, float]:
    return {k: math.log(v) for k, v in p.items()}


measured = of_planted(causal_effects, CausalEffectsSettings())


def by_step(name: str, measure: str) -> list[float]:
    """The mean over items, step by step."""
    rows = [r[measure] for r in measured(name)]
    assert len(rows) == ITEMS
    return [sum(column) / len(column) for column in zip(*rows, strict=True)]


def test_nldd_by_hand_and_at_its_edges():
    assert logit_difference(logs(a=0.6, b=0.3, c=0.1), "a") == pytest.approx(math.log(2))
    assert logit_difference(logs(a=0.6, b=0.3, c=0.1), "c") == pytest.approx(-math.log(6))
    assert nldd(4.0, 1.0) == 0.75
    assert nldd(4.0, 4.0) == 0
    assert nldd(4.0, -4.0) == 2
    assert nldd(4.0, 6.0) == -0.5
    # a lead that is negative is divided by its size: what falls further counts as lost
    assert nldd(-2.0, -3.0) == 0.5
    assert nldd(1e-6, -5.0) == 0
    assert nldd(-1e-6, -5.0) == 0
    assert nldd(2e-6, 0.0) == pytest.approx(1)
    assert nldd(math.inf, 1.0) is None
    assert nldd(1.0, -math.inf) is None
    assert nldd(math.nan, 1.0) is None


def test_true_thinking_by_hand():
    assert true_thinking_score((0.9, 0.4), (0.2, 0.5)) == pytest.approx(0.4)
    assert true_thinking_score((0.9, 0.9), (0.2, 0.2)) == 0
    assert true_thinking_score((1.0, 0.0), (0.0, 1.0)) == 1


def test_every_effect_by_hand():
    """Two steps: the first cannot be corrupted, and the second has no context to perturb."""
    found = {
        BASELINE: logs(a=0.6, b=0.3, c=0.1),
        ("removed", 0): logs(a=0.6, b=0.3, c=0.1),
        ("exit", 0): logs(a=0.2, b=0.3, c=0.5),
        ("removed", 1): logs(a=0.2, b=0.7, c=0.1),
        ("corrupted", 1): logs(a=0.4, b=0.4, c=0.2),
        ("exit", 1): logs(a=0.6, b=0.3, c=0.1),
        ("exit_corrupted", 1): logs(a=0.3, b=0.6, c=0.1),
    }
    made = effects(found, 2, "b", "a")
    read = {f"{kind}{what}" for kind in ("removed", "corrupted") for what in ("", "_margin")}
    assert set(made) == {*STEP_MEASURES, *read}
    assert (made["removed"], made["corrupted"]) == (["a", "b"], [None, "a"])
    # the closer of .6 against .3 and of .7 against .2, and of the same and a tie
    assert made["removed_margin"][1] == pytest.approx(math.log(0.6 / 0.3), abs=1e-6)
    assert made["corrupted_margin"] == [None, 0]
    assert made["graded_necessity"][0] == made["removed_tv"][0] == 0
    assert made["graded_necessity"][1] == pytest.approx(math.log(1.5 / 0.25), abs=1e-6)
    assert made["removed_tv"][1] == pytest.approx(0.4)
    assert made["removed_flips"] == [False, True]
    assert made["corrupted_log_odds"][1] == pytest.approx(math.log(1.5 / (2 / 3)), abs=1e-6)
    assert made["corrupted_flips"] == [None, False]
    # own answer a leads by log 2, now by nothing; gold b trailed by log 2, now by nothing
    assert made["nldd_own"] == [None, 1]
    assert made["nldd"] == [None, -1]
    assert made["nldd_own_truncated"] == [None, 2]
    assert made["nldd_truncated"] == [None, -2]
    assert made["tts_intact"] == [None, pytest.approx(0.3)]
    assert made["tts_perturbed"] == made["tts"] == [None, None]
    found |= {("exit_context", 1): logs(a=0.5, b=0.4, c=0.1)}
    found |= {("exit_both", 1): logs(a=0.4, b=0.5, c=0.1)}
    made = effects(found, 2, None, "a")
    assert made["tts_perturbed"][1] == pytest.approx(0.1)
    assert made["tts"][1] == pytest.approx(0.2)
    assert made["nldd"] == made["nldd_truncated"] == [None, None]


def test_every_branch_is_what_a_question_of_its_own_gives():
    model, traces = planted("select")
    trace, found = traces[0], measured("select")[0]
    arrays = found["arrays"]
    labels = [model.encode(surface) for _, surface in ASKING.labels]

    def p(edited: Trace) -> np.ndarray:
        ids = (*edited.prompt_ids, *edited.reasoning_ids, *model.encode(ASKING.answer_cue))
        (alone,) = model.ask([ids], [labels], execution="loop")
        weights = np.exp(np.array(alone.log_probs))
        return weights / weights.sum()

    def corrupted(edited: Trace, step: int) -> Trace:
        return corrupt_step(edited, step, 0, model.encode, model.pieces)

    assert np.allclose(arrays["baseline"], p(trace), atol=1e-5)
    assert found["options"][int(arrays["baseline"].argmax())] == found["answer"]
    assert np.allclose(arrays["corrupted"][1], p(corrupted(trace, 1)), atol=1e-5)
    context = corrupted(corrupted(trace, 0), 1)
    for i, (intact, perturbed) in enumerate(
        [(trace, None), (trace, corrupted(trace, 0)), (trace, context)]
    ):
        for row, edited in ((0, intact), (1, perturbed)):
            if edited is None:
                assert np.isnan(arrays["exits"][i, row]).all()
                continue
            wanted = [p(truncate_after_step(x, i)) for x in (edited, corrupted(edited, i))]
            assert np.allclose(arrays["exits"][i, row], wanted, atol=1e-5)


def test_probabilities_sum_to_one_and_the_last_exit_is_the_whole_reasoning():
    for r in measured("faithful"):
        for name, p in r["arrays"].items():
            sums = p[~np.isnan(p).any(axis=-1)].sum(axis=-1)
            assert sums.size
            assert np.allclose(sums, 1, atol=1e-5), name
        # one node of the forest: not nearly equal, the same
        assert (r["arrays"]["exits"][-1, 0, 0] == r["arrays"]["baseline"]).all()
        assert (r["arrays"]["exits"][-1, 0, 1] == r["arrays"]["corrupted"][-1]).all()
        assert r["nldd_truncated"][-1] == r["nldd"][-1]


# planted truth: what each measure says of each model, step by step


def test_the_faithful_model_is_credited_with_its_last_step_alone():
    """Frozen edits show what the answer is read off: earlier results stand in later steps."""
    for measure in EFFECTS_OF_CORRUPTION:
        first, second, last = by_step("faithful", measure)
        assert max(abs(first), abs(second)) < 0.2, measure
        assert last > 0.95, measure
    # deleting the last step leaves one that may happen to end in the same digit
    removed = by_step("faithful", "removed_tv")
    assert max(removed[:2]) < 0.01
    assert removed[2] > 0.5
    assert by_step("faithful", "graded_necessity")[2] > 5
    assert all(r["tts"][2] > 0.95 for r in measured("faithful"))


def test_the_hint_follower_is_credited_with_none():
    for measure in ("removed_tv", "corrupted_tv", "nldd", "nldd_own", "nldd_own_truncated"):
        assert max(map(abs, by_step("hint", measure))) < 0.05, measure
    for r in measured("hint"):
        assert max(map(abs, r["graded_necessity"])) < 1
        assert max(r["tts"][1:]) < 0.01
        assert r["tts_intact"][0] < 0.01


def test_removal_credits_the_confound_and_so_does_cutting_off_after_the_corruption():
    """The confound ignores its steps, but never saw a reasoning with a missing step."""
    assert min(by_step("hint_no_deletions", "removed_tv")) > 0.5
    assert min(by_step("hint_no_deletions", "graded_necessity")) > 5
    # a reasoning that ends early is a deletion too
    assert min(by_step("hint_no_deletions", "nldd_own_truncated")[:2]) > 0.5
    for measure in EFFECTS_OF_CORRUPTION:
        assert max(map(abs, by_step("hint_no_deletions", measure))) < 0.1, measure
    for r in measured("hint_no_deletions"):
        assert max(r["tts"][1:]) < 0.1


def test_corruption_finds_the_step_that_select_names_early_exits_do_not():
    named = {q.id: int(q.text.split()[-2]) - 1 for q in questions("select", ITEMS, seed=0)}
    assert set(named.values()) == {0, 1, 2}

    def hits(measure: str) -> float:
        found = [
            max(range(STEPS), key=lambda i: -1 if r[measure][i] is None else abs(r[measure][i]))
            == named[r["item"]]
            for r in measured("select")
        ]
        return sum(found) / ITEMS

    for measure in EFFECTS_OF_CORRUPTION:
        assert hits(measure) == 1, measure
    # where a step is missing, or the reasoning ends early, "step 2" names no place any more
    for measure in ("graded_necessity", "removed_tv", "nldd_own_truncated", "tts"):
        assert hits(measure) < 0.75, measure


@pytest.mark.parametrize(("name", "p"), [("mixture_25", 0.25), ("mixture_50", 0.5)])
def test_total_variation_recovers_a_mixture_where_flips_are_coarse(name, p):
    first, second, last = by_step(name, "corrupted_tv")
    assert max(first, second) < 0.05
    assert last == pytest.approx(p, abs=0.1)
    # an answer that the steps decide a quarter of the time flips never, not one time in four
    if p < 0.5:
        assert by_step(name, "corrupted_flips")[2] < 0.1
    assert by_step(name, "tts_intact")[2] == pytest.approx(p, abs=0.1)
    # a lead in log-odds is no share: half of a decision is not half of the lead
    assert 0 < by_step(name, "nldd_own")[2] < 2


# what there is nothing to say of


def text_trace(reasoning: str, gold: str | None = "yes") -> tuple[Model, Trace, Asking]:
    model = tiny("llama")
    # of a number, the right one need not be among those that are scored
    kind = "label" if gold in (None, "yes") else "number"
    question = Question("q", "d", "Is it?", kind, gold, ("yes", "no"))
    ids = model.encode(reasoning)
    trace = from_ids(question, model.encode("Is it?\n"), ids, model.pieces(ids))
    labels = (("yes", " yes"), ("no", " no"))
    return model, trace, Asking("\nSo:", labels, lambda text: None, str, str, "label")


def test_a_step_with_nothing_to_corrupt_says_so():
    model, trace, asking = text_trace(
        "Hm, let us look at these words. It was a good day in May. Then came rain on roofs."
    )
    (found,) = causal_effects(model, trace, asking, CausalEffectsSettings())
    assert found["n_steps"] == 3
    assert found["corruption_rule"] == [None, "word", None]
    assert found["corrupt_excluded"] == ["nothing_to_corrupt", None, "nothing_to_corrupt"]
    assert found["tts_excluded"] == [
        "nothing_to_corrupt",
        "context_not_corruptible",
        "nothing_to_corrupt",
    ]
    for name in ("corrupted_tv", "nldd", "nldd_own", "nldd_truncated", "tts_intact"):
        assert [v is None for v in found[name]] == [True, False, True], name
        assert found[f"mean_{name}"] == found[name][1]
    assert found["tts"] == [None] * 3
    assert found["mean_tts"] is None
    assert None not in found["graded_necessity"]
    assert np.isnan(found["arrays"]["exits"][2, 0, 1]).all()
    assert not np.isnan(found["arrays"]["exits"][2, 1, 0]).any()


def test_the_first_step_has_no_context():
    for r in measured("faithful"):
        assert r["tts_excluded"] == ["no_context", None, None]
        assert r["tts"][0] is None
        assert r["tts_intact"][0] is not None
        assert r["mean_tts"] == pytest.approx(sum(r["tts"][1:]) / 2, abs=1e-6)


@pytest.mark.parametrize("gold", [None, "12"])
def test_without_a_right_answer_among_the_options_only_the_own_lead_is_followed(gold):
    model, trace, asking = text_trace("There are 3 of them here. And there are 4 more.", gold)
    (found,) = causal_effects(model, trace, asking, CausalEffectsSettings())
    assert found["lead"] is None
    assert found["nldd"] == found["nldd_truncated"] == [None, None]
    assert None not in found["nldd_own"]
