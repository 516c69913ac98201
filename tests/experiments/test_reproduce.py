"""`faithscope reproduce`: printed tables beside stored runs and beside runs that it carries out."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from bad_input import said_by
from pages import Page, faults
from run_files import write_rows
from sample_records import Sample, records_of, sentiment_sample, write_run

from faithscope.experiments.analysis.published.runs import papers
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models.needs import needs
from faithscope.experiments.engine.units import read_unit

GPT = "api:openai/gpt-5.4"


def samples(model: str, n: int = 30, task: str = "sst2") -> list[Sample]:
    return [replace(sentiment_sample(i), model=model, dataset=task) for i in range(n)]


def stored(folder: Path, of: Sequence[Sample], config: str = "paper/slrc", *sets: str) -> Path:
    """A run folder with the records of readers whose behaviour is known, made by a shipped
    config."""
    run = write_run(folder, records_of(of, ("reprompt",), ("generated",)))
    values = [*sets, f"out={folder.parent}", f"name={folder.name}"]
    resolved = load_config(config, values, at_hand=False).model_dump(mode="json")
    (run / "config.yaml").write_text(yaml.safe_dump(resolved))
    return run


def cells(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    keys = list(rows[0])[1 : list(rows[0]).index("column") + 1]
    return {tuple(row[key] for key in keys): row for row in rows}


def necessity(of: Sequence[Sample]) -> float:
    """Share of the steps whose removal changes a reader's answer, asked directly."""
    flips = [
        sample.read([s for j, s in enumerate(sample.steps) if j != i]) != sample.read(sample.steps)
        for sample in of
        for i in range(len(sample.steps))
    ]
    return sum(flips) / len(flips)


def test_a_stored_run_gives_exact_cells(tmp_path: Path) -> None:
    of = samples(GPT)
    run = stored(tmp_path / "runs" / "gpt", of, "paper/slrc", "data.limit=30")
    said = said_by("reproduce", "slrc.table1", "--from", str(run))
    assert (said.code, said.err) == (0, "")
    path = run / "reproduced" / "slrc_table1.csv"
    assert said.out.splitlines()[-1] == str(path)
    cell = cells(path)["GPT-5.4", "SST-2", "", "Nec%"]
    assert float(cell["ours"]) == pytest.approx(100 * necessity(of), abs=1e-4)
    assert (float(cell["published"]), cell["n"], cell["run"]) == (0.1, "30", str(run))
    assert (cell["verdict"], cell["rule"]) == ("outside", "our interval")
    assert float(cell["difference"]) == pytest.approx(100 * necessity(of) - 0.1, abs=1e-4)
    assert cells(path)["GPT-5.4", "GSM8K", "", "Nec%"]["ours"] == ""
    assert "4 of 133 published cells measured" in said.out
    assert f"{run} differs: data.limit: this run: 30, the shipped config: 500" in said.out
    assert "DEVIATES" not in said.out
    assert {p.suffix for p in path.parent.iterdir()} == {".csv", ".md", ".tex", ".html"}
    assert faults(path.with_suffix(".html").read_text()) == []


@pytest.mark.parametrize(
    "setting",
    [
        "api.temperature=1.0",
        "steps.min_chars=0",
        "steps.segmentation=auto",
        "steps.conclusion=strip",
    ],
)
@pytest.mark.in_time(2)
def test_no_cell_looks_reproduced_where_the_run_deviates(tmp_path: Path, setting: str) -> None:
    run = stored(tmp_path / "gpt", samples(GPT), "paper/slrc", setting)
    said = said_by("reproduce", "slrc.table1", "--from", str(run))
    assert said.code == 0
    assert f"{run} DEVIATES: {setting.partition('=')[0]}: the paper (4." in said.out
    measured = [c for c in cells(run / "reproduced" / "slrc_table1.csv").values() if c["ours"]]
    assert len(measured) == 4
    assert {(c["verdict"], c["reason"]) for c in measured} == {
        ("not comparable", "the run deviates")
    }


