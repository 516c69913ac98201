"""The page to explore a comparison, in a real browser with its policy on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_input import refused
from browser import Browser, browser
from jinja2 import Environment
from pages import HOSTILE, faults
from scipy.stats import spearmanr
from synthetic_comparison import comparison, places, planted, records_of, truth

from faithscope.experiments.analysis import html
from faithscope.experiments.analysis.comparison.agreement import agreement_table
from faithscope.experiments.analysis.explorer import page, server
from faithscope.experiments.analysis.explorer.data import Explored
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.cli import execute

STEERING = "\x1b[31m\u202e"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as of:
        yield of


@pytest.fixture(scope="module")
def made() -> Explored:
    return comparison()


@pytest.fixture(scope="module")
def written(made: Explored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "explore.html"
    page.write_explorer(path, made)
    return path


def until(chromium: Browser, condition: str) -> None:
    for _ in range(200):
        if chromium.evaluate(f"Boolean({condition})"):
            return
        time.sleep(0.05)
    raise AssertionError(f"{condition}: {chromium.console}")


def opened(chromium: Browser, path: Path | str, **window: object) -> None:
    chromium.open(path, **window)  # pyright: ignore[reportArgumentType]
    until(chromium, "document.querySelector('#agreement td[aria-label*=ρ]')")


def choose(chromium: Browser, select: str, text: str) -> None:
    """Take the option that begins with a text."""
    chromium.evaluate(
        f"(s => {{ s.value = [...s.options].find(o => o.text.startsWith({text!r})).value; "
        f"s.dispatchEvent(new Event('change')); }})(document.getElementById('{select}'))"
    )
    chromium.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    until(chromium, "document.getElementById('agreement').dataset.of")


def cells(chromium: Browser) -> dict[tuple[str, str], float | None]:
    """(measure, measure) -> ρ as the heat map says it."""
    labels = chromium.evaluate(
        "[...document.querySelectorAll('#agreement td:not(.self)')]"
        ".map(td => td.getAttribute('aria-label'))"
    )
    found = {}
    for label in labels:
        pair, value = re.fullmatch(r"(.*): (.*), \d+ traces", label).groups()  # pyright: ignore
        told = re.fullmatch(r"ρ = ([+−])(\d.\d\d)", value)
        one, other = pair.split(" and ")
        found[one, other] = float(told[1].replace("−", "-") + told[2]) if told else None
    return found


def listed(chromium: Browser, n: int | None = None) -> list[str]:
    rows = chromium.evaluate(
        "[...document.querySelectorAll('#list tbody tr')].map(r => [...r.cells].slice(0, 2)"
        ".map(c => c.textContent).join(' '))"
    )
    return rows[:n]


def test_the_heat_map_has_the_numbers_of_the_report(
    chromium: Browser, made: Explored, written: Path
) -> None:
    assert faults(written.read_text("utf-8"), ["report.html"]) == []
    opened(chromium, written)
    table = agreement_table(made.joined, Bootstrap(0, 20), 0.05)
    for over, column in (("all", "spearman"), ("traces of one model", "within")):
        choose(chromium, "strata", over)
        shown = cells(chromium)
        columns = (table["measure"], table["other"], table[column])
        for one, other, value in zip(*columns, strict=True):
            assert shown[one, other] == pytest.approx(value, abs=0.0051), (over, one, other)
            assert shown[other, one] == shown[one, other]
    choose(chromium, "strata", "all")
    choose(chromium, "model", "m1")
    assert chromium.evaluate("document.getElementById('count').textContent") == "60 of 120 traces"
    wide = made.joined.oriented.xs("m1", level="model")
    (one, other) = list(made.joined.measures.index)[:2]
    both = wide[[one, other]].dropna()
    (expected, _) = spearmanr(both[one], both[other])
    assert cells(chromium)[one, other] == pytest.approx(expected, abs=0.0051)


def test_axes_the_sign_of_rho_and_the_sentence_agree(chromium: Browser, written: Path) -> None:
    """The axis of a measure is reversed if less of it means faithful."""
    opened(chromium, written)
    choose(chromium, "x", "internal 5")  # less of it is faithful
    choose(chromium, "y", "internal 1")
    said = chromium.evaluate("document.getElementById('pair-said').textContent")
    assert "ρ = +0." in said
    assert "right and up say more faithful" in said
    label = chromium.evaluate(
        "[...document.querySelectorAll('#plot .u-axis')].length && "
        "document.getElementById('x').selectedOptions[0].text"
    )
    assert label.startswith("internal 5")
    # the points that were drawn: what lies right lies up
    across, up = chromium.evaluate(
        "(() => { const o = document.querySelector('#plot').querySelector('.u-over');"
        " const b = o.getBoundingClientRect(); const at = [];"
        " const pair = document.getElementById('pair-said');"
        " document.getElementById('plot').focus();"
        " const seen = [];"
        " for (let k = 0; k < 100; k++) {"
        "  document.getElementById('plot').dispatchEvent("
        "   new KeyboardEvent('keydown', {key: 'ArrowRight'}));"
        "  seen.push(pair.textContent.split(': ').pop().replaceAll('−', '-')"
        "   .split(' and ').map(Number)); }"
        " return [seen.map(s => s[0]), seen.map(s => s[1])]; })()"
    )
    # arrow keys go from left to right, and values of the turned measure fall
    assert across == sorted(across, reverse=True)
    assert across[0] > across[-1]
    assert float(spearmanr(range(len(up)), up)[0]) > 0.5


def test_a_judge_that_all_measures_share_is_named_once(chromium: Browser, tmp_path: Path) -> None:
    judge = " (bundled:smollm2-135m)"
    made = comparison(40, 4, judge)
    page.write_explorer(tmp_path / "explore.html", made)
    opened(chromium, tmp_path / "explore.html")
    options = chromium.evaluate("[...document.getElementById('x').options].map(o => o.text)")
    assert not any("smollm2" in text for text in options)
    lead = chromium.evaluate("document.querySelector('header p').textContent")
    assert "Names of measures omit “(bundled:smollm2-135m)”" in lead


def test_headings_stay_off_row_labels_and_a_narrowed_page_fits(
    chromium: Browser, tmp_path: Path
) -> None:
    page.write_explorer(tmp_path / "explore.html", comparison(40, 24, " of a long name", steps=20))
    opened(chromium, tmp_path / "explore.html", width=1200)
    on_top = chromium.evaluate(
        "(box => { box.scrollTo(150, 120); const b = box.getBoundingClientRect();"
        " const seen = []; for (let x = 8; x < 120; x += 8)"
        " seen.push(document.elementFromPoint(b.x + x, b.y + 40));"
        " return seen.every(e => e === box.querySelector('thead th')); })"
        "((document.getElementById('agreement').scrollIntoView(),"
        " document.getElementById('agreement')))"
    )
    assert on_top  # the corner covers what has been scrolled under it
    chromium.evaluate("document.querySelectorAll('#list tbody tr')[0].click()")
    until(chromium, "document.querySelector('#items .uplot')")
    chromium.window(420)
    until(chromium, "document.documentElement.scrollWidth <= innerWidth")


def test_the_page_and_the_report_say_the_same_of_what_is_missing(made: Explored) -> None:
    told = made.overview["reasons"]
    counted = Counter(
        (measure["name"], told["words"][code] or "measured")
        for measure, codes in zip(made.overview["measures"], told["of"], strict=True)
        for code in codes
    )
    table = made.joined.missing.loc[made.joined.missing["family"] != "label"]
    of_report = zip(table["measure"], table["reason"], table["n"], strict=True)
    assert counted == {(m, r): n for m, r, n in of_report if n}


def test_planted_disagreement_is_found_by_the_lists(chromium: Browser, written: Path) -> None:
    """A judge lies of some traces, the internal measures are turned round on others."""
    opened(chromium, written)
    names = [f"{p['item']} {p['model']}" for p in places(120)]
    faithful, (lied, turned) = truth(120) > 0.5, planted(120)
    bad_lied = {names[i] for i in lied if not faithful[i]}
    good_lied = {names[i] for i in lied if faithful[i]}
    good_shuffled = {names[i] for i in turned if faithful[i]}
    bad_shuffled = {names[i] for i in turned if not faithful[i]}
    for words, expected in {
        "judges call the reasoning faithful": bad_lied | good_shuffled,
        "the model's internals use the reasoning, and judges": good_lied | bad_shuffled,
        "the answer moves": good_shuffled,
        "the model's internals use the reasoning, and the answer": bad_shuffled,
    }.items():
        choose(chromium, "kind", words)
        found = listed(chromium)
        # behind them stand those that noise moved over the middle
        assert set(found[: len(expected)]) == expected, words
    chromium.click("document.getElementById('all')")
    assert len(listed(chromium)) == 100
    assert chromium.evaluate("document.getElementById('more').textContent") == (
        "Show more (100 of 120)"
    )


def test_a_trace_is_found_and_read_by_keyboard(chromium: Browser, written: Path) -> None:
    opened(chromium, written)
    chromium.evaluate("document.querySelector('#agreement td').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        chromium.press(key)
    where = "['x', 'y'].map(id => document.getElementById(id).value).join()"
    assert chromium.evaluate(where) == "2,1"
    assert "ρ" in chromium.evaluate("document.getElementById('agreement-said').textContent")
    chromium.evaluate("document.getElementById('plot').focus()")
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        chromium.press(key)
    until(chromium, "document.querySelector('#items article ol li')")
    until(chromium, "document.querySelectorAll('#items canvas').length == 1")
    text = chromium.evaluate("document.getElementById('items').innerText")
    for words in ("Question", "Steps by measures", "Attention", "Tracing"):
        assert words in text
    # the other model's trace of this question, side by side; the address brings both back
    choose(chromium, "beside", "q")
    until(chromium, "document.querySelectorAll('#items article').length == 2")
    heads = "[...document.querySelectorAll('#items h3')].map(h => h.textContent).join()"
    before = chromium.evaluate(heads)
    address = chromium.evaluate("location.href")
    chromium.open("about:blank")
    opened(chromium, address)
    until(chromium, "document.querySelectorAll('#items article').length == 2")
    assert chromium.evaluate(heads) == before
    assert chromium.evaluate(where) == "2,1"


def test_the_side_panel_goes_through_the_list_and_the_diagonal_chooses_nothing(
    chromium: Browser, written: Path
) -> None:
    opened(chromium, written)
    where = "['x', 'y'].map(id => document.getElementById(id).value).join()"
    before = chromium.evaluate(where)
    chromium.click("document.querySelector('#agreement td.self')")
    assert chromium.evaluate(where) == before
    groups = chromium.evaluate(
        "[...document.querySelectorAll('#agreement th.group')].map(th => th.textContent)"
    )
    assert len(groups) == len(set(groups)) > 1
    at = "document.querySelector('#list tr.open td').textContent"
    (first, second) = [name.split()[0] for name in listed(chromium, 2)]
    for key, name in (("j", first), ("j", second), ("k", first)):
        chromium.press(key)
        until(chromium, "!document.getElementById('one').hidden")
        assert chromium.evaluate(at) == name
    until(chromium, "document.querySelector('#items article ol li')")
    assert chromium.problems() == []
    chromium.press("Escape")
    assert chromium.evaluate("document.getElementById('one').hidden")


def test_a_marked_area_narrows_the_list(chromium: Browser, written: Path) -> None:
    opened(chromium, written)
    x, y, width, height = chromium.evaluate(
        "(o => { o.scrollIntoView({block: 'center', behavior: 'instant'}); const b = "
        "o.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })"
        "(document.querySelector('.u-over'))"
    )
    at = [("mousePressed", 0.02, 0.02), ("mouseMoved", 0.3, 0.4), ("mouseMoved", 0.5, 0.98)]
    for kind, across, down in [*at, ("mouseReleased", 0.5, 0.98)]:
        place = {"x": x + across * width, "y": y + down * height}
        about = place | {"button": "left", "buttons": 1, "clickCount": 1}
        chromium.call("Input.dispatchMouseEvent", type=kind, **about)
    until(chromium, "document.getElementById('pair-said').textContent.includes('marked')")
    few = len(listed(chromium))
    assert 20 < few < 100
    chromium.evaluate("document.getElementById('plot').focus()")
    chromium.press("Escape")
    assert len(listed(chromium)) == 100


def test_what_is_hostile_in_a_run_stays_text(chromium: Browser, tmp_path: Path) -> None:
    explored = comparison(24, 8, f" {HOSTILE}</script>{STEERING}")
    path = tmp_path / "explore.html"
    page.write_explorer(path, explored)
    text = path.read_text("utf-8")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert HOSTILE not in text
    opened(chromium, path)
    chromium.click("document.querySelector('#list tbody button')")
    until(chromium, "document.querySelector('#items article ol li')")
    chromium.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert "taken" not in chromium.evaluate("document.title")[:4]
    assert chromium.evaluate("document.querySelectorAll('img, [onerror]').length") == 0
    assert chromium.evaluate("document.querySelectorAll('script').length") == 2 + 2
    shown = chromium.evaluate("document.getElementById('items').innerText")
    # question, steps, judge, table, measures, curve, heat map: all say it in letters
    assert shown.count("<script>document.title") > 12
    assert chromium.console == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (800, "light")])
def test_nothing_is_clipped_or_refused(
    chromium: Browser, written: Path, width: int, scheme: str
) -> None:
    opened(chromium, written, width=width, scheme=scheme)
    chromium.click("document.querySelector('#list tbody tr')")
    until(chromium, "document.querySelector('#items article ol li')")
    chromium.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert chromium.problems() == []


def test_a_step_is_coloured_by_one_scale_for_all_traces(made: Explored, written: Path) -> None:
    records = records_of(written.read_text("utf-8"))
    assert len(records) == 120
    # traces stand as the overview has them
    named = [f"Question {int(item[1:])}" for item in made.overview["item"]]
    assert [r["question"] for r in records] == named
    sizes = [
        abs(v)
        for r in records
        for c in r["credits"]
        if c["measure"] == "behavioural 0"
        for v in c["values"]
    ]
    assert made.overview["credit_scale"]["behavioural 0"] == pytest.approx(
        np.quantile(sizes, 0.95), rel=1e-3
    )


def test_templates_are_compiled_once_for_all_traces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiled: list[str | None] = []
    compile_template = Environment.compile

    def counting(self: Environment, source: Any, name: str | None = None, *rest: Any) -> Any:
        compiled.append(name)
        return compile_template(self, source, name, *rest)

    monkeypatch.setattr(Environment, "compile", counting)
    html.environment.cache_clear()
    for _ in range(2):
        page.write_explorer(tmp_path / "explore.html", comparison(30))
    assert sorted(map(str, compiled)) == ["blocks.html.jinja", "explore.html.jinja"]


def test_a_file_that_would_be_too_large_leaves_its_records_to_view(
    chromium: Browser, made: Explored, tmp_path: Path
) -> None:
    path = tmp_path / "explore.html"
    page.write_explorer(path, made, largest=50_000)
    assert "records-0" not in path.read_text("utf-8")
    opened(chromium, path)
    chromium.click("document.querySelector('#list tbody tr')")
    until(chromium, "document.querySelector('#items article .failed')")
    assert "faithscope view" in chromium.evaluate("document.getElementById('items').innerText")
    assert "All scores" in chromium.evaluate("document.getElementById('items').innerText")


@pytest.mark.slow
def test_a_served_page_fetches_its_records_from_nowhere_else(
    chromium: Browser, made: Explored
) -> None:
    with server.Server(made) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        opened(chromium, serving.address)
        chromium.click("document.querySelector('#list tbody tr')")
        until(chromium, "document.querySelector('#items article ol li')")
        asked = [line for line in chromium.console if not line.startswith("asked for ")]
        assert asked == []
        assert all(serving.address in line for line in chromium.console)
        for wrong in ("records/6", "records/x", "report.html", "../"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(serving.address + wrong)
        elsewhere = serving.address.replace(serving.token, "guess")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(elsewhere)
        serving.shutdown()


@pytest.mark.slow
def test_view_serves_a_comparison_alone_until_it_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not a run folder" in refused("view", tmp_path)
    config = {"probes": ["attention"], "data.limit": 6, "report.bootstrap": 20}
    sets = [x for k, v in config.items() for x in ("--set", f"{k}={v}")]
    sets += ["--set", "model.name=planted:faithful", "--set", f"out={tmp_path}"]
    assert execute(["run", "planted", *sets]) == 0
    run = capsys.readouterr().out.splitlines()[-1]
    folder = str(Path(run).parent if run.endswith(".html") else Path(run))
    assert "faithscope compare" in refused("view", folder)
    assert execute(["compare", folder, "--into", str(tmp_path / "c")]) == 0
    command = [sys.executable, "-m", "faithscope.experiments.cli", "view", str(tmp_path / "c")]
    viewing = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert viewing.stderr is not None
        line = next(x for x in viewing.stderr if "explore at" in x)
        address = line.split()[2]
        assert b"overview" in urllib.request.urlopen(address).read()
        told = urllib.request.urlopen(f"{address}records/0").read()
        assert b"Attention of the answer" in told
        # as Ctrl-C, which a process that a shell put in the background ignores from birth
        viewing.send_signal(signal.SIGTERM)
        assert viewing.wait(60) in (0, 130)
    finally:
        viewing.kill()
        viewing.wait()
