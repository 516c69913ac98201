"""`Scores`: the scores and labels that a study's run gives to comparisons, one row per trace and
measure.

A study gives them by `Report.scores`: `scores(run)` returns `Scores`. The direction of each measure
is fixed in the study's code, before any data is seen. A missing score stays in the frame as a row
with a reason and without a value.
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
"""Source of a score: answers (behavioural), their probabilities (logit), hidden states and
attention (internal), or a judge's verdict (judged). The family `label` holds the labels that all
others are compared with."""
FAMILIES: tuple[Family, ...] = get_args(Family)
STEP_LABEL = "step label"
"""Family, in `Scores.steps` only, of labels that any step of a trace may have. A label that marks a
single step of a trace has the family `label`."""
STEP_NUMBER = "step number"
"""Family, in `Scores.steps` only, of labels of steps that are numbers, such as importances that the
chains' authors published: they rank steps, and speak for none."""
LABELS = ("label", STEP_LABEL, STEP_NUMBER)
"""Families of labels in `Scores.steps`."""
PLACE = ("dataset", "task", "item", "model")
"""Columns that name a trace; `model` is the one that wrote it. Together with the digest of the
trace they identify a row of a comparison. An empty task means that the task is not known and
matches any task with the item."""
COSTS = {
    "forwards": "model calls for this measure alone, without the shared forest",
    "tokens": "tokens that models read and wrote for the whole probe or judgement",
    "seconds": "of the whole probe or judgement, as it was timed",
    "dollars": "paid to an API for the whole judgement",
}
"""Cost of a score for one item -> its meaning; NaN where it was not counted."""
COST_COLUMNS = (
    Column("forwards", "model calls", "Model calls of a trace, for this measure alone, mean."),
    Column("tokens", meaning="Tokens of a trace, for the whole probe or judgement, mean."),
    Column("seconds", meaning="Seconds of a trace, for the whole probe or judgement.", unit="s"),
    Column("dollars", meaning="Dollars that a trace cost at an API, mean.", unit="$"),
)
"""Table columns with the mean of each of `COSTS`."""
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
"""Columns of `Scores.items` -> their meaning."""
STEPS = {
    **{name: "" for name in PLACE},
    "measure": "",
    "family": f"of scores, or {STEP_LABEL!r} or {STEP_NUMBER!r}",
    "step": "its index in the trace, from 0",
    "value": "",
    "higher_is_faithful": "whether a greater value means that more hangs on the step",
}
"""Columns of `Scores.steps` -> their meaning."""
OPTIONS = re.compile(r"\nA\. (?:(?!\nA\. ).)*\nB\. (?:(?!\nA\. ).)*\Z", re.DOTALL)
"""Pattern of a list of lettered options at the end of a question (judges are shown them there)."""
SAME = ("ids", "text", "question")
"""Criteria for joining two traces, strictest first."""
TRACES = {
    **{name: "" for name in PLACE},
    "ids": "digest of prompt and reasoning as token ids; empty where there are none",
    "text": "digest of the reasoning as text",
    "given": "hash of the given chain in its file; empty for a chain that a model wrote here",
    "question": "digest of the question alone",
    "asked": "id of the question of which the chain is one of several samples; empty for others",
    "n_steps": "steps that an intervention may touch",
    "n_tokens": "of the reasoning",
    "correct": "whether the model's answer is right; NaN where nobody knows",
    "settled": "share of the steps after which the answer no longer changes",
    "cut": "whether a token limit cut the reasoning off; NaN where nobody knows",
    "excluded": "why no probe edits the trace; empty for the others",
}
"""Columns of `Scores.traces` -> their meaning."""
NO_VALUE, NOT_RUN, FAILED = "no_value", "not_run", "failed"
"""Reasons for a missing score: the record lacks the number; the item was never measured; its unit
of work failed."""


