"""What all sections of a run config share."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _without_repeats(values: list[T]) -> list[T]:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise ValueError(f"{value!r} is listed twice; list it once")
    return values


OneOrMany = (BeforeValidator(_as_list), AfterValidator(_without_repeats), Field(min_length=1))
"""For a list that may be written as its one entry."""
