"""Where the processor time of a run goes: prefill, decoding, tokens behind numbers, and Python.

`python benchmarks/run_shares.py configs/slrc.yaml --set tasks=[gsm8k] --set data.limit=6` runs each
config in this process and writes `benchmarks/results/run_shares_<machine>.csv`.

Columns:
    code        version of the package that ran (`--code`)
    config      name of the config; `settings` are the keys set, without paths
    seconds     process CPU time from the first forward to the end of tables, figures and page
    prefill     share of the seconds in prefills, of traces and of packs
    decoding    share in decoding, of traces, regenerations and answers
    boundaries  share in tokens that are run after separators of numbers
    other       share outside these: probes, files, tables, figures, the page
    forwards    share inside the model's own forwards of these phases; the rest of them is Python
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from items_at_once import PHASES

from faithscope.experiments import cli
from faithscope.interp import execute

KEYS = ["code", "config", "settings"]


class Clock:
    """Process CPU time spent in some functions; a call within another counts once."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.first: float | None = None
        """When the first of the functions was called."""
        self._within = set[str]()

    def timing(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if name in self._within:
                return function(*args, **kwargs)
            self._within.add(name)
            start = time.process_time()
            self.first = self.first or start
            try:
                return function(*args, **kwargs)
            finally:
                self._within.remove(name)
                self.spent[name] = self.spent.get(name, 0.0) + time.process_time() - start

        return run


def shares(config: Path, settings: list[str]) -> dict[str, float]:
    """Shares of the seconds of a run, in a folder of its own."""
    clock = Clock()
    usual = {of: getattr(*of) for of in (*PHASES, (execute, "forward"))}
    for of, function in usual.items():
        setattr(*of, clock.timing(PHASES.get(of, "forwards"), function))
    try:
        with tempfile.TemporaryDirectory() as folder:
            asked = [arg for one in (*settings, f"out={folder}") for arg in ("--set", one)]
            code = cli.execute(["run", str(config), *asked])
    finally:
        for of, function in usual.items():
            setattr(*of, function)
    if code:
        sys.exit(f"{config}: ended with {code}")
    assert clock.first is not None
    total = time.process_time() - clock.first
    row = {name: clock.spent.get(name, 0.0) / total for name in (*PHASES.values(), "forwards")}
    other = 1 - sum(row[name] for name in PHASES.values())
    return {"seconds": round(total, 1)} | row | {"other": other}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("configs", nargs="+", type=Path)
    parser.add_argument("--set", action="append", default=[], help="a config key, KEY=VALUE")
    parser.add_argument("--code", default="here")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    out = Path(__file__).parent / "results" / f"run_shares_{args.machine}.csv"
    for config in args.configs:
        row = {"code": args.code, "config": config.stem}
        row |= {"settings": " ".join(x for x in args.set if "path" not in x)}
        table = pd.DataFrame([row | shares(config, args.set)]).round(3)
        if out.is_file():
            table = pd.concat([pd.read_csv(out), table]).drop_duplicates(KEYS, keep="last")
        table.to_csv(out, index=False)
        print(table.to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
