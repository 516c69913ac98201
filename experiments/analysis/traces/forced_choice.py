"""Forced choice: chains after which the model's likeliest answer is not the one that they state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from faithscope.experiments.analysis.stored_records import Place, Record, place_of

MANY = 0.1
"""Share of differing chains of a model and task above which the page shows a caution."""


def differing(records: Iterable[Record]) -> dict[Place, bool]:
    """Place of a chain -> whether any record says that its forced choice differs from the stated
    answer (`probes.reference_answer`), for chains that state an answer and were scored."""
    chains: dict[Place, bool] = {}
    for record in records:
        differs = record.get("forced_differs")
        if differs is not None:
            place = place_of(record)
            chains[place] = chains.get(place, False) or differs
    return chains


def cautions(records: Iterable[Record]) -> Iterator[str]:
    """Yields a sentence for every model and task in which a share above `MANY` of the chains has a
    differing forced choice."""
    of: dict[tuple[str, str], list[bool]] = {}
    for (model, task, _), differs in sorted(differing(records).items()):
        of.setdefault((model, task), []).append(differs)
    for (model, task), chains in of.items():
        if sum(chains) > MANY * len(chains):
            yield (
                f"{model} on {task}: after {sum(chains)} of {len(chains)} chains that state an "
                "answer, the model gives another answer the highest probability. Probabilities and "
                "log-odds are those of the stated answer, and the columns forced_… those of the "
                "most probable one; the scored reading compares most probable answers."
            )
