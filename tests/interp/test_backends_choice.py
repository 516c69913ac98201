"""Which engine writes: tables of cases, without any device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faithscope.interp.backends.choice import (
    ENGINE,
    GIB,
    LEAST_PACK,
    PACKS,
    Asked,
    Choice,
    Device,
    Weights,
    beside,
    choose,
    utilization,
)

GPU = Device("cuda", 80 * GIB, 79 * GIB)
QWEN = Weights("org/8b", int(16.4e9), 147_456, 40_960)
AUTO = Asked()


def chosen(asked: Asked = AUTO, *models: Weights, vllm="0.32.0", at: Device = GPU) -> Choice:
    return choose(asked, models or (QWEN,), vllm, lambda: at)


def not_looked_at() -> Device:
    raise AssertionError("torch would be imported")


@pytest.mark.parametrize(
    ("asked", "models", "vllm", "why"),
    [
        (Asked("vllm"), (), None, "generation.backend says so"),
        (Asked("vllm-server", True), (QWEN,), None, "generation.backend says so"),
        (Asked("here"), (QWEN,), "0.32.0", "generation.backend says so"),
        (AUTO, (), "0.32.0", "no model's weights are read"),
        (AUTO, (QWEN,), None, "vLLM is not installed here"),
        (AUTO, (QWEN,), "0.14.2", "0.15 to below 0.34 are supported"),
        (AUTO, (QWEN,), "0.34.0rc1", "0.15 to below 0.34 are supported"),
        (AUTO, (QWEN,), "nightly", "0.15 to below 0.34 are supported"),
        (
            AUTO,
            (QWEN, replace(QWEN, name="a", misfit="is an adapter")),
            "0.32.0",
            "a is an adapter",
        ),
        (AUTO, (replace(QWEN, size=None),), "0.32.0", "the size of org/8b is not known"),
        (AUTO, (replace(QWEN, size=10**6),), "0.32.0", "so small that vLLM takes longer to start"),
    ],
)
def test_what_needs_no_look_at_the_device(
    asked: Asked, models: tuple[Weights, ...], vllm: str | None, why: str
):
    choice = choose(asked, models, vllm, not_looked_at)
    assert why in choice.reason
    assert choice.backend == ("here" if asked.backend == "auto" else asked.backend)
    assert choice.probes == bool(asked.probes)


@pytest.mark.parametrize(
    ("asked", "gib", "size", "backend", "probes", "why"),
    [
        # an 8B: twice on an H100, once on a 40 GB card, not at all on one of 24 GB
        (AUTO, 80, 16.4e9, "vllm", True, "weights fit twice"),
        (AUTO, 40, 16.4e9, "vllm", False, "weights fit once"),
        (
            AUTO,
            24,
            16.4e9,
            "here",
            False,
            "vLLM needs about 25 GiB for org/8b, and 22 GiB are free for it",
        ),
        # 14B on an H100, and on half of it; 32B on an H200 only if vLLM sleeps in between
        (AUTO, 80, 29.5e9, "vllm", True, "weights fit twice"),
        (AUTO, 50, 29.5e9, "vllm", False, "what probes need is written by us"),
        (AUTO, 141, 65e9, "vllm", True, "gives its memory back while"),
        (AUTO, 80, 65e9, "vllm", False, "weights fit once"),
        (AUTO, 60, 65e9, "here", False, "a lower generation.max_model_len needs less"),
        # what the config says of probes
        (Asked(probes=False), 80, 16.4e9, "vllm", False, "generation.probes=false leaves"),
        (Asked(probes=True), 80, 16.4e9, "vllm", True, "weights fit twice"),
        (Asked(probes=True), 40, 16.4e9, "here", False, "needs room for the weights twice"),
        # given chains: there are no traces to write
        (Asked(traces=False), 80, 16.4e9, "vllm", True, "weights fit twice"),
        (Asked(traces=False), 40, 16.4e9, "here", False, "chains are given, and weights do not"),
        (
            Asked(traces=False, probes=False),
            80,
            16.4e9,
            "here",
            False,
            "chains are given, and gene",
        ),
        # two devices share vLLM's layers
        (Asked(devices=2), 24, 16.4e9, "vllm", False, "weights fit once"),
    ],
)
def test_what_a_device_has_room_for(
    asked: Asked, gib: int, size: float, backend: str, probes: bool, why: str
):
    at = Device("cuda", gib * GIB, gib * GIB)
    choice = chosen(asked, replace(QWEN, size=int(size)), at=at)
    assert (choice.backend, choice.probes) == (backend, probes)
    assert why in choice.reason


@pytest.mark.parametrize("kind", ["cpu", "mps", "cuda, which this machine does not have"])
def test_other_devices_are_ours(kind: str):
    choice = chosen(at=Device(kind))
    assert choice == Choice("here", False, choice.reason)
    assert f"the device is {kind}" in choice.reason


def test_one_model_without_room_decides_for_all():
    """Tables compare the models of a run: one engine writes for all of them."""
    large = replace(QWEN, name="org/70b", size=int(141e9))
    assert chosen(AUTO, QWEN, large).backend == "here"
    assert "org/70b" in chosen(AUTO, QWEN, large).reason
    middle = replace(QWEN, size=int(50e9))
    both = chosen(AUTO, QWEN, middle)
    assert (both.backend, both.probes) == ("vllm", False)


def test_others_on_the_device_count():
    assert chosen(at=replace(GPU, free=20 * GIB)).backend == "here"


def test_packs_make_room_before_vllm_sleeps():
    found = {}
    for gib in (141, 80, 60, 50):
        plan = beside(AUTO, QWEN, Device("cuda", gib * GIB, gib * GIB))
        found[gib] = None if plan is None else (plan.sleeps, plan.token_budget)
    assert found == {
        141: (False, PACKS),
        80: (False, PACKS // 2),
        60: (False, LEAST_PACK),
        50: (True, LEAST_PACK),
    }
    # a budget that the config names is not cut
    own = beside(Asked(token_budget=PACKS), QWEN, GPU)
    assert own is not None
    assert (own.sleeps, own.token_budget) == (True, PACKS)


@pytest.mark.parametrize("gib", [50, 60, 80, 141])
def test_all_that_is_held_fits(gib: int):
    at = Device("cuda", gib * GIB, gib * GIB)
    plan = beside(AUTO, QWEN, at)
    assert plan is not None
    assert QWEN.size is not None
    loaded = replace(at, free=at.free - QWEN.size)
    engine = utilization(loaded, plan.reserve) * at.total
    text = 40_960 * 147_456
    assert engine >= QWEN.size + text + ENGINE - 0.001 * at.total
    assert engine <= loaded.free
    pack = plan.token_budget * 147_456
    measuring = QWEN.size + 2 * pack + ENGINE
    assert measuring + (0 if plan.sleeps else engine) <= at.free


def test_a_share_is_of_what_is_free_and_not_all_of_it():
    assert utilization(Device("cuda", 100 * GIB, 100 * GIB), 0) == 0.9
    assert utilization(Device("cuda", 100 * GIB, 50 * GIB), 10 * GIB) == 0.4
    assert utilization(Device("cuda", 3 * GIB, 2 * GIB), 0) == 0.666
