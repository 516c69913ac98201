"""What users look at: the page of every study, of its typical run and of its smallest.

`make looks` writes each as a picture, light, dark and 390 px wide, with a sheet of all.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from browser import Browser, browser
from PIL import Image
from run_folders import every_run

import faithscope
from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config

LOOKS = os.environ.get("FAITHSCOPE_LOOKS")
"""Folder for pictures; empty writes none."""
LARGEST = 4 * 2**20
PHONE = 390
WAYS = (("light", 1280), ("dark", 1280), ("light", PHONE))
THUMB, TALL = 240, 900
CONTRAST = (Path(__file__).parents[1] / "experiments/contrast.js").read_text("utf-8")
FIRST = re.compile(r'<p class="finding">[0-9,]+ of [0-9,]+ [^<]+</p>')
TABLE = re.compile(r"<table.*?</table>", flags=re.S)
FIGURE = re.compile(r"<figure>.*?</figure>", flags=re.S)
PROMISES = re.compile(r"95 % (\w+ )?(intervals?|bands)\b")


def page_faults(run_dir: Path) -> list[str]:
    """What a reader of a run's page would stumble over, as far as its text tells."""
    text = (run_dir / "report.html").read_text("utf-8")
    found = [] if len(text) <= LARGEST else [f"{len(text):,} characters"]
    # the first bold line is a count and what it shows; a comparison opens with it in a section
    if not FIRST.search(text) and "<strong>" not in text.partition("</section>")[0]:
        found.append("no finding in the first line")
    for table in TABLE.findall(text):
        if "<thead>" in table and "<td" not in table:
            found.append(f"a header without rows: {table[:200]}")
    for section in re.findall(r"<section.*?</section>", text, flags=re.S):
        if not re.sub(r"<h2.*?</h2>|<[^>]+>", "", section, flags=re.S).strip():
            found.append(f"an empty section: {section[:100]}")
    for figure in FIGURE.findall(text):
        name = re.search(r"Numbers: figures/(\w+)\.csv", figure)
        if name is None:
            continue
        numbers = pd.read_csv(run_dir / "figures" / f"{name[1]}.csv")
        values = numbers.select_dtypes("number")
        if not len(numbers) or (len(values.columns) and values.isna().to_numpy().all()):
            found.append(f"axes without points: {name[1]}")
        caption = figure.partition("<figcaption>")[2]
        ends = [c for c in values if c.endswith("_low") and values[c].notna().any()]
        if PROMISES.search(caption) and not ends:
            found.append(f"a caption promises intervals that are not drawn: {name[1]}")
    return found


def smallest(run_dir: Path, folder: Path) -> Path:
    """A run with the first record of each file alone, as one has it that was just begun."""
    moved = Path(shutil.copytree(run_dir, folder / f"{run_dir.name}_smallest"))
    for file in (moved / "records").glob("*.jsonl"):
        file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    for written in ("tables", "figures"):
        shutil.rmtree(moved / written)
    assert execute(["report", str(moved)]) == 0
    return moved


@every_run
def test_a_page_says_first_what_it_found_and_shows_nothing_empty(
    undisturbed: Path, tmp_path: Path
) -> None:
    assert page_faults(undisturbed) == []
    assert page_faults(smallest(undisturbed, tmp_path)) == []


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as of:
        yield of


def looked_at(chromium: Browser, page: Path, name: str) -> list[str]:
    """Faults of a page in a browser, in every way that it is looked at."""
    found = []
    for scheme, width in WAYS:
        chromium.open(page, width, scheme)
        if LOOKS:
            Path(LOOKS).mkdir(parents=True, exist_ok=True)
            chromium.screenshot(Path(LOOKS) / f"{name}-{scheme}-{width}.png")
        seen = [*chromium.problems(), *chromium.evaluate(CONTRAST)]
        if width == PHONE:
            # a figure scrolls in its frame, whose ends fade
            seen = [x for x in seen if not re.match(r"beyond (its frame|the window): svg", x)]
        found += [f"{width} px, {scheme}: {problem}" for problem in seen]
    return found


@pytest.mark.slow
@every_run
def test_a_page_is_read_on_every_screen(
    study: str, undisturbed: Path, tmp_path: Path, chromium: Browser
) -> None:
    small = smallest(undisturbed, tmp_path)
    for run_dir, name in ((undisturbed, study), (small, f"{study}_smallest")):
        assert looked_at(chromium, run_dir / "report.html", name) == []


@pytest.mark.slow
def test_a_comparison_is_read_on_every_screen(
    undisturbed_of: Callable[[str], Path], tmp_path: Path, chromium: Browser
) -> None:
    quick = {"bootstrap": 20, "folds": 2}
    faithscope.compare([undisturbed_of("slrc")], tmp_path / "c", report=quick)
    assert page_faults(tmp_path / "c") == []
    for name in ("report", "explore"):
        page = tmp_path / "c" / f"{name}.html"
        assert looked_at(chromium, page, f"compare_{name}") == []


@pytest.mark.slow
def test_a_training_is_read_on_every_screen(tmp_path: Path, chromium: Browser) -> None:
    path = tmp_path / "small.yaml"
    said = {
        **{"name": "small", "benchmark": "training", "out": str(tmp_path / "runs")},
        **{"model": {"name": ["planted:mixture_50"]}, "tasks": ["planted"], "updates": 3},
        **{"data": {"limit": 20}, "methods": ["start", "grpo"], "measured_on": 10},
        "sampling": {"questions": 2, "group": 3, "max_new_tokens": 40, "answer_tokens": 4},
    }
    path.write_text(yaml.safe_dump(said))
    assert execute(["run", str(path)]) == 0
    run_dir = load_config(path).run_dir
    assert page_faults(run_dir) == []
    assert looked_at(chromium, run_dir / "report.html", "training") == []


@pytest.mark.slow
def test_the_pictures_are_put_on_one_sheet() -> None:
    if not LOOKS:
        pytest.skip("make looks writes the pictures")
    names = sorted({p.name.rsplit("-", 2)[0] for p in Path(LOOKS).glob("*-*-*.png")})
    sheet = Image.new("RGB", (THUMB * len(WAYS), TALL * len(names)), "white")
    for row, name in enumerate(names):
        for column, (scheme, width) in enumerate(WAYS):
            with Image.open(Path(LOOKS) / f"{name}-{scheme}-{width}.png") as shot:
                first = shot.crop((0, 0, shot.width, min(shot.height, shot.width * 4)))
                first.thumbnail((THUMB - 8, TALL - 8))
                sheet.paste(first, (THUMB * column + 4, TALL * row + 4))
    sheet.save(Path(LOOKS) / "sheet.png")
