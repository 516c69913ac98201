"""Parts that cannot be joined are named, with what is to be done."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from bad_input import refused
from cases import CASES, Setting
from run_files import write_config
from run_folders import outputs

from faithscope.experiments.cli import execute

PARTS = 3


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory, tiny_models: dict[str, str]) -> Path:
    """Config of the toy study: five numbers in batches of two."""
    return CASES["toy"].here(Setting(tmp_path_factory.mktemp("toy"), tiny_models))


def part_of(config: Path, k: int, out: Path, *overrides: str) -> Path:
    """The run folder of one part, in a folder of its own as on a node of its own."""
    told = [word for o in (f"out={out}", *overrides) for word in ("--set", o)]
    assert execute(["run", str(config), "--shard", f"{k}/{PARTS}", *told]) == 0
    return out / "toy"


@pytest.fixture(scope="module")
def parts(config: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [part_of(config, k, tmp_path_factory.mktemp(f"node{k}")) for k in (1, 2, 3)]


def test_a_missing_part_is_named_with_the_command_that_does_it(
    parts: list[Path], config: Path, tmp_path: Path
) -> None:
    into = tmp_path / "joined"
    message = refused("merge", parts[0], parts[2], "--into", into)
    assert "part 2/3 lacks 2 of 2 items (first: " in message
    assert message.endswith(f"faithscope run {parts[0]}/config.yaml --shard 2/3")
    assert not (into / "tables").exists()
    # of a folder that has moved since, too
    for k in (1, 3):
        part_of(config, k, tmp_path / "one")
    moved = (tmp_path / "one/toy").rename(tmp_path / "renamed")
    command = refused("merge", moved).partition("do it with: faithscope ")[2]
    assert execute(command.split()) == 0
    assert execute(["merge", str(moved)]) == 0
    assert execute(["merge", *map(str, parts), "--into", str(into)]) == 0
    assert outputs(moved) == outputs(into)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [("seed", 5, "seed: 0 and 5"), ("judge.max_tokens", 40, "judge.max_tokens: 16 and 40")],
)
def test_parts_of_different_runs_are_refused_with_the_difference(
    parts: list[Path], tmp_path: Path, key: str, value: int, expected: str
) -> None:
    other = Path(shutil.copytree(parts[1], tmp_path / "toy"))
    values = yaml.safe_load((other / "config.yaml").read_text())
    section, _, name = key.rpartition(".")
    (values[section] if section else values)[name] = value
    write_config(other, yaml.safe_dump(values))
    assert expected in refused("merge", parts[0], other, "--into", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_parts_of_other_data_are_refused_with_the_item(
    parts: list[Path], config: Path, tmp_path: Path
) -> None:
    other = part_of(config, 2, tmp_path / "other", "n=4")
    write_config(other, (parts[1] / "config.yaml").read_text("utf-8"))
    message = refused("merge", parts[0], other, "--into", tmp_path / "m")
    assert "of task 'numbers' for " in message
    assert "is in one of them only" in message


def test_a_part_whose_records_another_config_made_is_refused(
    parts: list[Path], tmp_path: Path
) -> None:
    mine = Path(shutil.copytree(parts[1], tmp_path / "toy"))
    environment = json.loads((mine / "environment.json").read_text())
    environment["config"]["seed"] = 5
    (mine / "environment.json").write_text(json.dumps(environment))
    message = refused("merge", parts[0], mine, parts[2], "--into", tmp_path / "m")
    assert "config.yaml: was changed after its records were made (seed: 5 there, 0 now)" in message
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["{0}", "{1}"], "2 run folders to merge and nowhere to join them; add --into DIR"),
        (["{0}", "--into", "{0}"], "is one of the folders to merge"),
        (["{0}", "--into", "{full}"], "is a folder with something else in it"),
    ],
)
def test_nowhere_to_join(
    parts: list[Path], tmp_path: Path, arguments: list[str], expected: str
) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    assert expected in refused("merge", *(a.format(*parts, full=tmp_path) for a in arguments))
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_labels_that_people_gave_are_carried_over_and_none_is_lost(
    parts: list[Path], tmp_path: Path
) -> None:
    own = [Path(shutil.copytree(part, tmp_path / f"node{k}/toy")) for k, part in enumerate(parts)]
    into = tmp_path / "joined"

    def labelled(folder: Path, **files: str) -> None:
        (folder / "annotations/.locks").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"annotations/{name}.jsonl").write_text(text)

    def labels() -> dict[str, str]:
        return {p.stem: p.read_text() for p in (into / "annotations").glob("[!.]*.jsonl")}

    labelled(own[0], ann="one\n", bob="his\n")
    labelled(own[1], ann="one\ntwo\n", bob="his\nto")
    (own[1] / "annotations/sample.json").write_text("[]\n")
    arguments = ["merge", *map(str, own), "--into", str(into)]
    assert execute(arguments) == 0
    assert labels() == {"ann": "one\ntwo\n", "bob": "his\n"}
    assert (into / "annotations/sample.json").read_text() == "[]\n"
    # what was labelled since in the joined folder stays, whatever a part still has
    labelled(into, ann="one\ntwo\nthree\n")
    labelled(own[2], bob="his\nnext\n")
    assert execute(arguments) == 0
    assert labels() == {"ann": "one\ntwo\nthree\n", "bob": "his\nnext\n"}
    labelled(own[2], ann="one\nother\n")
    message = refused("merge", *own, "--into", into)
    assert f"{own[2]}/annotations/ann.jsonl hold different labels" in message
    assert labels() == {"ann": "one\ntwo\nthree\n", "bob": "his\nnext\n"}
