"""Templates of judge prompts: `{place}` as `str.format` has it, or Jinja.

A place without a value is missing, not empty: a template that shows it cannot be filled, and says
which place it is. In Jinja a missing place can be tested: `{% if options %}…{% endif %}`.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from jinja2 import Environment, Template

Syntax = Literal["format", "jinja"]


class MissingPlace(ValueError):
    """A template shows a place that has no value; `place` is its name."""

    def __init__(self, place: str) -> None:
        super().__init__(f"the place {place!r} has no value")
        self.place = place


class Listed(tuple[str, ...]):
    """Texts that a template can print, a line each, or loop over."""

    def __str__(self) -> str:
        return "\n".join(self)


def filled(template: str, syntax: Syntax, values: Mapping[str, Any]) -> str:
    """The template with the values in its places.

    Raises:
        MissingPlace: a place that it shows is not in `values`.
        ValueError: the template cannot be filled (`{{ question.colour }}`, a loop over a number).
    """
    if syntax == "format":
        try:
            return template.format(**values)
        except KeyError as error:
            raise MissingPlace(str(error.args[0])) from None
    from jinja2 import TemplateError

    try:
        return _compiled(template).render(values)
    except (TemplateError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from error


@cache
def places(template: str, syntax: Syntax) -> frozenset[str]:
    """The names of all places of a template.

    Raises:
        ValueError: the template cannot be parsed; the message says why, and of Jinja in which line.
    """
    if syntax == "format":
        parsed = string.Formatter().parse(template)
        return frozenset(place for _, place, _, _ in parsed if place is not None)
    from jinja2 import TemplateError, TemplateSyntaxError, meta

    try:
        return frozenset(meta.find_undeclared_variables(_environment().parse(template)))
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.message}") from error
    except TemplateError as error:
        raise ValueError(str(error)) from error


@cache
def _compiled(template: str) -> Template:
    return _environment().from_string(template)


@cache
def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import missing

    class Missing(StrictUndefined):
        """A place without a value: it is false, and whatever else is done with it says so."""

        def __init__(
            self, hint: str | None = None, obj: Any = missing, name: str | None = None, *exc: Any
        ) -> None:
            super().__init__(hint, obj, name, *exc)
            if obj is missing and name is not None:
                self._undefined_exception = lambda message: MissingPlace(name)

        def __bool__(self) -> bool:
            return False

    return ImmutableSandboxedEnvironment(
        undefined=Missing, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
