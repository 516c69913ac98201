"""Progress of a run on standard error: share done, speed and time left.

Units differ by a thousandfold in cost (a planted model's trace, a real model's probe), so the bar
moves by estimated seconds. Each kind of unit starts with a guess, which the measured time replaces
as soon as one unit of the kind is done. The time left is shown once most of it belongs to kinds
that were measured, since probes differ by a hundredfold and a guess would mislead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from faithscope.experiments.numerals import significant
from faithscope.interp.plain import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_TINY = 0.02
"""Factor on the guessed seconds for a planted model."""


@dataclass
class _Kind:
    """Units of one model that share a label on the progress bar."""

    label: str
    total: int
    guess: float
    """Guessed seconds per unit, used until one is measured."""
    tiny: bool
    """Whether the model is a planted one."""
    done: int = 0
    """Number of finished units."""
    seconds: float = 0.0
    """Seconds that the finished units took."""


def notebook_line() -> Any | None:
    """A new line below a notebook's cell, whose method `update` replaces it; None elsewhere."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return None
    return ipython.display.display({"text/plain": ""}, raw=True, display_id=True)


class Meter:
    """Progress meter: counts units and shows a bar on a terminal, a line that changes below a
    notebook's cell, or a line now and then on any other stream."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self.stream = stream or sys.stderr
        self._clock = clock
        self._kinds: list[_Kind] = []
        self._started = clock()
        self._at: _Kind | None = None
        self._since = 0.0
        self._bar: Progress | None = None
        self._cell: Any | None = None
        self._task: TaskID | None = None
        self._shown = 0.0
        """Largest share of work shown so far; the bar never goes back when units turn out
        slower."""
        self._told = (-1, -1e9)
        """Tenths of the work done, and time, at the last printed line."""

    def expect(self, label: str, units: int, seconds: float, tiny: bool) -> int:
        """Announce units to come; returns the handle for `begin` and `at`.

        Args:
            seconds: guessed seconds per unit (`Stage.seconds`).
            tiny: whether the model is a planted one.
        """
        guess = seconds * (_TINY if tiny else 1)
        self._kinds.append(_Kind(label, units, guess, tiny))
        return len(self._kinds) - 1

    def __enter__(self) -> Meter:
        self._started = self._clock()
        if self.stream is sys.stderr:
            self._cell = notebook_line()
        if self._cell is None and self.stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

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
        """Make the kind of `handle` the current one, without restarting the clock: its unit began
        together with the units before it."""
        self._at = self._kinds[handle]

    def begin(self, handle: int) -> None:
        """Make the kind of `handle` the current one and start the clock of its next unit."""
        self.at(handle)
        self._since = self._clock()
        self._show(force=self._told[0] < 0)

    def advance(self, units: int = 1, seconds: float | None = None) -> None:
        """Count finished units of the current kind.

        Args:
            units: number of units.
            seconds: time that they took; None takes the time since the last call.
        """
        assert self._at is not None
        now = self._clock()
        self._at.done += units
        self._at.seconds += now - self._since if seconds is None else seconds
        self._since = now
        self._show()

    def tick(self) -> None:
        """Redraw the progress while a long unit runs."""
        self._show()

    def say(self, message: str) -> None:
        """Print a message on a line of its own, above the bar if there is one."""
        message = visible(message)
        if self._bar:
            self._bar.console.print(message, markup=False, highlight=False)
        else:
            # a notebook shows standard error in red
            print(message, file=self.stream if self._cell is None else sys.stdout, flush=True)

    @property
    def left(self) -> float:
        """Estimated seconds of work left."""
        return sum(_left(k) * self._rate(k) for k in self._kinds)

    @property
    def is_measured(self) -> bool:
        """Whether most of the work left, in seconds, is of kinds with a measured time."""
        return 2 * sum(_left(k) * self._rate(k) for k in self._kinds if k.done) >= self.left

    @property
    def fraction(self) -> float:
        """Share of the work that is done, in estimated seconds."""
        spent = sum(k.done * self._rate(k) for k in self._kinds)
        whole = spent + self.left
        return spent / whole if whole else 1.0

    def _rate(self, kind: _Kind) -> float:
        """Seconds per unit: measured, or else the guess corrected by the measured kinds of similar
        models (planted or not)."""
        if kind.done:
            return kind.seconds / kind.done
        like = [k for k in self._kinds if k.done and k.tiny == kind.tiny]
        guessed = sum(k.done * k.guess for k in like)
        return kind.guess * (sum(k.seconds for k in like) / guessed if guessed else 1.0)

    def _line(self) -> str:
        done = sum(k.done for k in self._kinds)
        total = sum(k.total for k in self._kinds)
        seconds = self._clock() - self._started
        rate = f", {significant(done / seconds)} a second" if done and seconds > 0 else ""
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
        if self._cell is not None:
            line = f"{fraction:4.0%}  {self._line()}"
            self._cell.update({"text/plain": line}, raw=True)
            return
        tenth = int(fraction * 10 + 1e-9)
        if force or tenth > self._told[0] or now >= self._told[1] + 30:
            self._told = (tenth, now)
            print(f"{fraction:4.0%}  {self._line()}", file=self.stream, flush=True)


def _left(kind: _Kind) -> int:
    return max(0, kind.total - kind.done)


def duration(seconds: float) -> str:
    """A duration as text: `40 s`, `3 min`, `2 h 10 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
