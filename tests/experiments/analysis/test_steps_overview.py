"""Chains of many steps on a page: a strip of colours, a search, and folds between the steps that
have the most to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser

from faithscope.experiments.analysis.html import asset, style
from faithscope.experiments.analysis.page import Step, Steps, fragments

SHOWN = 'document.querySelectorAll(".steps > li:not([hidden]):not(.fold)").length'
SAID = 'document.querySelector(".overview span").textContent'


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


def page(folder: Path, n: int, levels: dict[int, str]) -> Path:
    steps = [Step(f"This is step word{i} .", i + 1, levels.get(i, "unknown")) for i in range(n)]
    (html,) = fragments([[Steps(steps)]])
    path = folder / "page.html"
    sheet, script = style(), asset("steps.js") + asset("report.js")
    path.write_text(
        f"<!doctype html><meta charset=utf-8><style>{sheet}</style>{html}<script>{script}</script>",
        encoding="utf-8",
    )
    return path


def find(chromium: Browser, words: str) -> None:
    chromium.evaluate(
        f'(() => {{ const f = document.querySelector(".overview input"); f.value = "{words}"; '
        'f.dispatchEvent(new Event("input")); })()'
    )


def test_many_steps_are_folded_found_and_shown(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(page(tmp_path, 300, {50: "all", 120: "none", 121: "some"}))
    # four at each end, the measured three, and the ones before two of them
    assert chromium.evaluate(SHOWN) == 8 + 3 + 2
    assert "300 steps, 3 measured" in chromium.evaluate(SAID)
    chromium.evaluate('document.querySelector(".fold button").click()')
    assert chromium.evaluate(SHOWN) == 8 + 3 + 2 + (49 - 4)
    find(chromium, "WORD29")
    assert chromium.evaluate(SHOWN) == 11
    assert chromium.evaluate(SAID) == "11 of 300 steps"
    chromium.evaluate('document.querySelector(".overview button").click()')
    assert chromium.evaluate(SHOWN) == 300
    assert chromium.evaluate('document.querySelectorAll(".fold").length') == 0
    find(chromium, "")
    assert chromium.evaluate(SHOWN) == 13
    painted = (
        '(() => { const c = document.querySelector("canvas.strip"), d = c.getContext("2d"); '
        "const at = (k) => Math.floor((k + 0.5) / 300 * c.width); "
        "return [50, 60].map((k) => d.getImageData(at(k), c.height - 2, 1, 1).data[3]); })()"
    )
    assert chromium.problems() == []
    assert chromium.evaluate(f"JSON.stringify({painted})") == "[255,0]"


def test_few_steps_have_no_overview(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(page(tmp_path, 60, {5: "all"}))
    assert chromium.evaluate('document.querySelectorAll(".overview").length') == 0
    assert chromium.evaluate(SHOWN) == 60
