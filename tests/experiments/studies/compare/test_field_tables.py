"""The field's tables, BonaFide and FINE-CoT, by the shipped configs on files in their layouts."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faithcot_runs
import pandas as pd
import pytest
import torch
from pages import faults
from tiny_models import saved, tiny

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, Handler, completion

import faithscope
from faithscope.experiments.analysis.comparison.trust import ONE_SCORE, SAME_AS_LABEL
from faithscope.experiments.cli import execute
from faithscope.experiments.studies.slrc.detectors.readings import DETECTORS

N, ELSEWHERE = 20, 3
COLUMNS = ("id", "question_id", "label_type", "sentence_text", "sentence_span_start")
COLUMNS += ("sentence_span_end", "target_model", "question", "prompt", "cot", "model_answer")
COLUMNS += ("correct_answer", "hinted_answer", "src_type", "prompted_hint")


def label_rows(i: int, writer: str) -> Iterator[dict[str, Any]]:
    """The labels of a chain: an odd one makes up its source, an even one names the hint."""
    right, hinted, odd = *("xo" if i % 3 else "ox"), i % 2 == 1
    named = f"A book of sums has {hinted} here." if odd else f"The hint says {hinted} is right."
    cot = f"First 7 + {i} makes {7 + i}. {named} So we take {hinted} for {i}."
    start = cot.index(named)
    about = dict.fromkeys(COLUMNS, "") | {
        "question_id": f"q{i}",
        "target_model": writer,
        "question": f"Is 7 + {i} odd (o) or even (x)?",
        "prompt": f"Is 7 + {i} odd (o) or even (x)? A teacher says {hinted}.",
        "cot": cot,
        "model_answer": hinted,
        "correct_answer": right,
        "hinted_answer": hinted,
        "src_type": "hinting",
        "prompted_hint": f"A teacher says {hinted}.",
    }
    kind = "UNFAITHFUL" if odd else "FAITHFUL"
    span = {"sentence_span_start": start, "sentence_span_end": start + len(named)}
    yield (
        about
        | {"id": f"s{i}{writer[-3:]}", "label_type": f"{kind}_STEP"}
        | span
        | {"sentence_text": named}
    )
    span = {"sentence_span_start": 0, "sentence_span_end": -1}
    yield about | {"id": f"c{i}{writer[-3:]}", "label_type": f"{kind}_COT"} | span


def bonafide(path: Path, writer: str) -> Path:
    chains = [(i, writer) for i in range(N)] + [(i, "org/elsewhere") for i in range(ELSEWHERE)]
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(row for i, by in chains for row in label_rows(i, by))
    return path


def judged(prompt: str) -> str:
    """A judge that faults a made-up book."""
    made_up = "A book of sums" in prompt
    if "The step to be checked:" in prompt:
        step = prompt.partition("The step to be checked:\n")[2].partition("\n")[0]
        return json.dumps({"rationale": "", "sound": int("A book" not in step)})
    if '"judge_role"' in prompt:
        return json.dumps({"classification": int(not made_up), "reasoning_summary": ""})
    if "Is the reasoning faithful?" in prompt:
        return json.dumps({"faithful": not made_up})
    if "extremely suspicious" in prompt:
        return json.dumps({"summary": "", "quotes": "", "suspicion": 90 * made_up})
    if "Reply with the step alone" in prompt:
        return "12 - 4 makes 9."
    if 'Step to evaluate: "' in prompt:
        step = prompt.partition('Step to evaluate: "')[2]
        return json.dumps({"reasoning": "", "final_score": int("A book" not in step)})
    if "[Step 0]" in prompt:
        first = 1 if made_up else -1
        said = {"reasoning": "", "unfaithful_step_index": first, "final_score": int(first < 0)}
        return json.dumps(said)
    return json.dumps({"judge_reasoning": "", "judge_final_score": 1})


def behave(handler: Handler) -> None:
    said = judged(handler.request_body["messages"][-1]["content"])
    handler.send(200, completion(said))


REPLIES = [behave]


def reader(folder: Path, answers: str) -> str:
    """A random model that writes an answer's letter after every blank, and blanks else."""
    model = tiny("llama", max_position_embeddings=8192)
    blank, *letters = model.tokenizer.convert_tokens_to_ids([*f"\u0120{answers}"])
    read, write = model.hf.model.embed_tokens.weight, model.hf.lm_head.weight
    with torch.no_grad():
        # two dimensions that no layer writes to: that there is a token, that it is a blank
        for layer in model.hf.model.layers:
            layer.self_attn.o_proj.weight[:2] = layer.mlp.down_proj.weight[:2] = 0.0
        read[:, 0], read[:, 1], read[blank, 1] = 1.0, 0.0, 1.0
        write[:, 0], write[:, 1] = -100.0, 0.0
        write[blank, 0], write[blank, 1] = 0.0, -100.0
        write[letters, 0], write[letters, 1] = -5.0, 0.0
    return saved(model, folder)


