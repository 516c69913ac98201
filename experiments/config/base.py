"""Base classes of config sections (`Section`) and of whole run configs (`FolderConfig`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationInfo,
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
    """A path from a config, with `~` replaced by the home folder; None stays None."""
    return None if path is None else Path(path).expanduser()


def named(key: str, what: str, names: Collection[str], known: Mapping[str, T]) -> dict[str, T]:
    """The entries of `known` that a config names.

    Args:
        key: the config key that holds the names, for the error.
        what: noun for one entry (`probe`), for the error.
        names: the names that the config gives.
        known: every name -> entry.

    Raises:
        ConfigError: a name is not in `known`.
    """
    guesses = {n: did_you_mean(n, known) for n in names if n not in known}
    if guesses:
        lines = [f"{key}: unknown {what} {n!r}{guess}" for n, guess in guesses.items() if guess]
        if odd := [repr(n) for n, guess in guesses.items() if not guess]:
            s = "s" * (len(odd) > 1)
            lines.append(f"{key}: unknown {what}{s} {', '.join(odd)}; known: {', '.join(known)}")
        raise ConfigError(lines)
    return {name: known[name] for name in names}


AT_HAND = "at_hand"
"""Key of the validation context: whether everything that a config names must be on this machine;
false to read a finished run."""
MOST = 10**15
"""Largest whole number that a config may hold; larger than any parameter count."""


class Section(BaseModel):
    """Base of every config section: immutable, refuses unknown keys, infinite numbers and NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @field_validator("*")
    @classmethod
    def _within_reason(cls, value: object) -> object:
        if isinstance(value, int) and abs(value) > MOST:
            raise ValueError(f"must be at most {MOST}")
        return value


class FiguresConfig(Section):
    """Settings of the figures of every study's report."""

    figure_width: Literal["column", "page"] = "page"
    """Width of the figures: of a column (3.3 in) or of the page (6.75 in) of a paper."""


AnyNumber = (BeforeValidator(as_several), AfterValidator(without_repeats))
"""Validators of a list that may be empty, and in which one entry may be written without a list."""
OneOrMany = (*AnyNumber, Field(min_length=1))
"""Validators of a list with at least one entry; a single entry may be written without a list."""


class FolderConfig(Section):
    """Base of every run config: the run folder and the seed."""

    FREE: ClassVar[tuple[str, ...]] = ("out", "name", "tracking")
    """Config keys, or sections (with a dot at the end), that do not change what is stored. A run
    can be resumed with other values of them."""
    OPTIONAL: ClassVar[Mapping[str, str]] = {}
    """Section of models -> its key that names them. A run may do without these models, and what a
    comparison says for all of its sources then does not add them."""
    SHOWN: ClassVar[tuple[str, ...]] = ("report",)
    """Sections and dotted config keys that affect only tables and page. Changing them does not
    invalidate stored records; the stored config takes the newest values."""

    name: StrictStr
    """Name of the run folder."""
    seed: StrictInt = Field(default=0, ge=0, le=2**32 - 1)
    """Seed of the data, sampling, shuffles, corruptions and intervals."""
    out: StrictStr = "runs"
    """Folder that holds the run folders."""
    tracking: Literal["mlflow", "trackio", "wandb"] | None = None
    """Tracker to which the numbers of the tables are sent, as a new run there, whenever a run has
    written them (`faithscope docs exports`); null sends nothing."""

    OPEN: ClassVar[Mapping[str, Any]] = {}
    """Dotted config key -> its value that leaves the choice to the machine. A run folder that was
    made with a choice may be resumed with this value, and keeps its choice."""

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What was chosen for keys in `OPEN`; kept in environment.json as a run begins."""
        return {}

    @field_validator("tracking")
    @classmethod
    def _installed(cls, tracker: str | None, info: ValidationInfo) -> str | None:
        is_read = info.context is not None and not info.context[AT_HAND]
        if tracker and not is_read and find_spec(tracker) is None:
            raise ValueError(f"{tracker!r} is not installed; pip install {tracker}, or take null")
        return tracker

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
        """The values of a config, adjusted before they are checked.

        Subclasses override this to drop values that would cancel what the user set with `--set`.

        Args:
            values: the config as read, overrides included.
            asked: the keys that the user overrode with `--set`, such as `("data", "path")`.
            shipped: whether the file comes with faithscope, so that its values are not the user's
                choice.
        """
        return values

    @property
    def notes(self) -> list[str]:
        """Notes that a person should read before the run starts, one line each."""
        return []

    @property
    def made_of(self) -> Mapping[str, Path]:
        """Title -> folder of each finished run that this run reads; empty for a run that measures
        items itself."""
        return {}

    @property
    def run_dir(self) -> Path:
        """The run folder: `name` below `out`."""
        return Path(self.out).expanduser() / self.name