@dataclass(frozen=True)
class Scores:
    """All scores, labels and feature vectors of a run's traces.

    Raises:
        ValueError: a frame lacks a column, or has two rows for one trace, measure and step.
    """

    items: pd.DataFrame
    """A row per trace and measure (`ITEMS`)."""
    traces: pd.DataFrame
    """A row per trace (`TRACES`)."""
    steps: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(STEPS)))
    """A row per trace, measure and step (`STEPS`)."""
    features: Mapping[str, Mapping[tuple[str, ...], np.ndarray]] = field(default_factory=dict)
    """Name -> place of a trace -> vector from the model's hidden states, for training monitors
    (`scores_vs_labels`)."""

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
    """One row of `Scores.items`.

    Args:
        about: a record, or its keys; keys that it lacks are left empty.
        measure: name of the measure.
        value: the score; None or NaN where it is missing.
        missing: why there is no value; without a reason `NO_VALUE` is stored.
        rule: the measure's own threshold, if it has one.
        costs: costs of the score, by their names in `COSTS`.

    Raises:
        UserError: the value is infinite; the error names measure and item.
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
    """One row of `Scores.items` for a label; its direction follows from its name
    (`says_faithful`)."""
    row = item_row(about, name, "label", value, higher_is_faithful=says_faithful(name), rule=0.5)
    return row | {"probe": "label", "judge": "", "variant": ""}


# beginnings of words in the name of a label that speaks against a trace where it is 1
AGAINST = ("unfaithful", "wrong", "error", "incorrect", "broken", "hinted", "biased", "flaw")
AGAINST += ("invalid", "sycophan", "hallucinat", "mistake", "unsound", "conflict")
CORRECTNESS = ("correct", "incorrect", "accura", "wrong", "right", "error", "mistake")
"""Beginnings of words in the name of a label about correctness."""
NEGATED = ("not", "no", "non", "without", "never")
"""Words in the name of a label that reverse its direction, as `free` after a word of `AGAINST`
does."""


def says_faithful(label: str) -> bool:
    """Whether a label speaks for a trace where it is 1, judged by the words of its name.

    A name with a word of `AGAINST` speaks against the trace, and each negation reverses the
    direction: `not_faithful` speaks against a trace, `no_error` and `error_free` speak for it.
    Words are runs of letters; `camelCase` counts as two.
    """
    words = _words(label)
    against = [i for i, word in enumerate(words) if word.startswith(AGAINST)]
    negated = sum(word in NEGATED for word in words)
    negated += sum(words[i + 1 : i + 2] == ["free"] for i in against)
    return (len(against[:1]) + negated) % 2 == 0


def of_correctness(label: str) -> bool:
    """Whether a label is about the correctness of an answer or step, and not about faithfulness,
    judged by its name."""
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
    given: str = "",
    asked: str = "",
    **traits: Any,
) -> dict[str, Any]:
    """One row of `Scores.traces`.

    Args:
        about: a record, or the columns `PLACE`.
        ids: prompt and reasoning as token ids; None where there are none.
        given: hash of the given chain (`GivenChain.sha256`); "" if the chain was not given.
        asked: id of the question of which the chain is one of several samples; "" for others.
        traits: the other columns of `TRACES`, as far as they are known.
    """
    row = {name: _plain(about.get(name)) for name in PLACE}
    row |= {"ids": "" if ids is None else digest(ids), "text": digest(reasoning)}
    row |= {
        "given": given,
        "question": question_digest(question),
        "asked": asked,
        "excluded": traits.pop("excluded", None) or "",
    }
    return row | {
        name: _number(traits.get(name))
        for name in ("n_steps", "n_tokens", "correct", "settled", "cut")
    }


def frames(
    items: Iterable[Mapping[str, Any]],
    traces: Iterable[Mapping[str, Any]],
    steps: Iterable[Mapping[str, Any]] = (),
    features: Mapping[str, Mapping[tuple[str, ...], np.ndarray]] | None = None,
) -> Scores:
    """`Scores` made from rows."""
    return Scores(
        pd.DataFrame(list(items), columns=list(ITEMS)),
        pd.DataFrame(list(traces), columns=list(TRACES)),
        pd.DataFrame(list(steps), columns=list(STEPS)),
        features or {},
    )


def question_digest(text: str) -> str:
    """Digest of a question without a list of lettered options at its end, since some studies store
    the options in the question's text and others separately."""
    return digest(OPTIONS.sub("", text))


def digest(value: Any) -> str:
    """Digest of a text or of ids: sixteen hex digits."""
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode()).hexdigest()[:16]


def judged_costs(record: Mapping[str, Any], dollars: float | None = None) -> dict[str, Any]:
    """The `COSTS` of a judgement, from the calls, tokens and seconds in its record.

    Args:
        dollars: what its API calls cost; None if unknown.
    """
    tokens = [record.get(name) for name in ("input_tokens", "output_tokens")]
    known = [t for t in tokens if t is not None]
    return {
        "forwards": record.get("calls"),
        "tokens": sum(known) if known else None,
        "seconds": record.get("seconds"),
        "dollars": dollars,
    }


def seconds_of(run_dir: Path) -> dict[tuple[str, str, str, str], float]:
    """(stage, model, task, item) -> seconds that the unit of work took, the last time it was
    done."""
    seconds: dict[tuple[str, str, str, str], float] = {}
    for path in sorted(run_dir.glob("timing.*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            try:
                timing = json.loads(line)
                key = tuple(str(timing[k]) for k in ("stage", "model", "task", "item"))
                seconds[key] = float(timing["seconds"])  # pyright: ignore[reportArgumentType]
            except (ValueError, KeyError, TypeError):
                continue  # a torn line of a killed process
    return seconds


def dollars_of(calls: Iterable[Call]) -> dict[tuple[str, str], float]:
    """(judge, id of a prompt) -> cost in dollars of all calls for it; prompts with a call without
    a price are left out."""
    paid: dict[tuple[str, str], list[float]] = defaultdict(list)
    for call in calls:
        paid[API + call.model, call.ask].append(math.nan if call.cost is None else call.cost)
    return {ask: math.fsum(costs) for ask, costs in paid.items() if not any(map(math.isnan, costs))}


def _plain(value: Any) -> Any:
    return "" if value is None else value


def _number(value: Any) -> float:
    return math.nan if value is None or value == "" else float(value)
