"""Published cells of RFEval beside numbers of runs: which of them the paper's own tables determine,
which the released items do, and what makes a run incomparable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rf_benchmark import frame_of, items_of, reviews_of_the_paper
from rf_data import SHARED
from rf_frames import tables_of
from rf_posed import WORDS
from rf_published import INCLUDED, ITEMS, RF, TASK_NAMES, cells, grid

from faithscope.experiments.analysis.published import (
    NumbersOfRun,
    beside,
    deviations,
    problems,
    read_cells,
)
from faithscope.experiments.analysis.published.comparison import numbers_for
from faithscope.experiments.analysis.published.deviations import paper_config
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.config.load import load_config
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.paper import MODELS, PAPER, SOURCES
from faithscope.experiments.studies.rfeval.paper_rows import JUDGE, one_source
from faithscope.experiments.studies.rfeval.subjects.model_files import model_files
from faithscope.experiments.studies.rfeval.tables.benchmark import ITEMS as ITEMS_BY_SOURCE
from faithscope.experiments.studies.rfeval.tables.faithfulness import RFEVAL, WATERFALL
from faithscope.experiments.studies.rfeval.tables.filtering import FILTERING

SHIPPED_FILES = Path(__file__).parents[4] / "configs" / "models"
CELLS = read_cells(PAPER.cells)
FATES = {
    "Included": "",
    "Global Exclusion": "global",
    "Unfinished/Truncated": "unfinished",
    "Evaluation Error": "evaluation_error",
    "Non-Contrast": "non_contrast",
}


def compared(number: int, tables: Mapping[str, pd.DataFrame], **run: Any) -> pd.DataFrame:
    """The cells of a printed table beside the numbers of one run's tables."""
    published = PAPER.table(f"table{number}")
    rows = numbers_for(published, tables)
    runs = [] if rows is None else [NumbersOfRun("run", rows, **run)]
    return beside(PAPER, published, CELLS, runs)


def verdicts(table: pd.DataFrame) -> dict[str, int]:
    """Number of cells by verdict, and by reason where a cell is not comparable."""
    return (table["reason"].where(table["reason"] != "", table["verdict"])).value_counts().to_dict()


@pytest.fixture(scope="module")
def waterfall() -> dict[str, pd.DataFrame]:
    """Tables of pairs with the fates that Table 13 counts and the RF of Table 2, for each model."""
    tasks = np.repeat(list(ITEMS), list(ITEMS.values()))
    counts, models = grid(13, "model"), []
    for printed, model in MODELS.items():
        fates = [(FATES[head], int(counts[head][printed])) for head in FATES]
        # the paper reviews are the last items, and of one model they are excluded
        fates = sorted(fates, key=lambda fate: fate[0] == "global")
        exclusion = np.repeat([name for name, _ in fates], [n for _, n in fates])
        of = pd.DataFrame({"task": tasks, "exclusion": exclusion}).assign(model=model)
        n_faithful = round(INCLUDED[printed] * RF["Overall"][printed] / 100)
        models.append(of.assign(rf=(np.arange(len(of)) < n_faithful).astype(float)))
    pairs = pd.concat(models, ignore_index=True).assign(
        reader=JUDGE, framing="prefix", in_coverage=True, baseline_chi=1.0
    )
    contrast = (pairs["exclusion"] == "").astype(float)
    pairs = pairs.assign(contrast=contrast, intervened_chi=1.0, kappa=1.0)
    return make_tables((RFEVAL, WATERFALL), {"pairs": pairs})


def test_the_specification_fits_the_cells() -> None:
    assert problems(PAPER) == []
    assert len(CELLS) == len(read_cells(PAPER.cells)) == 1058
    hours = {MODELS[model]: n for model, n in zip(*hours_of_models(), strict=True)}
    for table in PAPER.tables:
        if table.hours and not table.hours_from.startswith("Estimate"):
            of_config = paper_config(table)["model"]["name"]
            assert table.hours == sum(hours[model] for model in of_config), table.name


def hours_of_models() -> tuple[Sequence[str], Sequence[float]]:
    of = cells(12, "H100 hrs")
    return of["model"].tolist(), of["number"].tolist()


def test_models_are_the_shipped_ones_under_the_papers_names() -> None:
    labels = {file.label: name for name, file in model_files(SHIPPED_FILES).items()}
    assert MODELS.items() <= labels.items()
    assert list(MODELS.values()) == load_config("paper/rfeval", at_hand=False).model.name


def test_every_cell_of_table_13_is_within_the_counts_that_it_determines(
    waterfall: dict[str, pd.DataFrame],
) -> None:
    table = compared(13, waterfall)
    assert verdicts(table) == {"within": 72}
    assert (table["difference"] == 0).all()


def test_table_13_determines_the_overall_coverage_of_table_2(
    waterfall: dict[str, pd.DataFrame],
) -> None:
    """Seven models come out within. Of five the paper prints coverage of fewer pairs, and these
    cells are doubtful; Qwen3-8B's RF is too, which has its paper reviews in it."""
    overall = compared(2, waterfall).query("task == 'Overall'")
    overall = overall[overall["model"] != "Overall"]
    assert verdicts(overall[overall["column"] == "c"]) == {"within": 7, "doubtful in the paper": 5}
    assert verdicts(overall[overall["column"] == "RF"]) == {
        "within": 11,
        "doubtful in the paper": 1,
    }
    assert set(overall["rule"].dropna()) - {""} == {"both samples"}


