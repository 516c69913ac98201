"""Settings of a probe whose stored states are read by label probes: which labels, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from faithscope.probes.settings import AFTERWARDS, Settings, as_several, without_repeats

Names = Annotated[
    tuple[StrictStr, ...],
    BeforeValidator(as_several),
    AfterValidator(without_repeats),
    AFTERWARDS,
]
"""Names of which none is listed twice; one may be written without a list."""


class ReadsLabels(Settings):
    """Settings of a probe that keeps hidden states of chains, and of steps if it is asked to.

    None of them decides a record: they say what is fitted to the states of a finished run.
    """

    labels: Names = ()
    """Labels of chains that are read off the stored states: columns that came with given chains,
    outcomes such as `hints_followed`, scores of other measures of the run, verdicts of its judges,
    by the names that comparisons use; and `correct`, whether the answer is right (`faithscope docs
    label_probes`)."""
    step_labels: Names = ()
    """Labels of steps that are read off the states of every step, likewise."""
    fit: Annotated[Literal["auto", "logistic", "ridge"], AFTERWARDS] = "auto"
    """Regression that reads a label: logistic for classes, ridge for numbers; `auto` takes texts,
    truth values and numbers that are 0 and 1 for classes."""
    apply: Annotated[StrictStr | None, AFTERWARDS] = None
    """A file of directions, such as `directions/linear_probe.safetensors` of another run: they are
    read on the states of this run, and nothing is fitted to it."""
    apply_to_any_model: Annotated[StrictBool, AFTERWARDS] = False
    """Read directions of another model, too, if its states have the same width."""
    shuffles: Annotated[StrictInt, Field(ge=99, le=10_000), AFTERWARDS] = 499
    """Number of shuffles of a label by which p-values of label probes are corrected."""
    folds: Annotated[StrictInt, Field(ge=2), AFTERWARDS] = 5
    """Number of folds of the cross-validation; a class of fewer items is left out."""
    controls: Annotated[StrictInt, Field(ge=1, le=10_000), AFTERWARDS] = 3
    """Number of seeded shuffles of the classes with which the accuracy of answers is compared."""
    inverse_regularisation: Annotated[StrictFloat, Field(gt=0), AFTERWARDS] = 0.1
    """C of the logistic regression, on standardised features; ridge regression has the penalty
    1 / C."""
    min_items: Annotated[StrictInt, Field(ge=2), AFTERWARDS] = 20
    """Least number of items on which anything is fitted."""

    def files_read_afterwards(self) -> Mapping[str, str]:
        return {} if self.apply is None else {"apply": self.apply}
