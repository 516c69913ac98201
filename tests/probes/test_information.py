"""Information: against transformers' loss and whole logits, and on models of known source."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from planted_traces import ASKING, ITEMS, planted
from tiny_models import tiny

from faithscope.interp.model import Model
from faithscope.interventions import Origin, Question, Trace, from_ids
from faithscope.probes import Asking, Record
from faithscope.probes.information import InformationSettings, information, without_question
from faithscope.probes.step_information import KINDS, Variants, measure, mutual_information


@cache
def told(name: str) -> list[Record]:
    model, traces = planted(name)
    return [information(model, t, ASKING, InformationSettings())[0] for t in traces]


def mean(name: str, field: str) -> np.ndarray:
    return np.mean([r[field] for r in told(name)], axis=0)


def naive(model: Model, prompt: tuple[int, ...], trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """(log p, entropy) of the reasoning's tokens, from the whole logits in doubles."""
    ids = torch.tensor([[*prompt, *trace.reasoning_ids]])
    with torch.inference_mode():
        log_p = torch.log_softmax(model.hf(ids).logits[0].double(), -1)[len(prompt) - 1 : -1]
    said = log_p.gather(1, torch.tensor(trace.reasoning_ids)[:, None])[:, 0]
    return said.numpy(), -(log_p.exp() * log_p).sum(-1).numpy()


def test_perplexity_is_the_exp_of_the_loss_that_transformers_takes() -> None:
    model, traces = planted("faithful")
    for trace, found in zip(traces[:4], told("faithful"), strict=False):
        left = without_question(model, trace)
        assert isinstance(left, tuple)
        for prompt, field in ((trace.prompt_ids, "perplexity"), (left, "perplexity_without")):
            ids = torch.tensor([[*prompt, *trace.reasoning_ids]])
            labels = ids.clone()
            labels[:, : len(prompt)] = -100
            with torch.inference_mode():
                loss = float(model.hf(ids, labels=labels).loss)
            assert found[field] == pytest.approx(math.exp(loss), rel=1e-4)


def test_gains_are_what_the_whole_logits_give() -> None:
    model, traces = planted("select")
    for trace, found in zip(traces[:4], told("select"), strict=False):
        left = without_question(model, trace)
        assert isinstance(left, tuple)
        given, open_given = naive(model, trace.prompt_ids, trace)
        bare, open_bare = naive(model, left, trace)
        paper = (-np.exp(bare) * bare).sum() - (-np.exp(given) * given).sum()
        assert found["paper_gain"] == pytest.approx(paper, abs=1e-4)
        assert found["paper_gain_per_token"] == pytest.approx(paper / len(given), abs=1e-5)
        assert found["pointwise_gain"] == pytest.approx((given - bare).mean(), abs=1e-4)
        assert found["pointwise_gain_total"] == pytest.approx((given - bare).sum(), abs=1e-3)
        assert found["entropy_gain"] == pytest.approx((open_bare - open_given).mean(), abs=1e-4)
        assert found["arrays"]["surprisal_without"] == pytest.approx(-bare, abs=1e-4)
        assert found["arrays"]["entropy"] == pytest.approx(open_given, abs=1e-4)
        for step, of_step in zip(trace.counted_steps, found["step_surprisal_without"], strict=True):
            assert of_step == pytest.approx(-bare[slice(*step.tokens)].mean(), abs=1e-4)


def test_the_question_is_cut_out_and_every_other_id_stays() -> None:
    model, traces = planted("faithful")
    # planted models are asked in nothing but the question
    assert without_question(model, traces[0]) == traces[0].prompt_ids[:1]
    byte = tiny("llama")
    trace = bytes_trace(byte, "number")
    left = without_question(byte, trace)
    assert isinstance(left, tuple)
    assert byte.decode(left) == "Think first. \nAnswer:"
    assert tuple(byte.encode("Think first. What is 1 + 2?\nAnswer:")) == trace.prompt_ids


