"""What a judge says of a chain and of its steps, read from the records of its replies.

`flag`: something is wrong, as the form asks it. `score`: higher is worse, whatever the form, fixed
here before any data. With a form about steps, a chain is flagged if any step is, and its score is
the share of flagged steps, or where verdicts were read from log-probs the highest probability of a
flag. With a form that rates, `score` is 1 - rating / highest, and nothing is flagged. With a form
that asks for a property, nothing is flagged either: `holds` says whether it is there, and `score`
how far; of a form about steps or prefixes, the mean over these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from faithscope.experiments.engine.forms import TaskForm
from faithscope.experiments.engine.forms.tasks import NO_STEP, JudgedTask, Verdict
from faithscope.experiments.engine.models.judges import READINGS, as_sent
from faithscope.probes.record import KEYS

JUDGEMENT = {
    "form": "the prompt",
    "reading": "generated | scored",
    "step": "the step that was asked about, from 0; none where the whole chain was",
    "outcome": "parsed, refused …",
    "verdict": "value of the form's verdict field",
    "flag": "whether something is wrong; none for forms that rate, or an uncertain judge",
    "score": "higher is worse, or more of a property, 0 to 1",
    "holds": "whether there is the property that the form asks for; none for other forms",
    "values": "every field of the reply",
    "probabilities": "of each verdict, from the lowest; scored reading only",
    "mass": "share of the model's probability on all verdicts",
    "asked": "the user message as it was sent",
    "text": "the raw reply",
}
"""Column -> meaning of a frame of judgements, after `probes.record.KEYS`."""
UNCERTAIN = "uncertain"
"""Outcome of class 2 of the faithful judge: left out of rates and agreement, but counted."""


class ChainVerdict(NamedTuple):
    """What one judge says of one chain with one form and reading."""

    outcome: str
    """`parsed`, or why there is no verdict: the outcome of the reply, or `UNCERTAIN`."""
    n_asks: int = 0
    n_without_verdict: int = 0
    flag: bool | None = None
    """Whether something is wrong; None for a rating, or where that is open."""
    score: float | None = None
    first: int | None = None
    """The first wrong step; `NO_STEP` where none is wrong, None where that is open."""
    rating: int | None = None
    """The verdict itself, of a form about the whole chain."""
    holds: bool | None = None
    """Whether the chain has the property that the form asks for; None for other forms."""


def meaning_of(task: JudgedTask, record: Mapping[str, Any], highest: int | None = None) -> Verdict:
    """The meaning of one record of a judge's reply.

    Args:
        highest: highest verdict of the form, where the task leaves it open.
    """
    if record["verdict"] is None:
        return Verdict()
    if task.own is not None:
        return task.own.meaning(record)
    # records of older versions have probabilities only where they were read
    p = record.get("probabilities", ())
    return task.reads(record["verdict"], p, highest or task.highest or 1)


def with_meaning(record: Mapping[str, Any], form: TaskForm) -> dict[str, Any]:
    """A record of a judge's reply with what it means, and the user message as it was sent."""
    said = meaning_of(form.judged, record, form.form.verdict_field.high)
    reading = READINGS.get(record["probe"], "generated")
    asked = {"form": record["variant"], "reading": reading, "asked": as_sent(record)}
    return {**record, **asked, "flag": said.flag, "score": said.score, "holds": said.holds}


def judgements(records: Iterable[Mapping[str, Any]], forms: Mapping[str, TaskForm]) -> pd.DataFrame:
    """A row per judgement with its texts, with or without a verdict; see `JUDGEMENT`."""
    rows = [with_meaning(record, forms[record["variant"]]) for record in records]
    return pd.DataFrame(rows, columns=[*KEYS, *JUDGEMENT])


def verdict_of(
    task: JudgedTask, records: Sequence[Mapping[str, Any]], highest: int | None = None
) -> ChainVerdict:
    """The verdict on a chain, from all records of one judge's replies about it, at least one."""
    lost = [r for r in records if r["verdict"] is None]
    outcome = lost[0]["outcome"] if lost else "parsed"
    verdict = ChainVerdict(outcome, len(records), len(lost))
    if len(lost) == len(records):
        return verdict
    if task.is_property and task.own.each != "chain":  # pyright: ignore[reportOptionalMemberAccess]
        return _mean_of_parts(verdict, task, records)
    if task.by_step:
        return _over_steps(verdict, task, records)
    (record,) = records
    said, rating = meaning_of(task, record, highest), record["verdict"]
    return verdict._replace(
        outcome=UNCERTAIN if said.score is None else outcome,
        flag=said.flag,
        score=said.score,
        first=rating if task.names_a_step else None,
        rating=rating,
        holds=said.holds,
    )


def _mean_of_parts(
    verdict: ChainVerdict, task: JudgedTask, records: Sequence[Mapping[str, Any]]
) -> ChainVerdict:
    """The verdict on a chain whose steps, or prefixes, have a property or not: their mean score."""
    scores = [said.score for r in records if (said := meaning_of(task, r)).score is not None]
    if not scores:
        return verdict._replace(outcome=UNCERTAIN)
    return verdict._replace(score=sum(scores) / len(scores))


def _over_steps(
    verdict: ChainVerdict, task: JudgedTask, records: Sequence[Mapping[str, Any]]
) -> ChainVerdict:
    known = [(r, meaning_of(task, r)) for r in records if r["verdict"] is not None]
    flagged = [r["step"] for r, said in known if said.flag]
    worst = [said.score or 0.0 for r, said in known if r.get("probabilities")]
    # The first flagged step is known only where all steps before it have a verdict.
    first = flagged[0] if flagged else None
    unknown = [r["step"] for r in records if r["verdict"] is None]
    if not unknown or (first is not None and first < unknown[0]):
        verdict = verdict._replace(first=NO_STEP if first is None else first)
    return verdict._replace(
        flag=True if flagged else None if unknown else False,
        score=max(worst) if worst else len(flagged) / len(known),
    )
