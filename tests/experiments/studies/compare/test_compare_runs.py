"""`faithscope compare` of real runs of planted models: what it joins, says, refuses and repeats."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from bad_input import refused
from pages import faults
from processor_time import dear
from run_files import write_yaml

import faithscope
from faithscope.experiments.analysis.comparison.scores_vs_labels import NOT_WITHIN
from faithscope.experiments.analysis.page import fragments
from faithscope.experiments.cli import execute, terminal
from faithscope.experiments.engine.index import Index

SHARED = {
    "model.name": ["planted:faithful", "planted:hint", "planted:decorative"],
    "tasks": ["planted"],
    "data.limit": 8,
    "generation.max_new_tokens": 256,
    "generation.batch_size": 24,
    "report.bootstrap": 20,
}
BEHAVIOUR = {"probes": ["slrc"], "slrc.framings": ["prefix"], "slrc.edits": ["remove", "corrupt"]}
QUICK = {"bootstrap": 20, "folds": 4}
INTERNALS = {"probes": ["attention", "tracing", "rigidity"]}


def made(folder: Path, **values: Any) -> Path:
    """A config of a comparison that makes two runs of the same traces."""
    sources = [
        {"name": "behaviour", "config": "planted", "set": SHARED | BEHAVIOUR},
        {"name": "internals", "config": "planted", "set": SHARED | INTERNALS},
    ]
    config = {"name": "both", "benchmark": "compare", "out": str(folder / "runs")}
    config |= {"sources": sources, "report": QUICK} | values
    return write_yaml(folder / "both.yaml", config)


@pytest.fixture(scope="module")
@dear
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison that one command made from nothing."""
    folder = tmp_path_factory.mktemp("compare")
    assert execute(["run", str(made(folder))]) == 0
    return folder / "runs" / "both"


