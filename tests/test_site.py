"""The documentation site: it builds, fits any screen, and a search finds what is looked for."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow

CUT = """[...document.querySelectorAll(".bd-article pre")].filter((code) => {
  const columns = Math.max(...code.textContent.split("\\n").map((line) => line.trimEnd().length));
  return columns <= 88 && code.scrollWidth > code.clientWidth;
}).map((code) => code.textContent)"""
"""Blocks of code whose lines are cut though none has more than 88 columns."""
BEYOND = """(() => {
  const end = document.documentElement.clientWidth;
  const inside = (element) => element.closest("table, pre, .highlight, .cell_output, .math");
  // a phone's contents of the page slide in from beyond its end
  const bars = innerWidth > 960 ? ", .bd-sidebar-secondary *" : "";
  return [...document.querySelectorAll(`.bd-article *${bars}`)]
    .filter((e) => e.getBoundingClientRect().right > end + 1 && e.checkVisibility() && !inside(e))
    .map((e) => `${e.tagName} ${e.textContent.slice(0, 60)}`);
})()"""
"""What stands beyond the window's end, but for what scrolls by itself."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    missing = [m for m in ("sphinx", "myst_nb", "pydata_sphinx_theme") if not _is_there(m)]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: pip install 'faithscope[docs]'")
    site = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(ROOT / "docs"), str(site)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return site


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def pages(site: Path) -> list[str]:
    every = (p.relative_to(site) for p in site.rglob("*.html"))
    return sorted(p.as_posix() for p in every if "_static" not in p.parts)


def test_every_page_is_there_as_markdown_and_can_be_searched(site: Path) -> None:
    made = {Path(page).with_suffix("") for page in pages(site)}
    pages_alone = {p for p in made if p.name not in ("search", "genindex")}
    assert pages_alone == {p.relative_to(site).with_suffix("") for p in site.rglob("*.md")}
    assert {p.stem for p in (ROOT / "notebooks").glob("*.ipynb")} <= {p.name for p in made}
    index = (site / "llms.txt").read_text("utf-8")
    links = {Path(link).with_suffix("") for link in re.findall(r"\]\((.+?\.md)\)", index)}
    assert links == pages_alone - {Path("index")}
    # a search finds a config key and a column
    terms = (site / "searchindex.js").read_text("utf-8")
    assert "least_label_mass" in terms
    assert "beyond_control" in terms


def test_no_page_is_cut_or_says_anything_in_the_console(
    site: Path, address: str, chromium: Browser
) -> None:
    found = {}
    for page in pages(site):
        chromium.open(address + page, 1280)
        wrong = [f"cut: {code}" for code in chromium.evaluate(CUT)]
        wrong += [f"beyond 1280: {of}" for of in chromium.evaluate(BEYOND)]
        chromium.window(390)
        wrong += [f"beyond 390: {of}" for of in chromium.evaluate(BEYOND)]
        wrong += [line for line in chromium.console if not line.startswith(f"asked for {address}")]
        if wrong:
            found[page] = wrong
    assert not found


def test_a_search_finds_the_glossary_and_the_measure_first(address: str, chromium: Browser) -> None:
    chromium.open(f"{address}search.html?q=necessity")
    results = "[...document.querySelectorAll('#search-results li a')].map((a) => a.href)"
    until = time.monotonic() + 60
    while len(listed := chromium.evaluate(results)) < 10 and time.monotonic() < until:
        time.sleep(0.2)
    first = [link.removeprefix(address).partition("#")[0] for link in listed]
    assert first[:2] == ["glossary.html", "measures/slrc.html"]
    assert "project/changelog.html" not in first
    # the links of the results themselves lead to the words
    assert listed[0].endswith("#word-necessity")


def test_a_long_page_filters_its_rows(address: str, chromium: Browser) -> None:
    chromium.open(f"{address}configuration.html?filter=label_mass")
    shown = "[...document.querySelectorAll('tbody tr:not([hidden])')].map((r) => r.textContent)"
    rows = chromium.evaluate(shown)
    assert rows
    assert all("label_mass" in row for row in rows)
    headings = "[...document.querySelectorAll('h2')].filter((h) => h.checkVisibility()).length"
    assert chromium.evaluate(headings) == 1
    chromium.open(f"{address}glossary.html")
    assert chromium.evaluate("document.querySelector('.filter')") is None


def test_a_page_of_a_measure_begins_with_its_chain(site: Path) -> None:
    for page in (site / "measures").glob("*.html"):
        text = page.read_text("utf-8")
        assert 'class="chain" role="img"' in text.partition("</h1>")[2][:200], page.name