def test_tables_5_and_6_are_determined_by_shares_and_counts() -> None:
    labels = reviews_of_the_paper()
    made = tables_of(annotations=pd.DataFrame(labels), items=items_of(labels))
    assert verdicts(compared(5, made)) == {
        "within": 20,
        "too few cases": 8,
        "doubtful in the paper": 4,
    }
    # ends of intervals have none of their own
    assert verdicts(compared(6, made)) == {
        "within": 21,
        "too few cases": 14,
        "doubtful in the paper": 5,
    }
    assert verdicts(compared(7, made)) == {"doubtful in the paper": 7}


def test_table_9_determines_tables_8_and_1() -> None:
    by_source = grid(9, "row")
    task = dict(zip(cells(9)["row"], cells(9)["task"], strict=True))
    rows = [
        dict.fromkeys(FILTERING.header, 0)
        | {"task": TASK_NAMES[task[name]], "source": SOURCES[name], "n_problems": counts.iloc[0]}
        | {"n_removed": counts.iloc[1], "n_kept": counts.iloc[2]}
        for name, counts in by_source.astype(int).iterrows()
    ]
    made = tables_of(filtering=pd.DataFrame(rows))
    assert verdicts(compared(9, made)) == {"within": 33}
    assert verdicts(compared(8, made)) == {"within": 24}
    kept = pd.DataFrame(
        [
            {"task": row["task"], "item": f"{row['source']}/{i}", "source": row["source"]}
            | dict.fromkeys(("question", "options", "context", "r_prime"), "x")
            | {"stances": "correct | incorrect | I don't know"}
            for row in rows
            for i in range(row["n_kept"])
        ]
    )
    items = make_tables([ITEMS_BY_SOURCE], {"items": kept})
    assert verdicts(compared(1, items)) == {"within": 8}


def test_a_count_of_a_run_of_fewer_items_is_not_called_outside(
    waterfall: dict[str, pd.DataFrame],
) -> None:
    run = load_config("paper/rfeval", ["data.limit=20"], at_hand=False).model_dump(mode="json")
    table = PAPER.table("table13")
    of = deviations(PAPER, table, run, paper_config(table))
    assert {d.key: d.decides for d in of} == {"data.limit": False, "prompts": False}
    assert verdicts(compared(13, waterfall, deviations=of)) == {"another quantity": 72}


@pytest.mark.parametrize(
    ("changes", "decides"),
    [
        (["model.name=[Qwen/Qwen3-32B]", "report.exclude=[]", "data.tasks=[paper_review]"], []),
        (["generate.backend=here", "generate.batch_size=2", "spend.max_cost=5"], []),
        (["judge.model=api:openai/gpt-5"], ["judge.model"]),
        (["naming=letters"], ["naming"]),
        (["model.quantize=4bit"], ["model.quantize"]),
        (["paper_compat=true"], []),
    ],
)
def test_what_makes_a_run_another_measurement(changes: list[str], decides: list[str]) -> None:
    run = load_config("paper/rfeval", changes, at_hand=False).model_dump(mode="json")
    table = PAPER.table("table2")
    found = deviations(PAPER, table, run, paper_config(table))
    assert [d.key for d in found if d.decides] == decides


def without(tables: Mapping[str, pd.DataFrame], **values: str) -> dict[str, pd.DataFrame]:
    """The tables of a run without a model or a task; rows that pool stay as they are."""
    return {
        name: table[np.all([table[key] != value for key, value in values.items()], axis=0)]
        for name, table in tables.items()
    }


def pooled_cells(table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    there = table[table["ours"].notna()]
    of = there[(there["model"] == "Overall") | (there["task"] == "Overall")]
    yield from zip(of["model"], of["task"], strict=True)


def test_rows_that_pool_need_all_that_the_paper_pools(waterfall: dict[str, pd.DataFrame]) -> None:
    everything = set(pooled_cells(compared(2, waterfall)))
    assert len(everything) == 12 + 8
    fewer = compared(2, without(waterfall, model=MODELS["MiMo-RL"]))
    assert set(pooled_cells(fewer)) == {(m, "Overall") for m in MODELS if m != "MiMo-RL"}
    fewer = compared(2, without(waterfall, task="legal_decision"))
    assert {m for m, t in pooled_cells(fewer) if t == "Overall"} == set()
    assert len({t for m, t in pooled_cells(fewer) if m == "Overall"}) == 6
    # the paper reviews of Qwen3-8B, not excluded
    table = waterfall[WATERFALL.name]
    kept = waterfall | {WATERFALL.name: table.assign(n_global=0)}
    rows = set(pooled_cells(compared(2, kept)))
    assert ("Qwen3-8B", "Overall") not in rows
    assert ("Qwen3-32B", "Overall") in rows
    assert {t for m, t in rows if m == "Overall"} == {"CG", "MR", "LR", "TR", "CU", "LD"}


def test_another_judge_is_shown_and_not_compared(waterfall: dict[str, pd.DataFrame]) -> None:
    two = {
        name: pd.concat([table.assign(reader="planted:faithful"), table])
        for name, table in waterfall.items()
    }
    assert compared(13, two)["ours"].tolist() == compared(13, waterfall)["ours"].tolist()
    assert verdicts(compared(13, two)) == {"within": 72}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real rows are not beside this checkout")
def test_released_items_have_the_stances_of_table_15() -> None:
    """The released items lack the "maybe" of context understanding; paper review is not here."""
    items, _ = read_rfeval(SHARED, [task for task in TASKS if task != "paper_review"])
    assert {one_source(item.source) for item in items} == {*SOURCES.values()} - {"peerread"}
    posed = [item.posed(WORDS, "paper") for item in items]
    made = tables_of(items=frame_of(posed))
    table = compared(15, made).set_index("task")
    assert verdicts(table) == {"within": 5, "outside": 1, "not measured": 1}
    assert table.loc["Context Understanding", ["published", "ours"]].tolist() == [
        "yes, no, maybe",
        "yes, no",
    ]
