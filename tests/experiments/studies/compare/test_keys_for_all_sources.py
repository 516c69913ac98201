"""Keys that a comparison says for all of its sources take effect, or are refused with the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_input import refused
from run_files import write_yaml

from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.folder import to_yaml
from faithscope.experiments.engine.run import plan as run_plan
from faithscope.experiments.studies.compare.work import Made

OF_MEASURES = {
    "model.name": ["planted:faithful", "planted:hint"],
    "tasks": ["planted"],
    "data.limit": {"planted": 30, "default": 5},
    "probes": ["slrc"],
}
OF_JUDGE = {"traces.path": "source:measures", "judges.model": "bundled:smollm2-135m"}
CHAINS = [{"question": "1 + 1?", "steps": ["1 + 1 is 2."], "answer": "2"}]


def written(folder: Path, **values: Any) -> Path:
    """A config of a comparison of a run of probes and a run of judges."""
    sources = [
        {"name": "measures", "config": "planted", "set": OF_MEASURES},
        {"name": "judged", "config": "judge", "set": OF_JUDGE},
    ]
    config = {"name": "both", "benchmark": "compare", "out": str(folder / "runs")}
    return write_yaml(folder / "both.yaml", config | {"sources": sources} | values)


def made(path: Path, *options: str) -> dict[str, Any]:
    """The configs of the sources, also as they are after a reload of the stored config."""
    config = load_config(path, list(options))
    again = path.parent / "again.yaml"
    again.write_text(to_yaml(config))
    plans = [run_plan(c) for c in (config, load_config(again))]
    once, twice = ({i.item: i.config for i in p.items if isinstance(i, Made)} for p in plans)
    assert once == twice
    return once


def at(config: Any, key: str) -> Any:
    for part in key.split("."):
        config = config[part] if isinstance(config, dict) else getattr(config, part)
    return config


@pytest.mark.parametrize(
    ("key", "value", "sources"),
    [
        ("model.name", ["planted:hint"], ["measures"]),
        ("model.dtype", "bfloat16", ["measures"]),
        ("judges.model", ["org/a", "org/b"], ["judged"]),
        ("judges.max_tokens", 99, ["judged"]),
        ("tasks", ["planted", "planted_2"], ["measures", "judged"]),
        ("data.limit", 7, ["measures", "judged"]),
        ("data.limit.planted", 7, ["measures", "judged"]),
        ("generation.max_new_tokens", 64, ["measures", "judged"]),
        ("slrc.framings", ["reprompt"], ["measures", "judged"]),
        ("seed", 5, ["measures", "judged"]),
        ("steps.min_chars", 3, ["measures", "judged"]),
        ("token_budget", 512, ["measures", "judged"]),
        ("judges.forms", ["legibility"], ["judged"]),
        ("traces.limit", 4, ["measures", "judged"]),
    ],
)
def test_a_key_that_is_set_reaches_every_source_that_has_it(
    key: str, value: Any, sources: list[str], tmp_path: Path
) -> None:
    configs = made(written(tmp_path), f"{key}={yaml.safe_dump(value, default_flow_style=True)}")
    for title, config in configs.items():
        if title not in sources:
            section = getattr(config, key.split(".")[0])
            assert section is None or section.name == []
        else:
            assert at(config, key) == (tuple(value) if key == "slrc.framings" else value)


def test_a_mapping_by_task_keeps_the_entries_that_nobody_set(tmp_path: Path) -> None:
    configs = made(written(tmp_path), "data.limit.planted=7")
    assert configs["measures"].data.limit == {"planted": 7, "default": 5}
    configs = made(written(tmp_path), "data.limit={planted: 7}")
    assert configs["measures"].data.limit == {"planted": 7}


def test_a_whole_section_is_what_is_set_and_only_the_keys_that_a_source_has(
    tmp_path: Path,
) -> None:
    configs = made(written(tmp_path), "traces={limit: 3, kind: number}")
    assert configs["measures"].traces.limit == configs["judged"].traces.limit == 3
    configs = made(written(tmp_path), "model={name: planted:hint, dtype: float16}")
    model = configs["measures"].model
    assert (model.name, model.dtype) == (["planted:hint"], "float16")


def test_a_key_beside_the_sources_holds_unless_a_source_says_otherwise_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"seed": 3, "tasks": ["planted_select"], "model": {"name": "planted:hint"}}
    said |= {"generation": {"temperature": 0.5}}
    path = written(tmp_path, **said)
    configs = made(path)
    assert configs["measures"].generation.temperature == 0.5
    assert (configs["measures"].seed, configs["judged"].seed) == (3, 3)
    assert configs["measures"].tasks == ["planted"]
    assert execute(["run", str(path), "--dry-run"]) == 0
    notes = capsys.readouterr().err
    assert 'tasks is ["planted"], which its own set says, and not tasks ["planted_select"]' in notes
    assert "generation" not in notes
    configs = made(path, "tasks=[planted, planted_4]", "model.dtype=float16")
    assert configs["measures"].tasks == ["planted", "planted_4"]
    assert configs["measures"].model.name == OF_MEASURES["model.name"]
    assert execute(["run", str(path), "--dry-run", "--set", "tasks=[planted, planted_4]"]) == 0
    notes = capsys.readouterr().err
    assert (
        'tasks is ["planted", "planted_4"], as set for all sources, in place of tasks ["planted"]'
        in notes
    )


def test_a_seed_that_nobody_gave_is_the_sources_own(tmp_path: Path) -> None:
    sources = [{"name": "one", "config": "planted", "set": OF_MEASURES | {"seed": 9}}]
    assert made(written(tmp_path, sources=sources))["one"].seed == 9
    assert made(written(tmp_path, sources=sources), "seed=0")["one"].seed == 0


def test_a_section_that_a_source_sets_whole_keeps_the_keys_beside_the_sources(
    tmp_path: Path,
) -> None:
    own = {**OF_MEASURES, "traces": {"limit": 3, "kind": "number"}}
    sources = [{"name": "one", "config": "planted", "set": own}]
    path = written(tmp_path, sources=sources, traces={"limit": 8, "task": "planted"})
    traces = made(path)["one"].traces
    assert (traces.limit, traces.kind, traces.task) == (3, "number", "planted")
    traces = made(path, "traces.limit=2")["one"].traces
    assert (traces.limit, traces.kind, traces.task) == (2, "number", "planted")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("jugdes.model=x", "jugdes.model: no source has this key; did you mean 'judges'?"),
        ("data.limt=3", "data.limt: no source has this key; did you mean 'data.limit'?"),
        ("judges={modle: x}", "judges.modle: no source has this key; did you mean 'judges.model'?"),
        ("labls={path: x}", "labls.path: no source has this key; did you mean 'labels'?"),
        ("zzz=1", "zzz: no source has this key; take it out, or put it into the set of a source"),
        (
            "judges.max_tokens=1",
            "source 'judged': --set judges.max_tokens=1: judges.max_tokens: must",
        ),
    ],
)
def test_a_key_that_would_reach_no_source_is_refused(
    option: str, expected: str, tmp_path: Path
) -> None:
    assert expected in refused("run", written(tmp_path), "--dry-run", "--set", option)


def test_a_key_below_a_value_that_a_source_sets_is_refused_with_both_places(
    tmp_path: Path,
) -> None:
    sources = [{"name": "one", "config": "planted", "set": OF_MEASURES | {"data.limit": 4}}]
    path = written(tmp_path, sources=sources)
    said = refused("run", path, "--dry-run", "--set", "data.limit.planted=3")
    assert "source 'one': --set data.limit.planted=3: 'data.limit' is 4" in said


def test_an_empty_section_says_nothing(tmp_path: Path) -> None:
    # configs that earlier versions stored have these sections
    path = written(tmp_path, traces={}, model={}, judge={})
    assert made(path) == made(written(tmp_path))
    config = load_config(written(tmp_path, sources=[{"run": "runs/a"}], traces={}, model={}))
    assert config.notes == []


def test_a_finished_run_takes_no_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, sources=[{"run": "runs/a"}], model={"name": "planted:hint"})
    said = refused("run", path, "--dry-run")
    assert "unknown key 'model.name': all sources are finished runs" in said
    path = written(tmp_path, sources=[{"run": "runs/a"}])
    assert "did you mean 'labels'" in refused("run", path, "--dry-run", "--set", "lables=x")
    mixed = [{"run": "runs/a"}, {"name": "b", "config": "planted", "set": OF_MEASURES}]
    config = load_config(written(tmp_path, sources=mixed), ["data.limit=3"])
    assert "source a: is a finished run, which data.limit does not change" in config.notes
