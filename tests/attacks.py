"""Attacks on runs, repeated and counted: kills, bad inputs, damage, hostile programs.

    python tests/attacks.py [--only sandbox|inputs|kills|damage] [--kills N] [--most N]

repeats all attacks of the tests on faithscope, prints for each class how many were tried and
repelled, names those that succeeded, and writes `benchmarks/results/attacks_<machine>.csv`, a row
per attack, so that two versions of the code can be compared by `diff`; with `--only`, it rewrites
the rows of that kind. The exit code is 1 if an attack succeeded.

- `kills`: real `faithscope run` processes get SIGKILL, at random moments and in every stage of
  every study; the continued run must give the same bytes.
- `inputs`: configs, overrides, data, models. Each must be refused with exit code 2 and a line that
  names the fault, without traceback, within `PATIENCE`.
- `damage`: a run folder is damaged; see `tests/experiments/damage.py`.
- `sandbox`: programs try to leave the sandbox or to cheat the score; see `hostile_programs.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

TESTS = Path(__file__).parent
ROOT = TESTS.parent
FOLDERS = ("interp", "probes", "experiments", "experiments/engine", "experiments/config")
FOLDERS += ("experiments/data/tasks", "experiments/extras", "conformance")
FOLDERS += tuple(str(p.relative_to(TESTS)) for p in TESTS.glob("experiments/studies/*/"))
# the folders in which pytest finds shared helpers
sys.path[:0] = [str(p) for p in (ROOT, ROOT / "tools", ROOT / "benchmarks", TESTS)]
sys.path[:0] = [str(TESTS / folder) for folder in FOLDERS]
os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "OPENAI_API_KEY": "sk-planted"}

import hostile_inputs  # noqa: E402
import pandas as pd  # noqa: E402
import reference  # noqa: E402
import run_folders  # noqa: E402
import yaml  # noqa: E402
from bad_input import asking, said_by, write  # noqa: E402
from broken_models import random_llama  # noqa: E402
from cases import CASES, Setting, models, run_folder  # noqa: E402
from damage import HELD, WAYS, Damaged  # noqa: E402
from hostile_programs import HOSTILE  # noqa: E402
from tqdm import tqdm  # noqa: E402

from faithscope.experiments.engine.store import read_failures  # noqa: E402
from faithscope.experiments.extras.sandbox.sandbox import (  # noqa: E402
    run_tests,
    unavailable,
)
from faithscope.interp import prompts  # noqa: E402

T = TypeVar("T")
PATIENCE = 120
"""Seconds within which an input must be refused."""
LATEST = 0.95
"""Latest time of a random kill, as a share of the duration of an undisturbed run."""


@dataclass(frozen=True)
class Attack:
    """One attack, and its result."""

    kind: str
    group: str
    name: str
    came: str
    held: bool


# --- kills


def kills(folder: Path, n: int, most: int | None) -> Iterator[Attack]:
    tiny = models(folder / "models")
    for study, case in CASES.items():
        if study == "toy":
            continue
        setting = Setting(folder / study, tiny)
        setting.folder.mkdir()
        path = case.here(setting)
        began = time.monotonic()
        ended = run_folders.signalled(path, lambda: False)
        seconds = time.monotonic() - began
        if ended.code != 0:
            came = f"exit code {ended.code}: {ended.err[-300:]}"
            yield Attack("kills", study, "the run that nothing disturbs", came, False)
            continue
        whole, rng = run_folder(path), random.Random(0)
        moments: dict[str, Callable[[Path], Callable[[], bool]]] = {
            f"in the stage {stage}": partial(_stored, stage=stage, later=rng.random() * 0.02)
            for stage in case.stages
        }
        for k in range(n):
            later = rng.random() * LATEST * seconds
            moments[f"at random moment {k + 1}"] = partial(_after, seconds=later)
        for number, (name, reached) in enumerate(_some(list(moments.items()), most)):
            at = Setting(folder / f"{study}{number}", tiny)
            at.folder.mkdir()
            path = case.here(at)
            ended = run_folders.signalled(path, reached(run_folder(path)))
            came = _resumed(path, whole) if ended.code == -signal.SIGKILL else "over before"
            yield Attack("kills", study, name, came, came == "the same bytes")
            shutil.rmtree(at.folder)


def _some(attacks: list[T], most: int | None) -> list[T]:
    """At most `most` attacks, drawn with a fixed seed, in their order."""
    n = len(attacks) if most is None else min(most, len(attacks))
    return [attacks[i] for i in sorted(random.Random(0).sample(range(len(attacks)), n))]


def _stored(run_dir: Path, stage: str, later: float) -> Callable[[], bool]:
    def reached() -> bool:
        if there := bool(run_folders.lines(run_dir, stage)):
            time.sleep(later)
        return there

    return reached


def _after(_: Path, seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def _resumed(path: Path, whole: Path) -> str:
    """Continues a killed run by the same command; returns the first fault, or "the same bytes"."""
    run_dir, ended = run_folder(path), said_by("run", str(path))
    if ended.code != 0:
        return f"exit code {ended.code}: {ended.err[-200:]}"
    checks = {
        "units are lost or doubled": run_folders.keys(run_dir) == run_folders.keys(whole),
        "other bytes": run_folders.outputs(run_dir) == run_folders.outputs(whole),
        "failed units": read_failures(run_dir) == [],
        "files half written": run_folders.half_written(run_dir) == [],
    }
    return next((wrong for wrong, holds in checks.items() if not holds), "the same bytes")


# --- inputs


def inputs(folder: Path, *_: Any) -> Iterator[Attack]:
    prompts.TEMPLATE_SECONDS = 2.0
    for number, (group, name, given) in enumerate(_inputs()):
        at = folder / str(number)
        at.mkdir()
        try:
            with _within(PATIENCE):
                arguments, parts = given(at)
                came = said_by("run", *arguments).wrong(*parts)
        except TimeoutError:
            came = f"not refused in {PATIENCE} s"
        yield Attack("inputs", group, name, came or "refused", not came)
        shutil.rmtree(at)


Given = Callable[[Path], tuple[Sequence[str], Sequence[str]]]
"""Given a folder, returns arguments of `run` and the words that the error must contain."""


def _inputs() -> Iterator[tuple[str, str, Given]]:
    """Yields (group, name, input) for every bad input."""
    for text, parts in hostile_inputs.CONFIGS:
        yield "config", text, lambda at, t=text, p=parts: ([_config(at, t)], ["x.yaml", *p])
    for text, why in hostile_inputs.TEXTS:
        yield "config", why, lambda at, t=text, w=why: ([_text(at, t)], ["x.yaml", w])
    for value in hostile_inputs.OVERRIDES:
        given = ["quickstart", "--dry-run", "--set", f"seed={value}"]
        yield "override", ascii(value)[:30], lambda _, g=given: (g, ["--set seed", "not YAML"])
    for options, why in hostile_inputs.NUMBERS:
        given = ["quickstart", "--dry-run", *options]
        yield "override", " ".join(options)[:60], lambda _, g=given, w=why: (g, [w])
    for study in reference._studies():
        config = "quickstart" if study.unnamed else study.name
        for cell, *_ in reference._keys(study.kind):
            key = cell.strip("`")
            given = [config, "--dry-run", "--set", f"{key}=[[[]]]"]
            yield "value of a key", f"{study.name}: {key}", lambda _, g=given, k=key: (g, [k])
    for name, (suffix, content, parts) in hostile_inputs.CASES.items():
        file = f"mine.{suffix}" if suffix else "mine"
        yield "data", name, lambda at, f=file, c=content, p=parts: (_data(at, f, c, "own"), p)
    for task, row, part in hostile_inputs.ROWS:
        content = hostile_inputs.lines(row)
        yield (
            "data",
            f"{task}: {part}",
            lambda at, c=content, t=task, p=part: (_data(at, "mine.jsonl", c, t), ["line 1", p]),
        )
    for make, part in hostile_inputs.MODELS:
        yield "model", part, lambda at, m=make, p=part: ([_model(at, m)], [p])
    for template, why in hostile_inputs.TEMPLATES:
        yield "model", template, lambda at, t=template, w=why: ([_templated(at, t)], [w])
    meta = ["quickstart", "--set", "model.device=meta"]
    yield "model", "model.device=meta", lambda at: ([*meta, "--set", f"out={at}"], ["meta"])


def _config(at: Path, text: str) -> str:
    path = Path(write(at))
    if not text.startswith("name:"):
        text = yaml.safe_dump(yaml.safe_load(path.read_text()) | yaml.safe_load(text))
    return _text(at, text)


def _text(at: Path, text: str) -> str:
    (at / "x.yaml").write_text(text)
    return str(at / "x.yaml")


def _data(at: Path, file: str, content: bytes, task: str) -> list[str]:
    (at / file).write_bytes(content)
    model = {"name": "bundled:smollm2-135m"}
    data = {"path": str(at / file)}
    return [write(at, model=model, tasks=[task], data=data), "--dry-run"]


def _model(at: Path, make: Callable[[Path], str]) -> str:
    return asking(at, Path(make(at / "model")), ["What is 1 + 1?"])


def _templated(at: Path, template: str) -> str:
    model = random_llama(at / "model")
    for file in model.glob("*.jinja"):
        file.unlink()
    settings = model / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"chat_template": template}))
    return asking(at, model, ["What is 1 + 1?"])


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def end(*_: Any) -> None:
        raise TimeoutError

    # not SIGALRM: chat templates are ended by that one, where nobody else waits for it
    before = signal.signal(signal.SIGUSR1, end)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)


# --- damage and programs


def damage(folder: Path, _: int, most: int | None) -> Iterator[Attack]:
    whole = Damaged(folder)
    files = dict.fromkeys(file for file, _ in WAYS.values())
    ways = [_some([way for way in WAYS if WAYS[way][0] == file], most) for file in files]
    for number, name in enumerate(chain.from_iterable(ways)):
        at = folder / str(number)
        at.mkdir()
        try:
            came = whole.after(name, at)
        except Exception as error:
            came = f"a traceback: {type(error).__name__}: {error}"[:200]
        yield Attack("damage", WAYS[name][0], name, came, came in HELD)
        shutil.rmtree(at)


def sandbox(*_: Any) -> Iterator[Attack]:
    if reason := unavailable():
        raise SystemExit(f"programs cannot be tried here: {reason}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        for group, programs in HOSTILE.items():
            for program in programs:
                code = program.code.replace("PORT", port)
                came = run_tests(program.tests, code, program.limits).runs[-1].outcome
                yield Attack("sandbox", group, program.name, came, came == program.expected)


KINDS = {"sandbox": sandbox, "inputs": inputs, "kills": kills, "damage": damage}


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.partition(": ")[2] for line in lines if "model name" in line), cpu)
    python = f"Python {platform.python_version()}"
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {python}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--kills", type=int, default=4, help="random ones, of each study")
    parser.add_argument("--most", type=int, help="kills of each study, and damages of each file")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    attacks: list[Attack] = []
    for kind in [args.only] if args.only else KINDS:
        with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
            tried = KINDS[kind](Path(folder), args.kills, args.most)
            attacks += tqdm(tried, desc=kind, disable=None)
    table = pd.DataFrame([asdict(attack) for attack in attacks])
    counts = table.groupby(["kind", "group"], sort=False)["held"].agg(tried="size", held="sum")
    print(machine())
    print(counts.to_string())
    print(table.groupby("kind", sort=False)["held"].agg(tried="size", held="sum").to_string())
    failed = [attack for attack in attacks if not attack.held]
    for attack in failed:
        print(f"did not hold: {attack.kind}: {attack.name}: {attack.came}")
    out = ROOT / "benchmarks/results" / f"attacks_{args.machine}.csv"
    if args.only and out.is_file():
        others = pd.read_csv(out, dtype={"held": object}, keep_default_na=False)
        table = pd.concat([others[~others["kind"].isin(["machine", args.only])], table])
    table = table.sort_values("kind", kind="stable")
    about = pd.DataFrame([{"kind": "machine", "name": machine()}])
    pd.concat([about, table])[list(Attack.__annotations__)].to_csv(out, index=False)
    sys.exit(len(failed) > 0)


if __name__ == "__main__":
    main()
