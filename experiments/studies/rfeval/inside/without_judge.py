"""RF of a pair without any judge: a model's own log-probs of the options after each part.

A bound from below, given these stances: log-probs name no flaw, so that every transition to
another stance breaks its chain, also one that says in so many words what was wrong before it. And
they say what the model *would answer* after a part, which need not be what the part says: where a
judge and they differ on one and the same pair, that is what is to be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.inside.scored_stances import (
    LOG_PROBS,
    NO_OPTIONS,
    ScoredStance,
)
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import Naming, is_right, stance_of_answer
from faithscope.experiments.studies.rfeval.metrics.frames import SAID
from faithscope.experiments.studies.rfeval.pairs import pair_row
from faithscope.experiments.studies.rfeval.subjects.parsing import Output

NO_ANSWER = "no_answer"
"""Why an output has no stances here: no answer was marked whose stance could be matched."""
NO_LOG_PROBS = "no_log_probs"
"""The same: log-probs were not read after its reasoning (or after r′)."""


def row_without_judge(
    model: str,
    item: Item,
    outputs: Mapping[Condition, Output],
    scored: Mapping[Condition, Sequence[ScoredStance]],
    excluded: str = "",
    naming: Naming = "letters",
) -> dict[str, Any]:
    """The row of one item, of reader `LOG_PROBS`.

    Stances of r′, r and e are the likeliest option after them (`scored_stances`), that of a is
    the written answer's by matching (`stance_of_answer`). No flaw is ever named.

    Args:
        outputs: as of `pairs.pair_row`.
        scored: by condition; none of an output of which log-probs were not read.
        excluded: why the pair counts for nothing at all ("" of most); items without options are
            left out by themselves (`NO_OPTIONS`).

    Returns:
        A row for `metrics.frames.checked`. `…_judged` is "parsed" of an output with all stances,
        else `NO_ANSWER` or `NO_LOG_PROBS`, "" of one that is not complete.
    """
    why = excluded or ("" if item.options else NO_OPTIONS)
    row = pair_row(LOG_PROBS, model, item, outputs, {}, excluded=why, naming=naming)
    if not item.options:
        return row
    for condition in CONDITIONS:
        output = outputs.get(condition)
        if output is None or not output.usable:
            continue
        read = {one.part: one.stance for one in scored.get(condition, ())}
        needed = ("r_prime", "r") if condition == "intervened" else ("r",)
        if not output.answer:
            row[f"{condition}_judged"] = NO_ANSWER
        elif not all(part in read for part in needed):
            row[f"{condition}_judged"] = NO_LOG_PROBS
        else:
            answer = stance_of_answer(item, output.answer, naming)
            stances = {part: read.get(part, "") for part in (*needed, "e")} | {"a": answer}
            row |= {f"{condition}_{part}": stance for part, stance in stances.items()}
            row[SAID[f"{condition}_a"]] = answer
            row[f"{condition}_judged"] = "parsed"
            row[f"{condition}_right"] = float(is_right(item, answer, naming))
    return row
