"""An opened run folder: its frames, their columns, and what a notebook shows of it."""

from __future__ import annotations

import pytest

from faithscope import load_run
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.probes.record import KEYS


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    values = {"name": "t", "model": {"name": "planted:faithful"}, "tasks": ["planted"]}
    told = {"probes": ["slrc", "attention"], "data": {"limit": 1}, "out": str(folder)}
    run(RunConfig.model_validate(values | told))
    return load_run(folder / "t")


def test_the_frames_that_are_named_have_rows(opened: Run) -> None:
    assert {"traces", "measures", "items", "attention"} <= set(opened.frames)
    assert not {"knockout", "resample", "api_replies"} & set(opened.frames)
    for name in opened.frames:
        assert len(getattr(opened, name)), name
    # a frame without rows can be asked for all the same
    assert len(opened.knockout) == 0


def test_every_frame_begins_with_the_keys_and_no_column_is_there_twice(opened: Run) -> None:
    for name in opened.frames:
        columns = list(getattr(opened, name).columns)
        assert columns[: len(KEYS)] == list(KEYS), name
        assert len(set(columns)) == len(columns), name
        assert columns == list(opened.columns(name)), name
    joined = opened.items.merge(opened.measures, on=["dataset", "task", "item", "model", "seed"])
    assert len(joined)


def test_a_run_is_shown_with_its_frames(opened: Run) -> None:
    head, *frames = repr(opened).splitlines()
    assert head == f"Run '{opened.path}' of slrc: 3 units; its frames:"
    assert [line.split(":")[0] for line in frames] == [f"  .{name}" for name in opened.frames]
    html = opened._repr_html_()
    assert [name for name in opened.frames if f">.{name}<" not in html] == []
