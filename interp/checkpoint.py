"""Whether a model's config.json and its weights' files describe one model.

transformers builds what the config describes, fills in the weights that fit its names, and only
warns of the rest: a config with fewer layers than the files runs, as another model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from faithscope.interp.errors import UserError

MAX_LAYERS = 10_000
"""The most that a number of layers in config.json may be; published models have at most a few
hundred."""
MAX_MODULES = 100_000
"""The most modules that a model may have; the largest published mixtures, built expert by expert,
have about as many."""

_BUFFERS = re.compile(r"(\.rotary_emb\.|inv_freq$|(attn|attention)\.(masked_)?bias$)")
"""Names of masks and angles that older files hold as weights, and that transformers recomputes."""


def check_counts(name: str, config: Mapping[str, Any], at: str = "") -> None:
    """Check that config.json, as read, names a number of layers that can be built.

    Raises:
        UserError: a section names a number of layers below 1 or above `MAX_LAYERS`.
    """
    for key, value in config.items():
        if isinstance(value, Mapping):
            check_counts(name, value, f"{at}{key}.")
        counts = re.fullmatch(r"(num_(hidden_)?|(en|de)coder_|n_?)layers?", key)
        least = 1 if at == "" and key in ("num_hidden_layers", "n_layer") else 0
        if counts and isinstance(value, int) and not least <= value <= MAX_LAYERS:
            raise UserError(
                f"model {name!r}: config.json: {at}{key}: {value} is no number of layers that can "
                f"be built ({least} to {MAX_LAYERS:,}); get its files again"
            )


@contextmanager
def bounded_building(name: str) -> Iterator[None]:
    """Stops the construction of a model of more than `MAX_MODULES` modules.

    Raises:
        UserError: the model has more modules.
    """
    modules = 0

    def count(*_: Any) -> None:
        nonlocal modules
        modules += 1
        if modules > MAX_MODULES:
            raise UserError(
                f"model {name!r}: config.json describes a model of more than {MAX_MODULES:,} "
                "modules (layers, experts and their parts); get its files again"
            )

    hook = register_module_module_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def check_unused(
    name: str, where: str, hf: nn.Module, unused: Iterable[str], *, refuse: bool
) -> tuple[str, ...]:
    """Check that no part of a built model lacks weights that the files hold for it.

    Args:
        unused: names of weights that the model has no place for, as transformers lists them
            (`unexpected_keys`), without those that a family is known to leave out.
        refuse: whether unused weights of a part are refused, or reported like the rest.

    Returns:
        A caution about weights that are left out, if there are any: those of parts that the model
        does not have (a vision tower, a value head).

    Raises:
        UserError: weights belong to a part that was built: more layers or experts than config.json
            names, or a bias, a norm or a scale that it leaves out.
    """
    base = getattr(hf, "base_model_prefix", "")
    parts = {_numberless(part) for part, _ in hf.named_modules()} - {"", base}
    left_out = sorted(weight for weight in unused if not _BUFFERS.search(weight))
    inside = [weight for weight in left_out if parts & set(_above(_numberless(weight)))]
    if inside and refuse:
        raise UserError(
            f"model {name!r}: {where} holds {len(inside)} weights that {type(hf).__name__} has no "
            f"place for as config.json describes it (first: {inside[0]}), so that another model "
            "would be measured; correct config.json (layers, experts, biases, "
            "quantization_config), or get its files again"
        )
    if not left_out:
        return ()
    return (
        f"{len(left_out)} weights of its files are not part of the {type(hf).__name__} that is "
        f"measured (first: {left_out[0]})",
    )


def _above(name: str) -> Iterator[str]:
    """The paths of the modules that would hold a weight of this name."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _numberless(name: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.|$)", "#", name)
