"""A run of a model that accelerate spreads over two devices, from config to tables."""

from __future__ import annotations

import json
from pathlib import Path

import emulated_devices
import pandas as pd
import pytest
from bad_input import write
from default_probes import AS_THEY_ARE
from emulated_devices import memories

from faithscope.experiments.cli import execute
from faithscope.probes import PROBES


@pytest.mark.slow
def test_a_run_on_two_devices_has_the_tables_of_one_on_the_cpu(tmp_path: Path) -> None:
    emulated_devices.require()
    runs = {}
    # an emulated device has no queue for gradients, and this probe trains
    probes = [name for name in AS_THEY_ARE if PROBES[name].trained is None]
    for name, model in (("cpu", {"device": "cpu"}), ("two", {"device_map": "auto"})):
        (tmp_path / name).mkdir()
        config = write(tmp_path / name, probes=probes, model={"name": "planted:faithful"} | model)
        with memories(2**30, 2**30):
            # it writes no natural language, of which some probes measure nothing
            assert execute(["run", config]) == 3
        runs[name] = tmp_path / name / "t"
    tables = {path.name for path in (runs["cpu"] / "tables").glob("*.csv")}
    assert tables == {path.name for path in (runs["two"] / "tables").glob("*.csv")}
    assert len(tables) > 20
    for name in sorted(tables):
        one, two = (pd.read_csv(runs[run] / "tables" / name) for run in ("cpu", "two"))
        pd.testing.assert_frame_equal(one, two, rtol=1e-3, atol=1e-4, obj=name)
    noted = json.loads((runs["two"] / "environment.json").read_text())["models"]
    assert noted["planted:faithful"]["device"] == "emulated:0, emulated:1"