@pytest.fixture(scope="module")
def joined(both: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of the same two runs that was made by their names."""
    into = tmp_path_factory.mktemp("joined") / "c"
    faithscope.compare(_runs(both), into, report=QUICK)
    return into


def _runs(both: Path) -> list[Path]:
    return [both / "sources" / name for name in ("behaviour", "internals")]


def files(folder: Path) -> dict[str, bytes]:
    names = [p for kind in ("tables", "figures", "frames") for p in (folder / kind).iterdir()]
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(names)}


def untimed(folder: Path) -> dict[str, bytes]:
    """Tables and the numbers of figures, but for those with seconds, which clocks decide."""
    texts = {
        p: p.read_bytes() for kind in ("tables", "figures") for p in folder.glob(f"{kind}/*.csv")
    }
    return {
        f"{path.parent.name}/{path.name}": text
        for path, text in sorted(texts.items())
        if b"second" not in text and b"per_" not in text.partition(b"\n")[0]
    }


@pytest.mark.takes("a comparison of two runs")
def test_one_command_makes_the_runs_and_ends_in_the_page(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = faithscope.load_run(both)
    tables = run.tables
    assert tables["sources"]["n_items"].tolist() == [24, 24]
    assert tables["joins"]["n_joined"].tolist() == [24]
    assert set(run.items["family"]) == {"behavioural", "logit", "internal", "label"}
    assert run.traces["settled"].notna().all()
    trust = tables["trust"].set_index("measure")
    # what was planted: the answer follows corrupted steps of the faithful model alone
    assert trust.loc["corrupt_tv_prefix_scored", "pooled"] == 1
    assert trust.loc["rigidity_depth", "pooled"] == 0
    # all traces of one planted model are of one kind: within a model there is nothing to tell
    assert trust["auroc"].isna().all()
    assert set(trust["reason"]) == {NOT_WITHIN}
    assert trust.loc["attention_reasoning", "forwards"] == 1
    page = (both / "report.html").read_text("utf-8")
    assert faults(page, ["explore.html"]) == []
    assert faults((both / "explore.html").read_text("utf-8"), ["report.html"]) == []
    first, trust = page.split("<h2")[1:3]
    assert "pairs of measures of two kinds of evidence go together beyond chance" in first
    assert 'aria-labelledby="families-title"' in first
    assert "measures are not ranked, since" in trust
    # a notebook and a terminal show the finding with its picture, too
    finding, picture = run.overview
    assert str(finding) in first
    assert "<svg" in fragments([[picture]])[0]
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(terminal, "load_run", lambda path: run)
        assert execute(["show", str(both)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"behaviour +log-probabilities", out)
    assert re.search(r"internals +\d+ of \d+", out)
    source = _runs(both)[0]
    assert "name an item: faithscope show" in refused("show", str(source))
    assert "It costs" not in trust
    assert "are a glance" in trust
    assert "<code>planted_faithful</code> is 1 counts as one that the label speaks for" in page
    assert "does not vary within any model and task" in trust


@pytest.mark.slow
def test_what_is_made_is_not_made_again_and_what_is_gone_is(
    both: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = files(both)
    path = str(both.parents[1] / "both.yaml")
    assert execute(["run", path]) == 0
    assert "loading" not in capfd.readouterr().err
    assert files(both) == before
    assert execute(["status", str(both)]) == 0
    assert "complete" in capfd.readouterr().out
    # a killed comparison has one source and a part of the next
    (both / "records" / "source.main.jsonl").unlink()
    torn = both / "sources" / "internals" / "records" / "tracing.main.jsonl"
    torn.write_bytes(b"".join(torn.read_bytes().splitlines(keepends=True)[:-3]))
    assert execute(["run", path]) == 0
    assert "loading" in capfd.readouterr().err
    assert len(Index.of(both)) == 2
    changed = {name for name, text in files(both).items() if text != before[name]}
    # the seconds of what was done again, and nothing else
    timed = {p for p in before if "second" in before[p].decode("utf-8", "replace")[:4000]}
    assert changed <= timed | {p for p in before if "front" in p}


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes_whoever_asks(
    both: Path, joined: Path, tmp_path: Path
) -> None:
    into = tmp_path / "c"
    faithscope.compare([str(run) for run in _runs(both)], into, report=QUICK)
    assert files(into) == files(joined)
    config = yaml.safe_load((into / "config.yaml").read_text())
    assert all(len(source["digest"]) == 16 for source in config["sources"])
    assert execute(["report", str(into)]) == 0
    assert files(into) == files(joined)


@pytest.mark.slow
def test_labels_of_a_file_take_part(both: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    frame = faithscope.load_run(both).traces
    chosen = frame.loc[frame["model"] == "planted:hint"]
    odd = chosen["item"].str[-1].astype(int) % 2
    labels.write_text(chosen[["model", "item"]].assign(unfaithful=odd).to_csv(index=False))
    behaviour = both / "sources" / "behaviour"
    run = faithscope.compare([behaviour], tmp_path / "c", labels=labels, report=QUICK)
    against = run.tables["against"]
    of_file = against.loc[(against["label"] == "unfaithful") & (against["by"] == "all")]
    assert set(of_file["n"]) == {8}
    assert set(of_file["n_unfaithful"]) == {4}


@pytest.mark.slow
def test_an_unfinished_source_is_said(both: Path, tmp_path: Path) -> None:
    part = Path(shutil.copytree(both / "sources" / "internals", tmp_path / "part"))
    records = part / "records" / "rigidity.main.jsonl"
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:10]))
    run = faithscope.compare([both / "sources" / "behaviour", part], tmp_path / "c", report=QUICK)
    assert run.tables["sources"]["n_unfinished"].tolist() == [0, 14]
    missing = run.tables["missing"].set_index(["measure", "reason"])["n"]
    assert missing["rigidity_depth", "not_run"] == 14
    assert "part is unfinished: 14 of its items" in (tmp_path / "c/report.html").read_text("utf-8")


@pytest.mark.slow
def test_a_judge_of_the_same_traces_stands_in_their_rows(
    both: Path, tmp_path: Path, plain: str
) -> None:
    behaviour = both / "sources" / "behaviour"
    judges = {"model": plain, "readings": ["scored"], "forms": ["step_judge"]}
    config = {"name": "judged", "out": str(tmp_path), "traces": {"path": str(behaviour)}}
    config |= {"judges": judges, "report": {"bootstrap": 20}}
    (tmp_path / "judge.yaml").write_text(yaml.safe_dump(config))
    assert execute(["run", str(tmp_path / "judge.yaml")]) == 0
    run = faithscope.compare([behaviour, tmp_path / "judged"], tmp_path / "c", report=QUICK)
    (row,) = run.tables["joins"].to_dict("records")
    # a judge reads texts, and has no token ids of the model's
    assert (row["n_common"], row["n_same_ids"], row["n_same_text"], row["n_joined"]) == (
        *(24, 0, 24, 24),
    )
    assert set(run.traces["task"]) == {"planted"}
    assert "judged" in set(run.items["family"])
    assert run.tables["disagreements"]["n_items"].tolist()[:2] == [
        0,
        0,
    ]  # no insides were looked into


def test_what_cannot_be_compared_is_refused_with_the_remedy(both: Path, tmp_path: Path) -> None:
    behaviour, internals = (str(both / "sources" / n) for n in ("behaviour", "internals"))
    into = ["--into", str(tmp_path / "c")]
    near = refused("compare", f"{behaviour}x", *into)
    assert "no such run folder; did you mean" in near
    other = refused("compare", both, *into)
    assert "is a run of 'compare', which has no scores of traces to compare" in other
    assert "same: must be one of ids, text" in refused(
        "compare", behaviour, "--same", "words", *into
    )
    twice = refused("compare", behaviour, both / "sources" / ".." / "sources" / "behaviour", *into)
    assert f"two sources are the run '{behaviour}'; take one of them out" in twice
    gone = refused("compare", behaviour, "--labels", "gone.csv", *into)
    assert "gone.csv: no such file" in gone
    moved = Path(shutil.copytree(internals, tmp_path / "others"))
    for path in moved.rglob("*.jsonl"):
        path.unlink()
    assert "no item is in two of these runs" in refused("compare", behaviour, moved, *into)
    assert not (tmp_path / "c" / "config.yaml").exists()
    config = made(tmp_path, sources=[{"config": "planted", "run": behaviour}])
    assert "give either run" in refused("run", config)
    config = made(tmp_path, sources=[{"config": "planted", "set": {"seed": "source:later"}}])
    assert "no source before it is called 'later'" in refused("run", config)
    config = made(tmp_path, sources=[{"config": "compare"}])
    assert "is itself a comparison" in refused("run", config)


@pytest.mark.slow
def test_a_comparison_writes_over_nothing(both: Path, joined: Path, tmp_path: Path) -> None:
    behaviour, internals = _runs(both)
    into = Path(shutil.copytree(joined, tmp_path / "c"))
    before = files(into)
    other = refused("compare", behaviour, "--into", str(into))
    assert "holds another comparison" in other
    assert "--into DIR" in other
    assert "same" in refused("compare", behaviour, internals, "--into", into, "--same", "question")
    assert files(into) == before
    faithscope.compare([behaviour, internals], into, report=QUICK)
    assert files(into) == before
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    assert "something else" in refused("compare", behaviour, "--into", tmp_path / "notes")


def test_wrong_labels_are_said_before_the_work(both: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("item,unfaithful\nplanted-000,perhaps\n")
    behaviour = both / "sources" / "behaviour"
    said = refused("compare", behaviour, "--labels", labels, "--into", tmp_path / "c")
    assert "'perhaps' is no label" in said
    assert not (tmp_path / "c").exists()
    path = made(tmp_path, name="new", labels={"path": str(labels)})
    assert "'perhaps' is no label" in refused("run", path, "--dry-run")
    labels.write_text("item,unfaithful\nnot-there,1\n")
    said = refused("compare", behaviour, "--labels", labels, "--into", tmp_path / "c")
    assert "none of 1 is of a trace of these runs" in said
    assert "writing" not in said
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_two_shards_and_a_merge_give_the_tables_of_one_process(
    tmp_path: Path, plain: str, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ["planted:faithful", "planted:hint"]
    few = SHARED | {"model.name": names, "generation.batch_size": 2, "data.limit": 5}
    judge = {"traces.path": "source:behaviour", "judges.model": plain, "judges.readings": "scored"}
    sources = [
        {"name": "behaviour", "config": "planted", "set": few | BEHAVIOUR},
        {"name": "judged", "config": "judge", "set": judge | {"judges.forms": ["faithful_judge"]}},
    ]
    path = str(made(tmp_path, sources=sources))
    folder = tmp_path / "runs" / "both"
    assert execute(["run", path]) == 0
    folder.rename(tmp_path / "whole")

    def shard(k: int) -> int:
        return execute(["run", path, "--shard", f"{k}/2"])

    assert shard(1) == 130
    assert (
        "stopped: source judged: reads all of behaviour, of which other" in capfd.readouterr().err
    )
    assert "behaviour: part 2/2 lacks 5 of 5 items" in refused("merge", folder)
    assert shard(2) == 0
    gaps = refused("merge", folder)
    assert "judged: part 1/2 lacks" in gaps
    assert gaps.endswith(f"faithscope run {folder}/config.yaml --shard 1/2")
    assert shard(1) == 0
    assert execute(["merge", str(folder)]) == 0
    assert "--into" in refused("merge", folder, "--into", tmp_path / "m")
    for part in (".", "sources/behaviour", "sources/judged"):
        assert untimed(folder / part) == untimed(tmp_path / "whole" / part) != {}
        assert (folder / part / "report.html").is_file()


@pytest.mark.slow
def test_two_hundred_planted_traces_are_compared(tmp_path: Path) -> None:
    values = SHARED | BEHAVIOUR | {"data.limit": 70, "generation.batch_size": 70}
    values["probes"] = ["slrc", "attention", "tracing", "rigidity", "flow", "linear_probe"]
    path = made(tmp_path, sources=[{"name": "all", "config": "planted", "set": values}])
    assert execute(["run", str(path)]) == 0
    tables = faithscope.load_run(tmp_path / "runs" / "both").tables
    assert tables["sources"]["n_items"].tolist() == [210]
    assert "monitor: hidden_state" in set(tables["against"]["measure"])
    # the label is the model's: nothing is combined, whichever way the folds are made
    reasons = tables["combined"]["reason"]
    assert reasons.notna().all()
    assert NOT_WITHIN in set(reasons)
    assert isinstance(tables["agreement"], pd.DataFrame)
    assert tables["agreement"]["reversed"].any()
