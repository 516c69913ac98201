"""What holds of every table of every study: it is declared as it stands, and its numbers can be."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec

import pandas as pd
import pytest
from every_table import every_table, filled_tables
from processor_time import dear

from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.config.study import STUDIES
from faithscope.experiments.extras.injection.pairs import INJECTION
from faithscope.experiments.studies.slrc.detectors.tables import TABLES as OF_DETECTORS
from faithscope.experiments.studies.slrc.judges.tables import TABLES as OF_JUDGES

ROUNDING = 1e-9
ADDED = (("c2faith", INJECTION), *(("slrc", t) for t in (*OF_JUDGES, *OF_DETECTORS)))
"""Tables that extras add to studies, and those of judges and detectors."""
Tables = dict[str, dict[str, pd.DataFrame]]


@pytest.fixture(scope="module")
@dear
def empty() -> Tables:
    return every_table()


@pytest.fixture(scope="module")
@dear
def filled() -> Tables:
    return filled_tables()


def specifications() -> dict[tuple[str, str], Table]:
    """By study and name."""
    of_studies = {
        name: study.config().__module__.rpartition(".")[0]
        for name, study in STUDIES.items()
        # the tests have a study of their own
        if study.config().__module__.startswith("faithscope.")
    }
    return {
        (study, spec.name): spec
        for study, package in of_studies.items()
        for module in ("tables", "columns")
        if find_spec(f"{package}.{module}")
        for spec in getattr(import_module(f"{package}.{module}"), "TABLES", ())
        if isinstance(spec, Table)
    } | {(study, spec.name): spec for study, spec in ADDED}


def declared(study: str, table: str, column: str) -> Column | None:
    report = STUDIES[study].report()
    known = {**SHARED, **report.columns, **report.columns_of.get(table, {})}
    return known.get(column) or known.get(re.sub("_(low|high)$", "", column))


def each(tables: Tables) -> list[tuple[str, str, pd.DataFrame]]:
    return [(study, name, table) for study, of in tables.items() for name, table in of.items()]


def test_every_column_is_declared_with_its_meaning(empty: Tables, filled: Tables) -> None:
    columns = {
        (study, name, column)
        for tables in (empty, filled)
        for study, name, table in each(tables)
        for column in table.columns
        # a paper's layout has tasks and models for columns
        if not name.startswith("paper_")
    }
    without = [
        place
        for place in sorted(columns)
        if (column := declared(*place)) is None or not column.meaning
    ]
    assert without == []


def test_a_table_has_the_same_columns_with_and_without_rows(empty: Tables, filled: Tables) -> None:
    of_nothing = {(study, name): list(table.columns) for study, name, table in each(empty)}
    for study, name, table in each(filled):
        assert list(table.columns) == list(dict.fromkeys(table.columns)), name
        assert all(re.fullmatch(r"[a-z0-9_]+", c) for c in table.columns) or "paper" in name, name
        if "paper" not in name:
            assert list(table.columns) == of_nothing[study, name], name


def test_specifications_are_what_is_made(empty: Tables, filled: Tables) -> None:
    specs = specifications()
    assert {study for study, _ in specs} >= {"slrc", "compare"}
    for (study, name), spec in specs.items():
        assert list(filled[study][name].columns) == spec.header, name
        # a table of the paper's may be left out where nothing of its kind was run
        if name in empty[study] or not name.startswith("paper_"):
            assert list(empty[study][name].columns) == spec.header, name
        assert all(column.meaning for column in spec.columns), name


def test_intervals_hold_the_estimate(filled: Tables) -> None:
    held = 0
    for study, name, table in each(filled):
        for column in table.columns:
            low, high = f"{column}_low", f"{column}_high"
            if not {low, high} <= set(table.columns):
                continue
            known = table.dropna(subset=[column, low, high])
            held += len(known)
            assert (known[low] <= known[column] + ROUNDING).all(), (study, name, column)
            assert (known[high] >= known[column] - ROUNDING).all(), (study, name, column)
    assert held > 500


def test_shares_are_from_0_to_1(filled: Tables) -> None:
    shares = 0
    for study, name, table in each(filled):
        for column in table.columns:
            said = declared(study, name, column)
            if said is None or not re.match(r"(Share|AUROC|F1) (?!.*\bminus\b)", said.meaning):
                continue
            known = table[column].dropna().astype(float)
            shares += len(known)
            assert known.between(-ROUNDING, 1 + ROUNDING).all(), (study, name, column)
    assert shares > 500


def test_waterfalls_add_up(filled: Tables) -> None:
    """Every item counts in one row per stage of `exclusions` and in one column of a waterfall."""
    counted = 0
    for study, name, table in each(filled):
        if name == "exclusions" and len(table):
            keys = [c for c in table.columns if c not in ("reason", "n")]
            for place, of in table.groupby(keys, sort=False):
                n = of.set_index("reason")["n"]
                assert n["total"] == n.drop("total").sum(), (study, place)
                counted += 1
        if name.endswith("_waterfall"):
            parts = [c for c in table.columns if c.startswith("n_") and c != "n_total"]
            assert (table[parts].sum(axis=1) == table["n_total"]).all(), name
            counted += len(table)
    assert counted > 10
