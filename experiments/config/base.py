"""What all sections of a run config share, and what all run configs do."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    field_validator,
)

from faithscope.experiments.config.yaml_source import Key
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.settings import as_several, without_repeats

T = TypeVar("T")


class ConfigError(UserError):
    """A config that cannot be run; `problems` has one line per problem."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def expanded(path: str | None) -> Path | None:
    """A path of a config, if it gives one, with `~` for the home folder."""
    return None if path is None else Path(path).expanduser()


def named(key: str, what: str, names: Collection[str], known: Mapping[str, T]) -> dict[str, T]:
    """Name -> thing, of the names that a config gives.

    Args:
        key: that gives them.
        what: the things are, for the message.

    Raises:
        ConfigError: there is none of a name.
    """
    for name in names:
        if name not in known:
            guess = did_you_mean(name, known) or f"; known: {', '.join(known)}"
            raise ConfigError([f"{key}: unknown {what} {name!r}{guess}"])
    return {name: known[name] for name in names}


MOST = 10**15
"""The largest number that a config may hold: above every count of parameters."""


class Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @field_validator("*")
    @classmethod
    def _within_reason(cls, value: object) -> object:
        if isinstance(value, int) and abs(value) > MOST:
            raise ValueError(f"must be at most {MOST}")
        return value


AnyNumber = (BeforeValidator(as_several), AfterValidator(without_repeats))
"""Validators of a list that may be written as its one entry, or be empty."""
OneOrMany = (*AnyNumber, Field(min_length=1))
"""Validators of a list that may be written as its one entry."""


class FolderConfig(Section):
    """What every run has, whatever it measures: a folder and a seed."""

    FREE: ClassVar[tuple[str, ...]] = ("out", "name")
    """Keys, or sections with a dot behind, that decide nothing of what is in the run folder: a
    run may be gone on with under others."""
    SHOWN: ClassVar[tuple[str, ...]] = ("report",)
    """Of these, keys and whole sections that tables and page are made by: a run folder takes the
    newest."""

    name: StrictStr
    """Names the run folder."""
    seed: StrictInt = Field(default=0, ge=0, le=2**32 - 1)
    """The seed of the data, sampling, shuffles, corruptions and intervals."""
    out: StrictStr = "runs"
    """The folder that holds run folders."""

    @field_validator("name")
    @classmethod
    def _folder_name(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise ValueError(
                f"{name!r} cannot name a folder; use letters, digits, '.', '_' and '-'"
            )
        return name

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """The values of a config before they are checked, changed where what the user set would
        else have no effect.

        Args:
            asked: the keys that the user set beside the file, `("data", "path")`.
            shipped: whether the file is one of ours, whose values are no choice of the user's.
        """
        return values

    @property
    def notes(self) -> list[str]:
        """What a person should know before it runs, a line each."""
        return []

    @property
    def made_of(self) -> Mapping[str, Path]:
        """Title -> folder of each run that this one only reads; none where it measures itself."""
        return {}

    @property
    def run_dir(self) -> Path:
        return Path(self.out).expanduser() / self.name
