"""The answer's distribution while the model is edited: knocked out or patched, in one pack.

For probes that write to the model: the text stays (or is another of the same length), what is
done to the model stands in the branch, and the answer is read as scored labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from interventions import Trace
from probes.framing import Arm, Asking, Reply
from probes.readings import distributions

if TYPE_CHECKING:
    from interp.edits import Edit
    from interp.model import Model

FEWER_LABELS = "fewer_than_2_labels"
DIGITS = 6
"""Decimals kept of what is measured: past them is float noise of the pack."""

Run = tuple[Sequence[int], Sequence["Edit"]]
"""Token ids up to where the answer begins, and what is done to the model on the way."""


@dataclass(frozen=True)
class Scored:
    """The answer's log distribution in every arm of one pack, and what the pack took."""

    arms: dict[Arm, dict[str, float]]
    cost: dict[str, Any]


def answers_of(asking: Asking) -> list[str]:
    """The canonical answers that labels stand for, each once."""
    return list(dict.fromkeys(name for name, _ in asking.labels))


def scored(
    model: Model,
    trace: Trace,
    asking: Asking,
    runs: Mapping[Arm, Run],
    *,
    length_normalise: bool,
    execution: Any,
) -> Scored:
    """Score the task's answers after every run, all in one call.

    Raises:
        FloatingPointError: a log-probability is NaN, naming item and arm.
    """
    from interp.forest import Forest
    from interp.read import choose_execution

    prefixes = [tuple(ids) for ids, _ in runs.values()]
    edits = [tuple(mine) for _, mine in runs.values()]
    labels = [model.encode(surface) for _, surface in asking.labels]
    said = model.ask(
        prefixes,
        [labels] * len(prefixes),
        boundary="number" if asking.kind == "number" else None,
        edits=edits,
        execution=execution,
    )
    replies = {
        arm: Reply(None, tuple(r.log_probs), tuple(r.label_lengths))
        for arm, r in zip(runs, said, strict=True)
    }
    how, reason = choose_execution(model, prefixes, execution)
    naive = sum(map(len, prefixes))
    return Scored(
        arms=distributions(
            replies,
            [name for name, _ in asking.labels],
            length_normalise=length_normalise,
            item=trace.question.id,
        ),
        cost={
            "execution": how,
            "tree_reason": reason,
            "trie_tokens": naive if how == "loop" else len(Forest.of(prefixes, edits)),
            "naive_tokens": naive,
        },
    )


def windows(n_layers: int, parts: int) -> list[tuple[int, int]]:
    """Half-open spans of layer indices: `parts` windows as equal as can be, none for 0."""
    bounds = [round(i * n_layers / parts) for i in range(parts + 1)] if parts else []
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
