"""The picture of a run's page in the README and on the site: `python tools/page_picture.py`.

It takes the first screen of `runs/quickstart/report.html`, which `make demo` writes, as
`docs/report.png`; or of another page: `python tools/page_picture.py PAGE.html PICTURE.png`, such as
`explore.html` of a comparison for `docs/explore.png` (there of config `planted`, with five of its
models and `data.limit=6`, on its task `planted`). Of the first page it also takes the table of
verdicts, light and dark, as `docs/verdicts.png` and `docs/verdicts_dark.png`. It needs Chromium.
`python tools/page_picture.py training` draws `docs/training_planted.png` from the table beside it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "runs/quickstart/report.html", ROOT / "docs/report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VERDICTS = {"light": ROOT / "docs/verdicts.png", "dark": ROOT / "docs/verdicts_dark.png"}
WIDTH, HEIGHT = 1280, 1180
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    "--virtual-time-budget=10000",  # milliseconds in which a page draws what it computes
)


def picture(page: Path, file: Path) -> None:
    """Writes the first screen of a page as a PNG file.

    Raises:
        SystemExit: there is no such page, or no browser.
    """
    if not page.is_file():
        raise SystemExit(f"{page}: is not there; `make demo` writes that of the quickstart")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"no browser on PATH; install one of {', '.join(BROWSERS)}")
    size = f"--window-size={WIDTH},{HEIGHT}"
    command = [browser, *FLAGS, size, f"--screenshot={file}", page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    Image.open(file).convert("RGB").save(file, optimize=True)


def verdicts(page: Path, file: Path, scheme: str) -> None:
    """Writes the table of verdicts of a page as a PNG file, in the colours of a scheme.

    Raises:
        SystemExit: the page has no such table.
    """
    text = page.read_text(encoding="utf-8")
    table = re.search(r'<table class="[^"]*\bverdicts\b.*?</table>', text, re.S)
    if table is None:
        raise SystemExit(f"{page}: has no table of verdicts")
    style = "".join(re.findall(r"<style.*?</style>", text, re.S))
    shown = "all" if scheme == "dark" else "not all"
    style = style.replace("@media (prefers-color-scheme: dark)", f"@media {shown}")
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "table.html"
        alone.write_text(
            f"<!doctype html><meta charset=utf-8>{style}<main>{table[0]}</main>", "utf-8"
        )
        picture(alone, file)
    image = Image.open(file)
    empty = Image.new("RGB", image.size, image.getpixel((0, 0)))
    box = ImageChops.difference(image, empty).getbbox() or (8, 8, *image.size)
    left, top, right, bottom = box
    image.crop((left - 8, top - 8, right + 8, bottom + 8)).save(file, optimize=True)


def training(file: Path) -> None:
    """Draws the figure of a table `training_planted.csv` beside it, as a run's page has it."""
    import matplotlib as mpl
    import pandas as pd

    from faithscope.experiments.analysis.picture import STYLE, save
    from faithscope.experiments.studies.training.page import planted_picture

    with mpl.rc_context(STYLE), tempfile.TemporaryDirectory() as folder:
        save(planted_picture(pd.read_csv(file.with_suffix(".csv"))), Path(folder))
        drawn = Image.open(Path(folder) / file.name).convert("RGB")
    drawn.resize((drawn.width // 2, drawn.height // 2)).quantize(256).save(file, optimize=True)


def main() -> None:
    if sys.argv[1:] == ["training"]:
        training(ROOT / "docs/training_planted.png")
        return
    page, file = map(Path, sys.argv[1:3] if len(sys.argv) > 2 else (PAGE, PICTURE))
    picture(page, file)
    print(file)
    if file == PICTURE:
        for scheme, of in VERDICTS.items():
            verdicts(page, of, scheme)
            print(of)


if __name__ == "__main__":
    main()
