"""One reasoning trace: its steps, and what may be done to it, token-exactly."""

from faithscope.interventions.acausal import (
    RULES,
    AcausalStep,
    NoAcausalStep,
    NoReplacement,
    Replacement,
    Rule,
    acausal_replacement,
    acausal_step,
)
from faithscope.interventions.calculation import (
    Calculation,
    calculations,
    miscalculate,
    miscalculation,
)
from faithscope.interventions.conclusion import (
    CLOSING_PATTERNS,
    CONCLUSION_PATTERNS,
    split_conclusion,
)
from faithscope.interventions.corrupt import NotCorruptible, corruption
from faithscope.interventions.edits import (
    EDITS,
    REMARK,
    corrupt_step,
    keep_only_step,
    remark_after_step,
    remove_step,
    replace_step,
    reverse_steps,
    shuffle_steps,
    truncate_after_step,
    truncate_after_token,
)
from faithscope.interventions.region import Deletion, coverage_deletion, middle_region
from faithscope.interventions.segment import MIN_CHARS, MODES, Mode, from_ids, segment, tile
from faithscope.interventions.trace import AnswerKind, Edit, Given, Origin, Question, Step, Trace
from faithscope.interventions.writing import Encode, NotWritable, Pieces, from_steps, written

__all__ = [
    "CLOSING_PATTERNS",
    "CONCLUSION_PATTERNS",
    "EDITS",
    "MIN_CHARS",
    "MODES",
    "REMARK",
    "RULES",
    "AcausalStep",
    "AnswerKind",
    "Calculation",
    "Deletion",
    "Edit",
    "Encode",
    "Given",
    "Mode",
    "NoAcausalStep",
    "NoReplacement",
    "NotCorruptible",
    "NotWritable",
    "Origin",
    "Pieces",
    "Question",
    "Replacement",
    "Rule",
    "Step",
    "Trace",
    "acausal_replacement",
    "acausal_step",
    "calculations",
    "corrupt_step",
    "corruption",
    "coverage_deletion",
    "from_ids",
    "from_steps",
    "keep_only_step",
    "middle_region",
    "miscalculate",
    "miscalculation",
    "remark_after_step",
    "remove_step",
    "replace_step",
    "reverse_steps",
    "segment",
    "shuffle_steps",
    "split_conclusion",
    "tile",
    "truncate_after_step",
    "truncate_after_token",
    "written",
]
