"""Numbers that no run ends with: refused before anything begins."""

from __future__ import annotations

import pytest

from faithscope.experiments.cli import execute

NUMBERS = [
    (["--shard", f"1/{'9' * 5000}"], "--shard 1/9999"),
    (["--set", "report.bootstrap=1000000000000"], "report.bootstrap: must be at most"),
    (["--set", f"data.limit={10**22}"], "data.limit: must be at most"),
    (["--set", f"seed={2**32}"], "seed: must be at most 4294967295"),
    (["--set", "generation.temperature=.inf"], "temperature: must be a finite number"),
    (["--set", "generation.temperature=.nan"], "temperature: must be a finite number"),
]


@pytest.mark.parametrize(("options", "why"), NUMBERS)
def test_a_number_beyond_all_measure_is_refused(
    capsys: pytest.CaptureFixture[str], options: list[str], why: str
) -> None:
    assert execute(["run", "quickstart", "--dry-run", *options]) == 2
    assert why in capsys.readouterr().err
