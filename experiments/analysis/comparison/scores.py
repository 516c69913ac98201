"""What every study says of its runs so that they can be compared: one long frame, item × measure.

A study gives it in its module `scores`: `scores(run)` returns `Scores`. Directions are fixed there,
before any data is seen. What is missing stays in the frame as a row without a value and with the
reason.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.tidy import check_rows
from faithscope.experiments.config.api import API
from faithscope.interp.errors import UserError
from faithscope.probes.judge.spend import Call
from faithscope.probes.record import KEYS

Family = Literal["behavioural", "logit", "internal", "judged", "label"]
"""What a score is read off: answers, their probabilities, the insides of the model, the words of a
judge; or a label, which is what the others are held against."""
FAMILIES: tuple[Family, ...] = get_args(Family)
STEP_LABEL = "step label"
"""Family, of steps alone, of a label that every step of a trace may have; one that names a single
step of a trace is of the family `label`."""
LABELS = ("label", STEP_LABEL)
PLACE = ("dataset", "task", "item", "model")
"""What a trace is about, `model` the one that wrote it; with the digest of the trace, the row of
every comparison. A task that is empty is not known: any task that has the item is meant."""
COSTS = {
    "forwards": "model calls for this measure alone, without the shared forest",
    "tokens": "tokens that models read and wrote for the whole probe or judgement",
    "seconds": "of the whole probe or judgement, as it was timed",
    "dollars": "paid to an API for the whole judgement",
}
"""Of one item; NaN where nobody counted them."""
COST_COLUMNS = (
    Column("forwards", "model calls", "Model calls of a trace, for this measure alone, mean."),
    Column("tokens", meaning="Tokens of a trace, for the whole probe or judgement, mean."),
    Column("seconds", meaning="Seconds of a trace, for the whole probe or judgement.", unit="s"),
    Column("dollars", meaning="Dollars that a trace cost at an API, mean.", unit="$"),
)
"""Columns of tables with the mean of each of `COSTS`."""
ITEMS = {
    **KEYS,
    "measure": "its name, unique among those of one run, judge and all",
    "family": " | ".join(FAMILIES),
    "value": "the score as measured; NaN where it is missing",
    "missing": "why there is no value; empty where there is one",
    "higher_is_faithful": "which way the score points, said before any data",
    "probability": "whether the score is a probability that may be checked for calibration",
    "rule": "the measure's own threshold: at or beyond it the trace counts as faithful; NaN for "
    "measures without one, which are cut at their median",
    **COSTS,
}
STEPS = {
    **{name: "" for name in PLACE},
    "measure": "",
    "family": f"of scores, or {STEP_LABEL!r}",
    "step": "its index in the trace, from 0",
    "value": "",
    "higher_is_faithful": "whether a greater value means that more hangs on the step",
}
OPTIONS = re.compile(r"\nA\. (?:(?!\nA\. ).)*\nB\. (?:(?!\nA\. ).)*\Z", re.DOTALL)
"""A list of lettered options that ends a question (`studies.judge.chains`)."""
SAME = ("ids", "text", "question")
"""Criteria for joining two traces, strictest first."""
TRACES = {
    **{name: "" for name in PLACE},
    "ids": "digest of prompt and reasoning as token ids; empty where there are none",
    "text": "digest of the reasoning as text",
    "question": "digest of the question alone",
    "n_steps": "steps that an intervention may touch",
    "n_tokens": "of the reasoning",
    "correct": "whether the model's answer is right; NaN where nobody knows",
    "settled": "share of the steps after which the answer no longer changes",
    "excluded": "why no probe edits the trace; empty for the others",
}
NO_VALUE, NOT_RUN, FAILED = "no_value", "not_run", "failed"
"""Reasons: the record has no such number; the item was never measured; its unit of work failed."""


@dataclass(frozen=True)
class Scores:
    """What a run says of its traces.

    Raises:
        ValueError: a column is missing, or two rows are of one item and measure.
    """

    items: pd.DataFrame
    """A row per trace and measure (`ITEMS`)."""
    traces: pd.DataFrame
    """A row per trace (`TRACES`)."""
    steps: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(STEPS)))
    """A row per trace, measure and step (`STEPS`)."""
    features: Mapping[str, Mapping[tuple[str, ...], np.ndarray]] = field(default_factory=dict)
    """Name -> place -> a vector read inside the model, for monitors that are trained on them."""

    def __post_init__(self) -> None:
        check_rows("scores of items", self.items, list(ITEMS), [*PLACE, "measure"])
        check_rows("scores of traces", self.traces, list(TRACES), PLACE)
        check_rows("scores of steps", self.steps, list(STEPS), [*PLACE, "measure", "step"])


def item_row(
    about: Mapping[str, Any],
    measure: str,
    family: Family,
    value: float | None,
    *,
    higher_is_faithful: bool,
    missing: str = "",
    probability: bool = False,
    rule: float | None = None,
    **costs: float | None,
) -> dict[str, Any]:
    """A row of `Scores.items`.

    Args:
        about: a record, or its keys; what it lacks stands empty.
        missing: why there is no value, where there is none.
        costs: of `COSTS`.

    Raises:
        UserError: the value is infinite; names measure and item.
    """
    if value is not None and math.isinf(value):
        of = about.get("model") or about.get("dataset")
        raise UserError(
            f"{measure}: the score of item {about.get('item')!r} of {of!r} is {float(value)}; give "
            "a finite number, or None with the reason why there is none"
        )
    row = {key: _plain(about.get(key)) for key in KEYS}
    gone = value is None or math.isnan(value)
    row |= {"measure": measure, "family": family, "value": math.nan if gone else float(value or 0)}
    row |= {"missing": (missing or NO_VALUE) if gone else ""}
    row |= {"higher_is_faithful": higher_is_faithful, "probability": probability}
    row |= {"rule": math.nan if rule is None else rule}
    return row | {name: _number(costs.get(name)) for name in COSTS}


def label_row(about: Mapping[str, Any], name: str, value: float | None) -> dict[str, Any]:
    """A row of a label, whose direction its name tells (`says_faithful`)."""
    row = item_row(about, name, "label", value, higher_is_faithful=says_faithful(name), rule=0.5)
    return row | {"probe": "label", "judge": "", "variant": ""}


AGAINST = ("unfaithful", "wrong", "error", "incorrect", "broken", "hinted", "biased", "flaw")
AGAINST += ("invalid", "sycophan", "hallucinat", "mistake", "unsound", "conflict")
CORRECTNESS = ("correct", "incorrect", "accura", "wrong", "right", "error", "mistake")
NEGATED = ("not", "no", "non", "without", "never")
"""Words before one that turn it round, as `free` behind one does."""


def says_faithful(label: str) -> bool:
    """Whether a label that is 1 speaks for the trace: not one that names what is wrong with it.

    A name's words are its runs of letters, of `camelCase` each hump. `not_faithful` speaks against
    a trace, `no_error` and `error_free` for it.
    """
    words = _words(label)
    against = [i for i, word in enumerate(words) if word.startswith(AGAINST)]
    negated = sum(word in NEGATED for word in words)
    negated += sum(words[i + 1 : i + 2] == ["free"] for i in against)
    return (len(against[:1]) + negated) % 2 == 0


def of_correctness(label: str) -> bool:
    """Whether a label is of what is right, an answer or a step, by its name."""
    words = _words(label)
    return any(word.startswith(CORRECTNESS) for word in words) and not any(
        "faithful" in word for word in words
    )


def _words(label: str) -> list[str]:
    humps = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", label)
    return [word for word in re.split(r"[\W\d_]+", humps.casefold()) if word]


def trace_row(
    about: Mapping[str, Any],
    *,
    question: str,
    reasoning: str,
    ids: Sequence[Any] | None = None,
    **traits: Any,
) -> dict[str, Any]:
    """A row of `Scores.traces`; `traits` are those of its columns that are known.

    A list of lettered options at the end of a question is no part of it: some studies have it in
    the question's text, as a judge is shown it, and others beside it.
    """
    row = {name: _plain(about.get(name)) for name in PLACE}
    row |= {"ids": "" if ids is None else digest(ids), "text": digest(reasoning)}
    row |= {
        "question": digest(OPTIONS.sub("", question)),
        "excluded": traits.pop("excluded", None) or "",
    }
    return row | {
        name: _number(traits.get(name)) for name in ("n_steps", "n_tokens", "correct", "settled")
    }


def frames(
    items: Iterable[Mapping[str, Any]],
    traces: Iterable[Mapping[str, Any]],
    steps: Iterable[Mapping[str, Any]] = (),
    features: Mapping[str, Mapping[tuple[str, ...], np.ndarray]] | None = None,
) -> Scores:
    """`Scores` of rows."""
    return Scores(
        pd.DataFrame(list(items), columns=list(ITEMS)),
        pd.DataFrame(list(traces), columns=list(TRACES)),
        pd.DataFrame(list(steps), columns=list(STEPS)),
        features or {},
    )


def digest(value: Any) -> str:
    """Sixteen hex digits that differ where texts or ids do."""
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode()).hexdigest()[:16]


def judged_costs(record: Mapping[str, Any], dollars: float | None = None) -> dict[str, Any]:
    """The costs of a judgement, by what its record says of calls, tokens and seconds."""
    tokens = [record.get(name) for name in ("input_tokens", "output_tokens")]
    known = [t for t in tokens if t is not None]
    return {
        "forwards": record.get("calls"),
        "tokens": sum(known) if known else None,
        "seconds": record.get("seconds"),
        "dollars": dollars,
    }


def seconds_of(run_dir: Path) -> dict[tuple[str, str, str, str], float]:
    """(stage, model, task, item) -> seconds of that unit of work, of the last time it was done."""
    seconds: dict[tuple[str, str, str, str], float] = {}
    for path in sorted(run_dir.glob("timing.*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            try:
                timing = json.loads(line)
                key = tuple(str(timing[k]) for k in ("stage", "model", "task", "item"))
                seconds[key] = float(timing["seconds"])  # pyright: ignore[reportArgumentType]
            except (ValueError, KeyError, TypeError):
                continue  # the line that a kill tore
    return seconds


def dollars_of(calls: Iterable[Call]) -> dict[tuple[str, str], float]:
    """(judge, ask) -> dollars, all its calls together; no ask with a call that has no price."""
    paid: dict[tuple[str, str], list[float]] = defaultdict(list)
    for call in calls:
        paid[API + call.model, call.ask].append(math.nan if call.cost is None else call.cost)
    return {ask: math.fsum(costs) for ask, costs in paid.items() if not any(map(math.isnan, costs))}


def _plain(value: Any) -> Any:
    return "" if value is None else value


def _number(value: Any) -> float:
    return math.nan if value is None or value == "" else float(value)
