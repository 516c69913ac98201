"""Faults of chains and measures without a value are said of every run, whatever it measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from sample_records import chain_sample, slrc_record, trace_record, write_run

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.config.keys import has_key
from faithscope.experiments.config.load import asked_of
from faithscope.experiments.config.study import STUDIES, Stage, study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.planfile import StoredItem, StoredPlan
from faithscope.experiments.engine.status import status
from faithscope.experiments.engine.tallies.chain_faults import COLUMNS, ChainFaults, lines
from faithscope.experiments.engine.tallies.input_report import FILE, InputReport
from faithscope.experiments.engine.tallies.tally import tally_of_run
from faithscope.experiments.studies.rfeval.stages import faults_of_output
from faithscope.probes import PROBES
from faithscope.probes.record import head

LOOP = "We add the two numbers. " * 8
FAULTS: dict[str, dict[str, Any]] = {
    "cut": {"finish": "length"},
    "repeating": {"pieces": [LOOP]},
    "answerless": {"answer": None},
    "degenerate": {"pieces": ["~~~ ### $$$ === >>> ///"]},
}
"""Fault of a chain -> fields of a trace that has it."""
SAID = (
    "chains: 1 of 5 cut at the token limit, 1 of 5 repeating the same text, 1 of 5 without an "
    "answer that could be read, 1 of 5 with hardly any words"
)
Record = dict[str, Any]


def traces() -> list[Record]:
    """A trace with each fault, and one without any."""
    made = [trace_record(chain_sample("faithful", i)) for i in range(len(FAULTS) + 1)]
    return [r | of for r, of in zip(made, [*FAULTS.values(), {}], strict=True)]


def record_of(trace: Mapping[str, Any], probe: str, **values: Any) -> Record:
    about = {name: trace[name] for name in ("dataset", "task", "item", "model")}
    return head(**about, probe=probe, seed=0) | values


def run_of(
    folder: Path, records: Sequence[Record], asked: Sequence[str] = (), **config: Any
) -> Path:
    """A finished run folder of these records, whose user named the config keys `asked`."""
    run_dir = write_run(folder / "run", records)
    stored = yaml.safe_load((run_dir / "config.yaml").read_text())
    text = yaml.safe_dump(stored | {"out": str(folder), "probes": []} | config)
    (run_dir / "config.yaml").write_text(text)
    index = load_run(run_dir).index
    units: dict[tuple[str, str, str], dict[str, str]] = {}
    for key, entry in index.places():
        units.setdefault(key[1:], {})[key[0]] = entry.unit
    items = [StoredItem(*at, of) for at, of in units.items()]
    planfile.write(run_dir, StoredPlan.of(items, 1))
    (run_dir / FILE).write_text(InputReport(asked=tuple(asked)).to_json())
    return run_dir


ONLY_WRITING = {"acausal", "rf_writing", "rf_validation", "option_shuffling", "edited_answers"}
"""Stages of benchmarks whose items a model writes, and of texts that detectors read."""
MEASURING = [
    pytest.param(name, stage, id=f"{name}-{stage.name}")
    for name, study in STUDIES.items()
    for stage in study.stages().values()
    if stage.measures and (stage.keys or name in ("slrc", "c2faith", "rfeval"))
]


@pytest.mark.parametrize(("study", "stage"), MEASURING)
def test_every_measure_says_by_which_config_key_it_is_asked_for(study: str, stage: Stage) -> None:
    assert stage.keys or stage.name in ONLY_WRITING
    for key in stage.keys:
        assert has_key(STUDIES[study].config(), key.split("."))


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_without_any_value_is_said_and_beside_it_the_faults_of_the_chains(
    tmp_path: Path, probe: str
) -> None:
    made = traces()
    excluded = [record_of(t, probe, excluded="no_room") for t in made]
    other = "direct" if probe != "direct" else "flow"
    measured = [record_of(t, other, value=1.0) for t in made]
    run_dir = run_of(tmp_path, [*made, *excluded, *measured], ["probes"], probes=[probe, other])
    tally = tally_of_run(run_dir)
    assert tally.lines() == [
        "5 of 5 items measured",
        SAID,
        f"{probe}: 0 of 5 measured; left out: 5 because no room in the model's positions",
        f"nothing was measured by {probe}, which probes asks for",
        "to change that: --set generation.max_new_tokens=N, a larger one",
    ]
    assert tally.falls_short
    assert status(run_dir).lines()[-5:] == tally.lines()
    (run_dir / FILE).write_text(InputReport().to_json())
    of_a_preset = tally_of_run(run_dir)
    assert not of_a_preset.falls_short
    assert of_a_preset.lines() == [line for line in tally.lines() if "asks for" not in line]


@pytest.mark.parametrize("probe", [name for name, of in PROBES.items() if of.reads_labels])
def test_a_probe_whose_labels_have_little_probability_measures_nothing(
    tmp_path: Path, probe: str
) -> None:
    made = traces()[-1:]
    low = [record_of(t, probe, excluded=None, label_mass=0.01) for t in made]
    run_dir = run_of(tmp_path, [*made, *low], probes=[probe])
    first, chains = tally_of_run(run_dir).lines()
    assert first == (
        "0 of 1 items measured; left out: 1 because the scored answers have too little probability"
    )
    assert chains == "chains: 1 of 1 after which the scored answers have too little probability"
    assert [r["excluded"] for r in load_run(run_dir).records(probe)] == ["low_label_mass"]
    assert load_run(run_dir).traces["low_label_mass"].tolist() == [True]
    kept = yaml.safe_load((run_dir / "config.yaml").read_text())
    kept["report"] = {"least_label_mass": 0.0}
    (run_dir / "config.yaml").write_text(yaml.safe_dump(kept))
    assert tally_of_run(run_dir).lines() == ["1 of 1 items measured"]
    assert load_run(run_dir).traces["low_label_mass"].tolist() == [False]


@pytest.fixture(scope="module")
def low(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with both readings of slrc, of which the scored one has too little label mass."""
    samples = [chain_sample("faithful", i) for i in range(2)]
    generated = [slrc_record(s, "prefix", "generated") for s in samples]
    scored = [slrc_record(s, "prefix", "scored") | {"label_mass": 0.01} for s in samples]
    records = [*map(trace_record, samples), *generated, *scored]
    folder = tmp_path_factory.mktemp("low")
    return run_of(folder, records, probes=["slrc"], report={"bootstrap": 20, "traces": 1})


