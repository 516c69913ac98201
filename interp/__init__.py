"""One open model: load it, run it, read it, write to it.

Knows nothing of faithfulness: it could serve another study. Names are imported when first
used: torch and transformers take seconds, and a typo in a config should not wait for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from faithscope.interp.errors import UserError

if TYPE_CHECKING:
    from faithscope.interp.answered import Answered
    from faithscope.interp.directions import Direction, load_directions, save_directions
    from faithscope.interp.edits import Knockout, Patch, Steer
    from faithscope.interp.execute import Execution
    from faithscope.interp.forest import Branch, Forest
    from faithscope.interp.formats import ReasoningFormat
    from faithscope.interp.generation import Generation, Sampling
    from faithscope.interp.language import Language
    from faithscope.interp.loading import load, load_language, wrap
    from faithscope.interp.model import Model
    from faithscope.interp.prompts import Prompt
    from faithscope.interp.read import ForestRun, Read

_HOMES = {
    "Answered": "answered",
    "Branch": "forest",
    "Direction": "directions",
    "Execution": "execute",
    "Forest": "forest",
    "ForestRun": "read",
    "Generation": "generation",
    "Knockout": "edits",
    "Language": "language",
    "Model": "model",
    "Patch": "edits",
    "Prompt": "prompts",
    "Read": "read",
    "ReasoningFormat": "formats",
    "Sampling": "generation",
    "Steer": "edits",
    "load": "loading",
    "load_directions": "directions",
    "load_language": "loading",
    "save_directions": "directions",
    "wrap": "loading",
}

__all__ = [
    "Answered",
    "Branch",
    "Direction",
    "Execution",
    "Forest",
    "ForestRun",
    "Generation",
    "Knockout",
    "Language",
    "Model",
    "Patch",
    "Prompt",
    "Read",
    "ReasoningFormat",
    "Sampling",
    "Steer",
    "UserError",
    "load",
    "load_directions",
    "load_language",
    "save_directions",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'faithscope.interp' has no attribute {name!r}")
    return getattr(import_module(f"faithscope.interp.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
