"""Tables, figures and sections of a run that could not be made; each failure costs no other output.

A measure of an installed package declares its own table, figure and section. What is wrong there is
told on the page and on standard error, and the rest of the report is written.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from faithscope.experiments.files import StoreError

Kind = Literal["table", "figure", "section", "score"]
LIBRARIES = {"matplotlib", "pandas", "numpy", "scipy", "jinja2", "markupsafe"}
"""Packages whose own lines a reason does not name."""


@dataclass(frozen=True)
class Failures:
    """What could not be made of one run's outputs, and why."""

    reasons: dict[tuple[Kind, str], str] = field(default_factory=dict)
    """(kind, name) -> reason in words, in the order of the failures."""

    @contextmanager
    def kept(self, kind: Kind, name: str) -> Iterator[None]:
        """A context whose exception is kept as the reason why this output is missing; a folder that
        cannot be written is no fault of the output, and stops them all."""
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            self.reasons[kind, name] = _reason(error)

    def __contains__(self, output: tuple[Kind, str]) -> bool:
        return output in self.reasons

    def lines(self) -> list[str]:
        """A sentence per output that could not be made."""
        return [self.line(kind, name) for kind, name in self.reasons]

    def line(self, kind: Kind, name: str) -> str:
        return f"the {kind} {name!r} could not be made: {self.reasons[kind, name]}"


def kept(failed: Failures | None, kind: Kind, name: str) -> AbstractContextManager[None]:
    """`failed.kept`; a context that lets exceptions pass where failures are not kept."""
    return nullcontext() if failed is None else failed.kept(kind, name)


def _reason(error: Exception) -> str:
    """An error in one line, with the last line of code that is no library's."""
    said = f"{type(error).__name__}: {error}".partition("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not LIBRARIES & set(Path(f.filename).parts)]
    return f"{said} ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else said
