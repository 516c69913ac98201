"""What goes wrong while a model here works, in every study, and is made good by a new start."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import Case, Setting, run_folder
from run_folders import every_study_in_time, keys, outputs

from faithscope.experiments.cli import execute
from faithscope.experiments.engine.store import read_failures
from faithscope.interp import memory
from faithscope.interp.memory import within_memory

Fault = Callable[[int, Any], Exception | None]
"""Gives the error, if any, in which a piece of work ends, from the number begun before it and the
model."""


def install(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    """Let the work that models here do for a run end in errors."""
    begun = iter(range(1_000_000))

    def faulty(model: Any, work: Callable[[], Any], on_less: Callable[[int], None]) -> Any:
        number = next(begun)

        def tried() -> Any:
            if error := fault(number, model):
                raise error
            return work()

        return within_memory(model, tried, on_less)

    monkeypatch.setattr(memory, "within_memory", faulty)


def device_fails(number: int, model: Any) -> Exception | None:
    return torch.AcceleratorError("CUDA error: device-side assert") if number >= 2 else None


def one_item_fails(number: int, model: Any) -> Exception | None:
    """The third piece of work fails, and the next: a batch, then its first item by itself."""
    return ValueError("no such luck") if number in (2, 3) else None


def memory_runs_out(number: int, model: Any) -> Exception | None:
    """Memory of the device or the machine runs out until the token budget is halved."""
    model.first_budget = getattr(model, "first_budget", model.token_budget)
    if model.token_budget < model.first_budget:
        return None
    if number % 2:
        return RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")
    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def same_up_to_rounding(run_dir: Path, other: Path) -> None:
    """As outputs of smaller packs are, numbers in sentences (such as that of a cut) among them."""
    texts, expected = outputs(run_dir), outputs(other)
    assert texts.keys() == expected.keys()
    for name, text in texts.items():
        one, two = (NUMBER.sub("#", t).splitlines() for t in (text, expected[name]))
        assert one == two, name
        told, known = ([*map(float, NUMBER.findall(t))] for t in (text, expected[name]))
        assert told == pytest.approx(known, rel=1e-3, abs=1e-5), name


@every_study_in_time
@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (device_fails, 2, "the device failed and takes no more work"),
        (one_item_fails, 3, "failed: "),
        (memory_runs_out, 0, "out of memory; goes on with a token budget of "),
    ],
)
def test_what_goes_wrong_is_told_and_made_good(
    case: Case,
    undisturbed: Path,
    here: Setting,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    fault: Fault,
    code: int,
    message: str,
) -> None:
    path = case.here(here)
    run_dir = run_folder(path)
    with monkeypatch.context() as patch:
        install(patch, fault)
        assert execute(["run", str(path)]) == code
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error
    failures = read_failures(run_dir)
    if code:
        assert len(keys(run_dir)) < len(keys(undisturbed)) or failures
    if fault is one_item_fails:
        # two pieces of work at most, and what hangs on them
        assert 1 <= len(failures) <= 2
        assert all(f"{u.item} · {u.stage}: ValueError: no such luck" in error for u in failures)
        assert len(keys(run_dir)) > len(failures)
        assert execute(["status", str(run_dir)]) == 0
        assert " failed" in capfd.readouterr().out
    if fault is memory_runs_out:
        environment = json.loads((run_dir / "environment.json").read_text())
        (note,) = {n.partition(": ")[2] for n in environment["sessions"][0]["notes"]}
        assert note.startswith(message)
    assert execute(["run", str(path)]) == 0
    assert read_failures(run_dir) == []
    if fault is memory_runs_out:
        same_up_to_rounding(run_dir, undisturbed)
    else:
        assert outputs(run_dir) == outputs(undisturbed)
