"""Numbers that no run ends with: refused before anything begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import refused, write
from hostile_inputs import NUMBERS

from faithscope.experiments.cli import execute


@pytest.mark.parametrize(("options", "why"), NUMBERS)
def test_a_number_beyond_all_measure_is_refused(options: list[str], why: str) -> None:
    assert why in refused("run", "quickstart", "--dry-run", *options)


@pytest.mark.slow
def test_a_batch_may_be_larger_than_all_there_is(tmp_path: Path) -> None:
    """Time and memory used to grow with the configured batch size."""
    path = write(tmp_path, data={"limit": 1}, generation={"batch_size": 10**12})
    assert execute(["run", path]) == 0
