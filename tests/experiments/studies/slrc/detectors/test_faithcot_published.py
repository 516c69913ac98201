"""FaithCoT-Bench's printed tables and figures beside chains made of the paper's own counts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from faithcot_printed import GEMINI, LLAMA, labels, verdicts

from faithscope.experiments.analysis.published import NumbersOfRun, beside, problems, read_cells
from faithscope.experiments.analysis.published.comparison import (
    DOUBTFUL,
    NOT_MEASURED,
    OUTSIDE,
    TOO_FEW,
    WITHIN,
    numbers_for,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models.needs import needs
from faithscope.experiments.studies.slrc.detectors.paper import PAPER
from faithscope.experiments.studies.slrc.detectors.tables import DETECTED, OF_LABELS

CELLS = read_cells(PAPER.cells)
OF_DETECTORS = ("table1", "table2", "table3")
FIGURES = [t.name for t in PAPER.tables if t.name not in OF_DETECTORS and t.config]
HOW = Bootstrap(0, 100)


@pytest.fixture(scope="module")
def made() -> dict[str, pd.DataFrame]:
    of_labels = make_tables(OF_LABELS, {"chains": labels()}, HOW)
    return {"detectors": DETECTED.make(verdicts(PAPER, CELLS), how=HOW)} | of_labels


def compared(name: str, made: dict[str, pd.DataFrame]) -> pd.DataFrame:
    published = PAPER.table(name)
    numbers = numbers_for(published, made)
    runs = [] if numbers is None else [NumbersOfRun("stored", numbers)]
    lines = beside(PAPER, published, CELLS, runs)
    return lines[lines["verdict"].notna()]


def check(lines: pd.DataFrame) -> None:
    """Every cell that is beyond doubt is within, and is ours to the last printed decimal."""
    for line in lines[~lines["reason"].isin([DOUBTFUL])].to_dict("records"):
        assert line["verdict"] == WITHIN, line
        cell = next(
            c
            for c in CELLS
            if (c.table, c.column) == (line["table"], line["column"])
            and all(line[key] == value for key, value in c.keys.items())
        )
        off = 0.5001 * 10**-cell.decimals
        assert line["ours"] == pytest.approx(cell.value, abs=off), line


def test_every_printed_heading_and_name_has_its_place() -> None:
    assert problems(PAPER) == []


@pytest.mark.parametrize(
    ("name", "cells", "doubtful"), [("table1", 152, 48), ("table2", 228, 35), ("table3", 228, 105)]
)
def test_verdicts_that_the_three_statistics_determine_give_the_whole_table(
    name: str, cells: int, doubtful: int, made: dict[str, pd.DataFrame]
) -> None:
    lines = compared(name, made)
    # of the impossible cells there is no number of ours either
    beyond_doubt = lines[~lines["reason"].isin([DOUBTFUL, NOT_MEASURED])]
    assert (len(lines), len(lines) - len(beyond_doubt)) == (cells, doubtful)
    check(beyond_doubt)
    doubted = {(*c.keys.values(), c.column) for c in CELLS if c.table == name and c.doubt}
    left = lines[lines["verdict"] != WITHIN]
    keys = ["dataset", "model", "detector", "column"]
    assert set(left[keys].itertuples(index=False, name=None)) == doubted


@pytest.mark.parametrize("name", FIGURES)
def test_labels_with_the_printed_counts_give_the_whole_figure(
    name: str, made: dict[str, pd.DataFrame]
) -> None:
    lines = compared(name, made)
    lost = lines[lines["published"].isna()]
    # φ and mutual information are given without an interval
    check(lines[lines["published"].notna() & (lines["reason"] != TOO_FEW)])
    assert set(lost["verdict"]) <= {"not comparable"}


def test_what_the_text_says_against_its_counts_stands_beside_them(
    made: dict[str, pd.DataFrame],
) -> None:
    others = compared("figure6a", made).set_index("column").loc["all but correct-faithful"]
    assert (others["published"], round(others["ours"], 1)) == (40, 48.9)
    assert others["reason"] == DOUBTFUL


def test_a_run_that_lacks_a_model_of_the_paper_pools_nothing(
    made: dict[str, pd.DataFrame],
) -> None:
    chains = labels()
    fewer = make_tables(OF_LABELS, {"chains": chains[chains["model"] != GEMINI]}, HOW)
    for name in ("figure5", "figure6a", "figure8", "figure10", "section3_2"):
        assert set(compared(name, fewer)["reason"]) == {NOT_MEASURED}
    by_model = compared("figure11", fewer).set_index(["model", "column"])
    assert by_model.loc[("LLaMA3.1-8B", "wrong-unfaithful"), "verdict"] == WITHIN


def test_only_chains_that_their_writer_reads_stand_beside_the_paper(
    made: dict[str, pd.DataFrame],
) -> None:
    table = made["detectors"]
    assert numbers_for(PAPER.table("table1"), {"detectors": table.assign(reader="other")}) is None
    # options that were not shuffled as in the paper
    ours = table.assign(main=table["detector"] != "option_shuffling")
    numbers = numbers_for(PAPER.table("table1"), {"detectors": ours})
    assert numbers is not None
    assert {*table["detector"]} - {*numbers["detector"]} == {"option_shuffling"}


def test_another_count_is_outside() -> None:
    chains = labels()
    turned = chains.index[(chains["model"] == LLAMA) & chains["unfaithful"].astype(bool)][:5]
    chains.loc[turned, "unfaithful"] = False
    fewer = make_tables(OF_LABELS, {"chains": chains}, HOW)
    lines = compared("figure11", fewer).set_index(["model", "column"])
    assert lines.loc[("GPT-4o-mini", "correct-faithful"), "verdict"] == WITHIN
    whole = compared("figure6a", fewer).set_index("column")
    assert OUTSIDE in set(whole["verdict"])


def test_the_archive_is_among_what_the_config_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sets = list(PAPER.table("figure9").sets)
    config = load_config("paper/fine_cot", sets, at_hand=False)
    (need,) = needs(config)
    assert need.lacking.startswith("'faithcot' is not here; name the file or folder: --set traces")
    (tmp_path / "faithcot").mkdir()
    (need,) = needs(config)
    assert (need.what, need.lacking) == ("what traces.path names", "")
