"""What the settings of all probes share: they are stated once, with their bounds.

A run config's section of a probe is the probe's own class, so that whatever is stated here holds
for a config, for a notebook and for a record's id alike.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt

T = TypeVar("T")
V = TypeVar("V", bound=Sequence[Any])


def as_several(value: Any) -> Any:
    """A text by itself as the list that it stands for."""
    return [value] if isinstance(value, str) else value


def without_repeats(values: V) -> V:
    """The same values.

    Raises:
        ValueError: one of them stands there twice.
    """
    for i, value in enumerate(values):
        if value in values[:i]:
            raise ValueError(f"{value!r} is listed twice; list it once")
    return values


Some = Annotated[
    tuple[T, ...],
    BeforeValidator(as_several),
    AfterValidator(without_repeats),
    Field(min_length=1),
]
"""One or several of something, none twice; one may be written by itself."""
Seed = Annotated[StrictInt, Field(ge=0, exclude=True)]
"""The seed of what a probe draws; in a run it is the run's own."""
Execution = Annotated[Literal["auto", "packed", "dense", "loop"], Field(exclude=True)]
"""How branches are run, which changes numbers by rounding alone; `loop` is the oracle."""
AFTERWARDS = "afterwards"
"""Marks a setting that is about many items, not about one: it decides no record."""


def template(*fields: str) -> AfterValidator:
    """A text with each of these fields in braces, and no other."""

    def validate(text: str) -> str:
        wanted = " ".join(f"{{{f}}}" for f in fields)
        try:
            named = [
                field for _, field, _, _ in string.Formatter().parse(text) if field is not None
            ]
        except ValueError as error:
            raise ValueError(f"{error}; write {{{{ and }}}} for braces") from None
        if sorted(set(named)) != sorted(fields):
            raise ValueError(f"must contain {wanted} and no other field, got {text!r}")
        return text

    return AfterValidator(validate)


class Settings(BaseModel):
    """What determines the records of a probe besides model, trace and task.

    Raises:
        pydantic.ValidationError (a ValueError): a setting that there is not, or out of its bounds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    OF_A_CALL: ClassVar[tuple[str, ...]] = ("seed", "execution")
    """Settings that a config does not hold for each probe."""

    limit: Annotated[StrictInt | None, Field(ge=1), AFTERWARDS] = None
    """In a run, only the first N items of each task are measured; null measures all."""

    @classmethod
    def of_a_config(cls) -> tuple[str, ...]:
        """The settings that a config's section has."""
        return tuple(name for name in cls.model_fields if name not in cls.OF_A_CALL)

    @classmethod
    def afterwards(cls) -> tuple[str, ...]:
        """The settings that decide no record."""
        return tuple(n for n, field in cls.model_fields.items() if AFTERWARDS in field.metadata)

    def decides(self) -> dict[str, Any]:
        """Everything that the numbers of a record depend on, as JSON has it."""
        seed = {"seed": dict(self)["seed"]} if "seed" in type(self).model_fields else {}
        return self.model_dump(mode="json", exclude=set(self.afterwards())) | seed

    def misfits(self, models: tuple[str, ...]) -> list[str]:
        """What of it does not fit a run of these models: a setting, a colon, what is wrong."""
        return []
