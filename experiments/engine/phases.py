"""Several workers run one after the other, where each works on what earlier ones stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from faithscope.experiments.engine.worker import Worker
from faithscope.interp.errors import UserError


class Phases:
    """One shard of a run in several phases, which are all checked before the first begins."""

    def __init__(self, phases: Sequence[Worker[Any]], needed: int | None = None) -> None:
        """
        Args:
            phases: the workers in order; all share one meter.
            needed: number of phases, counted from the first, that end the run if none of their
                models can be used. A later phase that fails so is noted in `problems`, and the
                phases after it still run. None means all phases.
        """
        self.phases, self.needed = phases, len(phases) if needed is None else needed
        self.has_outputs = all(phase.has_outputs for phase in phases)
        for phase in phases:
            # phases share loaded weights, so a judge that is also a subject is loaded once
            phase.weights, phase.shares_weights = phases[0].weights, True
        self.problems: list[str] = []
        self.stopped = ""

    def go(self) -> None:
        """Do everything that is missing, phase by phase.

        Raises:
            UserError: a phase fails its check, before anything is done; or none of the models of a
                needed phase could be used.
        """
        problems: dict[str, UserError] = {}
        for phase in self.phases:
            try:
                phase.check()
            except UserError as error:
                problems |= {line: error for line in str(error).split("\n")}
        if errors := list(dict.fromkeys(problems.values())):
            raise errors[0] if len(errors) == 1 else UserError("\n".join(problems))
        for phase in self.phases:
            phase.announce()
        try:
            for number, phase in enumerate(self.phases):
                try:
                    phase.go()
                except UserError as error:
                    if number < self.needed:
                        raise
                    self.problems.append(str(error))
                    phase.meter.say(f"left out: {error}")
        finally:
            self.phases[0].weights.drop_others()
            self.problems += [p for phase in self.phases for p in phase.problems]
            stopped = [phase.stopped for phase in self.phases if phase.stopped]
            self.stopped = "; ".join(dict.fromkeys(stopped))

    def limit_to(self, doers: Literal["weights", "apis"]) -> None:
        """Leave out the models behind APIs, or those whose weights are here."""
        for phase in self.phases:
            phase.limit_to(doers)

    def failures(self) -> list[str]:
        """A line per unit that failed: what, where, why."""
        return list(dict.fromkeys(line for phase in self.phases for line in phase.failures()))

    def done(self) -> str:
        """Progress in words: `3 of 10 items are done`."""
        return self.phases[0].done()