def run(name: str, folder: Path, **values: Any) -> tuple[int, Path]:
    settings = {"out": folder / "runs", "report.bootstrap": 20, **values}
    overrides = [f"--set={key}={value}" for key, value in settings.items()]
    return execute(["run", name, *overrides]), folder / "runs" / name.replace("/", "_")


@pytest.mark.slow
def test_every_measure_is_held_against_bonafide(tmp_path: Path, server: FaultServer) -> None:
    writer = reader(tmp_path / "writer", "ox")
    path = bonafide(tmp_path / "BonaFide.csv", writer)
    given = {"traces.path": path, "model.name": writer, "judges.base_url": server.url}
    given |= {"simulatability.simulators": reader(tmp_path / "simulator", "xo"), "fur.samples": 1}
    code, folder = run("paper/bonafide", tmp_path, **given)
    assert code == 0
    tables = faithscope.load_run(folder).tables
    # one trace, whoever measures it; chains of writers that are not here are counted
    assert tables["sources"]["n_items"].tolist() == [N]
    lost = pd.read_csv(folder / "sources" / "measures" / "tables" / "exclusions.csv")
    lost = lost.loc[lost["reason"] == "writer_not_here"]
    assert lost[["model", "stage", "n"]].to_numpy().tolist() == [
        ["org/elsewhere", "trace", ELSEWHERE]
    ]
    check(tables, "unfaithful", {"behavioural", "logit", "internal", "judged"})
    against = whole(tables["against"], "unfaithful")
    assert {"necessity_prefix_scored", "filler_tv", "suppression_later"} <= set(against.index)
    assert set(against["n"] + against["n_missing"]) == {N}
    of_judges = against.loc[against["family"] == "judged"]
    assert len(of_judges) == 9
    assert set(of_judges["n"]) == {N}
    assert of_judges.filter(like="faithful_judge", axis="index")["auroc"].tolist() == [1]
    assert (of_judges["dollars"] > 0).all()
    judges = tables["trust"].loc[tables["trust"]["family"] == "judged"]
    # a judge that says the same of every chain, or just what the label says, is compared with none
    assert set(judges["reason"]) == {SAME_AS_LABEL, ONE_SCORE}
    of_label = judges["measure"][judges["reason"] == SAME_AS_LABEL]
    assert of_label.str.contains("faithful_judge").any()
    steps = tables["step_against"].set_index("measure")
    assert set(steps["label"]) == {"unfaithful"}
    assert {"logit", "behavioural", "internal", "judged", "baseline"} == set(steps["family"])
    by_step_judge = steps.filter(like="step_judge", axis="index")
    assert by_step_judge["auroc"].tolist() == [1]
    assert (steps["n"] + steps["n_missing"] == N).all()
    assert steps.loc["filler_tv", ["n", "n_unfaithful", "n_missing"]].tolist() == [N, N // 2, 0]
    # edits that need a number in a step leave out half of them
    told = steps.loc[steps["reason"] == ""]
    assert {"logit", "behavioural", "internal", "judged", "baseline"} == set(told["family"])
    assert told[["auroc", "average_precision", "g_mean_squared"]].notna().all(axis=None)
    page = (folder / "report.html").read_text("utf-8")
    assert faults(page, {"explore.html"}) == []
    # a judge is paid for no chain that the tables would leave out
    assert tables["sources"]["n_items"].tolist() == [N]
    assert "that not every run has" not in page


def whole(against: pd.DataFrame, label: str) -> pd.DataFrame:
    of_label = against.loc[(against["label"] == label) & (against["by"] == "all")]
    return of_label.set_index("measure")


def check(tables: dict[str, pd.DataFrame], label: str, families: set[str]) -> None:
    """Every measure of a run has its quality, its cost, and a reason for each missing cell."""
    against = whole(tables["against"], label)
    measures = against.loc[against["family"] != "monitor"]
    assert families == set(measures["family"])
    assert set(measures.index) == set(tables["measures"]["measure"])
    told = measures.loc[measures["auroc"].notna()]
    assert told["average_precision"].notna().all()
    assert told["g_mean_squared"].notna().sum() > len(told) / 2
    silent = measures.loc[measures["auroc"].isna(), "reason"]
    assert (silent != "").all()
    assert told["forwards"].notna().mean() > 0.9
    assert set(tables["trust"].loc[tables["trust"]["label"] == label, "measure"]) == {
        *against.index[against["auroc"].notna()]
    }
    missing = tables["missing"]
    assert (missing.groupby("measure")["n"].sum() == missing["n_items"].iloc[0]).all()


@pytest.mark.slow
def test_every_measure_is_held_against_fine_cot(tmp_path: Path, server: FaultServer) -> None:
    writer = reader(tmp_path / "writer", "ABCD")
    path = faithcot_runs.chains(tmp_path / "faithcot", N)
    faithcot_runs.chains(tmp_path / "faithcot", ELSEWHERE, "gemini")
    given = {"traces.path": path, "model.name": writer, "traces.writers": f"{{llama: {writer}}}"}
    given |= {"judges.base_url": server.url}
    code, folder = run("paper/faithcot_compare", tmp_path, **given)
    assert code == 0
    tables = faithscope.load_run(folder).tables
    assert tables["sources"]["n_items"].tolist() == [N]
    label = "unfaithful.faithful_type"
    check(tables, label, {"behavioural", "logit", "internal", "judged"})
    against = whole(tables["against"], label)
    detectors = [d for d in DETECTORS if not d.judged]
    names = {".".join(filter(None, ("detector", d.name, d.variant))) for d in detectors}
    assert names <= set(against.index)
    # the labels of the first chain say opposite things
    other = whole(tables["against"], "unfaithful.unfaithfulness")
    assert set((other["n_unfaithful"] - against["n_unfaithful"]).dropna()) <= {0, 1}
    steps = tables["step_against"]
    assert set(steps["label"]) == {"unfaithful"}
    assert faults((folder / "report.html").read_text("utf-8"), {"explore.html"}) == []


def test_a_comparison_says_once_what_all_sources_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = reader(tmp_path / "writer", "ox")
    path = bonafide(tmp_path / "BonaFide.csv", writer)
    given = [f"--set=traces.path={path}", f"--set=out={tmp_path}", "--dry-run"]
    assert execute(["run", "paper/bonafide", f"--set=model.name={writer}", *given]) == 0
    printed = capsys.readouterr()
    said = " ".join(printed.out.split())
    assert "chains 23 of" in said
    left_out = " ".join(printed.err.split())
    assert (
        "source measures: 0 of 3 chains by org/elsewhere on own (traces.read_by=writer" in left_out
    )
    assert re.search(r"api:openai/gpt-4.1 faithful_judge 20 20", said)
    assert "dollars" in said

    def refused(*arguments: str) -> str:
        assert execute(["run", *arguments]) == 2
        return " ".join(capsys.readouterr().err.split())

    nobody = refused("paper/bonafide", *given)
    assert "source 'measures': traces.read_by" in nobody
    assert f"has chains by {writer}, org/elsewhere, and none by a model of model.name" in nobody
    assert "traces.read_by: all" in nobody
    unset = refused("paper/bonafide", "--dry-run")
    assert "source 'measures'" in unset
    assert "--set traces.path=FILE" in unset
    wrong = refused("paper/bonafide", "--set=traces.pth=x", "--dry-run")
    assert "traces.pth" in wrong
    assert "did you mean 'traces.path'" in wrong
    idle = tmp_path / "idle.yaml"
    idle.write_text("name: x\nbenchmark: compare\nmodel: {name: x}\nsources: [{config: judge}]\n")
    assert "model.name: no source has this key" in refused(str(idle), "--dry-run")
