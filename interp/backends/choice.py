"""Which engine writes a run's texts, and why: the one place where that is decided.

It knows numbers and names alone, no model and no config, so that every case can be tested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Named = Literal["here", "vllm", "vllm-server"]
GIB = 2**30
ENGINE = 4 * GIB
"""Memory that an engine takes besides weights, keys and values: activations, logits, CUDA's context
and graphs. Of models of 8 billion parameters, from their widths; not measured."""
ASLEEP = 3 * GIB
"""Memory that a sleeping vLLM keeps: CUDA's context and recorded graphs. Not measured."""
PACKS = 131_072
"""Token budget of an accelerator (`interp.loading`)."""
LEAST_PACK = 32_768
"""Token budget below which packs are not cut to make room for vLLM."""
SMALL = GIB // 4
"""Bytes of weights below which vLLM takes longer to start than it saves."""
SHARE = 0.9
"""Largest share of a device that vLLM is given."""
TESTED = (0, 15), (0, 34)
"""First version of vLLM that is supported, and the first that is not."""


@dataclass(frozen=True)
class Device:
    """The device that a run's models are held on."""

    kind: str
    """`cuda`, `mps`, `cpu`, …"""
    total: int = 0
    """Bytes of its memory."""
    free: int = 0
    """Bytes of it that nobody holds."""


@dataclass(frozen=True)
class Weights:
    """What is known of a model before its weights are read."""

    name: str
    size: int | None = None
    """Bytes of its weights as they are held; None if not known."""
    per_token: int | None = None
    """Bytes of the keys and values of one token."""
    positions: int | None = None
    """Most tokens of a text, for which vLLM must have room at least once."""
    misfit: str = ""
    """Why vLLM would write with other weights than those that are measured; empty if it would
    not."""


@dataclass(frozen=True)
class Asked:
    """What a run needs written, and what its config says of that."""

    backend: Literal["auto", "here", "vllm", "vllm-server"] = "auto"
    probes: bool | None = None
    """Whether the backend also writes what probes need; None leaves that to the device."""
    traces: bool = True
    """Whether models write traces; of given chains only what probes need is written."""
    token_budget: int | None = None
    """The config's token budget."""
    devices: int = 1
    """Number of devices that vLLM splits each layer over."""


@dataclass(frozen=True)
class Choice:
    """The engine that writes a run's texts."""

    backend: Named
    probes: bool
    """Whether it also writes what probes need: answers after forced prefixes, regenerated
    chains."""
    reason: str
    """Why, in a clause."""


class Beside(NamedTuple):
    """How vLLM and the model that is measured share a device."""

    sleeps: bool
    """Whether vLLM gives its memory back whenever nothing is written."""
    token_budget: int
    """Token budget of the packs that are run."""
    reserve: int
    """Bytes of what is free once the model is loaded that are not vLLM's."""


def choose(
    asked: Asked,
    models: Sequence[Weights],
    version: str | None,
    device: Callable[[], Device],
) -> Choice:
    """Choose the engine that writes the texts of all models of a run.

    Args:
        models: the models of the run whose weights are read here.
        version: version of the vLLM that is installed; None where there is none.
        device: function that looks at the device. It imports torch, and is called only where the
            answer depends on it.
    """
    if asked.backend != "auto":
        return Choice(asked.backend, bool(asked.probes), "generation.backend says so")

    def here(reason: str) -> Choice:
        return Choice("here", False, reason)

    if not models:
        return here("no model's weights are read")
    if version is None:
        return here("vLLM is not installed here")
    if not _supported(version):
        first, after = (".".join(map(str, v)) for v in TESTED)
        return here(f"vLLM {version} is installed, and {first} to below {after} are supported")
    for model in models:
        if model.misfit:
            return here(f"{model.name} {model.misfit}")
        if model.size is None:
            return here(
                f"the size of {model.name} is not known before it is in the cache (faithscope "
                "prefetch), so that nothing tells whether vLLM has room"
            )
        if model.size < SMALL:
            return here(f"{model.name} is so small that vLLM takes longer to start than it saves")
    if (at := device()).kind != "cuda":
        return here(f"the device is {at.kind}, and vLLM writes by default on CUDA devices alone")
    for model in models:
        if not _fits_alone(asked, model, at):
            return here(
                f"vLLM needs about {_alone(asked, model) / GIB:.0f} GiB for {model.name}, and "
                f"{min(at.free, SHARE * at.total) / GIB:.0f} GiB are free for it; a lower "
                "generation.max_model_len needs less"
            )
    plans = [beside(asked, model, at) for model in models]
    fit = [plan for plan in plans if plan is not None]
    if len(fit) == len(plans) and asked.probes is not False:
        sleeps = any(plan.sleeps for plan in fit)
        return Choice("vllm", True, f"weights fit twice{_SLEEPING if sleeps else ''}")
    if asked.probes:
        return here("generation.probes=true needs room for the weights twice, which is not there")
    if not asked.traces:
        why = "generation.probes=false" if asked.probes is False else "weights do not fit twice"
        return here(f"chains are given, and {why}")
    if asked.probes is False:
        return Choice("vllm", False, "generation.probes=false leaves what probes need to us")
    return Choice("vllm", False, "weights fit once, so that what probes need is written by us")


_SLEEPING = ", if vLLM gives its memory back while the model is measured"


def beside(asked: Asked, model: Weights, at: Device) -> Beside | None:
    """How vLLM fits on a device beside the model that is measured; None if it does not.

    Where packs of a full token budget leave too little, the budget is halved up to twice, if the
    config names none; where that does not help, vLLM sleeps while the model is measured.

    Args:
        at: the device before the model is loaded.
    """
    assert model.size is not None
    if not _fits_alone(asked, model, at):
        return None
    alone, of_token = _alone(asked, model), model.per_token or 0
    for sleeps in (False, True):
        for budget in [asked.token_budget] if asked.token_budget else _halved(PACKS):
            pack = budget * of_token
            # texts under edits are written here, in rows that are copied from a pack
            ours = ENGINE + 2 * pack
            # what the next pack takes over stays while vLLM writes
            reserve = ENGINE + pack if sleeps else ours
            asleep = ours + ASLEEP if sleeps else 0
            if model.size + max(asleep, reserve + alone) <= at.free:
                return Beside(sleeps, budget, reserve)
    return None


def _fits_alone(asked: Asked, model: Weights, at: Device) -> bool:
    return _alone(asked, model) <= min(at.free, SHARE * at.total)


def _halved(budget: int) -> list[int]:
    return [budget, *_halved(budget // 2)] if budget > LEAST_PACK else [budget]


def _alone(asked: Asked, model: Weights) -> float:
    """Bytes of one device that vLLM needs at least: of weights, and of one text of full length."""
    assert model.size is not None
    text = (model.positions or 0) * (model.per_token or 0)
    return (model.size + text) / asked.devices + ENGINE


def utilization(at: Device, reserve: float) -> float:
    """The share of a device's memory (`gpu_memory_utilization`) that vLLM takes.

    Args:
        at: the device as it is when vLLM is about to start.
        reserve: bytes of what is free that are left to others.
    """
    # to three digits downwards: what is asked for must be free
    return int(1000 * min(SHARE, (at.free - reserve) / at.total)) / 1000


def _supported(version: str) -> bool:
    first, after = TESTED
    parts = version.split("+")[0].split(".")[:2]
    return (
        len(parts) == 2
        and all(p.isdigit() for p in parts)
        and (first <= (int(parts[0]), int(parts[1])) < after)
    )
