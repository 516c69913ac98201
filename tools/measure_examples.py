"""Every measure on one chain of two planted models, for the pages of `docs/measures`.

`python tools/measure_examples.py` writes `docs/measures/examples.json` (a minute on one core).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from tqdm import tqdm

from faithscope import interp
from faithscope.experiments.data.traces import make_traces
from faithscope.experiments.engine.traces.interactive import measure, questions
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.probes import PROBES

FILE = Path(__file__).parents[1] / "docs/measures/examples.json"
MODELS = ("faithful", "hint")
QUESTION = 1
"""Number of the question, from 0: its last operation changes the result."""


def example() -> dict[str, Any]:
    """Question, chain, and model -> measure -> score and credits of steps."""
    found: dict[str, Any] = {"scores": {}, "steps": {}}
    for name in MODELS:
        model = interp.load(f"planted:{name}")
        (trace,) = make_traces(model, questions("planted", QUESTION + 1)[QUESTION:])
        found["question"], found["chain"] = trace.question.text, trace.reasoning_text
        for probe in tqdm(PROBES, desc=name, disable=None):
            report = REPORTS[probe]
            if not report.measures:
                continue
            records = measure(model, trace, probe)
            for one in report.measures:
                read = one.records(r for r in records if not r.get("excluded"))
                if not read:
                    continue
                if (score := one.score(read)) is not None:
                    found["scores"].setdefault(one.name, {})[name] = _short(score)
                if one.steps is not None:
                    credits = one.steps(read)
                    listed = [credits.get(s.index) for s in trace.counted_steps]
                    found["steps"].setdefault(one.name, {})[name] = [_short(x) for x in listed]
    return found


def _short(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(f"{value:.3g}")


def main() -> None:
    text = json.dumps(example(), allow_nan=False, indent=None, separators=(", ", ": "))
    FILE.write_text(text.replace("}, ", "},\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
