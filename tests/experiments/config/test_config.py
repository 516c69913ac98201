"""A config is refused with one clear line per problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config

BASE: dict[str, Any] = {
    "name": "t",
    "model": {"name": "planted:faithful"},
    "tasks": ["planted"],
}


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "x.yaml"
    values = {k: v for k, v in (BASE | changes).items() if v != "absent"}
    path.write_text(yaml.safe_dump(values))
    return path


def problems(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, list(overrides))
    return [line.replace(str(path), "x.yaml") for line in caught.value.problems]


def test_defaults_are_the_papers(tmp_path: Path) -> None:
    config = load_config(write(tmp_path))
    assert config.slrc.shuffles == 3
    assert config.steps.min_chars == 15
    assert config.generation.temperature == 0
    assert config.generation.max_new_tokens is None  # what suits the model's format
    assert config.slrc.framings == ("prefix", "reprompt")
    assert config.slrc.readings == ("generated", "scored")
    assert config.pairs == [("planted:faithful", "planted")]
    assert config.run_dir == Path("runs/t")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"probes": ["slrc", "slcr"]},
            "x.yaml: probes[1]: unknown probe 'slcr'; did you mean 'slrc'?",
        ),
        ({"tasks": ["plantd"]}, "x.yaml: tasks[0]: unknown task 'plantd'; did you mean 'planted'?"),
        (
            {"model": {"name": "planted:fathful"}},
            "x.yaml: model.name: unknown model 'planted:fathful'; did you mean 'planted:faithful'?",
        ),
        (
            {"model": {"name": ["planted:faithful", "bundled:smollm-135m"]}},
            "x.yaml: model.name[1]: unknown model 'bundled:smollm-135m'; "
            "did you mean 'bundled:smollm2-135m'?",
        ),
        (
            {"slrc": {"shufles": 3}},
            "x.yaml: slrc.shufles: unknown key 'shufles'; did you mean 'shuffles'?",
        ),
        (
            {"slrc": {"framings": ["prefx"]}},
            "x.yaml: slrc.framings[0]: must be one of prefix, reprompt, got 'prefx'; "
            "did you mean 'prefix'?",
        ),
        ({"slrc": {"readings": []}}, "x.yaml: slrc.readings: is an empty list; "
         "give at least one entry"),
        ({"slrc": {"shuffles": -1}}, "x.yaml: slrc.shuffles: must be at least 0, got -1"),
        (
            {"slrc": {"edits": ["corrupt"]}},
            "x.yaml: slrc.edits: must contain 'remove' (necessity is defined by it), "
            "got ['corrupt']",
        ),
        (
            {"probes": ["slrc", "sycophancie"]},
            "x.yaml: probes[1]: unknown probe 'sycophancie'; did you mean 'sycophancy'?",
        ),
        (
            {"sycophancy": {"prompt": "{reasoning} Is it {answer}?"}},
            "x.yaml: sycophancy.prompt: must contain {question} {reasoning} {answer} and no other "
            "field, got '{reasoning} Is it {answer}?'",
        ),
        (
            {"error_detection": {"prompt": "{question} {reasoning} {"}},
            "x.yaml: error_detection.prompt: Single '{' encountered in format string; "
            "write {{ and }} for braces",
        ),
        ({"direct": {"answer_tokens": 0}}, "x.yaml: direct.answer_tokens: must be at least 1, "
         "got 0"),
        ({"taxonomy": {"gap": 10.0}}, "x.yaml: taxonomy.gap: must be at most 1, got 10.0"),
        (
            {"taxonomy": {"prompt": "unformated"}},
            "x.yaml: taxonomy.prompt: must be one of unformatted, formatted, system, "
            "got 'unformated'; did you mean 'unformatted'?",
        ),
        ({"taxonomy": {"sensitivity": []}}, "x.yaml: taxonomy.sensitivity: is an empty list; "
         "give at least one entry"),
        (
            {"generation": {"max_new_tokens": 0}},
            "x.yaml: generation.max_new_tokens: must be at least 1, got 0",
        ),
        ({"seed": True}, "x.yaml: seed: must be a whole number, got true"),
        (
            {"rigidity": {"tuned_lens": 3}},
            "x.yaml: rigidity.tuned_lens: must be a text (quote it if YAML reads it as something "
            "else) or a mapping, got 3",
        ),
        ({"tasks": ["planted", "planted"]}, "x.yaml: tasks: 'planted' is listed twice; "
         "list it once"),
        ({"modle": 1}, "x.yaml: modle: unknown key 'modle'; did you mean 'model'?"),
        ({"name": "absent"}, "x.yaml: name: missing; add `name: my-run`"),
        ({"model": {"name": "./nowhere"}}, "x.yaml: model.name: no such file or folder: "
         "'./nowhere'; check the path"),
        ({"data": {"limit": {"planted": 0}}}, "x.yaml: data.limit.planted: must be a whole "
         "number, at least 1, got 0"),
        ({"data": {"path": {"gsmk": "a"}}}, "x.yaml: data.path.gsmk: unknown task 'gsmk'; "
         "did you mean 'gsm8k'?"),
        ({"name": "a/b"}, "x.yaml: name: 'a/b' cannot name a folder; use letters, digits, "
         "'.', '_' and '-'"),
    ],
)  # fmt: skip
def test_one_line_names_file_key_value_and_remedy(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    assert problems(write(tmp_path, **changes)) == [expected]


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, tasks=["plantd"], slrc={"shuffles": "many"}, seed=-1)
    assert [p.split(": ")[1] for p in problems(path)] == ["seed", "tasks[0]", "slrc.shuffles"]


@pytest.mark.parametrize(
    ("option", "last"),
    [
        ("probes=[trcing,slrc,atention]", "all at once: --set probes=[tracing,slrc,attention]"),
        ("tasks=[gsm8,singl_cue]", "all at once: --set tasks=[gsm8k,single_cue]"),
        ("slrc.edits=[remov,corupt]", "all at once: --set slrc.edits=[remove,corrupt]"),
        ("cues=[metadat,placbo]", "all at once: --set cues=[metadata,placebo]"),
    ],
)
def test_all_corrections_of_a_list_are_proposed_at_once(option: str, last: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config("chains", [option])
    *_, said = refused.value.problems
    assert said == last
    # what is proposed is taken, with a probe that puts cues where these are corrected
    puts = ["probes=[hints]"] if "cues" in last else []
    load_config("chains", [*puts, last.removeprefix("all at once: --set ")])


def test_corrections_in_a_file_and_names_that_are_like_none(tmp_path: Path) -> None:
    of_file = problems(write(tmp_path, probes=["trcing", "atention"]))
    assert of_file[-1] == "all at once: probes: [tracing, attention]"
    listed = problems(write(tmp_path, probes=["bad1", "bad2"]))
    assert [line.count("; known: slrc, direct") for line in listed] == [0, 1]


def test_a_task_that_no_model_can_do_is_left_out(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, tasks=["planted", "single_cue"]))
    assert config.idle_tasks == ["single_cue"]
    assert config.pairs == [("planted:faithful", "planted")]


def test_no_task_is_named_that_nobody_asked_for(tmp_path: Path) -> None:
    twins, given = "model.name=[planted:faithful,planted:hint]", "traces.path=chains.jsonl"
    for options in ([twins], [given], [given, "traces.limit=2"]):
        for config in ("quickstart", "chains", "mechanistic", "slrc"):
            if options == [twins] and config != "quickstart":
                continue  # nothing else is both a task of planted models and shipped
            assert "task" not in " ".join(load_config(config, options).notes)
    asked = load_config("chains", [given, "tasks=[single_cue]"])
    assert any(note.startswith("tasks single_cue: not asked") for note in asked.notes)
    of_own_file = write(tmp_path, tasks=["planted"], traces={"path": "chains.jsonl"})
    assert any(
        note.startswith("tasks planted: not asked") for note in load_config(of_own_file).notes
    )


def test_a_model_without_a_task_is_refused(tmp_path: Path) -> None:
    lone_model = write(tmp_path, model={"name": ["planted:hint", "bundled:smollm2-135m"]})
    (line,) = problems(lone_model)
    assert line.startswith(
        "x.yaml: model.name: 'bundled:smollm2-135m' can do none of the tasks planted; add one "
    )


def test_only_fitting_models_and_tasks_are_paired(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        model={"name": ["planted:hint", "bundled:smollm2-135m"]},
        tasks=["single_cue", "planted"],
    )
    assert load_config(path).pairs == [
        ("planted:hint", "planted"),
        ("bundled:smollm2-135m", "single_cue"),
    ]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("a: [1,\nb: 2", "line 2, column 5", "expected ',' or ']'"),
        ("a:\n\tb: 1", "line 2, column 1", "a tab cannot indent YAML"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1", "key 'a' stands twice"),
        ("name: x: y", "line 1, column 8", "mapping values are not allowed here"),
    ],
)
def test_malformed_yaml_gives_line_and_column(
    tmp_path: Path, text: str, where: str, what: str
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    (line,) = problems(path)
    assert line.startswith(f"x.yaml: {where}: ")
    assert what in line


def test_files_that_are_no_config(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert problems(tmp_path / "y.yaml")[0].endswith("no such file; did you mean 'x.yaml'?")
    assert problems(tmp_path)[0].endswith("is a folder; give a YAML file")
    path.write_text("")
    assert problems(path) == ["x.yaml: is empty; a run needs at least name, model and tasks"]
    path.write_text("- a")
    assert "at the top level" in problems(path)[0]
    path.write_bytes(b"name: \xff")
    assert problems(path) == ["x.yaml: is not UTF-8 text (byte 6); save it as UTF-8"]


def test_overrides_are_read_as_yaml(tmp_path: Path) -> None:
    config = load_config(
        write(tmp_path),
        [
            "data.limit.planted=7",
            "slrc.framings=[reprompt]",
            "model.name=[planted:faithful, planted:hint]",
            "seed=3",
            "slrc.regenerate_tokens=null",
        ],
    )
    assert config.data.limit_of("planted") == 7
    assert config.data.limit_of("gsm8k") is None
    assert config.slrc.framings == ("reprompt",)
    assert config.model.name == ["planted:faithful", "planted:hint"]
    assert config.seed == 3


def test_a_wrong_override_is_named_as_such(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert problems(path, "slrc.shufles=2") == [
        "--set slrc.shufles=2: slrc.shufles: unknown key 'shufles'; did you mean "
        "--set slrc.shuffles=2?"
    ]
    assert problems(path, "limit") == ["--set limit: expected key=value, e.g. --set data.limit=20"]
    assert problems(path, "name.x=1") == [
        "--set name.x=1: 'name' is 't', which has no keys; set it whole: --set name=…"
    ]
    assert "not YAML" in problems(path, "tasks=[a")[0]


def test_limit_of_a_task_falls_back_to_default(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, data={"limit": {"default": 4, "planted": 9}}))
    assert [config.data.limit_of(t) for t in ("planted", "sentiment")] == [9, 4]


def test_a_variant_goes_by_the_entries_of_its_task(tmp_path: Path) -> None:
    data = {
        "limit": {"default": 4, "sentiment": 9, "sentiment:alternative": 5},
        "path": {"sentiment": "s.csv"},
    }
    model = {"name": "bundled:smollm2-135m"}
    tasks = ["sentiment:alternative", "sentiment:self_justification", "single_cue:alternative"]
    config = load_config(write(tmp_path, data=data, model=model, tasks=tasks))
    assert [config.data.limit_of(t) for t in tasks] == [5, 9, 4]
    assert [config.data.path_of(t) for t in tasks] == [Path("s.csv"), Path("s.csv"), None]
    assert [task for _, task in config.pairs] == tasks
    assert problems(write(tmp_path, model=model, tasks=["sentiment:alternativ"])) == [
        "x.yaml: tasks[0]: unknown variant 'alternativ' of task 'sentiment'; "
        "did you mean 'alternative'?"
    ]


def test_an_empty_section_means_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(BASE) + "slrc:\ndata:\n")
    assert load_config(path).slrc.shuffles == 3


RUN_CONFIGS = sorted(p for p in Path("configs").glob("*.yaml") if p.stem != "prices")


@pytest.mark.parametrize("path", RUN_CONFIGS, ids=str)
def test_shipped_configs_are_sound(path: Path) -> None:
    assert load_config(path).name == path.stem
