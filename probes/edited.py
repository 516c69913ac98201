"""The answer's distribution while the model is edited: knocked out or patched, in one pack.

For probes that write to the model: the text stays (or is another of the same length), what is
done to the model stands in the branch, and the answer is read as scored labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from faithscope.interventions import Trace
from faithscope.probes.floor import BASELINE, Arm, noise
from faithscope.probes.framing import Asking, Reply, label_ids
from faithscope.probes.readings import distributions
from faithscope.probes.text_model import cost_of

if TYPE_CHECKING:
    from faithscope.interp.edits import Edit
    from faithscope.interp.model import Model

FEWER_LABELS = "fewer_than_2_labels"
_DIGITS = 6
Run = tuple[Sequence[int], Sequence["Edit"]]
"""Token ids up to where the answer begins, and what is done to the model on the way."""


@dataclass(frozen=True)
class Scored:
    """The answer's log distribution in every arm of one call, and what the call took."""

    arms: dict[Arm, dict[str, float]]
    """Of a repeated arm, one for every pack: ("baseline", 0), ("baseline", 1), …"""
    packs: dict[Arm, int]
    """Which pack each arm was computed in."""
    mass: dict[Arm, float]
    """What all labels together have of the model's probability."""
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
    repeat: Sequence[Arm] = (BASELINE,),
    length_normalise: bool,
    execution: Any,
) -> Scored:
    """Score the task's answers after every run, all in one call.

    Args:
        repeat: arms that others are compared with, which every pack has; of place 0.

    Raises:
        FloatingPointError: a log-probability is NaN, naming item and arm.
    """
    prefixes = [tuple(ids) for ids, _ in runs.values()]
    edits = [tuple(mine) for _, mine in runs.values()]
    labels = label_ids(model, asking, "prefix")
    said = model.ask(
        prefixes,
        [labels] * len(prefixes),
        boundary="number" if asking.kind == "number" else None,
        edits=edits,
        repeat=[i for i, arm in enumerate(runs) if arm in repeat],
        execution=execution,
    )
    by_arm = dict(zip(runs, said, strict=True))
    copies = {(kind, r.pack): r for kind, at in repeat for r in by_arm[kind, at].repeats}
    replies = {
        arm: Reply(None, tuple(r.log_probs), tuple(r.label_lengths), pack=r.pack)
        for arm, r in (by_arm | copies).items()
    }
    names = [name for name, _ in asking.labels]
    return Scored(
        arms=distributions(
            replies,
            names,
            length_normalise=length_normalise,
            item=trace.question.id,
        ),
        mass={arm: round(reply.label_mass, _DIGITS) for arm, reply in replies.items()},
        packs={arm: reply.pack for arm, reply in replies.items()},
        cost=cost_of(model, prefixes, execution, room=0, edits=edits)
        | noise(by_arm[BASELINE], names),
    )


def windows(n_layers: int, parts: int) -> list[tuple[int, int]]:
    """Half-open spans of layer indices: `parts` windows as equal as can be, none for 0."""
    bounds = [round(i * n_layers / parts) for i in range(parts + 1)] if parts else []
    return [(a, b) for a, b in pairwise(bounds) if a < b]
