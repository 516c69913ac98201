"""Items whose probes run side by side get the records that they get one after the other."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from alike import assert_alike
from default_probes import AS_THEY_ARE

from faithscope import load_run
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.traces import work
from faithscope.experiments.engine.traces.units import TRACE
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.probes import PROBES
from faithscope.probes.record import Record


def config(folder: Path, name: str, **changes: Any) -> RunConfig:
    values: dict[str, Any] = {
        "name": name,
        "out": str(folder),
        "model": {"name": "planted:mixture_50"},
        "tasks": ["planted"],
        "data": {"limit": 5},
        "probes": ["slrc", "tracing"],
        "slrc": {"framings": ["prefix"], "shuffles": 1},
        "resample": {"samples": 2},
        "report": {"traces": 1, "bootstrap": 20},
    }
    return RunConfig.model_validate(values | changes)


def records(folder: Path) -> list[Record]:
    return list(load_run(folder).records("trace", *PROBES))


@pytest.mark.slow
def test_side_by_side_gives_what_one_after_the_other_gives(tmp_path: Path) -> None:
    every = {"probes": AS_THEY_ARE, "data": {"limit": 3}}
    configs = [config(tmp_path, f"at-once-{n}", items_at_once=n, **every) for n in (None, 1, 4)]
    one_by_one, *others = [records(run(c).run_dir) for c in configs]
    for at_once in others:
        assert len(at_once) == len(one_by_one)
        for a, b in zip(one_by_one, at_once, strict=True):
            for name in a:
                if not name.startswith(("seconds", "noise", "alone")):
                    assert_alike(a[name], b[name])


@pytest.mark.slow
def test_one_bad_item_costs_no_other_and_is_tried_again(tmp_path: Path, monkeypatch) -> None:
    measure, broken = work.measure, {"slrc"}

    def failing(name: str, model: Any, task: Any, trace: Any, *rest: Any) -> Any:
        if name in broken and trace.question.id.endswith("2"):
            raise RuntimeError("a bad item")
        return measure(name, model, task, trace, *rest)

    monkeypatch.setattr(work, "measure", failing)
    first = run(config(tmp_path, "t", items_at_once=3))
    assert len(first.failures) == 1
    assert "a bad item" in first.failures[0]
    broken.clear()
    second = run(config(tmp_path, "t", items_at_once=3))
    assert second.failures == []
    whole = run(config(tmp_path, "whole", items_at_once=3))
    again, expected = records(second.run_dir), records(whole.run_dir)
    assert [r["item"] for r in again] == [r["item"] for r in expected]


@pytest.mark.parametrize("error", [KeyboardInterrupt, torch.OutOfMemoryError])
def test_what_has_ended_is_stored_while_others_go_on(
    tmp_path: Path, monkeypatch, error: type[BaseException]
) -> None:
    """Two items of `attention`, which asks once, and of `slrc`, whose first end is a kill, or a
    lack of memory: `attention` is stored by then, and not measured again."""
    measure, ended = work.measure, []

    def ending(name: str, *rest: Any) -> Any:
        found = measure(name, *rest)
        ended.append(name)
        if ended.count("slrc") == 1:
            raise error("no more")
        return found

    monkeypatch.setattr(work, "measure", ending)
    both = config(tmp_path, "t", probes=["slrc", "attention"], data={"limit": 2}, items_at_once=2)
    with suppress(KeyboardInterrupt):
        run(both)
    run(both)
    assert ended == ["attention", "attention", "slrc", "slrc", "slrc"]
    assert {(r["item"], r["probe"]) for r in records(tmp_path / "t")} == {
        (f"planted-0-{i}", probe) for i in range(2) for probe in ("trace", "slrc", "attention")
    }


def test_on_an_accelerator_two_groups_of_items_take_turns(monkeypatch) -> None:
    taken: list[tuple[int, int]] = []
    index = SimpleNamespace(is_done=lambda *_: True, records=lambda _: [{}])
    for device, on_it in (("cuda", [(8, 4), (2, 2)]), ("cpu", [(4, 4), (4, 4), (2, 2)])):
        worker = SimpleNamespace(
            config=SimpleNamespace(items_at_once=2),
            index=index,
            missing=lambda item: item.probes,
            _take=lambda model, units, screens, first: taken.append(
                (len(units), sum(id(item) in first for item, *_ in units))
            ),
        )
        worker._group = partial(work.TraceWork._group, worker)
        monkeypatch.setattr(work, "to_trace", lambda record: record)
        model: Any = SimpleNamespace(device=torch.device(device))
        items: Any = [
            SimpleNamespace(probes=("a", "b"), units={TRACE: ""}, key=str) for _ in range(5)
        ]
        taken.clear()
        for some in work.TraceWork._at_once(worker, model, items):  # pyright: ignore
            work.TraceWork._probe(worker, model, some)  # pyright: ignore
        assert taken == on_it


def test_a_probe_that_changes_the_weights_is_measured_alone(monkeypatch) -> None:
    taken: list[list[str]] = []
    index = SimpleNamespace(is_done=lambda *_: True, records=lambda _: [{}])
    worker = SimpleNamespace(
        config=SimpleNamespace(items_at_once=2),
        index=index,
        missing=lambda item: item.probes,
        _take=lambda model, units, screens, first: taken.append([name for _, name, _ in units]),
    )
    worker._group = partial(work.TraceWork._group, worker)
    monkeypatch.setattr(work, "to_trace", lambda record: record)
    model: Any = SimpleNamespace(device=torch.device("cuda"))
    item = SimpleNamespace(probes=("slrc", "fur", "tracing"), units={TRACE: ""}, key=str)
    work.TraceWork._probe(worker, model, [item, item])  # pyright: ignore
    assert taken == [["slrc", "tracing", "slrc", "tracing"], ["fur"], ["fur"]]
