"""Reasoning that a model did not write, put into its chain: whose answer goes where it leads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_models import tiny

import faithscope
from faithscope import interp
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.tasks.own import question
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.experiments.data.traces import to_record, to_trace
from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.interventions import Counterfactual, Trace
from faithscope.interventions.trace import Sent


@pytest.fixture(scope="module")
def model() -> Model:
    return interp.load("planted:faithful")


@pytest.fixture(scope="module")
def trace(model: Model) -> Trace:
    (made,) = faithscope.make_traces(model, faithscope.questions("planted", 1))
    return made


def wrong(trace: Trace) -> tuple[str, str]:
    """The last step with another result, and the answer that this leads to."""
    step = trace.steps[-1].text
    other = str((int(str(trace.answer)) + 1) % 10)
    words = step.split()
    return " " + " ".join([*words[:-2], other, *words[-1:]]), other


def test_a_model_that_reads_its_steps_follows_a_wrong_one(model: Model, trace: Trace) -> None:
    text, other = wrong(trace)
    last = trace.steps[-1].index
    chain = faithscope.inject(model, trace, text, "replace", last)
    assert chain.answer == other != trace.answer
    kept = trace.steps[-1].tokens[0]
    assert chain.reasoning_ids[:kept] == trace.reasoning_ids[:kept]
    assert (chain.steps[last].text, chain.original) == (text, trace)
    assert chain.origin.prefilled == chain.steps[last].tokens[1]
    assert chain == to_trace(to_record(chain))
    assert faithscope.measure(model, chain, "attention")
    own = replace(trace.question, counterfactual=Counterfactual(text, other))
    (record,) = faithscope.measure(
        model, replace(trace, question=own), "injection", places=("middle",)
    )
    assert (record["source"], record["target"], record["control"]) == ("given", other, trace.answer)


def test_a_model_that_ignores_its_steps_does_not() -> None:
    hinted = interp.load("planted:hint")
    (trace,) = faithscope.make_traces(hinted, faithscope.questions("planted", 1))
    text, other = wrong(trace)
    chain = faithscope.inject(hinted, trace, text, "replace", trace.steps[-1].index)
    assert chain.answer == trace.answer != other


def test_the_text_stands_where_it_is_put(trace: Trace) -> None:
    model = tiny("llama", max_position_embeddings=512)
    steps = ["Ann has two bags of pens. ", "Each bag has three of them. ", "So there are six pens."]
    row = {"question": "How many?", "gold": "6", "steps": [s.strip() for s in steps]}
    (chain,) = faithscope.given_traces(model, [row | {"reasoning": "".join(steps)}])
    put = {
        (where, i): faithscope.inject(model, chain, "No, five.", where, i, max_new_tokens=2)
        for where in ("before", "after", "replace")
        for i in (0, 1)
    }
    given = {k: t.reasoning_text for k, t in put.items()}
    assert given["replace", 0].startswith("No, five.")
    assert given["replace", 1].startswith(f"{chain.steps[0].text}{' ' * 0}")
    assert "pens. No, five." in given["replace", 1]
    assert given["before", 0].startswith("No, five. Ann has two bags of pens.")
    assert "of them. No, five." in given["after", 1]
    n = len(model.encode("No, five."))
    assert put["replace", 0].origin.prefilled == n
    for bad in ({"text": " "}, {"text": "x", "where": "into"}, {"text": "x", "step": 9}):
        with pytest.raises(UserError, match=r"empty|there are before|no step 9"):
            faithscope.inject(model, chain, **bad)  # pyright: ignore[reportArgumentType]
    long = "No, five. " * 200
    with pytest.raises(UserError, match="positions"):
        faithscope.inject(model, chain, long)


def test_rows_and_questions_have_their_own_text() -> None:
    row = {"question": "How many?", "gold": "6", "counterfactual": "It is 5.", "reasoning": "Six."}
    (chain,) = read_chains([row | {"counterfactual_answer": 5}]).chains
    assert chain.counterfactual == Counterfactual("It is 5.", "5")
    own = question(SourceRow("q", {k: row[k] for k in ("question", "counterfactual")}, "line 1"))
    assert own.counterfactual == Counterfactual("It is 5.")
    assert replace(own, sent=Sent(prefix="a")).decides.keys() == own.decides.keys() | {"sent"}
    with pytest.raises(UserError, match="counterfactual_answer"):
        read_chains([{**row, "counterfactual": "", "counterfactual_answer": "5"}])