def test_data_from_a_file_that_nothing_checks_is_said_with_the_verdict(tmp_path: Path) -> None:
    run = stored(tmp_path / "gpt", samples(GPT), "paper/slrc", "data.path=sst2.jsonl")
    said = said_by("reproduce", "slrc.table1", "--from", str(run))
    assert "outside (unchecked data), n 30" in said.out
    assert (
        "data.path: this run: sst2.jsonl, the shipped config: null (a copy of the data here"
        in said.out
    )
    page = Page((run / "reproduced" / "slrc_table1.html").read_text()).text
    assert "outside, unchecked data" in page


def test_the_same_model_of_another_service_counts_and_another_model_does_not(
    tmp_path: Path,
) -> None:
    azure, mine = "api:openai/o4-mini", "api:together/mine"
    run = stored(
        tmp_path / "two",
        [*samples(azure), *samples(mine)],
        "paper/slrc",
        f"model.name=[{azure},{mine}]",
    )
    assert said_by("reproduce", "slrc.table1", "--from", str(run)).code == 0
    of = cells(run / "reproduced" / "slrc_table1.csv")
    assert of["o4-mini", "SST-2", "", "Nec%"]["verdict"] in ("within", "outside")
    own = of[mine, "SST-2", "", "Nec%"]
    assert (own["published"], own["verdict"], own["why"]) == ("", "", "the paper has no such row")
    assert own["ours"]


def test_pooled_cells_are_never_called_within(tmp_path: Path) -> None:
    run = stored(tmp_path / "gpt", samples("api:openai-api/minimax/MiniMax-M2.5"))
    assert said_by("reproduce", "slrc.table5", "--from", str(run)).code == 0
    of = cells(run / "reproduced" / "slrc_table5.csv")
    cell = of["MiniMax-M2.5", "Faithful?"]
    assert (cell["published"], cell["ours"]) == ("SST-2", "No")
    assert (cell["verdict"], cell["reason"]) == ("not comparable", "another quantity")
    assert of["MiniMax-M2.5", "Total"]["ours"] == "", "sizes are never copied from the config"


def test_a_run_without_a_number_for_the_table_is_named_with_the_reason(tmp_path: Path) -> None:
    run = stored(tmp_path / "gpt", samples(GPT))
    said = said_by("reproduce", "slrc.table4", "--from", str(run))
    assert said.code == 3
    assert f"no number for this table from {run}: has no table 'attention'" in said.out
    assert "no number of ours stands in this table" in said.err
    said = said_by("reproduce", "slrc.table3", "--from", str(run))
    assert said.code == 3
    assert (
        "none of its rows is at a place of the table (task: sst2; model: api:openai/gpt-5.4)"
        in (said.out)
        or "none of its rows is at a place of the table (model: api:openai/gpt-5.4; task: sst2)"
        in (said.out)
    )


def test_a_damaged_run_is_passed_over_with_the_reason_and_edited_tables_change_nothing(
    tmp_path: Path,
) -> None:
    run, damaged = (stored(tmp_path / name, samples(GPT)) for name in ("gpt", "damaged"))
    alone = said_by("reproduce", "slrc.table1", "--from", str(run)).out.splitlines()
    (damaged / "input_report.json").write_text("[]")
    (run / "tables").mkdir()
    (run / "tables/slrc.csv").write_text(
        "model,task,n,necessity\napi:openai/gpt-5.4,sst2,9,0.001\n"
    )
    said = said_by("reproduce", "slrc.table1", "--from", str(run), str(damaged))
    assert said.code == 0
    assert f"no number for this table from {damaged}: {damaged}/input_report.json: is damaged" in (
        said.out
    )
    assert [line for line in alone if line.startswith("GPT-5.4 ")] == [
        line for line in said.out.splitlines() if line.startswith("GPT-5.4 ")
    ]


