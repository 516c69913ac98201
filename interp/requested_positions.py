"""`RequestedPositions`: prefixes and labels as sequences to run, with the positions to read.

Knows nothing of how sequences are run: nodes are those of a forest, or positions of a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faithscope.interp.answered import Answered
from faithscope.interp.edits import Edit
from faithscope.interp.forest import Ids, Joined, id_array
from faithscope.interp.generation import Generation
from faithscope.interp.leads import WATCHED, Lead
from faithscope.interp.number_ends import TokenSet
from faithscope.interp.scoring import Beyond, Place, Scoring

Path = Sequence[int] | NDArray[np.int64]
"""The nodes of one sequence, in order."""
Scores = Mapping[int | TokenSet, float]
"""Log-probs (nats) of next tokens, or of token sets, after one node."""


class Behind(NamedTuple):
    """A token run after a node, under the edits of the sequence it extends."""

    node: int
    token: int
    edits: tuple[Edit, ...]


class Further(NamedTuple):
    """The next tokens to score after a `Behind` token."""

    sequence: int
    """Index of a sequence through the node."""
    length: int
    """Number of its tokens up to the node."""
    sets: set[int | TokenSet]


@dataclass(frozen=True)
class RequestedPositions:
    """Prefixes with their labels, flattened to sequences; one sequence per tail."""

    sequences: list[Ids]
    starts: list[int]
    """Per sequence, the length of its prefix."""
    edits: list[tuple[Edit, ...]]
    """Per sequence, the edits it runs under."""
    first: list[int]
    """Per prefix, the index of its first sequence."""
    scorings: Sequence[Scoring]
    """Per prefix, how its labels are scored."""
    limits: list[int]
    """Per prefix, the most tokens of its continuation; 0 for none."""
    watched: list[int]
    """Indices of the prefixes whose last tokens' leads are wanted."""
    forced: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Prefix -> the index of the sequence that replays its earlier continuation, and the number of
    that continuation's tokens."""

    @classmethod
    def of(
        cls,
        prefixes: Sequence[Ids],
        scorings: Sequence[Scoring],
        edits: Sequence[tuple[Edit, ...]],
        limits: Sequence[int],
        watched: Sequence[int] = (),
        continued: Sequence[Answered] = (),
    ) -> RequestedPositions:
        """Lay out prefixes and labels; `continued` holds the earlier answer of each, to replay."""
        asked = cls([], [], [], [], scorings, list(limits), list(watched))
        arrays = list(map(id_array, prefixes))
        for prefix, scoring, under in zip(arrays, scorings, edits, strict=True):
            asked.first.append(len(asked.sequences))
            for tail in scoring.tails:
                asked.sequences.append(Joined(prefix, id_array(tail)))
                asked.starts.append(len(prefix))
                asked.edits.append(under)
        for k, earlier in enumerate(continued):
            if earlier.written:
                asked.forced[k] = len(asked.sequences), len(earlier.written)
                replayed = id_array([x.candidate for x in earlier.written[:-1]])
                asked.sequences.append(Joined(arrays[k], replayed))
                asked.starts.append(len(arrays[k]))
                asked.edits.append(edits[k])
        return asked

    def places(self, paths: Sequence[Any]) -> list[tuple[list[int], list[int]]]:
        """Per prefix, nodes whose leads are wanted: its last tokens, its replayed continuation."""
        wanted: list[tuple[list[int], list[int]]] = [([], []) for _ in self.first]
        for k in self.watched:
            at, start = self.first[k], self.starts[self.first[k]]
            wanted[k] = ([int(n) for n in paths[at][max(0, start - WATCHED) : start]], [])
        for k, (at, n) in self.forced.items():
            start = self.starts[at] - 1
            wanted[k][1].extend(int(node) for node in paths[at][start : start + n])
        return wanted

    def queries(self, paths: Sequence[Path]) -> dict[int, set[int | TokenSet]]:
        """node -> the next tokens and token sets that are scored after it."""
        tokens: dict[int, set[int | TokenSet]] = {}
        for first, scoring in zip(self.first, self.scorings, strict=True):
            for place in scoring.places:
                node, token = self._query(paths, first, place)
                tokens.setdefault(node, set()).add(token)
        return tokens

    def beyond(self, scores: Mapping[int, Scores], paths: Sequence[Path]) -> dict[Behind, Further]:
        """The tokens to run after some labels, besides the sequences, with what each is to
        score."""
        wanted: dict[Behind, Further] = {}
        for first, scoring in zip(self.first, self.scorings, strict=True):
            for way in scoring.beyond(self._reader(scores, paths, first)):
                behind = self._behind(paths, first, way)
                tail, read, _ = way.place
                further = Further(first + tail, self.starts[first] + read, set())
                wanted.setdefault(behind, further).sets.add(way.ids)
        return wanted

    def answers(
        self,
        scores: Mapping[int, Scores],
        behind: Mapping[Behind, Scores],
        paths: Sequence[Path],
        generated: Sequence[Generation | None],
        places: Sequence[tuple[list[int], list[int]]],
        leads: dict[int, Lead],
    ) -> list[Answered]:
        """The answer of each prefix, in order, with label scores in the order of its labels."""
        return [
            Answered(
                scoring.scores(
                    self._reader(scores, paths, first),
                    lambda way, at=first: behind[self._behind(paths, at, way)][way.ids],
                ),
                scoring.lengths,
                text,
                leads=tuple(leads[n] for n in before),
                forced=tuple(leads[n] for n in after),
            )
            for first, scoring, text, (before, after) in zip(
                self.first, self.scorings, generated, places, strict=True
            )
        ]

    def _query(self, paths: Sequence[Path], first: int, place: Place) -> tuple[int, int | TokenSet]:
        tail, read, token = place
        return int(paths[first + tail][self.starts[first] - 1 + read]), token

    def _reader(
        self, scores: Mapping[int, Scores], paths: Sequence[Path], first: int
    ) -> Callable[[Place], float]:
        def read(place: Place) -> float:
            node, token = self._query(paths, first, place)
            return scores[node][token]

        return read

    def _behind(self, paths: Sequence[Path], first: int, way: Beyond) -> Behind:
        node, token = self._query(paths, first, way.place)
        assert isinstance(token, int)
        return Behind(node, token, self.edits[first])
