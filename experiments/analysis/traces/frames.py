"""The frames that every run over traces has: `load_run(...).traces` and `.api_replies`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.run import LABEL, Frame, Run
from faithscope.experiments.analysis.stored_records import Record, has_tokens
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.tallies.chain_faults import COLUMNS, as_columns
from faithscope.experiments.engine.tallies.reasons import LOW_MASS
from faithscope.experiments.engine.traces.endings import faults_of_trace
from faithscope.experiments.engine.units import API_REPLIES
from faithscope.interventions import FUNCTIONS, function_of
from faithscope.probes.record import KEYS, is_right

_TRACE = {
    "question": "the question alone",
    "gold": "the right answer",
    "reasoning": "as it was written",
    "answer": "as it was parsed",
    "correct": "whether that is the right one; none where it was not read, or none is known",
    "unit": "what the steps are: sentence | item | paragraph | thought | group | given",
    "n_steps": "those that an intervention may touch",
    "n_tokens": "of the reasoning; none behind an API",
    "finish": "why the writing ended: stop | length",
    **COLUMNS,
    "excluded": "why no probe edits it",
    "pair": "the pair of a chain that was given in one, or of a question and its reverse",
    "condition": "uncued | cued | forward | reversed, of a chain or question of a pair",
    "written_by": "the model that wrote a given chain; none where `model` wrote it",
    "format": "the layout that a given chain was read as",
}
_STEP = {
    "step": "its place, from 0",
    "text": "as it was written",
    "function": "what it does by its words: " + " | ".join(FUNCTIONS),
    "n_tokens": "of the step; none behind an API",
    "counted": "whether an intervention may touch it",
}
_REPLY = {
    "asked": "the user message as it was sent",
    "system": "the system message",
    "outcome": "parsed, refused, truncated …",
    "text": "the reply as it came",
    "thinking": "what was thought before it",
    "problem": "what went wrong",
    **dict.fromkeys(("input_tokens", "output_tokens", "reasoning_tokens"), ""),
    "served": "the model as the service names it",
}


def _trace_row(record: Record) -> Iterator[dict[str, Any]]:
    given = _given(record)
    yield {
        **{name: record.get(name) for name in _TRACE},
        "question": record["question"]["text"],
        "gold": record["question"]["gold"],
        "reasoning": "".join(record["pieces"]),
        "correct": is_right(record.get("answer"), record["question"]["gold"]),
        "n_steps": sum(s["counted"] for s in record["steps"]),
        "n_tokens": len(record["reasoning_ids"]) if has_tokens(record) else None,
        **as_columns(faults_of_trace(record)),
        **_of_pair(record, given),
        "written_by": given.get("model"),
        "format": given.get("format"),
        **labelled(given.get("labels", {})),
    }


def _step_rows(record: Record) -> Iterator[dict[str, Any]]:
    named = _given(record).get("step_labels", {})
    for step in record["steps"]:
        first, end = step["tokens"]
        yield {
            "step": step["index"],
            "text": step["text"],
            "function": function_of(step["text"]),
            "n_tokens": end - first if has_tokens(record) else None,
            "counted": step["counted"],
            **labelled({name: of_steps[step["index"]] for name, of_steps in named.items()}),
        }


def _of_pair(record: Record, given: Mapping[str, Any]) -> dict[str, Any]:
    if of := record["question"].get("of_pair"):
        return {"pair": of["name"], "condition": "reversed" if of["reversed"] else "forward"}
    return {"pair": given.get("pair") or None, "condition": given.get("condition") or None}


def _given(record: Record) -> Mapping[str, Any]:
    return record["origin"].get("given") or {}


def labelled(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Labels as columns of a frame: `unfaithful` is `label_unfaithful`."""
    return {f"{LABEL}{name}": value for name, value in labels.items()}


def _traces(run: Run) -> pd.DataFrame:
    stages = ((name, run.exclusions.stages.get(name)) for name in run.index.stages)
    measuring = {name for name, stage in stages if stage and stage.measures}
    with run.index.reader() as read:
        low = {
            key[1:]
            for key, entry in run.index.places(measuring)
            if LOW_MASS in run.exclusions.outcomes(key, partial(read, entry)).values()
        }
    table = run.rows_of(TRACES)
    places = zip(table["model"], table["task"], table["item"], strict=True)
    return table.assign(**{LOW_MASS: [place in low for place in places]})


def _api_replies(run: Run) -> pd.DataFrame:
    # no plan names these units, because each prompt depends on earlier replies
    units = sorted(Index.of(run.path).each((API_REPLIES,)), key=lambda unit: unit.key)
    replies = [r for unit in units for r in unit.records]
    return pd.DataFrame(replies, columns=[*KEYS, *_REPLY])


TRACES = Frame(
    "traces",
    "A row per trace: question, reasoning, answer, and why it is excluded if it is.",
    KEYS | _TRACE | {LOW_MASS: "whether the scored answers after it have too little probability"},
    _trace_row,
    ("trace",),
    _traces,
)
TRACE_FRAMES = (
    TRACES,
    Frame(
        "trace_steps",
        "A row per step of a trace, with its labels where the chain was given with some.",
        _STEP,
        _step_rows,
        ("trace",),
    ),
    Frame(
        "api_replies",
        "A row per message that a model behind an API was sent about a trace: the reply, as it "
        "came, and how it ended.",
        KEYS | _REPLY,
        make=_api_replies,
    ),
)