REASON = "the scored answers have too little probability"


def test_a_variant_without_a_value_has_its_line(low: Path) -> None:
    assert tally_of_run(low).lines()[1:] == [
        f"chains: 2 of 2 after which {REASON}",
        f"slrc.prefix.scored: 0 of 2 measured; left out: 2 because {REASON}",
    ]


def test_an_item_is_shown_without_what_the_tables_leave_out(
    low: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_run(low)
    item = next(run.records("trace"))["item"]
    assert execute(["show", str(low), "--item", str(item)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"not measured by slrc.prefix.scored: {REASON}" in said
    assert "prefix, generated" in said
    assert "prefix, scored" not in said
    assert execute(["show", str(low), "--item", f"{item}x"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_exports_and_frames_leave_out_what_the_tables_leave_out(low: Path) -> None:
    run = load_run(low)
    items = study_of(stored_config(low)).report().scores(run).items
    of_scored = items[items["measure"].str.contains("scored") & (items["family"] != "label")]
    assert set(of_scored["missing"]) <= {"excluded: low_label_mass"}
    assert of_scored["value"].isna().all()
    assert set(run.measures["variant"].dropna()) == {"prefix.generated"}


@pytest.mark.slow
def test_the_page_begins_with_the_faults_of_chains(low: Path) -> None:
    assert execute(["report", str(low)]) == 0
    text = (low / "report.html").read_text("utf-8")
    for line in tally_of_run(low).lines():
        assert text.index("<h1>") < text.index(line) < text.index("<nav")


def test_the_frame_of_traces_has_a_column_per_fault(tmp_path: Path) -> None:
    frame = load_run(run_of(tmp_path, traces())).traces
    for i, fault in enumerate(FAULTS):
        of_item = frame[frame["item"] == traces()[i]["item"]]
        assert [name for name in COLUMNS if bool(of_item[name].to_numpy().all())] == [fault]


PARTS = ("reasoning", "text", "answer", "explanation")


@pytest.mark.parametrize(
    ("record", "faults"),
    [
        ({}, set()),
        ({"finish": "length"}, {"cut"}),
        ({"answer": ""}, set()),
        ({"answer": "", "explanation": ""}, {"answerless"}),
        ({"reasoning": LOOP}, {"repeating"}),
        (dict.fromkeys(PARTS, ""), {"answerless", "degenerate"}),
    ],
)
def test_an_output_of_rfeval_has_the_same_faults(record: Record, faults: set[str]) -> None:
    sound = {"finish": "stop", "reasoning": "He was away, so he cannot have done it."}
    sound |= {"text": "He was away.", "explanation": "He was away.", "answer": "B"}
    assert faults_of_output(sound | record) == faults


def test_of_several_models_and_tasks_each_with_faults_has_a_line() -> None:
    chains = {("m", "a"): ChainFaults(4, {"cut": 1}), ("m", "b"): ChainFaults(4, {"cut": 3})}
    told = ["chains of m on b: 3 of 4 cut at the token limit", "chains of m on a: 1 of 4 cut at"]
    assert [x[: len(y)] for x, y in zip(lines(chains), told, strict=True)] == told
    many = {("m", str(i)): ChainFaults(4, {"cut": 1}) for i in range(20)}
    assert "8 more pairs" in list(lines(many))[-1]


@pytest.mark.parametrize(
    ("config", "overrides", "presets", "asked"),
    [
        ("mechanistic", [], [], False),
        ("mechanistic", ["probes=[tracing]"], [], True),
        ("mechanistic", ["probes=[tracing]"], ["probes=[tracing]"], False),
        ("own", [], [], True),
        ("own", ["probes=[tracing]"], ["probes=[tracing]"], False),
    ],
)
def test_a_measure_is_named_by_its_user_in_an_own_file_or_with_set(
    tmp_path: Path, config: str, overrides: list[str], presets: list[str], asked: bool
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("name: own\nprobes: [tracing]\n")
    path = own if config == "own" else config
    assert ("probes" in asked_of(path, overrides, presets)) == asked
