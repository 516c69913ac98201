"""Numbers that no run ends with: refused before anything begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import refused, write

from faithscope.experiments.cli import execute

NUMBERS = [
    (["--shard", f"1/{'9' * 5000}"], "--shard 1/9999"),
    (["--set", "report.bootstrap=1000000000000"], "report.bootstrap: must be at most"),
    (["--set", f"data.limit={10**22}"], "data.limit: must be at most"),
    (["--set", f"data.limit={10**9}"], "data.limit: must be at most 1,000,000"),
    (["--set", f"slrc.shuffles={10**9}"], "slrc.shuffles: must be at most 10000"),
    (["--set", f"seed={2**32}"], "seed: must be at most 4294967295"),
    (["--set", "generation.temperature=.inf"], "temperature: must be a finite number"),
    (["--set", "generation.temperature=.nan"], "temperature: must be a finite number"),
]


@pytest.mark.parametrize(("options", "why"), NUMBERS)
def test_a_number_beyond_all_measure_is_refused(options: list[str], why: str) -> None:
    assert why in refused("run", "quickstart", "--dry-run", *options)


@pytest.mark.slow
def test_a_batch_may_be_larger_than_all_there_is(tmp_path: Path) -> None:
    """Time and memory used to grow with the configured batch size."""
    path = write(tmp_path, data={"limit": 1}, generation={"batch_size": 10**12})
    assert execute(["run", path]) == 0
