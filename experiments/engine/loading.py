"""Load a model for a run as its config says, and keep what it turned out to be."""

from __future__ import annotations

from typing import Literal, Protocol

from transformers.utils import logging as transformers_logging

from faithscope import interp
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.interp.placement import devices_of, is_offloaded
from faithscope.interp.size import size_of


class Held(Protocol):
    """How a config wants weights held."""

    @property
    def dtype(self) -> Literal["auto", "float32", "bfloat16", "float16"]: ...
    @property
    def device(self) -> str: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def quantize(self) -> Literal["8bit", "4bit"] | None: ...
    @property
    def device_map(self) -> str | None: ...
    @property
    def thinking(self) -> bool | None: ...


def load_for_run(
    name: str,
    held: Held,
    token_budget: int | None,
    meter: Meter,
    store: Store,
    trust_remote_code: bool = False,
) -> interp.Model:
    """The model, and its facts in environment.json.

    Raises:
        UserError: it cannot be loaded, or lacks what the config asks of its template.
    """
    meter.say(f"loading {name}")
    transformers_logging.disable_progress_bar()
    model = interp.load(
        name,
        dtype=held.dtype,
        device=held.device,
        revision=held.revision,
        quantize=held.quantize,
        device_map=held.device_map,
        trust_remote_code=trust_remote_code,
    )
    if token_budget is not None:
        model.token_budget = token_budget
    # says so at once where the config asks of its template what that cannot give
    model.prompt("?", thinking=held.thinking)
    if model.tree_reason:
        meter.say(f"{name}: branches run one by one: {model.tree_reason}")
    size = size_of(model.hf)
    store.note_model(
        name,
        {
            "revision": model.revision,
            "dtype": model.dtype,
            "device": ", ".join(sorted(map(str, devices_of(model.hf)))),
            "offloaded": is_offloaded(model.hf),
            "layers": model.n_layers,
            "parameters": size.total,
            "active_parameters": size.active,
            "reasoning_format": model.format.name,
            "tree_reason": model.tree_reason,
            "checks": list(model.checks),
        },
    )
    return model
