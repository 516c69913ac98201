"""Benchmark of the explorer page's speed in headless Chromium: 2,000 traces × 40 measures.

`python benchmarks/explorer.py` writes `benchmarks/results/explorer_<machine>.csv`, a row per number
of traces: bytes of the file, process CPU seconds to write it, milliseconds to the first paint, from
the start of the navigation, and of a change of a filter, until list and scatter are drawn and laid
out (`filter_ms`) and until the heat map is, too (`whole_ms`), and until an opened trace is there
(`open_ms`): medians.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "experiments"))

from browser import Browser, browser  # pyright: ignore[reportMissingImports]
from synthetic_comparison import comparison  # pyright: ignore[reportMissingImports]

from faithscope.experiments.analysis.explorer.page import write_explorer

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
FILTER = """(async () => {
  const model = document.getElementById('model');
  const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const took = [];
  for (let k = 0; k < 12; k++) {
    model.value = model.options[k % model.options.length].value;
    await frame();
    const begin = performance.now();
    model.dispatchEvent(new Event('change'));
    document.body.getBoundingClientRect();
    const drawn = performance.now();
    const heat = document.getElementById('agreement').dataset;
    const shown = parseInt(document.getElementById('count').textContent.replace(',', ''));
    while (heat.of != shown) await new Promise(done => setTimeout(done));
    document.body.getBoundingClientRect();
    took.push([drawn - begin, performance.now() - begin]);
  }
  return took;
})()"""
OPEN = """(async () => {
  const took = [];
  for (const at of [0, 5, 25, 60, 90]) {
    const begin = performance.now();
    document.querySelectorAll('#list tbody tr')[at].click();
    const name = document.querySelectorAll('#list tbody tr')[at].cells[0].textContent;
    while (!document.querySelector('#items h3')?.textContent.startsWith(name))
      await new Promise(done => setTimeout(done, 1));
    took.push(performance.now() - begin);
  }
  return took;
})()"""


def measured(chromium: Browser, path: Path) -> dict[str, float]:
    paints = []
    for _ in range(3):
        chromium.open(path)
        while (paint := chromium.evaluate(PAINT)) is None:
            pass
        paints.append(paint)
    took = chromium.evaluate(FILTER)
    filters, wholes = (statistics.median(x) for x in zip(*took, strict=True))
    opened = statistics.median(chromium.evaluate(OPEN))
    assert chromium.console == [], chromium.console
    return {
        "first_paint_ms": statistics.median(paints),
        "filter_ms": filters,
        "whole_ms": wholes,
        "open_ms": opened,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--measures", type=int, default=40)
    parser.add_argument("--machine", default=f"{platform.machine()}-{os.cpu_count()}core")
    args = parser.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "explore.html"
        with browser(Path(folder) / "profile") as chromium:
            for n in args.traces:
                compared = comparison(n, args.measures, steps=10, layers=32)
                begin = time.process_time()
                write_explorer(path, compared)
                row = {"traces": n, "measures": args.measures, "bytes": path.stat().st_size}
                row["write_cpu_s"] = time.process_time() - begin
                table.append(row | measured(chromium, path))
                print(table[-1], flush=True)
    frame = pd.DataFrame(table).round(1)
    frame["run"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    into = Path(__file__).parent / "results" / f"explorer_{args.machine}.csv"
    frame.to_csv(into, index=False)
    print(into)


if __name__ == "__main__":
    main()
