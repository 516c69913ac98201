"""One reasoning trace: its steps, and what may be done to it, token-exactly."""

from interventions.calculation import Calculation, calculations, miscalculate, miscalculation
from interventions.conclusion import CLOSING_PATTERNS, CONCLUSION_PATTERNS, split_conclusion
from interventions.corrupt import NotCorruptible, corruption
from interventions.edits import (
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
from interventions.segment import MIN_CHARS, MODES, Mode, from_ids, segment, tile
from interventions.trace import AnswerKind, Edit, Origin, Question, Step, Trace
from interventions.writing import Encode, NotWritable, Pieces, from_steps, written

__all__ = [
    "CLOSING_PATTERNS",
    "CONCLUSION_PATTERNS",
    "EDITS",
    "MIN_CHARS",
    "MODES",
    "REMARK",
    "AnswerKind",
    "Calculation",
    "Edit",
    "Encode",
    "Mode",
    "NotCorruptible",
    "NotWritable",
    "Origin",
    "Pieces",
    "Question",
    "Step",
    "Trace",
    "calculations",
    "corrupt_step",
    "corruption",
    "from_ids",
    "from_steps",
    "keep_only_step",
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
