"""The units of work of a run, and which of them are done; reads no weights."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.config import ConfigError, RunConfig
from experiments.folder import SCHEMA
from experiments.measures import PROBES
from experiments.store import Key, Unit, read_units, unit_id
from experiments.tasks import LoadSettings, Task, get_task
from interp.sources import PACKAGED
from interventions.trace import Question

STEPS_GUESSED = 5
"""Steps per trace in estimates made before the traces exist."""


@dataclass(frozen=True)
class Item:
    """One question that one model is asked, and the ids of its units."""

    model: str
    task: Task
    question: Question
    trace: str
    """Unit id of its trace."""
    probes: dict[str, str]
    """Probe -> unit id."""

    def key(self, stage: str) -> Key:
        return (stage, self.model, self.task.name, self.question.id)


@dataclass(frozen=True)
class Plan:
    """Every item of a run, in the order it is worked on."""

    config: RunConfig
    items: tuple[Item, ...]

    def of(self, model: str) -> list[Item]:
        return [i for i in self.items if i.model == model]


@dataclass(frozen=True)
class Shard:
    """The K-th of N parts of a run, K from 0. Whole batches go to one part."""

    index: int = 0
    of: int = 1

    @property
    def worker(self) -> str:
        return "main" if self.of == 1 else f"{self.index + 1}of{self.of}"

    def mine(self, items: Sequence[Item], batch_size: int) -> list[list[Item]]:
        """The generation batches of this part: cut from all items, so that neither a resume
        nor another number of parts changes the company in which an item is generated."""
        batches = [list(items[i : i + batch_size]) for i in range(0, len(items), batch_size)]
        return batches[self.index :: self.of]


def parse_shard(text: str | None) -> Shard:
    """`2/8` is the second of eight parts.

    Raises:
        ConfigError: anything else.
    """
    if text is None:
        return Shard()
    found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise ConfigError([f"--shard {text}: expected K/N with 1 <= K <= N, e.g. --shard 2/8"])
    return Shard(int(found[1]) - 1, int(found[2]))


def plan(config: RunConfig) -> Plan:
    """Load the questions and name every unit.

    Raises:
        ConfigError: data that cannot be read, or holds no question.
    """
    questions = {task: _questions(config, get_task(task)) for task in config.tasks}
    weights = {model: fingerprint(model, config.model.revision) for model in config.model.name}
    items = [
        _item(config, model, weights[model], get_task(task), question)
        for model, task in config.pairs
        for question in questions[task]
    ]
    return Plan(config, tuple(items))


def _questions(config: RunConfig, task: Task) -> list[Question]:
    settings = LoadSettings(
        path=config.data.path_of(task.name),
        limit=config.data.limit_of(task.name),
        seed=config.seed,
        split=config.data.split,
    )
    try:
        questions = list(task.load(settings))
    except (ValueError, OSError) as error:
        message = " ".join(str(error).split())
        name = f"task {task.name!r}"
        raise ConfigError([message if name in message else f"{name}: {message}"]) from error
    if not questions:
        raise ConfigError([f"task {task.name!r}: no questions; check data.path and data.split"])
    twice = [q for q, n in Counter(q.id for q in questions).items() if n > 1]
    if twice:
        raise ConfigError([f"task {task.name!r}: two questions have the id {twice[0]!r}"])
    return questions


def _item(
    config: RunConfig, model: str, weights: str | None, task: Task, question: Question
) -> Item:
    c = config.slrc
    trace = unit_id(
        schema=SCHEMA,
        model=model,
        weights=weights,
        held={k: v for k, v in config.model.model_dump().items() if k != "name"},
        question=asdict(question),
        prompt=task.cot_prompt(question),
        generation=config.generation.model_dump(),
        steps=(c.segmentation, c.min_step_chars, c.conclusion),
        seed=config.seed,
    )
    probes = {
        name: unit_id(
            trace=trace,
            probe=name,
            words=PROBES[name].words(task, question),
            settings=PROBES[name].settings(config),
        )
        for name in config.probes
    }
    return Item(model, task, question, trace, probes)


def fingerprint(model: str, revision: str | None) -> str | None:
    """What tells these weights from others of the same name, without reading them all."""
    scheme, _, rest = model.partition(":")
    if scheme == "bundled" and rest in PACKAGED:
        return PACKAGED[rest].sha256
    if scheme == "planted":
        from experiments import planted

        return _folder_fingerprint(planted.path(rest))
    path = Path(model).expanduser()
    return _folder_fingerprint(path) if path.exists() else revision


def _folder_fingerprint(path: Path) -> str:
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name}:{size}:".encode())
        with file.open("rb") as opened:
            digest.update(opened.read(1 << 20))
            if size > 1 << 20:
                opened.seek(max(1 << 20, size - (1 << 20)))
                digest.update(opened.read())
    return digest.hexdigest()


def is_done(units: dict[Key, Unit], key: Key, unit: str) -> bool:
    """Stored, not failed, and made from what would make it now."""
    stored = units.get(key)
    return stored is not None and stored.unit == unit and stored.failed is None


@dataclass(frozen=True)
class Count:
    """How far one model is with one task."""

    model: str
    task: str
    items: int
    traces: int
    probed: int
    """Items that lack no probe: none is missing that their trace lets run."""
    failed: int


def counts(plan: Plan) -> list[Count]:
    units = read_units(plan.config.run_dir)
    out = []
    for model, task in plan.config.pairs:
        items = [i for i in plan.items if (i.model, i.task.name) == (model, task)]
        traced = [i for i in items if is_done(units, i.key("trace"), i.trace)]
        probed = [i for i in traced if not missing(units, i)]
        failed = [
            i
            for i in items
            if any((u := units.get(i.key(s))) and u.failed for s in ("trace", *i.probes))
        ]
        out.append(Count(model, task, len(items), len(traced), len(probed), len(failed)))
    return out


def excluded(units: dict[Key, Unit], item: Item) -> str | None:
    """Why the stored trace of an item is not probed, if it is not."""
    records = units[item.key("trace")].records
    return records[0].get("excluded")


def missing(units: dict[Key, Unit], item: Item) -> list[str]:
    """The probes that an item with a stored trace still lacks.

    An excluded trace lacks only those that ask about the question alone.
    """
    skipped = excluded(units, item)
    return [
        name
        for name, unit in item.probes.items()
        if (PROBES[name].on_excluded or not skipped) and not is_done(units, item.key(name), unit)
    ]


def summary(plan: Plan) -> str:
    """What a run would do, for `--dry-run`."""
    config = plan.config
    rows = counts(plan)
    branches = sum(PROBES[p].branches(STEPS_GUESSED, config) for p in config.probes)
    lines = [f"run folder  {config.run_dir}", f"probes      {', '.join(config.probes)}", ""]
    header = ("model", "task", "items", "traces to write", "items to probe", "branches, about")
    table = [
        (
            r.model,
            r.task,
            r.items,
            r.items - r.traces,
            r.items - r.probed,
            (r.items - r.probed) * branches,
        )
        for r in rows
    ]
    lines += _columns([header, *table, _total(table)])
    lines += ["", f"branches are estimated at {STEPS_GUESSED} steps per trace"]
    return "\n".join(lines)


def status_lines(plan: Plan) -> list[str]:
    """How far a run is, for `faithscope status`."""
    rows = counts(plan)
    header = ("model", "task", "items", "traces", "probed", "failed")
    table = [(r.model, r.task, r.items, r.traces, r.probed, r.failed) for r in rows]
    whole = sum(r.items for r in rows)
    left = whole - sum(r.probed for r in rows)
    failed = sum(r.failed for r in rows)
    if not left:
        verdict = "complete" if _has_report(plan) else "complete but for its report"
    else:
        verdict = f"{left} of {whole} items to go" + (
            f", {failed} of them failed" if failed else ""
        )
    return [f"{plan.config.run_dir}: {verdict}", "", *_columns([header, *table, _total(table)])]


def _has_report(plan: Plan) -> bool:
    return (plan.config.run_dir / "report.html").is_file()


def _total(table: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return ("total", "", *(sum(row[i] for row in table) for i in range(2, len(table[0]))))


def _columns(table: Sequence[Sequence[Any]]) -> list[str]:
    widths = [max(len(str(row[i])) for row in table) for i in range(len(table[0]))]
    return [
        "  ".join(
            str(cell).rjust(width) if i > 1 else str(cell).ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