def test_options_go_with_the_question() -> None:
    byte = tiny("llama")
    trace = bytes_trace(byte, "choice", prompt="Q: Who? A. me B. you Answer:")
    trace = replace(trace, question=replace(trace.question, text="Who?", options=("me", "you")))
    left = without_question(byte, trace)
    assert isinstance(left, tuple)
    assert byte.decode(left) == "Q:  Answer:"


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [("Think first.", "question_not_found"), ("What is 1 + 2?", "nothing_but_the_question")],
)
def test_without_a_prompt_to_compare_with_the_rest_is_measured(prompt: str, reason: str) -> None:
    byte = tiny("llama")
    trace = bytes_trace(byte, "label", prompt=prompt)
    (found,) = information(byte, trace, asking_of("label"), InformationSettings())
    assert found["no_comparison"] == reason
    for field in ("pointwise_gain", "paper_gain", "perplexity_without", "step_surprisal_without"):
        assert found[field] is None
    assert "surprisal_without" not in found["arrays"]
    assert found["perplexity"] > 1
    assert found["mean_mi"] is not None


def test_step_information_is_that_of_single_questions() -> None:
    model, traces = planted("faithful")
    trace = traces[0]
    by = {
        how: measure(
            model, trace, ASKING, InformationSettings(execution=how), replacements=2, seed=0
        )
        for how in ("auto", "loop")
    }
    for one, other in zip(by["auto"].given_rest, by["loop"].given_rest, strict=True):
        assert one.kinds == other.kinds == (*KINDS, "replaced")
        assert one.p == pytest.approx(other.p, abs=1e-5)
        assert one.information == pytest.approx(other.information, abs=1e-4)


def test_information_lies_between_nothing_and_what_there_is_to_know() -> None:
    for name in ("faithful", "hint", "hint_no_deletions", "select"):
        for r in told(name):
            kinds = r["arrays"]["kind"]
            for i in range(r["n_steps"]):
                present = [KINDS[k] for k in kinds[i] if k >= 0]
                weights = Variants(tuple(present), np.ones((len(present), 1))).weights
                drawn = float(-(weights * np.log(weights)).sum())
                for field in ("step_mi", "alone_mi"):
                    assert 0 <= r[field][i] <= min(math.log(10), drawn) + 1e-5
                for field in ("step_mi_share", "alone_share"):
                    assert 0 <= r[field][i] <= 1
                for kind in KINDS[1:]:
                    assert 0 <= r[f"step_mi_{kind}"][i] <= math.log(2) + 1e-5
            assert 0 <= r["bound"] <= r["informative"] <= 1


def test_texts_that_answer_alike_tell_nothing_and_texts_that_part_tell_all() -> None:
    same = np.tile([0.2, 0.3, 0.5], (4, 1))
    alike = Variants(KINDS, same)
    assert alike.information == 0
    assert alike.share(0.01) == 0
    parted = Variants(KINDS, np.eye(4))
    assert parted.weights.tolist() == [0.25] * 4
    assert parted.information == pytest.approx(math.log(4))
    assert parted.share(0.01) == pytest.approx(1)
    assert parted.against("removed") == pytest.approx(math.log(2))
    settled = Variants(KINDS, np.array([[1 - 1e-6, 1e-6]] + [[1, 0]] * 3))
    assert settled.information > 0
    assert settled.share(0.01) == 0


def test_kinds_weigh_the_same_however_many_texts_they_have() -> None:
    texts = Variants(("real", "removed", "replaced", "replaced"), np.eye(4))
    assert texts.weights == pytest.approx([1 / 3, 1 / 3, 1 / 6, 1 / 6])
    assert texts.against("corrupted") is None


def test_the_divergence_is_scipys() -> None:
    from scipy.spatial.distance import jensenshannon

    draw = np.random.default_rng(0)
    for _ in range(20):
        p = draw.dirichlet(np.ones(5), 2)
        peer = float(jensenshannon(p[0], p[1])) ** 2
        assert mutual_information(p, np.array([0.5, 0.5])) == pytest.approx(peer, abs=1e-12)


def test_the_faithful_answer_is_in_its_last_step_the_twins_in_none() -> None:
    # the last step is the one that the answer is read off, whatever stands before it
    first, second, last = mean("faithful", "step_mi")
    assert max(first, second) < 0.01
    assert last > 0.5
    assert max(mean("hint", "step_mi")) < 0.01
    assert mean("faithful", "informative") == pytest.approx(1 / 3)
    assert mean("hint", "informative") == 0


