"""CC-SHAP against exact Owen values of plain forwards, and against figures of BonaFide's code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_traces import asking_of, of_planted
from probe_records import table_of
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.experiments.studies.slrc.measures.cc_shap import REPORT
from faithscope.interp.errors import NoRoom
from faithscope.interp.model import Model
from faithscope.interventions import Question, Trace, from_ids
from faithscope.probes.cc_shap import CcShapSettings, cc_shap, compared, masked_text, shares
from faithscope.probes.owen import Tree, evaluations_of, owen_values, tree_of_tokens

WELL = "Ann (who has 3 pens) gets 4, and Bo's gone."
ASKED = asking(asked=WELL)
measured = of_planted(cc_shap, CcShapSettings(mask=".", evaluations=60), asking_of, most=2)


def of_message(model: Model) -> Trace:
    ids = model.encode("So 3 + 4 makes 7 pens in all. Thus she has 7 pens.")
    prompt = model.encode(f"User: {WELL}\nModel: ")
    question = Question("q1", "made", WELL, "number", gold="7")
    return from_ids(question, prompt, ids, model.pieces(ids), answer="7")


def exact(value: Callable[[np.ndarray], np.ndarray], tree: Tree, n: int) -> np.ndarray:
    """Owen values by recursion: a node's worth beside what is there, half of it each before and
    after its sibling."""
    sizes = [1] * n
    members = [{i} for i in range(n)]
    for one, other in tree:
        sizes.append(sizes[one] + sizes[other])
        members.append(members[one] | members[other])

    def worth(there: set[int]) -> np.ndarray:
        return value(np.array([[i in there for i in range(n)]]))[0]

    def divided(node: int, beside: set[int]) -> np.ndarray:
        if node < n:
            found = np.zeros((n, len(worth(set()))))
            found[node] = worth(beside | {node}) - worth(beside)
            return found
        one, other = tree[node - n]
        halves = [(one, beside), (one, beside | members[other])]
        halves += [(other, beside), (other, beside | members[one])]
        return np.sum([divided(child, at) for child, at in halves], axis=0) / 2

    return divided(n + len(tree) - 1, set())


def test_owen_values_are_those_of_the_recursion_and_add_up() -> None:
    draw = np.random.default_rng(0)
    pieces = ["Ann", " has", " (", "two", " p", "ens", ")", "."]
    n, tree = len(pieces), tree_of_tokens(pieces)
    weights, pairs = draw.normal(size=(n, 3)), draw.normal(size=(n, n, 3))

    def game(sets: np.ndarray) -> np.ndarray:
        there = sets.astype(float)
        return np.tanh(there @ weights) + np.einsum("bi,bj,ijt->bt", there, there, pairs)

    ends = game(np.array([[False] * n, [True] * n]))
    assert owen_values(game, tree, n, 10_000) == pytest.approx(exact(game, tree, n))
    for most in (2, 3, 4, 9, 30):
        asked = 0

        def counted(sets: np.ndarray) -> np.ndarray:
            nonlocal asked
            asked += len(sets)
            return game(sets)

        found = owen_values(counted, tree, n, most)
        assert found.sum(0) == pytest.approx(ends[1] - ends[0])
        assert asked == evaluations_of(most)
    assert owen_values(game, tree, n, 2) == pytest.approx(np.tile((ends[1] - ends[0]) / n, (n, 1)))


def test_values_and_tree_are_those_of_the_fields_code() -> None:
    """Made by `shap_fork` of yoavgur/BonaFide at e5f2a87, with the same game."""
    pieces = ["Bo", "'", "s", " cat", ",", " (", "old", ")", " but", " ok", "ay", "."]
    n, tree = len(pieces), tree_of_tokens(pieces)

    def game(sets: np.ndarray) -> np.ndarray:
        there = sets * (1.0 + np.arange(n))
        return np.stack([there.sum(1) ** 2 / 50, np.sin(there.sum(1))], 1)

    assert tree == TREE
    for most, expected in FIGURES.items():
        assert owen_values(game, tree, n, most)[:, 1] == pytest.approx(expected, abs=1e-6)


TREE = [
    *((9, 10), (0, 1), (13, 2), (6, 7), (3, 4), (12, 11)),
    *((14, 16), (5, 15), (8, 17), (19, 20), (18, 21)),
]
FIGURES = {
    8: [0.099691] * 5 + [0.02969] * 3 + [-0.018387] * 4,
    40: [
        *(-0.005269, -0.005269, -0.005269, 0.300979, 0.213284, 0.076399),
        *(0.006335, 0.006335, -0.060357, 0.048961, 0.048961, -0.111112),
    ],
    10**6: [
        *(-0.002053, -0.005851, -0.007904, 0.383241, 0.131022, -0.004953),
        *(0.022983, 0.07104, -0.060357, -0.012091, -0.003561, 0.002462),
    ],
}
"""Evaluations -> values of the second output."""


def test_the_record_is_that_of_plain_forwards() -> None:
    model = tiny("llama")
    trace = of_message(model)
    (record,) = cc_shap(model, trace, ASKED, CcShapSettings(evaluations=24))
    prompt = "".join(model.pieces(trace.prompt_ids))
    words = model.pieces(model.encode(WELL))

    def profile(target: tuple[int, ...]) -> np.ndarray:
        def value(sets: np.ndarray) -> np.ndarray:
            rows = []
            for there in sets:
                text = prompt.replace(WELL, masked_text(words, there, "..."))
                ids = (*model.encode(text), *target)
                with torch.inference_mode():
                    logits = model.hf(torch.tensor([ids], device=model.device)).logits[0].double()
                p = logits[-len(target) - 1 : -1].softmax(-1).cpu().numpy()
                p = p[range(len(target)), target]
                rows.append(np.log(p / (1 - p)))
            return np.array(rows)

        return owen_values(value, tree_of_tokens(words), len(words), 24)

    of_answer, of_reasoning = profile(tuple(model.encode("7"))), profile(trace.reasoning_ids)
    by_answer, by_token = shares(of_answer), shares(of_reasoning)
    assert record["arrays"]["answer"] == pytest.approx(by_answer.mean(1), abs=2e-3)
    assert record["arrays"]["reasoning"] == pytest.approx(by_token.mean(1), abs=2e-3)
    step = trace.counted_steps[0]
    of_step = by_token[:, slice(*step.tokens)].mean(1)
    assert record["arrays"]["steps"][0] == pytest.approx(of_step, abs=2e-3)
    a, b = by_answer.mean(1), by_token.mean(1)
    assert record["score"] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=5e-3)
    assert (record["n_inputs"], record["texts"]) == (len(words), 48)
    assert REPORT.measures[0].forwards([record]) == 48


def test_missing_tokens_share_a_mask_and_white_space_is_single() -> None:
    words = ["\n", "Ann", " has", "  3", ".", "\n"]
    shown = [masked_text(words, there, "...") for there in ([True] * 6, [False] * 6)]
    assert shown == ["\nAnn has 3.\n", "\n...\n"]
    assert masked_text(words, [True, False, False, True, False, True], "_") == "\n_ 3 _\n"


def test_profiles_are_compared_by_hand() -> None:
    same = compared(np.array([0.5, -0.5, 0.0]), np.array([1.0, -1.0, 0.0]))
    assert (same["score"], same["pearson"]) == (1, 1)
    assert same["mse"] == pytest.approx(1 / 6, abs=1e-6)
    nothing = compared(np.zeros(3), np.array([1.0, -1.0, 0.0]))
    assert (nothing["score"], nothing["pearson"]) == (0, 0)
    assert nothing["kl"] > nothing["jsd"] > 0
    assert shares(np.array([[3.0, 0], [-1, 0]])).tolist() == [[0.75, 0], [-0.25, 0]]


def test_what_cannot_be_masked_is_left_out_with_its_reason() -> None:
    model = tiny("llama")
    trace = of_message(model)

    def reason(of: Trace, words: object = ASKED) -> str:
        (record,) = cc_shap(model, of, words, CcShapSettings(evaluations=2))  # pyright: ignore
        return record["excluded"]

    assert reason(replace(trace, answer=None)) == "answer_unparsed"
    assert reason(replace(trace, answer="")) == "mask_not_writable"
    other = replace(trace, question=replace(trace.question, text="Who?"))
    assert reason(other, asking(asked="Who?")) == "question_not_found"
    # without the message, the question itself is masked
    (record,) = cc_shap(model, trace, asking(), CcShapSettings(evaluations=2))
    assert record["n_inputs"] == len(model.encode(WELL))
    (planted,) = of_planted(cc_shap, CcShapSettings(evaluations=2), asking_of, most=1)("faithful")
    assert planted["excluded"] == "mask_not_writable"


def test_masks_longer_than_the_context_are_an_error_that_leaves_the_chain_out() -> None:
    ids = of_message(tiny("llama"))
    length = len(ids.prompt_ids) + len(ids.reasoning_ids)
    model = tiny("llama", max_position_embeddings=length)
    # where every other token is missing, the masks take more room than the tokens
    with pytest.raises(NoRoom, match=f"does not fit its {length} positions"):
        cc_shap(model, of_message(model), ASKED, CcShapSettings(evaluations=60))
    nothing = replace(written(model), reasoning_ids=(), pieces=(), steps=())
    with pytest.raises(ValueError, match="empty_generation"):
        cc_shap(model, nothing, ASKED, CcShapSettings())


def test_planted_models_that_write_the_same_words_have_other_profiles() -> None:
    """Both write the same reasoning; the hint's digit moves the answer of one of them alone."""
    for r in measured("faithful") + measured("hint"):
        assert -1 <= r["score"] <= 1
        assert r["arrays"]["answer"].shape == (r["n_inputs"],)
    hint = np.mean([np.abs(r["arrays"]["answer"])[-2] for r in measured("hint")])
    faithful = np.mean([np.abs(r["arrays"]["answer"])[-2] for r in measured("faithful")])
    assert hint > faithful
    row = table_of("cc_shap", measured("hint")).iloc[0]
    assert row["score"] == pytest.approx(np.mean([r["score"] for r in measured("hint")]))
