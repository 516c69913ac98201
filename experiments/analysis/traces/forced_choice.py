"""Where a model, made to choose an answer after its chains, chooses another than they state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from faithscope.experiments.analysis.records import Place, Record, place_of

MANY = 0.1
"""Share of the chains beyond which a page says so."""


def differing(records: Iterable[Record]) -> dict[Place, bool]:
    """Of every chain that states an answer and was scored, whether any measure found the forced
    choice to be another one (`probes.reference_answer`)."""
    chains: dict[Place, bool] = {}
    for record in records:
        differs = record.get("forced_differs")
        if differs is not None:
            place = place_of(record)
            chains[place] = chains.get(place, False) or differs
    return chains


def cautions(records: Iterable[Record]) -> Iterator[str]:
    """A sentence for every model and task of which more than `MANY` differ."""
    of: dict[tuple[str, str], list[bool]] = {}
    for (model, task, _), differs in sorted(differing(records).items()):
        of.setdefault((model, task), []).append(differs)
    for (model, task), chains in of.items():
        if sum(chains) > MANY * len(chains):
            yield (
                f"{model} on {task}: after {sum(chains)} of {len(chains)} chains that state an "
                "answer, the model's likeliest answer is another one. Probabilities and log-odds "
                "follow the stated answer (columns forced_… the likeliest one); whether an edit "
                "changed the scored answer is told of the likeliest one, before and after."
            )
