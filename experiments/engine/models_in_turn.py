"""One model after the other, none at the cost of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.interp.errors import UserError
from faithscope.probes.judge.spend import BudgetSpent


class Told(Protocol):
    """Who is told what could not be done."""

    problems: list[str]
    """A line per model that could not be used."""
    stopped: str
    """Why it ended before all was done, though nothing is wrong."""


def models_in_turn(
    work: Told, models: Sequence[str], do: Callable[[str], None], meter: Meter, store: Store
) -> None:
    """Have every model's part of a run done.

    A model that cannot be used goes into `work.problems`, a spent budget into `work.stopped`;
    those that come after it are done all the same.

    Raises:
        UserError: no model could be used.
    """
    with meter:
        for model in models:
            try:
                do(model)
            except BudgetSpent as spent:
                # models here cost nothing: they go on
                work.stopped += f"{'; ' if work.stopped else ''}{spent}"
                store.note(f"{spent} (unanswered: {spent.unanswered})")
            except UserError as error:
                # A model that cannot be used must not cost the night of the others.
                if len(models) == 1:
                    raise
                work.problems.append(str(error))
                meter.say(f"left out: {error}")
    if work.problems and len(work.problems) == len(models):
        raise UserError("\n".join(work.problems))
