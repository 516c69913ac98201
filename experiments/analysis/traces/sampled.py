"""Chains of which a sample of the steps is edited, in words for a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from faithscope.experiments.analysis.measure import inclusion_of, n_edited
from faithscope.experiments.analysis.stored_records import Place, Record, place_of


def sampled_steps(records: Iterable[Record]) -> Iterator[str]:
    """Yields a sentence for every model and task with chains of which a sample of the steps is
    edited: how many steps, and how they were chosen."""
    chains: dict[Place, Record] = {}
    for record in records:
        if inclusion_of(record) is not None:
            chains.setdefault(place_of(record), record)
    of: dict[tuple[str, str], list[Record]] = {}
    for (model, task, _), record in sorted(chains.items()):
        of.setdefault((model, task), []).append(record)
    for (model, task), same in of.items():
        edited, steps = (sum(map(count, same)) for count in (n_edited, lambda r: r["n_steps"]))
        screened = sum(len(r.get("screened") or ()) for r in same)
        how = "drawn at random"
        if screened:
            how = (
                f"{screened} for the largest estimated effect of their removal and the others at "
                "random"
            )
        unscreened = [r for r in same if r.get("not_screened")]
        yield (
            f"{model} on {task}: in {_chains(same)} a sample of the steps is edited, {edited} "
            f"of {steps}, {how}. Means and shares count each by the inverse of the probability "
            "with which it is drawn (`inclusion` in the frames of steps), and their intervals are "
            "those of the sample. Rank correlations over steps are of the edited ones alone."
        ) + (
            f" {_chains(unscreened)} cannot be screened: no answers are scored."
            if unscreened
            else ""
        )


def _chains(records: list[Record]) -> str:
    n = len(records)
    return f"{n} chain{'s' * (n > 1)}"
