"""The picture of a run's page in the README and on the site: `python tools/page_picture.py`.

It takes the first screen of `runs/quickstart/report.html`, which `make demo` writes, as
`docs/report.png`; or of another page: `python tools/page_picture.py PAGE.html PICTURE.png`, such as
`explore.html` of a comparison for `docs/explore.png`. It needs Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "runs/quickstart/report.html", ROOT / "docs/report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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


def main() -> None:
    page, file = sys.argv[1:3] if len(sys.argv) > 2 else (PAGE, PICTURE)
    picture(Path(page), Path(file))
    print(file)


if __name__ == "__main__":
    main()
