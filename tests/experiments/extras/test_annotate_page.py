"""The page on which people label, in a real browser: by keyboard, by mouse, and as it looks."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from annotators import chain, command, make_run, serving
from browser import Browser, browser
from pages import HOSTILE

from faithscope.experiments.analysis.exports.chains_to_label import Source

STEERING = "\x1b[31m\u202e"
STEP = "document.querySelectorAll('#steps button')[{}]"
LISTED = "[...document.querySelectorAll('#list button')].map(b => parseInt(b.textContent) - 1)"
FAR = "document.querySelector('#rounds [aria-current=true]').textContent"
ROUND = "document.querySelectorAll('#rounds button')[{}]"
CURRENT = "document.querySelector('#list [aria-current=true]').textContent.split(' ')[0] - 1"


def until(chromium: Browser, condition: str) -> None:
    """Wait for the page to be so."""
    for _ in range(200):
        if chromium.evaluate(f"Boolean({condition})"):
            return
        time.sleep(0.05)
    text = chromium.evaluate("document.body.innerText")[:2000]
    raise AssertionError(f"{condition}, {chromium.console[-3:]}: {text}")


def sits_down(chromium: Browser, address: str) -> None:
    """Open a page of an annotator, or come back to it."""
    chromium.open(address)
    until(chromium, "document.querySelector('#rounds button')")


def saved(chromium: Browser) -> str:
    return chromium.evaluate(FAR)


def by_keyboard(chromium: Browser, label: int, *, sure: bool = True, step: int = 1) -> None:
    """Label the chain that is shown, without a mouse, and go on from it."""
    before = saved(chromium)
    chromium.press(str(label))
    chromium.press("h" if sure else "l")
    if label == 0:
        for _ in range(step):
            chromium.press("ArrowDown")
        chromium.press(" ")
        chromium.press("a")  # step skipping
    chromium.press("t")
    chromium.write(f"By keyboard, {label}.")
    chromium.press("Enter", control=True)
    until(chromium, f"{FAR} != {before!r}")


def by_mouse(chromium: Browser, label: int, *, sure: bool = True, step: int = 1) -> None:
    """Labels a chain with the mouse, without typing a reason."""
    before = saved(chromium)
    if label == 0:
        chromium.click(STEP.format(step - 1))
        chromium.click("document.querySelector('[value=spurious_1]')")
    chromium.click(f"document.querySelector('[name=label][value=\"{label}\"]')")
    chromium.click(
        f"document.querySelector('[name=confidence][value={'high' if sure else 'low'}]')"
    )
    chromium.click("document.querySelector('#reason')")
    chromium.write(f"By mouse, {label}.")
    chromium.click("document.querySelector('#save')")
    until(chromium, f"{FAR} != {before!r}")


def goes_to(chromium: Browser, chain: int) -> None:
    at = chromium.evaluate(LISTED).index(chain)
    chromium.click(f"document.querySelectorAll('#list button')[{at}]")
    until(chromium, f"{CURRENT} == {chain}")


def opens(chromium: Browser, round: int) -> None:
    chromium.click(ROUND.format(round - 1))
    until(chromium, f"{ROUND.format(round - 1)}.ariaCurrent == 'true'")


def looks_right(chromium: Browser, address: str, folder: Path, name: str) -> None:
    """Nothing is clipped, refused or asked for elsewhere, wide or narrow, light or dark."""
    for width, scheme in product((1280, 800), ("light", "dark")):
        chromium.window(width, scheme)
        chromium.screenshot(folder / f"{name}_{width}_{scheme}.png")
        wide = chromium.evaluate(
            "[...document.querySelectorAll('body *')].filter(e => e.offsetParent"
            " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + e.id)"
        )
        assert wide == []
    chromium.window(1280)
    assert [line for line in chromium.console if not line.startswith(f"asked for {address}")] == []


@pytest.mark.slow
def test_two_people_label_twenty_traces_in_three_rounds(tmp_path: Path) -> None:
    limit = {"planted": 14, "single_cue": 6}
    run = make_run(tmp_path, ["planted:faithful", "bundled:smollm2-135m"], limit)
    folder = run / "annotations"
    with ExitStack() as stack:
        chromium = stack.enter_context(browser(tmp_path / "profile"))
        ann, to_ann = stack.enter_context(command(run, "ann", "--limit", "20"))
        bob, to_bob = stack.enter_context(command(run, "bob"))

        # round I: ann by keyboard alone, and she goes back and forth
        sits_down(chromium, to_ann)
        looks_right(chromium, to_ann, tmp_path, "sheet")
        chromium.press("n")
        until(chromium, f"{CURRENT} == 1")
        chromium.press("p")
        until(chromium, f"{CURRENT} == 0")
        chromium.press("?")
        for i in range(20):
            assert chromium.evaluate(CURRENT) == i
            by_keyboard(chromium, 0 if i % 4 == 0 else 1)
        assert "20 of 20 saved" in saved(chromium)
        chromium.press("p")
        goes_to(chromium, 4)
        looks_right(chromium, to_ann, tmp_path, "round_1")

        # bob by mouse: not sure of 1; of 2 and 4 another label; of 8 another step
        sits_down(chromium, to_bob)
        assert "By keyboard" not in chromium.evaluate("document.body.innerText")
        for i in range(20):
            label = 0 if (i % 4 == 0 and i != 4) or i == 2 else 1
            how = by_mouse if i < 9 else by_keyboard
            how(chromium, label, sure=i != 1, step=2 if i == 8 else 1)

        # round II
        opens(chromium, 2)
        assert chromium.evaluate(LISTED) == [1, 2, 4]
        assert "ann says" in chromium.evaluate("document.querySelector('#other').innerText")
        assert "By keyboard, 1." in chromium.evaluate("document.querySelector('#other').innerText")
        for _ in range(3):
            before = saved(chromium)
            chromium.press("Enter", control=True)
            until(chromium, f"{FAR} != {before!r}")
        looks_right(chromium, to_bob, tmp_path, "round_2")
        sits_down(chromium, to_ann)
        while not chromium.evaluate(f"document.activeElement == {ROUND.format(1)}"):
            chromium.press("Tab")
        chromium.press("Enter")
        until(chromium, f"{ROUND.format(1)}.ariaCurrent == 'true'")
        goes_to(chromium, 4)
        chromium.press("o")
        until(chromium, "document.querySelector('[name=label][value=\"1\"]').checked")
        for _ in range(3):
            before = saved(chromium)
            chromium.press("Enter", control=True)
            until(chromium, f"{FAR} != {before!r}")

        # round III: 2 is not agreed upon; of 8 ann takes over bob's step
        opens(chromium, 3)
        assert chromium.evaluate(LISTED) == [2, 8]
        goes_to(chromium, 8)
        chromium.press("o")
        until(chromium, "document.querySelector('#other').innerText.includes('You agree')")
        chromium.press("Enter", control=True)
        until(chromium, f"{CURRENT} == 2")
        chromium.press("Enter", control=True)
        until(chromium, "document.querySelector('#said').innerText.includes('Every chain')")
        looks_right(chromium, to_ann, tmp_path, "round_3")
        sits_down(chromium, to_bob)
        opens(chromium, 3)
        assert "≠" not in chromium.evaluate(
            "document.querySelectorAll('#list button')[1].textContent"
        )

        for process in (ann, bob):
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
            assert out.splitlines()[-1] == str(folder / "export")
            assert process.returncode == 0

    export = folder / "export"
    fates = dict(pd.read_csv(export / "fates.csv").itertuples(index=False))
    assert (fates["exported"], fates["disagreement"]) == (19, 1)
    responses = [json.loads(p.read_text()) for p in sorted(export.rglob("response_*.json"))]
    assert Counter(r["unfaithfulness"] for r in responses) == {0: 15, 1: 4}
    for response in responses:
        assert response["faithful_type"] % 2 == 1 - response["unfaithfulness"]
    table = pd.read_csv(export / "agreement.csv").set_index(["dataset", "round", "of"]).loc["all"]
    first, last = table.loc[(1, "label")], table.loc[(3, "label")]
    assert (first["n"], first["agreement"]) == (20, 0.9)
    # 5 and 5 of 20 unfaithful, 4 by both: (.9 - .625) / (1 - .625)
    assert first["kappa"] == pytest.approx(0.275 / 0.375, abs=1e-6)
    assert first["ac2"] > first["kappa"]
    assert last["agreement"] == 0.95
    assert table.loc[(3, "steps"), "agreement"] == 1


@pytest.mark.slow
def test_a_hostile_chain_is_only_text_and_a_dead_server_is_said(tmp_path: Path) -> None:
    bad = f"{HOSTILE}{STEERING}{{{{ 7 * 7 }}}}</button></main>"
    parts = ((True, f"{bad} " * 3), (True, "x" * 600), (False, bad))
    hostile = chain(0, question=bad, options=(bad, bad), parts=parts, tail=bad, answer=bad)
    source = Source(tmp_path / "<b>", tmp_path / "annotations", (hostile, chain(1)), Counter())
    with browser(tmp_path / "profile") as chromium:
        with serving(source, "ann", "bob") as (ann, bob):
            bob.label(0, reason=bad)
            bob.label(1)
            address = ann.server.address
            sits_down(chromium, address)
            by_keyboard(chromium, 0)
            by_keyboard(chromium, 1)
            opens(chromium, 2)
            looks_right(chromium, address, tmp_path, "hostile")
            assert chromium.evaluate("document.title") == "<b>: labels of ann"
            assert chromium.evaluate("document.querySelectorAll('script, img').length") == 1
            text = chromium.evaluate("document.body.innerText")
            assert text.count("onerror=") >= 8
            assert "\u202e" not in text
            assert "␛[31m⟨U+202E⟩{{ 7 * 7 }}" in text
        chromium.press("l")
        until(chromium, "document.querySelector('#said').innerText.includes('does not answer')")
