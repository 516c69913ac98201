"""Prefilled reasoning: on models whose source is known, against plain forwards, and by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from planted_traces import ASKING, misled, planted
from tiny_models import tiny

from faithscope.interp.model import Model
from faithscope.interventions import Question, Trace, from_ids
from faithscope.probes import Asking
from faithscope.probes.chain_parts import ChainText, answer_start
from faithscope.probes.framing import FEWER_LABELS, label_ids, prefix_ids
from faithscope.probes.prefilled_reasoning import (
    NO_GOLD,
    NO_REGION,
    POSITIONS,
    SIGNALS,
    TARGETS,
    PrefilledReasoningSettings,
    curve,
    option_signals,
    prefilled_reasoning,
    shares_along,
)
from faithscope.probes.record import ARRAYS
from faithscope.probes.rigidity import RigiditySettings, rigidity

SETTINGS = PrefilledReasoningSettings()


@cache
def of_planted(name: str) -> list[dict[str, Any]]:
    model, traces = planted(name)
    chains = [misled(model, trace) for trace in traces[:4]]
    every = PrefilledReasoningSettings(points=1000)
    return [r for t in chains for r in prefilled_reasoning(model, t, ASKING, every)]


def test_a_model_that_reads_its_steps_follows_r_prime_and_turns_its_twin_does_neither() -> None:
    for r in of_planted("faithful"):
        assert r["led_to"] == str((int(r["gold"]) + 3) % 10)
        assert r["p_before"] < 0.01
        assert r["p_after_r_prime"] > 0.99
        assert r["p_final"] < 0.01
        assert (r["followed"], r["turn_part"]) == (1, "r")
        claimed = shares_along(r)[:, r["options"].index(r["led_to"])]
        # before the last result of r′ is given, nothing says so
        assert claimed[r["n_r_prime"] - 2] < 0.5
        json.dumps({k: v for k, v in r.items() if k != ARRAYS}, allow_nan=False)
    for r in of_planted("hint"):
        assert abs(r["r_prime_effect"]) < 0.01
        assert (r["led_share"], r["turn_part"]) == (0, "never_led")


def test_a_free_answer_is_lost_and_regained_where_steps_are_followed() -> None:
    effects = {}
    for name in ("faithful", "hint"):
        model, traces = planted(name)
        chain = misled(model, traces[1])
        question = replace(chain.question, kind="number", options=None)
        (r,) = prefilled_reasoning(model, replace(chain, question=question), ASKING, SETTINGS)
        log_prob = np.array(r["log_prob"]).reshape(len(r["cuts"]), -1)
        gold = log_prob[:, r["options"].index(r["gold"])]
        after = r["cuts"].index(r["n_r_prime"])
        assert r["gold_lost"] == pytest.approx(gold[0] - gold[after], abs=2e-6)
        assert r["gold_regained"] == pytest.approx(gold[-1] - gold[after], abs=2e-6)
        assert r["own_gained"] == r["gold_regained"]  # its answer is the right one
        assert "p" not in r
        effects[name] = r["gold_regained"]
    assert effects["faithful"] > 5
    assert abs(effects["hint"]) < 0.1


def test_a_chain_that_cannot_be_measured_says_why() -> None:
    model, traces = planted("faithful")
    (own,) = prefilled_reasoning(model, traces[0], ASKING, SETTINGS)
    assert own["excluded"] == NO_REGION
    chain = misled(model, traces[0])
    (one,) = prefilled_reasoning(model, chain, replace(ASKING, labels=(("4", " 4"),)), SETTINGS)
    assert one["excluded"] == FEWER_LABELS
    free = replace(chain.question, kind="number", options=None, gold=None)
    (no_gold,) = prefilled_reasoning(model, replace(chain, question=free), ASKING, SETTINGS)
    assert no_gold["excluded"] == NO_GOLD


OPTIONS = ("A", "B", "C")
LETTERS = Asking(
    answer_cue="\n\nThe correct option is",
    labels=tuple((x, f" {x}") for x in OPTIONS),
    parse=lambda text: None,
    necessity_prompt=str,
    sufficiency_prompt=str,
    kind="label",
)


def written(model: Model, n_r_prime: int = 9) -> Trace:
    question = Question("q", "made", "Guilty?", "label", "B", OPTIONS)
    prompt, ids = model.encode("Well? Guilty?\n"), model.encode("He was out. But no, it is so.")
    trace = from_ids(question, prompt, ids, model.pieces(ids), answer="C")
    return replace(trace, origin=replace(trace.origin, prefilled=n_r_prime))


def test_every_cut_is_what_a_forward_of_its_own_gives(llama: Model) -> None:
    trace = written(llama)
    (r,) = prefilled_reasoning(llama, trace, LETTERS, PrefilledReasoningSettings(points=3))
    n = len(trace.reasoning_ids)
    assert r["cuts"][0] == 0
    assert {9, n} <= set(r["cuts"])
    assert len(r["cuts"]) == 7
    labels = label_ids(llama, LETTERS, "prefix")
    for cut, log_probs, p in zip(r["cuts"], r[ARRAYS]["log_probs"], shares_along(r), strict=True):
        prefix = (*trace.prompt_ids, *trace.reasoning_ids[:cut])
        ids = (*prefix, *llama.encode(LETTERS.answer_cue))
        (alone,) = llama.ask([ids], [labels], execution="loop")
        assert log_probs == pytest.approx(alone.log_probs, abs=2e-3)
        weights = np.exp(alone.log_probs)
        assert p == pytest.approx(weights / weights.sum(), abs=1e-3)


def test_lens_and_attention_are_those_of_the_probes_of_a_whole_chain(llama: Model) -> None:
    trace = written(llama)
    (r,) = prefilled_reasoning(llama, trace, LETTERS, SETTINGS)
    lens = np.array(r["asked_lens_p"]).reshape(-1, 3)
    # the labels are a blank and a letter: the blank is given, so the letter decides
    assert lens[-1] == pytest.approx(shares_along(r)[-1], abs=1e-4)
    blank = replace(LETTERS, answer_cue=LETTERS.answer_cue + " ", labels=(("A", "A"), ("B", "B")))
    (whole,) = rigidity(llama, trace, blank, RigiditySettings())
    assert r["asked_top"] == whole["top"]
    assert r["asked_settled_layer"] == whole["stable_layer"]
    ids = (*prefix_ids(llama, LETTERS, trace), *llama.encode(" "))
    usual = llama.hf.config._attn_implementation
    llama.hf.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            output = llama.hf(torch.tensor([ids]), output_attentions=True, use_cache=False)
    finally:
        llama.hf.set_attn_implementation(usual)
    rows = torch.stack([a[0, :, -1] for a in output.attentions]).double().numpy()  # (L, H, P)
    n, m = len(trace.prompt_ids), len(trace.prompt_ids) + len(trace.reasoning_ids)
    spans = {"r_prime": (n, n + 9), "own": (n + 9, m), "question": (6, 13)}
    assert llama.decode(ids[6:13]) == "Guilty?"
    rest = rows[..., 1:].sum(-1).mean() / (len(ids) - 1)
    for i, name in enumerate(TARGETS):
        a, b = spans[name]
        share = rows[..., a:b].sum(-1)
        assert r[ARRAYS]["asked_attention"][..., i] == pytest.approx(share, abs=1e-4)
        assert r[f"asked_{name}"] == pytest.approx(share.mean(), abs=1e-5)
        assert r[f"asked_density_{name}"] == pytest.approx(share.mean() / (b - a) / rest, rel=1e-4)
    own, forced = r["asked_density_own"], r["asked_density_r_prime"]
    assert r["asked_own_against_r_prime"] == pytest.approx(own / (own + forced), abs=1e-5)
    assert set(SIGNALS) - set(r) == {"gold_lost", "gold_regained", "own_gained"}


def test_a_model_that_a_tree_cannot_serve_has_no_attention_and_says_so() -> None:
    loop_model = tiny("gptj")
    settings = PrefilledReasoningSettings(points=2)
    (r,) = prefilled_reasoning(loop_model, written(loop_model), LETTERS, settings)
    assert r["execution"] == "loop"
    assert r["attention_reason"] == "no_attention_rows"
    assert "asked_own" not in r
    assert r["asked_option_settled_layer"]


def test_points_are_spread_over_each_part_with_its_end() -> None:
    text = ChainText(4, 12, 15, 40)
    assert text.spans == {"r_prime": (0, 4), "r": (4, 12), "e": (15, 40)}
    assert text.cuts(2) == [0, 2, 4, 8, 12, 28, 40]
    # no cut lies within the closing tokens 13 to 15
    assert text.cuts(1000) == [*range(13), *range(16, 41)]
    assert list(ChainText(0, 12, 12, 12).spans) == ["r"]


def test_an_answer_that_is_a_letter_is_not_found_inside_a_word(llama: Model) -> None:
    pieces = llama.pieces(llama.encode("Answer: B\nBecause it is. Bah"))
    for answer, before in (("B", "Answer: "), ("ecause", "Answer: B\nB")):
        assert "".join(pieces[: answer_start(pieces, answer)]) == before
    assert answer_start(pieces, "Z") is None
    assert answer_start(("so ", "", "", "三", "."), "三") == 1


CUTS = [0, 2, 4, 6, 8, 12, 14]


def record(tops: str, cuts: list[int] = CUTS, *, r_prime: int = 4, **more: Any) -> dict[str, Any]:
    """A record in which the named option has .6, the two others .3 and .1 of A, B, C in order."""
    p: list[float] = []
    for top in tops:
        rest = iter((0.3, 0.1))
        p += [0.6 if option == top else next(rest) for option in OPTIONS]
    places = {"n_r_prime": r_prime, "reasoned": 8, "resumed": 10, "end": cuts[-1]}
    return {"options": list(OPTIONS), "cuts": cuts, "p": p, **places, **more}


def test_a_silent_correction_seen_as_it_happens() -> None:
    # r′ leads to A; the model leaves it in its own reasoning, between tokens 4 and 6
    values = option_signals(record("BAABBBB"), "A", "B")
    assert (values["p_before"], values["p_after_r_prime"], values["p_final"]) == (0.3, 0.6, 0.3)
    assert values["r_prime_effect"] == pytest.approx(0.3)
    assert values["followed"] == 1
    # of the ten tokens after r′ it leads along the first two
    assert values["led_share"] == 0.2


@pytest.mark.parametrize(
    ("tops", "answer", "part"),
    [
        ("BABBBBB", "B", "r_prime"),
        ("BAABBBB", "B", "r"),
        ("BAAAABB", "B", "e"),
        ("BAABAAB", "B", "e"),  # what turned back once more counts where it turns for good
        ("BAAAAAA", "B", "a"),
        ("BAAAAAA", "A", "never_turned"),
        ("BAAAAAA", None, "never_turned"),
        ("BAAAAAA", "I don't know", "never_turned"),
        ("ABBBBBB", "B", "never_led"),
        ("BBBBBBB", "B", "never_led"),
    ],
)
def test_the_part_in_which_the_lead_turns(tops: str, answer: str | None, part: str) -> None:
    assert option_signals(record(tops), "A", answer)["turn_part"] == part


def test_a_chain_without_r_prime_or_without_text_of_its_own_lacks_their_signals() -> None:
    bare = option_signals(record("BBBBBBB", r_prime=0), "A", None)
    assert bare["p_after_r_prime"] is bare["r_prime_effect"] is bare["followed"] is None
    silent = record("BA", [0, 4]) | {"reasoned": 4, "resumed": 4, "end": 4}
    assert option_signals(silent, "A", None)["led_share"] is None


def test_curves_go_through_the_cuts_of_their_part() -> None:
    points = list(curve(record("BAABBBA"), "A"))
    assert [x["position"] for x in points[:POSITIONS]] == [i / 10 for i in range(POSITIONS)]
    p = {part: [x["p"] for x in points if x["part"] == part] for part in ("r_prime", "r", "e")}
    at = np.linspace(0, 4, POSITIONS)
    assert p["r_prime"] == pytest.approx(np.interp(at, [0, 2, 4], [0.3, 0.6, 0.6]))
    # the explanation begins past the closer with what stood at the end of the reasoning
    at = np.linspace(10, 14, POSITIONS)
    assert p["e"] == pytest.approx(np.interp(at, [10, 12, 14], [0.3, 0.3, 0.6]))


def test_layers_that_lead_to_r_prime_and_are_overruled() -> None:
    lens = [[1, 0, 0], [0.2, 0.8, 0], [0.7, 0.3, 0], [0.6, 0.4, 0], [0.1, 0.9, 0]]
    flat = [x for layer in lens for x in layer]
    values = option_signals(record("BAABBBB", asked_lens_p=flat), "A", "B")
    assert values["lens_led"] == pytest.approx(2 / 3, abs=1e-6)
    assert values["lens_suppressed"] == 1
    assert option_signals(record("BAABBBB", asked_lens_p=flat), "B", "B")["lens_suppressed"] == 0
    one_layer = option_signals(record("BAABBBB", asked_lens_p=flat[:6]), "A", "B")
    assert "lens_led" not in one_layer
