"""Adapters: small weights, in a folder as PEFT writes it, that change a base model.

`load` takes such a folder as a model's name. The adapter is merged into the base model's weights
where these are plain, so that every reading works on it as on any other model; over quantised
weights it stays a module of its own.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.interp.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FILE = "adapter_config.json"
"""File that makes a folder an adapter."""
BASE = "base_model_name_or_path"
"""Key of the adapter's config that names the base model."""


def adapter_folder(name: str) -> Path | None:
    """The folder of an adapter, if `name` is one; None for every other model."""
    folder = Path(name).expanduser()
    is_adapter = (folder / FILE).is_file() and not (folder / "config.json").is_file()
    return folder if is_adapter else None


def base_of(folder: Path) -> str:
    """The name of the base model, as `load` takes it.

    Raises:
        UserError: the adapter's config cannot be read, or names no base model.
    """
    try:
        config = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{folder / FILE} cannot be read ({error}); get the file again") from error
    base = config.get(BASE) if isinstance(config, dict) else None
    if not isinstance(base, str) or not base:
        raise UserError(f"{folder / FILE} names no base model; write its name under the key {BASE}")
    if adapter_folder(base) is not None:
        raise UserError(
            f"{folder / FILE}: the base model {base!r} is itself an adapter; merge that one into "
            "its base model first (PEFT's merge_and_unload), and name the merged folder"
        )
    return base


def put_on(hf: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """A base model with an adapter's weights, merged unless the base is quantised.

    Raises:
        UserError: PEFT is not installed, or the adapter does not fit the base model.
    """
    peft = import_peft(f"model {str(folder)!r} is an adapter, which")
    try:
        with without_deprecations():
            adapted = peft.PeftModel.from_pretrained(hf, str(folder))
    except Exception as error:  # PEFT, safetensors and torch have errors of their own
        reason = " ".join(str(error).split())[:400]
        raise UserError(
            f"adapter {str(folder)!r} does not fit its base model {base_of(folder)!r}: {reason}"
        ) from error
    if getattr(hf, "is_quantized", False):
        return adapted.base_model.model
    return adapted.merge_and_unload()


@contextmanager
def without_deprecations() -> Iterator[None]:
    """A context without the warnings that PEFT and transformers have for each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def import_peft(what: str) -> Any:
    """The module `peft`.

    Raises:
        UserError: it is not installed; the message begins with `what` (`what needs PEFT`).
    """
    try:
        import peft
    except ImportError as error:
        raise UserError(f"{what} needs PEFT: pip install 'faithscope[train]'") from error
    return peft
