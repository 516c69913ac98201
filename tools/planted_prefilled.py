"""Rows of `prefilled_reasoning` in `docs/planted.csv`: `python tools/planted_prefilled.py`.

The chains of the shipped run on planted models have no prefilled reasoning. Here every model of
that run reads its own chain with another result in the last step, as r′; the table `planted` of
this run gives the rows of the measure, and those of the other measures stay as they are (five
minutes on one core).
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope import interp
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.tasks import get_task
from faithscope.experiments.data.traces import TraceSettings, make_traces
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.traces.config import TracesConfig
from faithscope.experiments.engine.traces.plan import questions_of

FILE = Path(__file__).parents[1] / "docs/planted.csv"
PROBE = "prefilled_reasoning"


def chains(config: TracesConfig) -> Iterator[dict[str, Any]]:
    """Rows of given chains: every model's own, with another digit in place of its last."""
    for name, task_name in config.pairs:
        model, task = interp.load(name), get_task(task_name)
        questions = questions_of(config, task, [])
        traces = make_traces(model, [(task, q) for q in questions], TraceSettings(batch_size=30))
        for trace in traces:
            text = trace.reasoning_text
            other = re.sub(r"\d(?=\D*$)", lambda m: str((int(m[0]) + 3) % 10), text)
            yield {
                "id": trace.question.id,
                "dataset": task_name,
                "kind": "label",
                "question": trace.question.text,
                "options": list(trace.question.options or ()),
                "gold": trace.question.gold,
                "reasoning": other,
                "prefilled": other,
                "answer": trace.answer,
                "model": name,
            }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chains.jsonl"
        shipped = load_config("planted", must_be=TracesConfig)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in chains(shipped)), "utf-8")
        given = {"path": path, "read_by": "writer"}
        overrides = [f"traces.{key}={value}" for key, value in given.items()]
        overrides += [f"probes=[{PROBE}]", f"out={folder}", "name=prefilled"]
        folder_of_run = run(load_config("planted", overrides)).run_dir
        made = pd.read_csv(folder_of_run / "tables/planted.csv", dtype=str, keep_default_na=False)
    others = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    kept = others.loc[~others["measure"].isin(made["measure"])]
    pd.concat([kept, made[list(others)]]).to_csv(FILE, index=False)


if __name__ == "__main__":
    main()
