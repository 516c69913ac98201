"""The tools that write documentation: a measure's rows and example, and the picture of a page."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import drawing
import measure_docs
import page_picture
import pytest
from PIL import Image


def planted_run(folder: Path, lines: list[str]) -> Path:
    (folder / "tables").mkdir(parents=True)
    (folder / "tables/planted.csv").write_text("".join(lines), "utf-8")
    return folder


def test_the_planted_table_takes_the_rows_of_one_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = measure_docs.PLANTED.read_text("utf-8").splitlines(keepends=True)
    own = [line for line in shipped if line.startswith("filler_")]
    other = [line for line in shipped if line.startswith("flow_")]
    assert own
    assert other
    changed = [line.replace(",logit,", ",changed,") for line in own]
    monkeypatch.setattr(measure_docs, "PLANTED", tmp_path / "planted.csv")
    # a measure that is new has no rows yet, and one of another probe keeps its own
    measure_docs.PLANTED.write_text("".join(line for line in shipped if line not in own), "utf-8")
    # tables of a run begin with the unit of their rows
    of_run = [f"unit,{shipped[0]}", *(f"sentence,{line}" for line in (*changed, *other))]
    run = planted_run(tmp_path / "run", of_run)
    measure_docs.write_planted("filler", run)
    expected = [changed[own.index(line)] if line in own else line for line in shipped]
    assert measure_docs.PLANTED.read_text("utf-8") == "".join(expected)


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    shipped = measure_docs.PLANTED.read_text("utf-8").splitlines(keepends=True)
    (own,) = (line for line in shipped if line.startswith("filler_tv"))
    without = planted_run(tmp_path / "without", [shipped[0]])
    with pytest.raises(SystemExit, match="has no row of a measure of filler"):
        measure_docs.write_planted("filler", without)
    header = shipped[0].replace("auroc_low", "auroc_least")
    with pytest.raises(SystemExit, match="differ in auroc_least, auroc_low;"):
        measure_docs.write_planted("filler", planted_run(tmp_path / "other", [header, own]))


@pytest.mark.slow  # opens a browser
@pytest.mark.skipif(
    not any(map(shutil.which, page_picture.BROWSERS)), reason="needs Chromium or Chrome"
)
def test_a_picture_of_a_page_is_its_first_screen(tmp_path: Path) -> None:
    page, file = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text('<body style="margin: 0; background: #0072B2"></body>')
    page_picture.picture(page, file)
    image = Image.open(file)
    assert image.size == (page_picture.WIDTH, page_picture.HEIGHT)
    assert image.getcolors() == [(image.width * image.height, (0, 0x72, 0xB2))]
    with pytest.raises(SystemExit, match="`make demo` writes"):
        page_picture.picture(tmp_path / "none.html", file)
    with pytest.raises(SystemExit, match="has no table of verdicts"):
        page_picture.verdicts(page, file, "dark")
    dark = "@media (prefers-color-scheme: dark) { td { background: #0072B2 } }"
    style = f"td {{ background: #E69F00; width: 50px; height: 50px }} {dark}"
    page.write_text(f'<style>{style}</style>Text <table class="verdicts"><td></td></table>')
    for scheme, colour in (("light", (0xE6, 0x9F, 0)), ("dark", (0, 0x72, 0xB2))):
        page_picture.verdicts(page, file, scheme)
        image = Image.open(file)
        assert image.size == (68, 68)
        assert image.getpixel((34, 34)) == colour


def test_a_drawing_says_what_is_done_to_which_box() -> None:
    boxes = ["question", "unseen step <1>", "filled step 2"]
    svg = ElementTree.fromstring(drawing.drawing(boxes, "a?"))
    assert svg.get("aria-label") == (
        "question, step <1> stays, but cannot be looked at, step 2 replaced by filler; then: a?"
    )
    texts = [text.text for text in svg.iter("text")]
    legend = [drawing.MARKS["filled"], drawing.MARKS["unseen"]]
    assert texts == ["question", "step <1>", "· · ·", "a?", *legend]
    assert drawing.STYLE.keys() == {"", *drawing.MARKS}
