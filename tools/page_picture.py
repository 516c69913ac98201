"""The picture of a run's page in the README and on the site: `python tools/page_picture.py`.

It takes the first screen of `runs/quickstart/report.html`, which `make demo` writes, as
`docs/report.png`; or of another page: `python tools/page_picture.py PAGE.html PICTURE.png`, such as
`explore.html` of a comparison for `docs/explore.png`. Of the first page it also takes the table of
verdicts, light and dark, as `docs/verdicts.png` and `docs/verdicts_dark.png`. It needs Chromium.
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
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


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


def main() -> None:
    page, file = map(Path, sys.argv[1:3] if len(sys.argv) > 2 else (PAGE, PICTURE))
    picture(page, file)
    print(file)
    if file == PICTURE:
        for scheme, of in VERDICTS.items():
            verdicts(page, of, scheme)
            print(of)


if __name__ == "__main__":
    main()
