"""What `docs` shows of a measure that was measured: `python tools/measure_docs.py NAME [RUN]`.

It measures one chain of two planted models with the probe NAME (seconds), puts the scores into
`docs/measures/examples.json`, and writes the page `docs/measures/NAME.md`; without NAME it does so
for every probe. RUN is the folder of a run of `configs/planted.yaml` with this probe,

    faithscope run planted --set probes=[NAME] --set name=planted-NAME

whose rows replace those of the measure in `docs/planted.csv`; no other row is touched.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faithscope import interp
from faithscope.experiments.data.traces import make_traces
from faithscope.experiments.engine.traces.interactive import measure, questions
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.measures import MEASURES
from faithscope.probes import PROBES

TOOLS = Path(__file__).parent
DOCS = TOOLS.parent / "docs"
EXAMPLES, PLANTED = DOCS / "measures/examples.json", DOCS / "planted.csv"
MODELS = ("faithful", "hint")
QUESTION = 1
"""Number of the question, from 0: its last operation changes the result."""
DECIMALS = 3
"""Further decimals differ between machines, and between the packs of one machine."""


def example(probes: Sequence[str]) -> dict[str, Any]:
    """Question, chain, and measure -> model -> score, and credits of steps."""
    found: dict[str, Any] = {"scores": {}, "steps": {}}
    for name in MODELS:
        model = interp.load(f"planted:{name}")
        (trace,) = make_traces(model, questions("planted", QUESTION + 1)[QUESTION:])
        found["question"], found["chain"] = trace.question.text, trace.reasoning_text
        for probe in probes:
            records = measure(model, trace, probe) if REPORTS[probe].measures else ()
            for one in REPORTS[probe].measures:
                read = one.records(r for r in records if not r.get("excluded"))
                if read and (score := one.score(read)) is not None:
                    found["scores"].setdefault(one.name, {})[name] = _short(score)
                if read and one.steps is not None:
                    credits = one.steps(read)
                    listed = [_short(credits.get(s.index)) for s in trace.counted_steps]
                    found["steps"].setdefault(one.name, {})[name] = listed
    return found


def _short(value: float | None) -> float | None:
    if value is None or math.isnan(value):
        return None
    # + 0.0 makes minus zero zero
    return round(float(f"{value:.3g}"), DECIMALS) + 0.0


def write_examples(probes: Sequence[str]) -> None:
    """Put the examples of some probes into the stored ones, in the order of all measures."""
    stored, new = json.loads(EXAMPLES.read_text("utf-8")), example(probes)
    replaced = {m.name for probe in probes for m in REPORTS[probe].measures}
    for part in ("scores", "steps"):
        kept = {n: x for n, x in stored[part].items() if n not in replaced} | new[part]
        stored[part] = {name: kept[name] for name in MEASURES if name in kept}
    text = json.dumps(stored | {k: new[k] for k in ("question", "chain")}, allow_nan=False)
    EXAMPLES.write_text(text.replace("}, ", "},\n") + "\n", encoding="utf-8")


def write_planted(probe: str, run: Path) -> None:
    """Put the rows of a probe's measures of a run into the shipped table.

    Raises:
        SystemExit: the run has no such rows, or its table has other columns.
    """
    rows = {row["measure"]: row for row in _rows(PLANTED)}
    new = [
        row for row in _rows(run / "tables/planted.csv") if MEASURES[row["measure"]].probe == probe
    ]
    if not new:
        raise SystemExit(f"{run}/tables/planted.csv: has no row of a measure of {probe}")
    header = list(next(iter(rows.values())))
    # tables of a run say of which unit their rows are, and the shipped one is of sentences alone
    if odd := set(header) ^ (set(new[0]) - {"unit"}):
        raise SystemExit(
            f"{run}/tables/planted.csv: its columns are not those of {PLANTED.name}, which differ "
            f"in {', '.join(sorted(odd))}; run every measure again, or the models that are missing"
        )
    new = [{column: row[column] for column in header} for row in new]
    kept = {n: row for n, row in rows.items() if n in MEASURES and MEASURES[n].probe != probe}
    kept |= {row["measure"]: row for row in new}
    with PLANTED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[name] for name in MEASURES if name in kept)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    name, run = [*sys.argv[1:], None, None][:2]
    if name is not None and name not in PROBES:
        raise SystemExit(f"no probe {name!r}; there are {', '.join(PROBES)}")
    if name and run:
        write_planted(name, Path(run))
    write_examples([name] if name else list(PROBES))
    # a process of its own, since the pages are made of what was just written
    subprocess.run(
        [sys.executable, TOOLS / "reference.py", *([f"measures/{name}.md"] if name else [])]
    )


if __name__ == "__main__":
    main()
