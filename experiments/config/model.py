"""Names of models in a config: local files, hub ids, packaged, planted, or behind an API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, StrictStr, ValidationInfo

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import AT_HAND
from faithscope.interp.errors import did_you_mean
from faithscope.interp.marks import marks_problem
from faithscope.interp.schemes import SCHEMES
from faithscope.interp.sources import PACKAGED


def model_names() -> list[str]:
    """Every built-in model name: those of the schemes (`planted:…`) and the packaged models."""
    of_schemes = [f"{scheme}:{name}" for scheme, s in SCHEMES.items() for name in s.models()]
    return [*of_schemes, *(f"bundled:{name}" for name in PACKAGED)]


def model_problem(name: str, api: bool = False) -> str | None:
    """Why `name` cannot be a model; None if nothing speaks against it before it is loaded.

    Args:
        api: whether a model behind an API is accepted.
    """
    if name.startswith(API):
        if not api:
            return f"{name!r} is behind an API and shows nothing of its inside; name a model here"
        named = "/" in name.removeprefix(API)
        return None if named else f"{name!r} names no provider; write it as {API}openai/gpt-4.1"
    known = model_names()
    if name in known or Path(name).expanduser().exists():
        return None
    scheme = name.partition(":")[0]
    is_file = name.endswith(".gguf") and scheme not in (*SCHEMES, "bundled")
    if not is_file and (":" in name or "/" not in name):
        guess = did_you_mean(name, known)
        more = f"; known: {', '.join(known)}; or a hub id (org/name), a folder, a .gguf file"
        return f"unknown model {name!r}{guess or more}"
    if is_file or name.startswith((".", "/", "~")) or name.count("/") > 1:
        return f"no such file or folder: {name!r}; check the path"
    return None


def checked_name(name: str, info: ValidationInfo, api: bool = False, hint: str = "") -> str:
    """`name`, if it can be a model; in a config that is only read it is not checked.

    Args:
        info: the validation context, which may hold `AT_HAND`.
        api: whether a model behind an API is accepted.
        hint: text to append to the error.

    Raises:
        ValueError: `name` cannot be a model; says why.
    """
    is_read = info.context is not None and not info.context[AT_HAND]
    if not is_read and (problem := model_problem(name, api)):
        raise ValueError(f"{problem}{hint}")
    return name


def _model_here(name: str, info: ValidationInfo) -> str:
    return checked_name(name, info)


def _subject(name: str, info: ValidationInfo) -> str:
    return checked_name(name, info, api=True)


ModelName = Annotated[StrictStr, AfterValidator(_model_here)]
"""Name of a model whose weights are at hand."""
SubjectName = Annotated[StrictStr, AfterValidator(_subject)]
"""Name of any model that can be measured, including those behind APIs."""


def _marks(marks: str | list[str]) -> str | list[str]:
    if problem := marks_problem(marks):
        raise ValueError(problem)
    return marks


StatedMarks = Annotated[StrictStr | list[StrictStr], AfterValidator(_marks)]
"""Marks around a model's reasoning, as a user states them: a name, or opener and closer."""


def model_rows() -> list[tuple[str, str]]:
    """(name, description) of every built-in model and of every form of name, for
    `faithscope list models`."""
    return [
        ("ORG/NAME", "any causal language model of the Hugging Face hub"),
        ("FOLDER", "what save_pretrained wrote"),
        ("FILE.gguf", "a GGUF file, dequantised at load"),
        ("api:PROVIDER/MODEL", "a model behind an API, of which only what it writes is to be had"),
        *((f"bundled:{name}", f"{p.note} ({p.licence})") for name, p in PACKAGED.items()),
        *(
            (f"{scheme}:{name}", summary)
            for scheme, s in SCHEMES.items()
            for name, summary in s.models().items()
        ),
    ]
