"""What is written of any study's run for other programs: they open it, and it is read back as it
was."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import loopback
import pytest
import toy
from bad_input import refused
from cases import CASES
from run_folders import every_run

from faithscope import load_run
from faithscope.experiments.analysis.exports import hub_dataset
from faithscope.experiments.analysis.exports.measured_chains import MeasuredChain, measured_chains
from faithscope.experiments.cli import execute
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.tasks.sources.rows import files_read
from faithscope.experiments.engine.outputs import sources
from faithscope.experiments.engine.tallies.input_report import unused_columns
from faithscope.interp.errors import UserError

of_chains = pytest.mark.parametrize(
    "study",
    [
        pytest.param(study, marks=[] if study == "slrc" else pytest.mark.slow)
        for study in sorted(set(CASES) - {toy.STUDY.name})
    ],
)
"""Every study whose items are chains; one real study in every run of the tests."""


def by_place(chains: list[GivenChain]) -> list[dict[str, Any]]:
    known = [{n: v for n, v in asdict(c).items() if n != "where"} for c in chains]
    return sorted(known, key=lambda c: (c["dataset"], c["task"] or "", c["model"], c["id"]))


def exported(run: Path, format: str, folder: Path) -> list[MeasuredChain]:
    assert execute(["export", str(run), "--as", format, "--out", str(folder)]) == 0
    return measured_chains(load_run(run))


@of_chains
def test_logs_of_inspect_are_read_back_without_loss(undisturbed: Path, tmp_path: Path) -> None:
    inspect_log = pytest.importorskip("inspect_ai.log", reason="needs faithscope[inspect]")
    chains = exported(undisturbed, "inspect", tmp_path / "logs")
    with files_read() as files:
        read = read_chains(tmp_path / "logs", own_ids=False)
    assert read.format == "inspect"
    assert by_place(list(read.chains)) == by_place([c.chain for c in chains])
    assert all(n == ("scores that faithscope measured",) for n in unused_columns(files).values())

    logs = [inspect_log.read_eval_log(str(p)) for p in (tmp_path / "logs").glob("*.eval")]
    samples = {sample.uuid: sample for log in logs for sample in log.samples}
    assert set(samples) == {chain.id for chain in chains}
    for chain in chains:
        sample = samples[chain.id]
        (reasoning,) = [b for b in sample.output.message.content if b.type == "reasoning"]
        assert reasoning.reasoning == chain.chain.reasoning
        values = {n: s.value for n, s in sample.scores.items() if n != "correct"}
        assert values == chain.values
        own = sample.metadata["faithscope"]
        assert "".join(step["text"] for step in own["steps"]) == chain.chain.reasoning
        assert [step["scores"] for step in own["steps"]] == [dict(s.scores) for s in chain.steps]
    # results are means over the samples that have a score
    for log in logs:
        for result in log.results.scores:
            assert result.scored_samples + result.unscored_samples == len(log.samples)


@pytest.mark.slow
@of_chains
def test_datasets_are_loaded_from_the_folder(undisturbed: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the extra: faithscope[data]")
    chains = exported(undisturbed, "dataset", tmp_path / "data")
    loaded = datasets.load_dataset(
        str(tmp_path / "data"), "chains", split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded["chain_id"] == [chain.id for chain in chains]
    assert loaded["reasoning"] == [chain.chain.reasoning for chain in chains]
    run = load_run(undisturbed)
    assert loaded.column_names == hub_dataset.to_dataset(run).column_names
    for name in ("scores", *run.tables):
        frame = hub_dataset.configurations(run).get(name)
        if frame is not None:
            assert hub_dataset.to_dataset(run, name).num_rows == len(frame)
    # the file of the chains is a file of given chains
    read = read_chains(tmp_path / "data" / "chains.parquet", own_ids=False)
    assert read.format == "rows"
    assert [c.reasoning for c in read.chains] == [c.chain.reasoning for c in chains]
    assert [c.steps for c in read.chains] == [c.chain.steps for c in chains]


@every_run
def test_a_run_that_was_exported_is_still_finished(
    study: str, undisturbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("inspect_ai", reason="needs faithscope[inspect]")
    if study == toy.STUDY.name:
        assert refused("export", str(undisturbed), "--as", "inspect").count("no chains") == 1
        return
    before = sources(undisturbed)
    capsys.readouterr()
    assert execute(["export", str(undisturbed), "--as", "inspect"]) == 0
    assert capsys.readouterr().out.strip() == f"{undisturbed / 'exports' / 'inspect'}"
    # outputs are made from the same files as before
    assert sources(undisturbed)["files"] == before["files"]


class Hub(loopback.Handler):
    """The calls by which a dataset of the hub is made and written, for a hub that keeps all files
    in git."""

    server: HubServer

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/api/repos/create":
            self.server.made.append(json.loads(raw))
            self.send(200, {"url": f"{self.server.home}/datasets/me/mine", "id": "me/mine"})
        elif "/preupload/" in self.path:
            kept = {"uploadMode": "regular", "shouldIgnore": False}
            files = [{"path": f["path"], **kept} for f in json.loads(raw)["files"]]
            self.send(200, {"files": files})
        elif self.path == "/api/validate-yaml":
            self.send(200, {"errors": [], "warnings": []})
        else:
            lines = [json.loads(line) for line in raw.splitlines()]
            self.server.files |= {
                x["value"]["path"]: base64.b64decode(x["value"]["content"])
                for x in lines
                if x["key"] == "file"
            }
            self.send(200, {"commitUrl": f"{self.server.home}/c/0", "commitOid": "0" * 40})

    def do_GET(self) -> None:
        self.send(200, {"id": "me/mine", "sha": "0" * 40, "siblings": []})


class HubServer(loopback.Server):
    def __init__(self) -> None:
        super().__init__(Hub)
        self.home = self.url.removesuffix("/v1")
        self.made: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}


@pytest.mark.slow
def test_a_dataset_is_pushed_as_it_lies_in_the_folder(
    undisturbed_of: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("datasets", reason="needs the extra: faithscope[data]")
    from huggingface_hub import constants

    run, folder = undisturbed_of("judge"), tmp_path / "data"
    push = ["export", str(run), "--as", "dataset", "--out", str(folder), "--push", "me/mine"]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_planted")
    with HubServer() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.home)
        capsys.readouterr()
        assert execute(push) == 0
        assert capsys.readouterr().out.strip() == f"{hub.home}/datasets/me/mine"
    (made,) = hub.made
    assert (made["type"], made["visibility"]) == ("dataset", "private")
    assert hub.files == {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{loopback.free_port()}")
    assert "cannot be written on the hub" in refused(*push)
    assert "--push goes with --as dataset" in refused(*push[:3], "inspect", "--push", "me/mine")


@pytest.mark.slow
def test_what_cannot_be_exported_is_named(
    undisturbed_of: Callable[[str], Path], tmp_path: Path
) -> None:
    run = undisturbed_of("judge")
    said = refused("export", str(run), "--as", "inspct")
    assert "cannot export as 'inspct'; did you mean 'inspect'?" in said
    pytest.importorskip("datasets", reason="needs the extra: faithscope[data]")
    (tmp_path / "thesis.tex").write_text("mine")
    said = refused("export", str(run), "--as", "dataset", "--out", str(tmp_path))
    assert "holds 'thesis.tex', which no export wrote" in said
    with pytest.raises(UserError, match="has no data 'chain'; did you mean"):
        hub_dataset.to_dataset(load_run(run), "chain")
