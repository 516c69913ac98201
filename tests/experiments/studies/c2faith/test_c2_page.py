"""C2-Faith's page: whole in a browser with its policy on."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import browser
from pages import forbidden


def test_it_holds_nothing_that_its_policy_refuses(judged: Path) -> None:
    assert forbidden((judged / "report.html").read_text("utf-8")) == []


@pytest.mark.slow
def test_a_browser_draws_all_of_it(judged: Path, tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as chromium:
        for width, scheme in ((1440, "light"), (1440, "dark"), (800, "light"), (800, "dark")):
            chromium.open(judged / "report.html", width, scheme)
            assert chromium.problems() == []
