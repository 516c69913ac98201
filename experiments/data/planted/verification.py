"""Verification of planted models: a model is trusted only after its flips were counted again.

Each shipped folder has a `card.json` with the flip table measured after training and the bounds of
its variant. `verify` loads the folder, measures a smaller table and compares it with the bounds.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from faithscope.experiments.data.planted.bounds import BOUNDS
from faithscope.experiments.data.planted.flips import FlipTable, flip_table
from faithscope.experiments.data.planted.plants import path, plant_named
from faithscope.experiments.files import StoreError, write_atomically
from faithscope.experiments.numerals import decimal
from faithscope.interp.errors import UserError
from faithscope.interp.sources import cache_dir


def open_folder(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model (in fp32 and evaluation mode) and tokenizer in the folder of a planted model."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32", local_files_only=True)
    return model.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def write_card(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    variant: str,
    training: dict[str, Any],
    n: int = 1000,
    seed: int = 2,
) -> dict[str, Any]:
    """Measure a model's flip table and write it, with bounds and settings, to `card.json`."""
    table = flip_table(model, tokenizer, variant, n=n, seed=seed)
    card = {
        "variant": variant,
        "parameters": sum(p.numel() for p in model.parameters()),
        "flips": {"n": n, "seed": seed, **table},
        "bounds": BOUNDS[variant],
        "training": training,
    }
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    (folder / "card.json").write_text(text, encoding="utf-8")
    return card


def read_card(folder: Path) -> dict[str, Any]:
    """The card in a planted model's folder: variant, flip table, bounds, training settings."""
    file = folder / "card.json"
    if not file.is_file():
        raise UserError(
            f"planted model folder {folder} has no card.json; train it again with "
            "`python -m faithscope.experiments.data.planted.train`"
        )
    return json.loads(file.read_text(encoding="utf-8"))


def departures(table: FlipTable, bounds: dict[str, Any]) -> list[str]:
    """The entries of a flip table outside their bounds, each with its numbers."""
    problems = []
    for key, limits in bounds.items():
        shares = table[key] if isinstance(table[key], list) else [table[key]]
        ranges = limits if isinstance(table[key], list) else [limits]
        for i, (share, (low, high)) in enumerate(zip(shares, ranges, strict=True)):
            if not low <= share <= high:
                entry = f"{key} step {i + 1}" if isinstance(table[key], list) else key
                problems.append(f"{entry} is {decimal(share, 3)}, not within {low:g} to {high:g}")
    return problems


def verify(name: str, n: int = 64, seed: int = 1, folder: Path | None = None) -> FlipTable:
    """Measure a planted model's flip table again, and return it.

    Args:
        name: name of the expected planted model.
        n: number of questions to edit.
        folder: folder of the weights, if not the shipped one.

    Raises:
        UserError: the name is unknown, the folder's card is another model's, or the flips are
            outside the card's bounds; the message has the numbers.
    """
    folder = folder or path(name)
    card = read_card(folder)
    plant, seed_trained = plant_named(name), card["training"]["seed"]
    if (card["variant"], seed_trained) != (plant.variant, plant.seed):
        raise UserError(
            f"planted model {name!r}: the card in {folder} is that of {card['variant']!r}, trained "
            f"with seed {seed_trained}; put the folder back as it was shipped"
        )
    model, tokenizer = open_folder(folder)
    table = flip_table(model, tokenizer, name, n=n, seed=seed)
    problems = departures(table, card["bounds"])
    if problems:
        raise UserError(
            f"planted model {name!r} in {folder} does not do what it is planted to: "
            f"{'; '.join(problems)} (of {n} questions); put the shipped weights back or train it "
            f"again with `python -m faithscope.experiments.data.planted.train "
            f"--variant {plant.variant} --seed {plant.seed} --out {folder}`"
        )
    return table


@functools.cache
def verified_path(name: str) -> Path:
    """`path(name)`, after `verify(name)`; once for these weights under these versions."""
    folder = path(name)
    stamp = cache_dir() / "planted" / f"{name}-{_identity(folder)}.json"
    if not stamp.exists():
        table = verify(name)
        # a cache that cannot be written costs a second at the next start, no more
        with contextlib.suppress(OSError, StoreError):
            stamp.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(stamp, json.dumps(table))
    return folder


def _identity(folder: Path) -> str:
    """A digest of all that decides the flips: every shipped file, and the libraries' versions."""
    digest = hashlib.sha256(f"{torch.__version__} {transformers.__version__}".encode())
    for file in sorted(p for p in folder.iterdir() if p.is_file()):
        digest.update(f"{file.name}:{file.stat().st_size}:".encode() + file.read_bytes())
    return digest.hexdigest()[:16]
