"""Traces of several runs put side by side, and the labels that they are held against."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from synthetic_comparison import joined_of, run_of

from faithscope.experiments.analysis.comparison.join import OTHER_TRACE, join
from faithscope.experiments.analysis.comparison.labels import labels_of
from faithscope.experiments.analysis.comparison.scores import (
    NOT_RUN,
    STEP_LABEL,
    STEP_NUMBER,
    Scores,
    frames,
    says_faithful,
    trace_row,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    targets,
)
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.traces.scores import label_rows, step_label_rows
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.engine.traces.sections import CutConfig
from faithscope.experiments.studies.slrc.judges.chains import judged_chain
from faithscope.interp.errors import UserError


def test_traces_of_one_name_are_joined_only_where_they_are_the_same() -> None:
    a = run_of({"x": ("behavioural", np.arange(6.0))})
    b = run_of({"y": ("internal", np.arange(6.0))}, text="other ")
    with pytest.raises(UserError, match=r"6 items have the same names.*--same question"):
        join({"a": a, "b": b}, None, "text")
    mixed = frames(
        [*rows(b.items)[:4], *({**r, "measure": "y"} for r in rows(a.items)[4:])],
        [*rows(b.traces)[:4], *rows(a.traces)[4:]],
    )
    joined = join({"a": a, "b": mixed}, None, "text")
    (row,) = rows(joined.joins)
    assert (row["n_common"], row["n_same_question"], row["n_same_text"]) == (6, 4, 2)
    assert row["n_same_ids"] == 0  # neither has ids
    assert row["n_joined"] == 2
    assert len(joined.traces) == 10
    why = {(r["measure"], r["reason"]): r["n"] for r in rows(joined.missing)}
    assert why["x", OTHER_TRACE] == 4
    assert why["y", "measured"] == 6
    common = join({"a": a, "b": mixed}, None, "text", common=True)
    assert len(common.traces) == 2
    assert common.n_left_out == 8
    assert common.wide().notna().all(axis=None)
    loose = join({"a": a, "b": mixed}, None, "question")
    assert len(loose.traces) == 6
    assert loose.wide().notna().all(axis=None)


def test_what_is_missing_says_why() -> None:
    a = run_of({"x": ("behavioural", np.arange(6.0))})
    few = run_of({"y": ("internal", [1.0, math.nan, math.nan, 2.0])})
    why = ["", "excluded: one step", "failed", ""]
    few = Scores(few.items.assign(missing=why), few.traces)
    missing = join({"a": a, "b": few}, None, "text").missing
    counts = {r["reason"]: r["n"] for r in rows(where(missing, measure="y"))}
    assert counts == {"measured": 2, "excluded: one step": 1, "failed": 1, NOT_RUN: 2}


def test_one_measure_of_two_runs_of_the_same_traces_is_two_columns() -> None:
    a, b = (run_of({"x": ("logit", v)}) for v in (np.arange(6.0), np.arange(6.0)[::-1]))
    assert list(join({"a": a, "b": b}, None, "text").measures.index) == ["x [a]", "x [b]"]
    others = run_of({"x": ("logit", np.arange(6.0))}, models=("n",))
    with pytest.raises(UserError, match="no item is in two of these runs"):
        join({"a": a, "b": others}, None, "text")


def test_a_run_without_ids_is_joined_by_text_and_other_ids_stay_apart() -> None:
    runs = {name: run_of({name: ("logit", np.arange(3.0))}) for name in "abc"}
    ids = {"a": ["1", "2", "3"], "b": ["1", "2", "9"]}
    runs |= {
        name: Scores(runs[name].items, runs[name].traces.assign(ids=of)) for name, of in ids.items()
    }
    joins = {(r["source"], r["other"]): r for r in rows(join(runs, None, "ids").joins)}
    counts = {k: (r["n_same_ids"], r["n_same_text"], r["n_joined"]) for k, r in joins.items()}
    # the third trace has two kinds of ids, and its text alone does not tell which is meant
    assert counts == {("a", "b"): (2, 1, 2), ("a", "c"): (0, 3, 2), ("b", "c"): (0, 3, 2)}
    two = {name: runs[name] for name in "ac"}
    assert join(two, None, "ids").joins["n_joined"].tolist() == [3]


def test_readings_of_one_given_chain_are_joined_by_its_hash() -> None:
    runs = {name: run_of({name: ("logit", np.arange(3.0))}) for name in "ab"}
    of_chains = {"given": ["h1", "h2", ""], "text": ["long 1", "long 2", "long 3"]}
    judged = Scores(runs["b"].items, runs["b"].traces.assign(**of_chains))
    # a reader that marks no reasoning leaves the closing statement out
    read = Scores(
        runs["a"].items,
        runs["a"].traces.assign(
            given=["h1", "h9", ""], text=["1", "2", "3"], ids=["i1", "i2", "i3"]
        ),
    )
    both = {"a": read, "b": judged}
    for same in ("text", "ids"):
        assert join(both, None, same).joins["n_joined"].tolist() == [1]
    # the run that wrote the chain has no hash of it
    wrote = Scores(runs["a"].items, runs["a"].traces.assign(text=["long 1", "long 2", "x"]))
    assert join({**both, "w": wrote}, None, "text").joins["n_joined"].tolist() == [1, 1, 2]


def test_a_chain_of_multiple_choice_is_the_same_question_to_its_judge() -> None:
    options = ("to fly\nhigh", "to swim", "A. to dig")
    chain = GivenChain(
        id="1", dataset="d", question="What are wings for?\nThink.", kind="choice",
        options=options, gold="A", reasoning="They beat. So A.", steps=None, answer="A", model="m",
        where="chains.jsonl:1",
    )  # fmt: skip
    judged = judged_chain(chain, CutConfig())
    assert judged.question.endswith("\nC. A. to dig")
    about = {"dataset": "d", "task": "t", "item": "1", "model": "m"}
    own, shown, other = (
        trace_row(about, question=q, reasoning=chain.reasoning)["question"]
        for q in (chain.question, judged.question, "What are wings for?\nA. Think.")
    )
    assert own == shown
    assert own != other


def test_what_monitors_read_in_two_runs_of_the_same_traces_is_two_tables() -> None:
    whole = run_of({"x": ("logit", np.arange(3.0))})
    places = [("d", "t", f"i{i}", "m") for i in range(3)]
    runs = {
        name: Scores(
            whole.items, whole.traces, features={"h": dict.fromkeys(places, np.ones(2) * k)}
        )
        for k, name in enumerate("ab")
    }
    features = join(runs, None, "text").features
    assert {name: of.to_numpy().mean() for name, of in features.items()} == {"h [a]": 0, "h [b]": 1}


def test_labels_of_a_file_are_joined_on_the_keys_that_it_has(tmp_path: Any) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,unfaithful,note\ni0,1,0\ni1,false,1\ni9,1,1\n")
    joined = join({"a": run_of({"x": ("logit", np.arange(4.0))}, models=("m", "n"))},
                  labels_of(path), "text")  # fmt: skip
    wide = joined.oriented
    assert wide.xs("i0", level="item")["unfaithful"].tolist() == [-1, -1]
    assert wide.xs("i1", level="item")["unfaithful"].tolist() == [0, 0]
    for wrong in ("perhaps", "0.7", "2", "-1", "nan"):
        path.write_text(f"item,unfaithful\ni1,1.0\ni0,{wrong}\n")
        said = rf"labels.csv, line 3: unfaithful = '{wrong}' is no label; give 1, 0"
        with pytest.raises(UserError, match=said):
            labels_of(path)
    lines = path.with_suffix(".jsonl")
    for line, said in (
        ('{"item": "i0", "unfaithful": 1, "unfaithful": 0}', "key 'unfaithful' stands twice"),
        ('{"item": "i0", "unfaithful": ' + "[" * 900 + "]" * 900 + "}", "nested more than 100"),
    ):
        lines.write_text(line)
        with pytest.raises(UserError, match=rf"labels.jsonl, line 1: .*{said}"):
            labels_of(lines)
    path.write_text("item,unfaithful\nnowhere,1\n")
    with pytest.raises(UserError, match="none of 1 is of a trace of these runs"):
        join({"a": run_of({"x": ("logit", np.arange(4.0))})}, labels_of(path), "text")


def test_labels_of_given_chains_that_are_ones_and_zeros_are_labels() -> None:
    def trace(**labels: Any) -> dict[str, Any]:
        about = {"dataset": "d", "task": "t", "item": "i", "model": "m"}
        steps = [{"counted": True}] * 3
        return about | {"steps": steps, "origin": {"given": {"model": "m", **labels}}}

    found = [list(label_rows(trace(labels={"unfaithful": v}))) for v in (1, True, 0, 3, "yes")]
    assert [[row["value"] for row in of] for of in found] == [[1], [1], [0], [3], []]
    steps = [
        list(step_label_rows(trace(step_labels={name: values})))
        for name, values in (
            *(("unfaithful", (0, 1, 1)), ("unfaithful", (False, True, None))),
            *(("correct", (1, 0, 2)), ("rating", (1, 0, 1))),
            *(("importance", (0.2, None, -0.1)), ("tags", ("plan", "fact", None))),
        )
    ]
    named = [[row["value"] for row in of if row["family"] == "label"] for of in steps]
    assert named == [[0, 1, 0], [0, 1, 0], [], [], [], []]
    every = [[row["value"] for row in of if row["family"] == STEP_LABEL] for of in steps]
    assert every == [[0, 1, 1], [0, 1], [], [], [], []]
    # numbers rank steps, and say of none that it is good
    numbers = [[(r["measure"], r["step"], r["value"]) for r in of] for of in steps[2:]]
    ranks = [("label_importance", 0, 0.2), ("label_importance", 2, -0.1)]
    assert numbers == [[("label_correct", k, v) for k, v in enumerate((1, 0, 2))], [], ranks, []]
    assert {r["family"] for of in steps[2:] for r in of} == {STEP_NUMBER}
    # a label of ones and threes is none of two kinds
    rated = joined_of({"x": ("logit", np.arange(6.0))}, label=[1, 3, 3, 1, 1, 3])
    assert targets(rated, 5, 0) == []


def test_a_label_of_a_file_that_says_otherwise_than_the_run_is_not_lost(tmp_path: Any) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,faithful\ni0,1\ni1,0\ni2,\n")
    a = run_of({"x": ("logit", np.arange(4.0))}, label=[1, 1, 0, 0])
    said = r"'faithful' has different values in a and labels for 1 traces, the first of item 'i1'"
    with pytest.raises(UserError, match=said):
        join({"a": a}, labels_of(path), "text")
    path.write_text("item,faithful\ni0,1\ni1,1\ni2,\n")
    same = join({"a": a}, labels_of(path), "text")
    assert same.wide()["faithful"].tolist() == [1, 1, 0, 0]


def test_the_name_of_a_label_tells_its_direction() -> None:
    speak_for = ("faithful", "correct", "intact", "final_answer_correct", "error_free", "no_error")
    speak_for += ("not unfaithful", "errorFree", "is_valid", "without mistakes", "notes", "sound")
    assert [name for name in speak_for if not says_faithful(name)] == []
    against = ("unfaithful", "label_unfaithful", "incorrect", "first_error", "wrong_step", "broken")
    against += ("isUnfaithful", "CoTUnfaithful", "step.wrong", "label:unfaithful", "not_faithful")
    against += ("not correct", "flawed", "invalid", "sycophantic", "hallucinated", "mistakes")
    against += ("unsound", "unfaithful2", "unfaithful (annotator 1)", "unfaithful_error")
    assert [name for name in against if says_faithful(name)] == []
