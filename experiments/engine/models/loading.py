"""Loading of a run's models as the config says, or connecting to the backend that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

from faithscope import interp
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.engine.models.weights import WeightSettings
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.interp.adapters import adapter_folder
from faithscope.interp.backends import Backend, BackendLost, Generates, OnEnded
from faithscope.interp.backends.choice import Beside, Device, utilization
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Sampling
from faithscope.interp.language import Language
from faithscope.interp.memory import free
from faithscope.interp.placement import devices_of, is_offloaded
from faithscope.interp.size import size_of


def load_for_run(
    name: str,
    settings: WeightSettings,
    token_budget: int | None,
    meter: Meter,
    store: Store,
    trust_remote_code: bool = False,
) -> interp.Model:
    """Load the model, and write its facts to environment.json.

    Raises:
        UserError: the model cannot be loaded.
    """
    meter.say(f"loading {name}")
    transformers_logging.disable_progress_bar()
    model = interp.load(
        name,
        dtype=settings.dtype,
        device=settings.device,
        revision=settings.revision,
        quantize=settings.quantize,
        device_map=settings.device_map,
        trust_remote_code=trust_remote_code,
        marks=settings.marks,
    )
    if token_budget is not None:
        model.token_budget = token_budget
    for caution in model.cautions:
        meter.say(f"{name}: {caution}")
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
            "adapter": None if model.adapter is None else dict(model.adapter),
            "tree_reason": model.tree_reason,
            "checks": list(model.checks),
            "cautions": list(model.cautions),
        },
    )
    return model


@contextmanager
def written_by(
    section: BackendSection,
    model: interp.Model,
    settings: WeightSettings,
    store: Store,
    room: Beside | None = None,
) -> Iterator[None]:
    """Within the context, the backend of `section` writes what `model` would. vLLM in this process
    is started when the first text is asked for.

    Args:
        room: how vLLM fits beside the model; None leaves it half of what is free.

    Raises:
        UserError: as `open_backend`.
    """

    def start() -> Backend:
        options = {"dtype": model.dtype, **_beside(model, room)}
        _, backend = open_backend(section, model.name, settings, options=options)
        by = {f"probes_{key}": value for key, value in backend.describe().items()}
        store.note_model(model.name, by | {"token_budget": model.token_budget})
        return backend

    budget = model.token_budget
    if room is not None:
        model.token_budget = min(budget, room.token_budget)
    model.writer = StartedLate(model.name, start) if section.backend == "vllm" else start()
    try:
        yield
    finally:
        model.writer.close()
        model.writer, model.token_budget = None, budget


class StartedLate(Generates):
    """A backend that is started once something is asked of it; one that cannot start is lost."""

    def __init__(self, name: str, start: Callable[[], Backend]) -> None:
        self.name = name
        self._start = start
        self._at_work: Backend | None = None
        self._lost: BackendLost | None = None

    @property
    def has_started(self) -> bool:
        """Whether anything was asked of it."""
        return self._at_work is not None

    @property
    def started(self) -> Backend:
        """
        Raises:
            BackendLost: it does not start.
        """
        if self._lost is not None:
            raise self._lost
        if self._at_work is None:
            try:
                self._at_work = self._start()
            except UserError as error:
                self._lost = BackendLost(f"{error}; --set generation.backend=here writes here")
                raise self._lost from error
        return self._at_work

    @property
    def max_positions(self) -> int | None:
        return self.started.max_positions

    def each(self, prompts: Sequence[Sequence[int]], sampling: Sampling, on_ended: OnEnded) -> None:
        """Continue every prompt; see `Backend.each`."""
        self.started.each(prompts, sampling, on_ended)

    def describe(self) -> Mapping[str, str]:
        """Description of the backend, which is started for it."""
        return self.started.describe()

    def close(self) -> None:
        """Close the backend, if it was started."""
        if self._at_work is not None:
            self._at_work.close()


def _beside(model: interp.Model, room: Beside | None) -> dict[str, Any]:
    """Options of vLLM on a device that holds the model's weights already."""
    at = device_at(model.device)
    if at.kind != "cuda":
        return {}
    reserve = at.free // 2 if room is None else room.reserve
    sleeps = {} if room is None else {"sleeps": room.sleeps}
    return {"gpu_memory_utilization": utilization(at, reserve), **sleeps}


def device_at(device: torch.device) -> Device:
    """A device of this machine as it is now, without what torch keeps of it for later."""
    if device.type != "cuda":
        return Device(device.type)
    free()
    n_free, total = torch.cuda.mem_get_info(device)
    return Device("cuda", total, n_free)


def open_backend(
    section: BackendSection,
    model: str,
    settings: WeightSettings,
    trust_remote_code: bool = False,
    options: Mapping[str, Any] | None = None,
) -> tuple[Language, Backend]:
    """The backend (servers or vLLM) that writes for a model, and its language; no weights are read
    here.

    Args:
        options: keyword arguments of `interp.backends.offline.load_offline` besides those of
            `section` and `settings`.

    Raises:
        UserError: the model, its server or vLLM is not available.
    """
    language = interp.load_language(
        model,
        revision=settings.revision,
        trust_remote_code=trust_remote_code,
        marks=settings.marks,
    )
    if section.backend == "vllm-server":
        from faithscope.interp.backends.server import connect

        server = connect(
            model,
            section.endpoints,
            served_as=section.served_as,
            location=language.location,
            in_flight=section.in_flight,
            timeout_s=section.timeout,
        )
        return language, server
    if adapter_folder(model) is not None:
        raise UserError(
            f"model {model!r} is an adapter, and vLLM in process would write as its base model "
            "does; take generation.backend here, or a vLLM server that serves the adapter "
            "(--enable-lora, and its name as served_as)"
        )
    from faithscope.interp.backends.offline import load_offline

    engine_options = {
        "dtype": settings.dtype,
        "revision": settings.revision,
        "tensor_parallel_size": section.tensor_parallel_size or 1,
        "max_model_len": section.max_model_len,
        "trust_remote_code": trust_remote_code,
    }
    return language, load_offline(model, language.location, **engine_options | dict(options or {}))
