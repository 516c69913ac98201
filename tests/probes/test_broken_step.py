"""Broken steps from inside: against plain forwards, and on models whose steps are known."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from broken_chain import CHAIN
from tiny_models import NO_TREE, tiny

from faithscope import interp
from faithscope.interp.model import Model
from faithscope.probes.broken_chain import BrokenChain, Condition, read_both, without_last
from faithscope.probes.broken_step import SIGNALS, BrokenStepSettings, broken_step, rows
from faithscope.probes.record import Record


def by_condition(model: Model, chain: BrokenChain = CHAIN, **settings: object) -> dict[str, Record]:
    found = broken_step(model, chain, BrokenStepSettings(**settings))  # pyright: ignore
    assert [r["variant"] for r in found] == ["perturbed", "control"]
    return {r["condition"]: r for r in found}


def traces(model: Model, chain: BrokenChain = CHAIN):
    return read_both(model, chain, join="\n", answer_cue="The final answer is", thinking=None)


def test_the_two_chains_differ_in_the_tokens_of_one_step() -> None:
    model = tiny("llama")
    both, asking = traces(model)
    for condition, trace in both.items():
        told = CHAIN.told(condition)
        assert [s.text for s in trace.steps] == [*(f"{t}\n" for t in told[:-1]), told[-1]]
        assert trace.prompt_ids == model.prompt(CHAIN.prompt).ids
    one, other = both["perturbed"], both["control"]
    for a, b in zip(one.steps, other.steps, strict=True):
        assert (one.step_ids(a) == other.step_ids(b)) == (a.index != CHAIN.target)
    assert without_last(one).reasoning_text == "Add 2 and 3.\nThat is 6.\nTake 1 off.\nSo 4.\n"
    assert asking.labels == (("4", " 4"),)


@pytest.mark.parametrize("condition", ["perturbed", "control"])
def test_surprisal_is_the_loss_that_transformers_takes(condition: Condition) -> None:
    model = tiny("llama")
    trace = traces(model)[0][condition]
    found = by_condition(model)[condition]
    ids = torch.tensor([[*trace.prompt_ids, *trace.reasoning_ids]])
    start = len(trace.prompt_ids)
    with torch.inference_mode():
        log_p = torch.log_softmax(model.hf(ids).logits[0].double(), -1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    for step in trace.steps:
        a, b = (start + i for i in step.tokens)
        labels = torch.full_like(ids, -100)
        labels[:, a:b] = ids[:, a:b]
        with torch.inference_mode():
            loss = float(model.hf(ids, labels=labels).loss)
        assert found["steps_surprisal"][step.index] == pytest.approx(loss, abs=1e-4)
        own = -log_p[a - 1 : b - 1].gather(1, ids[0, a:b, None])[:, 0]
        assert found["steps_peak_surprisal"][step.index] == pytest.approx(
            float(own.max()), abs=1e-3
        )
        excess = float((own - entropy[a - 1 : b - 1]).mean())
        assert found["steps_excess_surprisal"][step.index] == pytest.approx(excess, abs=1e-3)


@pytest.mark.parametrize("condition", ["perturbed", "control"])
def test_the_answers_log_prob_is_that_of_single_forwards(
    condition: Condition, everything_run: None
) -> None:
    model = tiny("llama")
    both, _ = traces(model)
    trace = both[condition]
    found = by_condition(model)[condition]
    label = model.encode(" 4")
    digits, signs = list(model.encode("0123456789")), list(model.encode("+-"))
    alone = list(model.encode("+=abcijknqruvwxyzBKM"))
    marks = dict.fromkeys(model.encode(",./:_*(- "), digits)
    marks |= dict.fromkeys(model.encode("eE^"), digits + signs)

    def probabilities(ids: list[int]) -> torch.Tensor:
        with torch.inference_mode():
            return torch.softmax(model.hf(torch.tensor([ids])).logits[0].double(), -1)

    def per_token(kept: list[int]) -> float:
        given = [i for k in kept for i in trace.step_ids(trace.steps[k])]
        prefix = [*trace.prompt_ids, *given, *model.encode("The final answer is")]
        p = probabilities([*prefix, *label])
        total = sum(float(p[len(prefix) - 1 + k, t].log()) for k, t in enumerate(label))
        # the tokens are single bytes: "4" goes on with a digit, an operator or a letter that is a
        # factor, or with a mark that a digit follows
        longer = p[-1, digits + alone].sum()
        for mark, following in marks.items():
            then = probabilities([*prefix, *label, mark])[-1, following].sum()
            longer = longer + p[-1, mark] * then
        return (total + float((1 - longer).log())) / len(label)

    body = range(len(CHAIN.steps) - 1)
    after = [per_token(list(range(k))) for k in range(len(CHAIN.steps))]
    without = [per_token([k for k in body if k != i]) for i in body]
    assert found["arrays"]["answer_log_prob"] == pytest.approx(after, abs=1e-4)
    assert found["arrays"]["removed_log_prob"] == pytest.approx(without, abs=1e-4)
    *drops, last = found["steps_answer_tracing"]
    assert drops == pytest.approx([after[i] - after[i + 1] for i in body], abs=2e-4)
    *gains, none = found["steps_necessity"]
    assert gains == pytest.approx([x - after[-1] for x in without], abs=2e-4)
    assert last is none is None


def test_without_the_target_both_chains_are_one() -> None:
    found = by_condition(tiny("llama"))
    a, b = (found[c]["arrays"] for c in ("perturbed", "control"))
    assert a["removed_log_prob"][1] == b["removed_log_prob"][1]
    # what stands before the target is computed once: the very same numbers
    n = int(a["spans"][1, 0])
    assert (a["surprisal"][:n] == b["surprisal"][:n]).all()
    assert (a["answer_log_prob"][:2] == b["answer_log_prob"][:2]).all()
    assert a["answer_log_prob"][2] != b["answer_log_prob"][2]


def test_flow_is_that_of_plain_hidden_states() -> None:
    model = tiny("llama")
    both, _ = traces(model)
    for condition, found in by_condition(model, layer=2).items():
        trace = without_last(both[condition])  # pyright: ignore
        ids = [*trace.prompt_ids, *trace.reasoning_ids, *model.encode("The final answer is")]
        with torch.inference_mode():
            states = model.hf(torch.tensor([ids]), output_hidden_states=True).hidden_states
        for layer in (0, 1, 2):
            h = states[layer][0].double()
            for step in trace.steps:
                a, b = (len(trace.prompt_ids) + i for i in step.tokens)
                cosine = float(torch.cosine_similarity(h[a:b].mean(0), h[-1], dim=0))
                assert found["arrays"]["flow"][layer, step.index] == pytest.approx(cosine, abs=1e-4)
        *steps, none = found["steps_information_flow"]
        assert steps == pytest.approx((-found["arrays"]["flow"][2]).tolist(), abs=1e-5)
        assert none is None
        assert (found["layer"], found["n_layers"]) == (2, 3)


@pytest.mark.in_time(3)
@pytest.mark.parametrize("family", ["qwen3", "gpt2", "mistral", *NO_TREE])
def test_packed_and_one_by_one_agree(family: str) -> None:
    model = tiny(family)
    auto, loop = by_condition(model), by_condition(model, execution="loop")
    for condition, found in auto.items():
        for signal in SIGNALS:
            values, others = found[f"steps_{signal}"], loop[condition][f"steps_{signal}"]
            assert values[:-1] == pytest.approx(others[:-1], abs=2e-3)
    if family not in NO_TREE:
        assert auto["control"]["trie_tokens"] < auto["control"]["naive_tokens"] / 2


def test_scores_and_predictions_are_of_the_numbers_kept() -> None:
    for found in by_condition(tiny("llama")).values():
        table = rows(found)
        assert [r["signal"] for r in table] == list(SIGNALS)
        for row in table:
            kept = np.array([np.nan if x is None else x for x in found[f"steps_{row['signal']}"]])
            others = [x for i, x in enumerate(kept) if i != 1 and not np.isnan(x)]
            assert row["score"] == pytest.approx(kept[1] - np.median(others), abs=1e-5)
            assert row["predicted"] == max(
                (i for i in range(5) if not np.isnan(kept[i])), key=lambda i: kept[i]
            )
            assert (row["item"], row["chain"], row["model"]) == ("i1", "c1", "tiny:llama")
            assert (row["target"], row["n_steps"]) == (1, 5)
            assert row["condition"] == found["condition"]
        assert found["dataset"] == "made"
        scalars = {k: v for k, v in found.items() if k != "arrays"}
        assert json.loads(json.dumps(scalars)) == scalars


def test_only_what_is_asked_for_is_measured() -> None:
    model = tiny("llama")
    few = by_condition(model, signals=("surprisal", "answer_tracing"))["control"]
    assert [r["signal"] for r in rows(few)] == ["surprisal", "answer_tracing"]
    assert "flow" not in few["arrays"]
    assert "removed_log_prob" not in few["arrays"]
    assert few["trie_tokens"] < by_condition(model)["control"]["trie_tokens"]
    mute = by_condition(model, replace(CHAIN, answer=None))["control"]
    told = [r["signal"] for r in rows(mute)]
    assert told == ["surprisal", "peak_surprisal", "excess_surprisal", "information_flow"]
    assert mute["answer"] is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": 4}, "item 'i1': target 4 of 5 steps; .* 0 to 3"),
        ({"target": -1}, "target -1 of 5 steps"),
        ({"steps": ("One.", "Two.")}, "chain 'c1' has 2 steps; give three or more"),
        ({"answer": " "}, "item 'i1': answer ' ' is empty"),
    ],
)
def test_chains_that_cannot_be_measured_are_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(CHAIN, **change)  # pyright: ignore


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"signals \['surprise'\]; give some of surprisal"):
        BrokenStepSettings(signals=("surprise",))
    with pytest.raises(ValueError, match="layer = 4; tiny:llama has 1 to 3"):
        by_condition(tiny("llama"), layer=4)


def test_a_chain_over_the_positions_is_refused() -> None:
    long = replace(CHAIN, steps=("word " * 200, *CHAIN.steps[1:]))
    with pytest.raises(interp.UserError, match="does not fit its 512 positions"):
        by_condition(tiny("llama"), long)