@pytest.mark.in_time(2)
@pytest.mark.parametrize(
    "edit",
    [{"steps": "three"}, {"removed": 3}, {"baseline": ["x"]}, {"question": None}, {"model": None}],
    ids=str,
)
def test_a_run_whose_records_were_edited_has_a_reason_and_hides_no_other(
    tmp_path: Path, edit: dict[str, object]
) -> None:
    run, edited = (stored(tmp_path / name, samples(GPT)) for name in ("gpt", "edited"))
    (path,) = (edited / "records").glob("*.jsonl")
    units = list(map(read_unit, path.read_bytes().splitlines()))
    for unit in units:
        unit.records[:] = [r | {k: v for k, v in edit.items() if k in r} for r in unit.records]
    path.write_bytes(b"".join(unit.to_line() for unit in units))
    said = said_by("reproduce", "slrc.table1", "--from", str(run), str(edited))
    assert said.code == 0, said.err
    assert f"no number for this table from {edited}: " in said.out
    assert [line for line in said.out.splitlines() if line.startswith("GPT-5.4 ")]


@pytest.mark.slow
def test_all_writes_every_table_and_a_page_that_counts_what_was_not_measured(
    tmp_path: Path,
) -> None:
    runs = tmp_path / "runs"
    stored(runs / "gpt", samples(GPT))
    (runs / "broken").mkdir()
    (runs / "broken" / "config.yaml").write_text("benchmark: nothing\n")
    said = said_by("reproduce", "all", "--from", str(runs))
    assert said.code == 0
    path = runs / "reproduced" / "report.html"
    assert said.out.splitlines()[-1] == str(path)
    tables = [f"{p.name}_{t.name}" for p in papers().values() for t in p.tables]
    assert {p.stem for p in path.parent.glob("*.csv")} == set(tables)
    text = Page(path.read_text()).text
    assert "published cells measured; the others: " in text
    assert faults(path.read_text()) == []
    assert "passed over: " in said.err
    assert "broken" in said.err
    assert said_by("reproduce", "all", "--from", str(runs)).code == 0, "reproduced/ is no run"


@pytest.mark.slow
def test_a_table_whose_config_is_of_another_study_is_carried_out(tmp_path: Path) -> None:
    small = (
        *("model.name=planted:mixture_50", "tasks=planted", "methods=[cosr]", "updates=1"),
        *("sampling.questions=2", "sampling.group=3", "sampling.max_new_tokens=40"),
        *("bound.chains=4", "measured_on=10", f"out={tmp_path}"),
    )
    sets = [word for setting in small for word in ("--set", setting)]
    said = said_by("reproduce", "slrc.table6", "--limit", "10", *sets)
    assert said.code == 0, said.err
    run = Path(said.out.splitlines()[-1])
    of = cells(run / "reproduced" / "slrc_table6.csv")
    own = of["planted:mixture_50", "CoSR", "Reward"]
    assert (own["published"], own["why"]) == ("", "the paper has no such row")
    assert -1 <= float(own["ours"]) <= 1
    assert of["R1-Qwen-1.5B", "CSR", "Time (hrs)"]["published"] == "6.900000"
    assert (
        "DEVIATES: tasks: this run: [planted], the shipped config: [gsm8k] (every cell pools"
        in said.out
    )
    told = "DEVIATES: updates: the paper (3.3): 50 training steps; this run: 1 "
    assert f"{told}(decides what the number is)" in said.out
    assert "differs: methods: 1 of the paper's 5 (each entry has rows of its own)" in said.out
    other = stored(tmp_path / "gpt", samples(GPT))
    said = said_by("reproduce", "slrc.table6", "--from", str(run), str(other))
    assert said.err == f"passed over: {other}: is a run of slrc\n"


def test_list_has_every_table_with_what_it_needs() -> None:
    short = said_by("reproduce", "list")
    assert short.code == 0
    for paper in papers().values():
        for table in paper.tables:
            assert f"{paper.name}.{table.name} " in short.out
    assert re.search(r"^slrc.table4 +60 +\w[^\n]+ \(lacks [^\n)]*GPU[^\n)]*\)$", short.out, re.M)
    assert re.search(r"^slrc.ed1 +4 +\w[^\n]+ \(no measure\)$", short.out, re.M)
    said = said_by("reproduce", "list", "slrc", "--long")
    assert "paper/slrc_attention (slrc.table4) needs" in said.out
    assert "train/table6 (slrc.table6) needs" in said.out
    assert "access to api:openai/gpt-5.4: LACKING: model 'openai/gpt-5.4': Unable" in said.out
    assert len([line for line in said.out.splitlines() if line.startswith("slrc.ed3 ")]) == 1


