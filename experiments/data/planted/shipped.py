"""The folders of the shipped planted models, found without loading them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from faithscope.experiments.data.planted.data import VARIANTS
from faithscope.interp.errors import UserError, did_you_mean

NAMES = VARIANTS
WEIGHTS = Path(__file__).parent / "weights"


def path(name: str) -> Path:
    """The folder of a shipped planted model, as `from_pretrained` takes it.

    Raises `UserError` for a name that is not in `NAMES`.
    """
    if name not in NAMES:
        raise UserError(
            f"unknown planted model {name!r}{did_you_mean(name, NAMES)}; known: {', '.join(NAMES)}"
        )
    return WEIGHTS / name


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a planted folder: variant, flip table, bounds, training settings."""
    file = folder / "card.json"
    if not file.is_file():
        raise UserError(
            f"planted model folder {folder} has no card.json; train it again with "
            "`python -m faithscope.experiments.data.planted.train`"
        )
    return json.loads(file.read_text(encoding="utf-8"))
