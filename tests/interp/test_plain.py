"""Text from elsewhere as it is shown, and as it is put into tables that spreadsheets open."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from faithscope.experiments.analysis.textual import to_csv
from faithscope.interp.plain import as_cell, from_cell, without_passwords


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    cell = as_cell(text)
    assert cell == f"'{text}"
    assert from_cell(str(cell)) == text
    table = pd.DataFrame({"answer": [text, "-12"], "n": [-1, 2], "x": [-0.5, 1.0]})
    back = pd.read_csv(io.StringIO(to_csv(table)), dtype={"answer": str})
    assert [from_cell(a) for a in back["answer"]] == [text.replace("\r", "\n"), "-12"]
    assert back["n"].tolist() == [-1, 2]
    assert back["x"].tolist() == [-0.5, 1.0]


@pytest.mark.parametrize("value", ["-12", "+3.5e-2", "a=b", "", "'quoted'", -3, None, 0.5])
def test_what_is_no_formula_stays(value: object) -> None:
    assert as_cell(value) == value
    assert not isinstance(value, str) or from_cell(value) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("base_url=https://me:pass@host/v1: no", "base_url=https://…@host/v1: no"),
        ("['http://key@host/v1']", "['http://…@host/v1']"),
        ("me:pass@host", "…@host"),
        ("https://host/v1?api_key=pass no", "https://host/v1?… no"),
        ("planted:hint at 12:30, a@b.c", "planted:hint at 12:30, a@b.c"),
    ],
)
def test_no_password_of_an_address_is_shown(text: str, shown: str) -> None:
    assert without_passwords(text) == shown