def test_the_confound_is_taken_in_by_the_hole_and_not_by_other_words() -> None:
    """The confound ignores its steps, but never saw a reasoning with a missing step."""
    assert mean("hint_no_deletions", "mean_mi") > mean("faithful", "mean_mi")
    assert min(mean("hint_no_deletions", "step_mi_removed")) > 0.3
    for kind in ("corrupted", "replaced"):
        assert max(mean("hint_no_deletions", f"step_mi_{kind}")) < 0.01
        assert mean("faithful", f"step_mi_{kind}")[-1] > 0.5


def test_the_bound_is_nothing_where_one_step_settles_the_answer() -> None:
    """The bound is zero for the model that uses its steps most, not for one that ignores them."""
    assert mean("faithful", "bound") < 0.01
    assert mean("hint_no_deletions", "bound") > 0.3


def test_gains_do_not_tell_the_twins_apart() -> None:
    """They say what the question tells of the words, and the words are the same."""
    for field in ("pointwise_gain", "paper_gain", "entropy_gain"):
        assert mean("hint", field) > 0
        assert mean("faithful", field) > 0
    assert mean("hint", "pointwise_gain") > mean("faithful", "pointwise_gain")


def asking_of(kind: str) -> Asking:
    labels = {
        "choice": (("A", " A"), ("B", " B")),
        "label": (("good", " good"), ("bad", " bad")),
        "number": (("3", " 3"), ("13", " 13")),
        "number without candidates": (),
    }[kind]
    return Asking("\nSo", labels, lambda _: None, str, str, kind.split()[0])  # pyright: ignore


def bytes_trace(
    model: Model, kind: str, prompt: str = "Think first. What is 1 + 2?\nAnswer:"
) -> Trace:
    options = {"choice": ("one", "two"), "label": ("good", "bad")}.get(kind)
    question = Question("q", "t", "What is 1 + 2?", kind, None, options)  # pyright: ignore
    ids = model.encode("First there is 1. Then it gives 3. And so on it goes to the end.")
    pieces = model.pieces(ids)
    prompt_ids = tuple(model.encode(prompt))
    return from_ids(question, prompt_ids, ids, pieces, origin=Origin(model=model.name))


@pytest.mark.parametrize("kind", ["choice", "label", "number", "number without candidates"])
def test_every_kind_of_answer(kind: str) -> None:
    model = tiny("llama")
    trace = bytes_trace(model, kind.split()[0])
    (found,) = information(model, trace, asking_of(kind), InformationSettings())
    assert found["no_comparison"] is None
    assert found["pointwise_gain"] is not None
    if kind.endswith("candidates"):
        assert found["no_step_mi"] == "fewer_than_2_labels"
        assert found["step_mi"] is found["bound"] is found["answer"] is None
        assert "p_steps" not in found["arrays"]
        return
    assert found["no_step_mi"] is None
    assert len(found["step_mi"]) == found["n_steps"] == 3
    # the last step has neither a number nor a word to turn round
    assert found["n_variants"][0] == 5
    assert found["arrays"]["p_steps"].shape == (3, 5, 2)


def test_without_the_steps_the_question_tells_the_same_and_costs_two_forwards() -> None:
    model, traces = planted("select")
    whole, question = InformationSettings(), InformationSettings(steps=False)
    (one,), (other,) = (information(model, traces[1], ASKING, s) for s in (whole, question))
    assert other["no_step_mi"] == "not_asked"
    assert other["step_mi"] is other["bound"] is other["label_mass"] is None
    costs = ("trie_tokens", "naive_tokens", "arrays", "no_step_mi")
    alike = {k: v for k, v in other.items() if v is not None and k not in costs}
    assert alike == {k: one[k] for k in alike}
    assert {"perplexity", "paper_gain", "pointwise_gain", "step_surprisal"} <= alike.keys()
    assert other["trie_tokens"] < one["trie_tokens"] / 2
    # runs that were begun before there was a choice keep their config and the ids of their units
    assert "steps" not in whole.decides() | whole.model_dump(mode="json")
    assert question.model_dump(mode="json")["steps"] is False
    assert question.decides() == whole.decides() | {"steps": False}


def test_seeds_choose_the_steps_put_in() -> None:
    model, traces = planted("select")
    one, same, other = (
        information(model, traces[1], ASKING, InformationSettings(replacements=1, seed=seed))[0]
        for seed in (0, 0, 7)
    )
    assert one["step_mi"] == same["step_mi"]
    assert one["step_mi"] != other["step_mi"]
    assert len(told("select")) == ITEMS
