"""`faithscope verify`: items measured again one by one, in float32."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faithscope.experiments.cli import execute
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.traces.verification import differences, summary, verify
from faithscope.experiments.studies.slrc.config import RunConfig


def config(folder: Path, name: str, **model: Any) -> RunConfig:
    return RunConfig.model_validate(
        {
            "name": name,
            "out": str(folder),
            "model": {"name": "planted:faithful"} | model,
            "tasks": ["planted"],
            "data": {"limit": 4},
            "probes": ["slrc", "tracing", "knockout"],
            "report": {"traces": 1, "bootstrap": 20},
        }
    )


@pytest.mark.slow
def test_packs_in_float32_differ_by_rounding_and_half_precision_by_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(config(tmp_path, "exact")).run_dir
    said: list[str] = []
    path, rows = verify(folder, 2, said.append)
    frame: Any = pd.DataFrame(rows)
    assert len(said) == 2
    assert frame["item"].nunique() == 2
    assert set(frame["probe"]) == {"slrc", "tracing", "knockout"}
    assert frame["differ"].sum() == 0
    assert set(frame.query("how == 'in packs'")["probe"]) == {"knockout"}
    assert frame["max_abs"].max() < 1e-3
    assert frame["values"].sum() > 200
    assert list(pd.read_csv(path)["field"]) == frame["field"].tolist()
    assert all("; 0 answers, texts and yes-or-no values differ" in s for s in summary(rows))

    half = run(config(tmp_path, "half", dtype="bfloat16")).run_dir
    assert execute(["verify", str(half), "--items", "1"]) == 0
    out = capsys.readouterr().out
    coarse: Any = pd.read_csv(half / "verified.csv")
    assert coarse["item"].nunique() == 1
    assert coarse["max_abs"].max() > 1e-3
    assert out.strip().splitlines()[-1] == str(half / "verified.csv")


def test_what_cannot_be_verified_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["verify", str(tmp_path / "nothing")]) == 2
    assert "no such run folder" in capsys.readouterr().err
    folder = tmp_path / "judged"
    folder.mkdir()
    (folder / "config.yaml").write_text("benchmark: c2faith\njudge: {model: planted:faithful}\n")
    with pytest.raises(ConfigError, match=r"c2faith.*TracesConfig"):
        verify(folder, 1)


def record(**fields: Any) -> dict[str, Any]:
    return {"probe": "slrc", "variant": "", "framing": "prefix", "reading": "scored"} | fields


def test_every_kind_of_difference_is_counted() -> None:
    stored = record(a=[1.0, None, 3.0], b="x", c={"p": [1, 2]}, d=[True, False], e=2.0, item="1")
    again = record(a=[1.5, None], b="y", c={"p": [1, 4]}, d=[True, True], item="2")
    rows = {row["field"]: row for row in differences([stored], [again])}
    assert set(rows) == {"a", "b", "c", "d", "e"}
    assert {k: (r["values"], r["differ"]) for k, r in rows.items()} == {
        "a": (3, 1),
        "b": (1, 1),
        "c": (2, 0),
        "d": (2, 1),
        "e": (1, 1),
    }
    assert rows["a"]["max_abs"] == 0.5
    assert rows["c"]["max_abs"] == 2
    assert math.isnan(rows["b"]["max_abs"])
    missing = list(differences([stored], []))
    assert all(row["differ"] == row["values"] for row in missing)
