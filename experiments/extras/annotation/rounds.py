"""The three rounds by which two annotators come to one label (FaithCoT-Bench, section 3.2).

Round I: each labels every chain and sees no label of the other. Round II: chains on which the
labels differ, or of which one was not sure, are labelled again with the other's label in sight.
Round III: if label, principles or steps still differ, each sees the other's latest label until they
agree; chains without agreement are discarded. A round opens once both have finished the one before,
and closes once one of them has gone on, so that labels of round I are independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faithscope.experiments.analysis.exports.chains_to_label import Chain
from faithscope.experiments.analysis.stored_records import Place
from faithscope.experiments.extras.annotation.labels import Annotator, Label, names_in
from faithscope.interp.errors import UserError

ROUNDS = (1, 2, 3)


def differences(one: Label, other: Label) -> list[str]:
    """Parts in which two labels of a chain differ; principles and steps are compared only if both
    call it unfaithful."""
    if one.label != other.label:
        return ["label"]
    names = ("principles", "steps") if one.unfaithful else ()
    return [name for name in names if getattr(one, name) != getattr(other, name)]


@dataclass(frozen=True)
class Protocol:
    """The chains of a sample with their annotators' labels and progress."""

    chains: tuple[Chain, ...]
    annotators: tuple[Annotator, ...]
    """At most two annotators; fewer if not both have begun."""

    def pair(self, place: Place, round: int) -> tuple[Label, Label] | None:
        """Both annotators' labels of a chain at the end of a round; None if one has no label."""
        match [a.standing(place, round) for a in self.annotators]:
            case [Label() as one, Label() as other]:
                return one, other
        return None

    def listed(self, round: int) -> list[Place]:
        """The chains to be labelled in a round."""
        places = [chain.place for chain in self.chains]
        if round == 1:
            return places
        pairs = ((place, self.pair(place, round - 1)) for place in places)
        return [place for place, pair in pairs if pair is not None and _again(round, *pair)]

    def done(self, annotator: Annotator, round: int) -> int:
        """Number of chains of a round that an annotator has finished."""
        labels = (annotator.labels.get((round, place)) for place in self.listed(round))
        return sum(label is not None and label.done for label in labels)

    def may_open(self, round: int) -> bool:
        """Whether both annotators have finished the rounds before."""
        if round == 1:
            return True
        whole = len(self.listed(round - 1))
        both = len(self.annotators) == 2 and self.may_open(round - 1)
        return both and all(self.done(a, round - 1) == whole for a in self.annotators)

    def closed(self, round: int) -> bool:
        """Whether one of the annotators has gone on to the next round."""
        return any(round + 1 in annotator.opened for annotator in self.annotators)

    def outcome(self, place: Place) -> str | bool:
        """Whether both finally call a chain unfaithful, or the reason why this is unknown:
        `not_labelled_twice`, `disagreement` or `uncertain`."""
        pair = self.pair(place, ROUNDS[-1])
        if pair is None:
            return "not_labelled_twice"
        if pair[0].label != pair[1].label:
            return "disagreement"
        return "uncertain" if pair[0].unfaithful is None else pair[0].unfaithful


def _again(round: int, one: Label, other: Label) -> bool:
    if round == 2:
        return one.label != other.label or "low" in (one.confidence, other.confidence)
    return bool(differences(one, other))


def protocol_in(
    folder: Path, chains: Sequence[Chain], known: dict[str, Annotator] | None = None
) -> Protocol:
    """The annotators of a folder, read to the end of their files.

    Args:
        known: annotators read before, of whose files only new lines are read; new annotators are
            added to it.

    Raises:
        UserError: there are more than two, or a file is damaged.
    """
    names, known = names_in(folder), {} if known is None else known
    if len(names) > 2:
        raise UserError(
            f"{folder}: has labels of {', '.join(names)}, and the protocol has two annotators; "
            "move the other files away"
        )
    for name in names:
        known.setdefault(name, Annotator(name, folder, {c.place: c for c in chains}))
    return Protocol(tuple(chains), tuple(known[name].read() for name in names))
