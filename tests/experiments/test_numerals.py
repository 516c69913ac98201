"""Numbers have one dialect, and no other file formats decimals for readers."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

from faithscope.experiments import numerals as n

ROOT = Path(__file__).parents[2] / "experiments"
HOME = ROOT / "numerals.py"
DECIMALS = re.compile(r"[+,\d]*\.(\d+|\{.*\})?[aefg%]$", re.I)
IN_TEXT = re.compile(r"\{[^{}]*:[+,\d]*\.\d+[efg%]\}|%\.\d[efg]", re.I)
BARE = re.compile(r"(?:^|(?<=[\s(\[±]))[-−+]?\.[1-9]\d*\b")
"""A fraction without a zero before the point; levels of p, such as .05, are written so."""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (n.decimal(0.571), "0.57"),
        (n.decimal(-0.571), "−0.57"),
        (n.decimal(-0.001), "0.00"),
        (n.decimal(0.571, plus=True), "+0.57"),
        (n.decimal(-0.001, plus=True), "+0.00"),
        (n.decimal(math.nan), "–"),
        (n.decimal(-math.inf), "−∞"),
        (n.decimal(1, 3), "1.000"),
        (n.significant(0.0034567), "0.0035"),
        (n.significant(1234.5), "1,234"),
        (n.significant(0.5, 3), "0.5"),
        (n.significant(-120, 2), "−120"),
        (n.significant(0), "0"),
        (n.significant(9.96, 2), "10"),
        (n.significant(3e-7), "0.0000003"),
        (n.percent(0.571), "57 %"),
        (n.percent(-0.001), "0 %"),
        (n.percent(math.nan), "–"),
        (n.hundredths(0.5), "50"),
        (n.interval(0.4, 0.62), "[0.40, 0.62]"),
        (n.interval(-0.4, 0.62, plus=True), "[−0.40, +0.62]"),
        (n.interval(0.0, 0.0), ""),
        (n.interval(math.nan, 0.1), ""),
        (n.percent_interval(0.4, 0.62), "40–62 %"),
        (n.percent_interval(-0.4, 0.62), "−40 to 62 %"),
        (n.percent_interval(1.0, 1.0), ""),
        (n.estimate(0.5, 0.4, 0.62), "0.50 [0.40, 0.62]"),
        (n.estimate(0.0, 0.0, 0.0), "0.00"),
        (n.p_value(0.0004), "p < .001"),
        (n.p_value(0.0123), "p = .012"),
        (n.p_value(1.0), "p = 1.000"),
        (n.money(1234.5), "1,234.50"),
    ],
)
def test_a_number_is_written_in_one_way(written: str, expected: str) -> None:
    assert written == expected


def formats(tree: ast.AST) -> Iterator[ast.AST]:
    """Places that write decimals, or a minus sign, in a way of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            if DECIMALS.search(ast.unparse(node.format_spec)[2:-1]):
                yield node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if IN_TEXT.search(node.value):
                yield node
        elif isinstance(node, ast.Call):
            name = (
                node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            )
            words = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if name == "replace" and words[:2] == ["-", "−"]:
                yield node
            if name == "format" and words and DECIMALS.search(str(words[-1])):
                yield node


@pytest.mark.parametrize(
    "text",
    [
        "f'{x:.2f}'",
        "f'{x:+,.3g}'",
        "f'{x:.0%}'",
        "f'{x:.{digits}f}'",
        "'{:.2f}'.format",
        "'%.2f' % x",
        "format(x, '.1f')",
        "str(x).replace('-', '−')",
    ],
)
def test_a_format_is_seen(text: str) -> None:
    assert list(formats(ast.parse(text)))


def parsed(pattern: str) -> Iterator[tuple[str, ast.Module]]:
    """Name and content of each module in which a line matches, but the numerals themselves."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text("utf-8")
        if path != HOME and re.search(pattern, text):
            yield path.relative_to(ROOT).as_posix(), ast.parse(text)


EXCEPTIONS = {
    "analysis/explorer/data.py": "rounds numbers that a script reads",
    "analysis/html.py": "rounds the numbers by which a script sorts",
    "analysis/textual.py": "writes CSV files",
    "engine/progress.py": "a percentage of a fixed width, as progress bars have it",
}


def test_no_other_file_formats_decimals() -> None:
    modules = parsed(r":[+,\d]*\.[\d{]|%\.\d|replace\(\"-|format\(")
    found = {name: len(list(formats(tree))) for name, tree in modules}
    assert {name for name, of in found.items() if of} == EXCEPTIONS.keys()


def test_no_text_of_a_page_leaves_out_the_zero_before_a_point() -> None:
    found = []
    for name, tree in parsed(r"[\s(\[±][-−+]?\.\d"):
        docs = {ast.get_docstring(x, clean=False) for x in ast.walk(tree) if has_docstring(x)}
        docs |= {text_of(x) for x in ast.walk(tree)}
        texts = (x.value for x in ast.walk(tree) if isinstance(x, ast.Constant))
        words = (x for x in texts if isinstance(x, str) and x not in docs and " " in x)
        found += [f"{name}: {text}" for text in words if BARE.search(text)]
    assert found == []


def has_docstring(
    node: ast.AST,
) -> TypeGuard[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)


def text_of(node: ast.AST) -> object:
    """The text of a statement that is a text by itself, which explains the line above it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value
    return None
