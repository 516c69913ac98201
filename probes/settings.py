"""Base class and types of the settings of all probes, stated once with their bounds.

A probe's section of a run config is the probe's own settings class, so that a config, a notebook
and a record's id all follow these definitions.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt

from faithscope.interventions import Question

if TYPE_CHECKING:
    from faithscope.interp.model import Model

T = TypeVar("T")
V = TypeVar("V", bound=Sequence[Any])


def as_several(value: Any) -> Any:
    """A single text as the list of one that it stands for."""
    return [value] if isinstance(value, str) else value


def without_repeats(values: V) -> V:
    """`values` unchanged, once checked for repeats.

    Raises:
        ValueError: a value is listed twice.
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
"""A list of at least one value, none twice; a single text may be written without a list."""
Reading = Literal["generated", "scored"]
"""Way of reading an answer: the greedy answer, parsed; or log-probs of the answer labels."""
Seed = Annotated[StrictInt, Field(ge=0, exclude=True)]
"""Seed of a probe's draws; in a run, the run's own seed."""
Execution = Annotated[Literal["auto", "packed", "dense", "loop"], Field(exclude=True)]
"""Way of running branches, which changes numbers by rounding alone; `loop` is the oracle."""
AFTERWARDS = "afterwards"
"""Mark of a setting that concerns the analysis over items: it decides no record."""
ADDED = "added"
"""Mark of a setting that was added to a probe: at its default it decides no unit, so that units
keep their ids."""


def template(*fields: str) -> AfterValidator:
    """Validator of a text that must hold each of `fields` in braces, and no other field."""

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


class ModelFacts(NamedTuple):
    """Facts about a model that a probe's settings may not fit; None where one is not known yet."""

    name: str
    n_layers: int | None = None
    width: int | None = None
    quantised: bool = False
    one_by_one: str | None = None
    """Why the model runs one by one; None also if it does not."""

    @classmethod
    def of(cls, model: Model) -> ModelFacts:
        """The facts about a loaded model."""
        return cls(
            model.name,
            model.n_layers,
            getattr(model.hf.config.get_text_config(), "hidden_size", None),
            bool(getattr(model.hf, "is_quantized", False)),
            model.tree_reason,
        )


class Settings(BaseModel):
    """Everything but model, trace and task that determines the records of a probe.

    Raises:
        pydantic.ValidationError (a ValueError): a setting is unknown, or out of its bounds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    OF_A_CALL: ClassVar[tuple[str, ...]] = ("seed", "execution")
    """Names of settings that a config does not hold for each probe."""

    limit: Annotated[StrictInt | None, Field(ge=1), AFTERWARDS] = None
    """In a run, only the first N items of each task are measured; null measures all."""

    @classmethod
    def of_a_config(cls) -> tuple[str, ...]:
        """Names of the settings in the probe's section of a config."""
        return tuple(name for name in cls.model_fields if name not in cls.OF_A_CALL)

    @classmethod
    def afterwards(cls) -> tuple[str, ...]:
        """Names of the settings that decide no record."""
        return tuple(n for n, field in cls.model_fields.items() if AFTERWARDS in field.metadata)

    def decides(self) -> dict[str, Any]:
        """Every setting that the numbers of a record depend on, in JSON's types."""
        seed = {"seed": dict(self)["seed"]} if "seed" in type(self).model_fields else {}
        fields = type(self).model_fields.items()
        unset = {
            n for n, field in fields if ADDED in field.metadata and dict(self)[n] == field.default
        }
        return self.model_dump(mode="json", exclude={*self.afterwards(), *unset}) | seed

    @property
    def other_models(self) -> tuple[str, ...]:
        """Names of models that the probe loads beside the one that it measures."""
        return ()

    def files_read_afterwards(self) -> Mapping[str, str]:
        """Setting -> file outside the run from which the analysis over items is made."""
        return {}

    def misfits(self, models: tuple[str, ...]) -> list[str]:
        """Settings that do not fit a run of `models`, each as "setting: what is wrong"."""
        return []

    def lacks(self) -> Mapping[str, str]:
        """Settings that are not set and without which the probe measures nothing, each with a value
        for an example."""
        return {}

    def misfit_with(self, model: ModelFacts) -> str | None:
        """Why the settings do not fit a model that the probe is to measure, as "setting: what is
        wrong"; None if they do, as far as is known. Asked before the weights are loaded, and with
        them."""
        return None

    def misfit_of(self, question: Question) -> str | None:
        """Why the settings do not fit a question, as "setting: what is wrong"; None if they do."""
        return None

    def misfit_of_chains(
        self, step_labels: Mapping[str, Collection[Any]], cued: bool
    ) -> str | None:
        """Why the settings fit no chain of a run, as "setting: what is wrong"; None if they may.

        Args:
            step_labels: name -> all values that given chains have for it.
            cued: whether a given chain has a cue.
        """
        return None
