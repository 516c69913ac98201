"""One open model: load it, run it, read it, write to it.

Knows nothing of faithfulness: it could serve another study.
"""

from interp.answer import Answered
from interp.errors import UserError
from interp.execute import Execution, Generation
from interp.forest import Branch, Forest
from interp.load import load, wrap
from interp.model import Model
from interp.prompts import Prompt, ReasoningFormat
from interp.read import ForestRun, Read

__all__ = [
    "Answered",
    "Branch",
    "Execution",
    "Forest",
    "ForestRun",
    "Generation",
    "Model",
    "Prompt",
    "Read",
    "ReasoningFormat",
    "UserError",
    "load",
    "wrap",
]
