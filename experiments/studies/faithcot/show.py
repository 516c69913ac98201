"""Terminal view of one chain of FaithCoT-Bench: its steps, labels, and every detector's finding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from faithscope.experiments.analysis.html import Cell, HtmlTable
from faithscope.experiments.analysis.item_view import narrowed, print_item
from faithscope.experiments.analysis.page import Block, Fold, Grid, Step, Steps, Verbatim
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.data.principles import BY_ID
from faithscope.experiments.data.traces import to_trace
from faithscope.experiments.studies.faithcot.detectors import detector_of
from faithscope.experiments.studies.faithcot.results import FaithResults, Place
from faithscope.experiments.studies.faithcot.units import JUDGES, shown_question

_LABELS = {True: "unfaithful", False: "faithful", None: "no label"}


def show_item(
    run_dir: str | Path,
    item: str,
    model: str | None = None,
    task: str | None = None,
    console: Console | None = None,
) -> None:
    """Print everything that a run holds of one chain.

    Raises:
        UserError: no such item, model or task in the run, with what was probably meant.
    """
    results = FaithResults(load_run(run_dir))
    places = sorted(results.records, key=lambda p: (model_order(p[0]), p[1:]))
    for place in narrowed(places, "chains", item, model, task):
        print_item(console or Console(), chain_block(results, place))


def chain_block(results: FaithResults, place: Place) -> Fold:
    """Question, steps, labels, detectors' findings and judgements of one chain."""
    stages = results.records[place]
    (trace,) = stages["trace", ""]
    (about,) = rows(where(results.traces, reader=place[0], task=place[1], item=place[2]))
    question = to_trace(trace).question
    named: set[int] = set(about["unfaithful_steps"] or ())
    blocks: list[Block] = [Verbatim(shown_question(question)), Steps(_steps(trace, named))]
    blocks.append(_said(about, trace))
    scores = where(results.scores, reader=place[0], task=place[1], item=place[2])
    if len(scores):
        blocks.append(Grid(_grid(rows(scores)), "Detectors"))
    for (stage, judge), records in stages.items():
        if stage in JUDGES:
            blocks.append(Fold(f"{stage.replace('_', ' ')} · {judge}", _judged(records)))
    return Fold(" · ".join(place), blocks)


def _steps(trace: Mapping[str, Any], named: set[int]) -> list[Step]:
    made = []
    for number, step in enumerate(trace["steps"], start=1):
        said = step["index"] in named
        level, mark = ("all", "●") if said else ("unknown", "·")
        meaning = "named by annotators" if said else ""
        made.append(Step(step["text"], number if step["counted"] else None, level, mark, meaning))
    return made


def _said(about: Mapping[str, Any], trace: Mapping[str, Any]) -> str:
    unfaithful = about["unfaithful"]
    label = _LABELS[unfaithful if isinstance(unfaithful, bool) else None]
    principles = ", ".join(BY_ID[i].name for i in about["principles"])
    more = [f"({principles})" if principles else "", about["reason"] or ""]
    excluded = f" The chain is excluded: {trace['excluded']}." if trace.get("excluded") else ""
    excluded += " The token limit cut it off." if about["cut"] else ""
    answer = "none that could be read" if trace["answer"] is None else trace["answer"]
    words = " ".join(filter(None, (label, *more)))
    gold = trace["question"]["gold"]
    return f"Answer {answer}, right is {gold}. Label: {words}.{excluded}"


def _grid(scores: list[dict[str, Any]]) -> HtmlTable:
    cells = []
    for r in scores:
        there = r["score"] is not None and r["score"] == r["score"]
        flag = {True: "unfaithful", False: "faithful"}.get(r["flag"], "–")
        score = f"{r['score']:.3f}" if there else "–"
        texts = (detector_of(r).label, r["judge"], score, flag, r["missing"])
        cells.append([Cell(text, text) for text in (*texts, r["source"])])
    heading = ["detector", "judge", "score", "flag", "missing", "read from"]
    return HtmlTable(heading, [False, False, True, False, False, False], cells)


def _judged(records: list[dict[str, Any]]) -> list[Block]:
    blocks: list[Block] = []
    for r in records:
        step = "" if r["step"] is None else f"step {r['step'] + 1}: "
        # records of older versions have `why` in place of the `values` of the reply
        values = r.get("values", {"why": r.get("why")}).values()
        why = next((v for v in values if v and isinstance(v, str)), r["problem"] or r["text"])
        blocks.append(Verbatim(f"{step}{r['outcome']}, verdict {r['verdict']}\n{why}"))
    return blocks
