"""Spans that no chain of a run can have end its dry run; those of single chains are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bad_input import refused, write
from run_files import write_rows

import faithscope
from faithscope.experiments.cli import execute

RUN: dict[str, Any] = {
    "probes": ["span_knockout"],
    "spans": {"check": {"tag": "kind", "is": "sum"}},
    "span_knockout": {"cuts": {"c": "answer x check", "d": "answer x prompt"}},
    "tasks": [],
    "data": {},
    "slrc": {},
}


def row(name: str, first: int, **labels: Any) -> dict[str, Any]:
    texts = [f"So {first} + 4 makes {first + 4} .", f"So {first + 4} + 1 makes {first + 5} ."]
    return {
        "id": name,
        "question": f"Compute {first} + 4 + 1 mod 10 . Hint : {first + 5} .",
        "kind": "label",
        "options": ["7", "8"],
        "gold": str(first + 5),
        "steps": [{"text": texts[0], **labels}, {"text": texts[1]}],
        "reasoning": " ".join(texts),
        "answer": str(first + 5),
        "dataset": "planted",
    }


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    return write_rows(folder / "rows.jsonl", row("a", 2, label_kind="sum"), row("b", 3))


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"spans": {"a": "promt"}}, ["spans", "did you mean 'prompt'"]),
        ({"probes": ["slrc"]}, ["spans: none of slrc takes spans", "span_knockout"]),
        (
            {"span_knockout": {"cuts": {"c": "answer x chec"}}},
            ["span_knockout.spans: unknown span 'chec'; did you mean 'check'"],
        ),
        (
            {"span_knockout": {"cuts": {"c": "answer x cue"}}},
            ["span_knockout.spans", "the cue of given chains, and none here has one"],
        ),
        (
            {"spans": {"check": {"tag": "kin", "is": "sum"}}},
            ["spans.check: no chain has step labels 'kin'; did you mean 'kind'?"],
        ),
        (
            {"spans": {"check": {"tag": "kind", "is": "product"}}},
            ["spans.check: no step has kind: 'product'; it is sum"],
        ),
    ],
)
def test_a_span_that_can_never_be_there_ends_the_dry_run(
    values: dict[str, Any], parts: list[str], chains: Path, tmp_path: Path
) -> None:
    whole = RUN | {"traces": {"path": str(chains)}} | values
    line = refused("run", write(tmp_path, **whole), "--dry-run")
    assert all(part in line for part in parts), line


def test_a_chain_without_the_span_is_left_out_for_its_cut_alone(
    chains: Path, tmp_path: Path, capsys: Any
) -> None:
    path = write(tmp_path, **RUN | {"traces": {"path": str(chains)}})
    assert execute(["run", path]) == 0
    windows = ", ".join(f"span_knockout.c.{w}" for w in ("all", "1-1", "2-2", "3-3"))
    lacks = "1 of 2 measured; left out: 1 because span not found: check"
    assert f"{windows}: {lacks}" in capsys.readouterr().err
    opened = faithscope.load_run(tmp_path / "t")
    table = opened.tables["span_knockout"]
    whole = table[table["window"] == "all"].set_index("cut")
    assert whole["n"].tolist() == [1, 2]
    assert whole.index.tolist() == ["c", "d"]
    found = opened.tables["exclusions"].set_index(["stage", "reason"])["n"]
    assert found["span_knockout.c.1-1", "span_not_found: check"] == 1
    assert "not_run" not in found.index.get_level_values("reason")
