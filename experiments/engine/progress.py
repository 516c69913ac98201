"""How far a run is, how fast it goes, and when it will be done; on standard error.

Units differ by a thousandfold in cost (a planted model's trace, a real one's probe), so
the bar moves by estimated seconds. The estimate of a kind of unit is replaced by what
that kind was measured to take as soon as one is done. How long it will take is said once most of
the time left is of kinds that were measured: probes differ by a hundredfold, and a guess is none.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from faithscope.interp.plain import visible

_GUESS = {"trace": 2.5, "probe": 18.0}
"""Seconds per unit of a model of some hundred million parameters on two CPU cores."""
_TINY = 0.02
"""Of that, what a planted model takes."""


@dataclass
class _Kind:
    """Units of one model, task and stage."""

    label: str
    total: int
    guess: float
    """Seconds per unit, before any is measured."""
    tiny: bool
    done: int = 0
    seconds: float = 0.0


class Meter:
    """Counts units and tells a person; silent but for a line now and then without a terminal."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self.stream = stream or sys.stderr
        self._clock = clock
        self._kinds: list[_Kind] = []
        self._started = clock()
        self._at: _Kind | None = None
        self._since = 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._shown = 0.0
        """The most that was shown as done: units that turn out slower never take it back."""
        self._told = (-1, -1e9)
        """Tenth of the work and time of the last line."""

    def expect(self, label: str, units: int, stage: str, tiny: bool) -> int:
        """Announce units to come; gives the handle for `begin`."""
        guess = _GUESS["trace" if stage == "trace" else "probe"] * (_TINY if tiny else 1)
        self._kinds.append(_Kind(label, units, guess, tiny))
        return len(self._kinds) - 1

    def __enter__(self) -> Meter:
        self._started = self._clock()
        if self.stream.isatty():
            bar = Progress(
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.description}"),
                console=Console(file=self.stream),
                transient=True,
            )
            bar.start()
            self._bar, self._task = bar, bar.add_task("", total=1.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def at(self, handle: int) -> None:
        """What ends next is one of `handle`, begun with those before it."""
        self._at = self._kinds[handle]

    def begin(self, handle: int) -> None:
        """The units of `handle` are next."""
        self.at(handle)
        self._since = self._clock()
        self._show(force=self._told[0] < 0)

    def advance(self, units: int = 1, seconds: float | None = None) -> None:
        """So many units of the current kind are done.

        Args:
            seconds: what they took, where it is not the time since the last.
        """
        assert self._at is not None
        now = self._clock()
        self._at.done += units
        self._at.seconds += now - self._since if seconds is None else seconds
        self._since = now
        self._show()

    def tick(self) -> None:
        """Still at it: keeps the time left fresh while a long unit runs."""
        self._show()

    def say(self, message: str) -> None:
        """A line of its own, above the bar if there is one."""
        message = visible(message)
        if self._bar:
            self._bar.console.print(message, markup=False, highlight=False)
        else:
            print(message, file=self.stream, flush=True)

    @property
    def left(self) -> float:
        """Seconds to go."""
        return sum(_left(k) * self._rate(k) for k in self._kinds)

    @property
    def is_measured(self) -> bool:
        """Whether most of the seconds to go are of kinds that were measured."""
        return 2 * sum(_left(k) * self._rate(k) for k in self._kinds if k.done) >= self.left

    @property
    def fraction(self) -> float:
        spent = sum(k.done * self._rate(k) for k in self._kinds)
        whole = spent + self.left
        return spent / whole if whole else 1.0

    def _rate(self, kind: _Kind) -> float:
        """Seconds per unit: measured, or guessed and corrected by how its like fared."""
        if kind.done:
            return kind.seconds / kind.done
        like = [k for k in self._kinds if k.done and k.tiny == kind.tiny]
        guessed = sum(k.done * k.guess for k in like)
        return kind.guess * (sum(k.seconds for k in like) / guessed if guessed else 1.0)

    def _line(self) -> str:
        done = sum(k.done for k in self._kinds)
        total = sum(k.total for k in self._kinds)
        seconds = self._clock() - self._started
        rate = f", {done / seconds:.2g} a second" if done and seconds > 0 else ""
        label = self._at.label if self._at else ""
        known = done < total and self.is_measured
        left = f", about {duration(self.left)} left" if known else ""
        return f"{label}  {done}/{total} units{rate}{left}"

    def _show(self, force: bool = False) -> None:
        fraction, now = max(self._shown, self.fraction), self._clock()
        self._shown = fraction
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=fraction, description=self._line())
            return
        tenth = int(fraction * 10 + 1e-9)
        if force or tenth > self._told[0] or now >= self._told[1] + 30:
            self._told = (tenth, now)
            print(f"{fraction:4.0%}  {self._line()}", file=self.stream, flush=True)


def _left(kind: _Kind) -> int:
    return max(0, kind.total - kind.done)


def duration(seconds: float) -> str:
    """`40 s`, `3 min`, `2 h 10 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