def test_needs_name_files_that_are_not_here(tmp_path: Path) -> None:
    config = tmp_path / "x.yaml"
    values = {"name": "x", "probes": ["slrc"], "model": {"name": "planted:hint"}}
    config.write_text(yaml.safe_dump(values | {"traces": {"path": "no/such.jsonl"}}))
    (need,) = needs(load_config(config, at_hand=False))
    assert (need.what, need.lacking) == (
        "what traces.path names",
        "'no/such.jsonl' is not here; name the file or folder: --set traces.path=…",
    )
    config.write_text(yaml.safe_dump(values | {"tasks": ["planted"]}))
    assert needs(load_config(config, at_hand=False)) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["slrc.tabel4"], "error: reproduce: no table 'slrc.tabel4'; did you mean 'slrc.table4'?"),
        (["slcr.table4"], "error: reproduce: no table 'slcr.table4'; did you mean 'slrc.table4'?"),
        (["nothing"], "error: reproduce: no table 'nothing'; there are slrc.table1, slrc.table2"),
        (["list", "slcr"], "error: no paper 'slcr'; did you mean 'slrc'?"),
        (["all"], "error: reproduce all: reads finished runs; name them: --from runs"),
        (["slrc.table4", "x"], "error: reproduce slrc.table4: 'x' is one thing too many"),
        (["slrc.table4", "--from", "no/such"], "error: no/such: no such run folder"),
        (
            ["slrc.table4", "--from", "x", "--limit", "3"],
            "error: reproduce slrc.table4 --from: --limit has no effect; leave it out",
        ),
        (["slrc.table4", "--set", "data.limt=3"], "error: --set data.limt=3: data.limt: unknown"),
    ],
)
def test_bad_input_is_one_line_with_the_remedy(arguments: list[str], expected: str) -> None:
    said = said_by("reproduce", *arguments)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1), said
    assert said.err.startswith(expected)


GSM8K = [
    {"question": "Ann has 3 boxes of 4 pens. How many pens?", "answer": "3 x 4 = 12\n#### 12"},
    {"question": "Bob has 9 pens and loses 2. How many pens?", "answer": "9 - 2 = 7\n#### 7"},
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "sets", "heading"),
    [
        ("table1", ("probes=[slrc]",), "GSM8K"),
        ("table4", ("model.quantize=null",), "GSM8K"),
        ("ed6", ("probes=[slrc]",), "GSM8K"),
    ],
)
def test_a_table_is_measured_here_and_resumed(
    tmp_path: Path, table: str, sets: Sequence[str], heading: str
) -> None:
    data = write_rows(tmp_path / "gsm8k.jsonl", *GSM8K)
    overrides = (
        *("model.name=bundled:smollm2-135m", "tasks=gsm8k", f"data.path={data}"),
        *("generation.max_new_tokens=96", f"out={tmp_path / 'runs'}", *sets),
    )
    command = ["reproduce", f"slrc.{table}", "--limit", "2"]
    command += [word for setting in overrides for word in ("--set", setting)]
    said = said_by(*command)
    assert said.code == 0, said.err
    run = Path(said.out.splitlines()[-1])
    path = run / "reproduced" / f"slrc_{table}.csv"
    own = {k: c for k, c in cells(path).items() if k[0] == "bundled:smollm2-135m"}
    assert own
    assert {k[1] for k in own} == {heading}
    assert all(float(c["planned"]) == 2 for c in own.values())
    published = [c for k, c in cells(path).items() if k not in own]
    assert {c["ours"] for c in published} == {""}
    before = path.read_bytes()
    again = said_by(*command)
    assert again.code == 0
    assert "is finished" in again.err
    assert path.read_bytes() == before
