"""The requests of one annotator's page: what they may see and store. Both annotators' pages work on
the same files."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from faithscope.experiments.analysis.exports.chains_to_label import Chain, Source
from faithscope.experiments.analysis.stored_records import Place
from faithscope.experiments.engine.append import Appender
from faithscope.experiments.extras.annotation.labels import Annotator, Label, read_label
from faithscope.experiments.extras.annotation.rounds import (
    ROUNDS,
    Protocol,
    differences,
    protocol_in,
)
from faithscope.interp.errors import UserError
from faithscope.interp.plain import visible


@dataclass(frozen=True)
class Desk:
    """The state of one annotator's page; every method may be called from any thread.

    Methods that take a request raise UserError if it is malformed, or not allowed in the current
    round.
    """

    source: Source
    name: str
    chains: tuple[Chain, ...]
    files: Appender
    annotators: dict[str, Annotator] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def texts(self, _: Any = None) -> list[dict[str, Any]]:
        """The chains as the page shows them, without the name of the model and the right answer."""
        return [
            {
                "question": visible(chain.question),
                "options": [visible(option) for option in chain.options],
                "parts": [[is_step, visible(text)] for is_step, text in chain.parts],
                "tail": visible(chain.tail),
                "answer": None if chain.answer is None else visible(chain.answer),
            }
            for chain in self.chains
        ]

    def state(self, sent: dict[str, Any]) -> dict[str, Any]:
        """The progress of all rounds, and the chains of one round with the labels that may be
        seen."""
        with self.lock:
            round, protocol, own = self._round(sent)
            other = next((a for a in protocol.annotators if a is not own), None)
            if round not in own.opened:
                raise UserError(f"round {round} is not open yet")
            listed = {n: protocol.listed(n) for n in ROUNDS if protocol.may_open(n)}
            rounds = [
                {
                    "round": n,
                    "listed": len(listed[n]) if n in listed else None,
                    "done": protocol.done(own, n) if n in listed else 0,
                    "other_done": protocol.done(other, n) if other and n in listed else 0,
                    "open": n in own.opened,
                    "closed": protocol.closed(n),
                }
                for n in ROUNDS
            ]
            places = {chain.place: i for i, chain in enumerate(self.chains)}
            items = [
                {"chain": places[place], **_seen(own, other, place, round)}
                for place in listed[round]
            ]
            whose = other.name if other else None
            return {"round": round, "other": whose, "rounds": rounds, "items": items}

    def say(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Store a label and return the state of its round."""
        with self.lock:
            round, protocol, own = self._round(sent)
            chain = self.chains[_one_of(range(len(self.chains)), sent, "chain")]
            label = read_label({k: v for k, v in sent.items() if k != "chain"}, chain)
            if round not in own.opened or chain.place not in protocol.listed(round):
                raise UserError(f"round {round} is not open, or does not include this chain")
            if protocol.closed(round):
                raise UserError(f"round {round} is over: one of you has gone on to the next")
            own.add(self.files, label.model_dump())
            return self.state(sent)

    def open(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Open a round for this annotator and return its state."""
        with self.lock:
            round, protocol, own = self._round(sent)
            if not protocol.may_open(round):
                raise UserError(f"round {round} opens when both are done with the one before")
            if round not in own.opened:
                own.add(self.files, {"opened": round})
            return self.state(sent)

    def _round(self, sent: dict[str, Any]) -> tuple[int, Protocol, Annotator]:
        protocol = protocol_in(self.source.folder, self.chains, self.annotators)
        return _one_of(ROUNDS, sent, "round"), protocol, self.annotators[self.name]


def _one_of(known: Sequence[int], sent: dict[str, Any], name: str) -> int:
    if type(value := sent.get(name)) is not int or value not in known:
        raise UserError(f"{name}: cannot be {str(value)[:60]!r}")
    return value


def _seen(own: Annotator, other: Annotator | None, place: Place, round: int) -> dict[str, Any]:
    """The labels of a chain that an annotator may see in a round."""
    before = own.standing(place, round - 1) or Label(round=1, place=place, reason="")
    # an earlier label counts for this round once they save it again
    mine = own.labels.get((round, place)) or before.model_copy(update={"done": False})
    # in round III the two discuss: each sees the other's latest label
    to = round if round == ROUNDS[-1] else round - 1
    said = other.standing(place, to) if other and round > 1 else None
    theirs = None if said is None else _sent(said)
    differs = [] if said is None else differences(mine, said)
    return {"own": _sent(mine), "other": theirs, "differs": differs}


def _sent(label: Label) -> dict[str, Any]:
    values = label.model_dump(exclude={"round", "place"})
    return values | {"reason": visible(label.reason)}
