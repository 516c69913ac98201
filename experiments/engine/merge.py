"""Merges the shards of a run: checks that none is missing, and joins separate folders into one.

Shards that worked in one folder need no joining. Shards in folders of their own (from nodes without
a common disk) are copied into one folder, each unit once.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.append import Appender, cut_torn_line, whole_lines
from faithscope.experiments.engine.arrays import beside, read_blob
from faithscope.experiments.engine.folder import (
    differences,
    existing_run,
    has_records,
    read_config,
    read_environment,
    stored_config,
    write_environment,
)
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models import account
from faithscope.experiments.engine.plan import BENCHMARK, PROMPTS
from faithscope.experiments.engine.planfile import Shard, StoredPlan
from faithscope.experiments.engine.store import hold, record_file
from faithscope.experiments.engine.tallies import input_report
from faithscope.experiments.engine.units import API_REPLIES
from faithscope.experiments.files import StoreError, make_folder, write_atomically


def merge(runs: Sequence[str | Path], into: str | Path | None = None) -> tuple[Path, list[str]]:
    """Join all shards of a run; returns the complete run folder and a line per failed unit.

    Args:
        runs: the one folder that all shards share; or, with `into`, the folder of each shard.
        into: the folder to join them in, which may have another name.

    Raises:
        StoreError: a shard is missing (names it and the command that runs it), or the folders do
            not belong to one run (names the difference).
    """
    folders = [existing_run(run) for run in runs]
    for folder in folders:
        read_config(folder)  # refuses records that were made by another config
    if into is None and len(folders) > 1:
        raise StoreError(
            f"{len(folders)} run folders to merge and nowhere to join them; add --into DIR"
        )
    run_dir = folders[0] if into is None else Path(into).expanduser()
    own = own_runs(folders[0])
    if own and into is not None:
        raise StoreError(
            f"--into {into}: {folders[0]} makes runs of its own ({', '.join(own)}), and a later "
            "one may read all that an earlier one wrote; let its shards work in one folder"
        )
    if into is not None:
        join(folders, run_dir)
    failures = []
    for title, folder in own.items():
        if (folder / planfile.FILE).is_file():
            failures += [f"{title}: {line}" for line in _complete(folder, [folder], run_dir)]
    return run_dir, [*failures, *_complete(run_dir, folders, run_dir)]


def own_runs(run_dir: Path) -> dict[str, Path]:
    """Title -> folder of each run that a run makes below its own folder, in order."""
    if not study_of(stored_config(run_dir)).reads_runs:
        return {}
    config = read_config(run_dir)
    return {
        title: run_dir / folder.relative_to(config.run_dir)
        for title, folder in config.made_of.items()
        if folder.is_relative_to(config.run_dir)
    }


def _complete(run_dir: Path, folders: Sequence[Path], asked: Path) -> list[str]:
    """A line per failed unit of a run of which nothing is missing.

    Args:
        asked: folder of the run that the user starts; another one if it makes `run_dir`.

    Raises:
        StoreError: something is missing; one line per shard, with the command that does it.
    """
    planned = _plan(run_dir)
    index = Index.of(run_dir).only(planned.by_key)
    if gaps := missing_parts(run_dir, planned, index, folders, asked):
        raise StoreError("\n".join(gaps))
    return [
        f"{i.model} · {i.task} · {i.item} · {stage}: {reason}"
        for i in planned.items
        for stage, reason in planfile.failures(index, i)
    ]


def missing_parts(
    run_dir: Path,
    planned: StoredPlan,
    index: Index,
    folders: Sequence[Path],
    asked: Path | None = None,
) -> list[str]:
    """A line per shard with work left: how many items, an example, and the command that does
    them.

    Args:
        asked: folder of the run that the command starts, if another run makes `run_dir`.
    """
    asked = asked or run_dir
    each_does_all = asked == run_dir and bool(own_runs(run_dir))
    workers = {w for f in folders for w in _workers(f)}
    parts = {part[1] for w in workers if (part := planfile.workers_shard(w))}
    n = max(parts, default=1)
    lines = []
    for shard in (Shard(k, n) for k in range(n)):
        items = planned.items if each_does_all else planned.part(shard)
        left = [i for i in items if planfile.missing(index, i) and not planfile.failures(index, i)]
        if left:
            name = f"part {shard.index + 1}/{n}" if n > 1 else "the run"
            command = _command(asked, folders if asked == run_dir else [asked], shard)
            lines.append(
                f"{run_dir}: {name} lacks {len(left)} of {len(items)} items (first: "
                f"{left[0].item!r} of task {left[0].task!r} for {left[0].model}); do it with: "
                f"{command}"
            )
    return lines


def _command(run_dir: Path, folders: Sequence[Path], shard: Shard) -> str:
    """The shell command that resumes a shard, in the joined folder or where the shard was begun."""
    # the folder where the shard was begun has its paid API calls, even if no unit is finished
    begun = [f for f in folders if shard.worker in _workers(f)]
    folder = run_dir if run_dir in folders else [*begun, folders[0]][0]
    command = ["faithscope", "run", str(folder / "config.yaml")]
    stored = stored_config(folder)
    for key, here in (("out", str(folder.parent)), ("name", folder.resolve().name)):
        if stored.get(key) != here:
            command += ["--set", f"{key}={here}"]
    if shard.of > 1:
        command += ["--shard", f"{shard.index + 1}/{shard.of}"]
    return shlex.join(command)


def _workers(run_dir: Path) -> set[str]:
    return {s["worker"] for s in read_environment(run_dir)["sessions"] if "worker" in s}


def join(folders: Sequence[Path], into: Path) -> None:
    """Copy the content of several run folders into one, each unit once.

    It may be stopped and started again.

    Raises:
        StoreError: the configs, plans or people's labels of the folders differ, or `into` holds
            something else.
    """
    if into.resolve() in {f.resolve() for f in folders}:
        raise StoreError(f"--into {into}: is one of the folders to merge; give another")
    for other in folders[1:]:
        _same_run(folders[0], other)
    if (into / "config.yaml").is_file() and has_records(into):
        _same_run(folders[0], into)
    elif into.is_dir() and any(_is_other(p.name) for p in into.iterdir()):
        raise StoreError(f"--into {into}: is a folder with something else in it; give another")
    labels = _labels([*folders, into])
    make_folder(into / "records")
    with hold(into, "merged"):
        planfile.write(into, _plan(folders[0]))
        config = stored_config(folders[0]) | {"name": into.resolve().name, "out": str(into.parent)}
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
        write_atomically(into / "config.yaml", text)
        for asked in (folders[0] / name for name in ASKED):
            for path in asked.glob("[!.]*"):
                write_atomically(make_folder(into / asked.name) / path.name, path.read_bytes())
        if (folders[0] / input_report.FILE).is_file():
            write_atomically(
                into / input_report.FILE, (folders[0] / input_report.FILE).read_bytes()
            )
        for path, text in labels.items():
            with hold(into / ANNOTATIONS, path.stem):  # nobody adds to the file meanwhile
                write_atomically(into / ANNOTATIONS / path.name, text)
        sessions = _join_environments(folders, into)
        account.join(folders, into)
        _copy_units(folders, into, sessions)


ASKED = (BENCHMARK, PROMPTS)
"""Folders of a run with its items and prompts, copied from the first shard because shards with
equal plans have the same."""
ANNOTATIONS = "annotations"
"""Folder of a run with the labels that people gave to its chains."""
_OWN = {
    *(
        ".locks",
        "records",
        planfile.FILE,
        input_report.FILE,
        "config.yaml",
        "environment.json",
        ANNOTATIONS,
    ),
    *(account.spend_file(account.MERGED), *ASKED),
}
"""Files and folders that a merge writes, so one that was stopped early may have left them."""


def _is_other(name: str) -> bool:
    half_written = name.startswith(".") and name.endswith(".writing")
    return (name[1:].removesuffix(".writing") if half_written else name) not in _OWN


def _labels(folders: Sequence[Path]) -> dict[Path, bytes]:
    """Path -> content of the files of people's labels that must be copied into the last folder.

    Such files are append-only, so the longest of several copies of one file is taken.

    Raises:
        StoreError: two files of one name differ before the end of the shorter one.
    """
    latest: dict[str, tuple[Path, bytes]] = {}
    for folder in folders:
        for path in sorted((folder / ANNOTATIONS).glob("[!.]*.json*")):
            # a torn last line was never reported as stored
            text = b"".join(line for _, line in whole_lines(path))
            other, so_far = latest.setdefault(path.name, (path, text))
            if text.startswith(so_far):
                latest[path.name] = path, text
            elif not so_far.startswith(text):
                raise StoreError(
                    f"{other} and {path} hold different labels, and neither goes on from the "
                    f"other; move one of these {ANNOTATIONS} folders away, and keep it: a run has "
                    "the labels of one"
                )
    own = folders[-1] / ANNOTATIONS
    return {path: text for path, text in latest.values() if path.parent != own}


def _join_environments(folders: Sequence[Path], into: Path) -> list[dict[int, int]]:
    """Write the sessions and models of all folders into the environment.json of `into`.

    Returns for each folder: number of a session there -> its number in `into`.
    """
    joined = read_environment(into)
    sessions, numbers = joined["sessions"], []
    for folder in folders:
        theirs, of_folder = read_environment(folder), {}
        for number, session in enumerate(theirs["sessions"], start=1):
            session |= {"folder": str(folder), "session": number}
            if session not in sessions:
                sessions.append(session)
            of_folder[number] = sessions.index(session) + 1
        numbers.append(of_folder)
        for model, facts in theirs["models"].items():
            joined["models"].setdefault(model, facts)
        for key in ("config", "chosen"):
            if key in theirs:
                joined.setdefault(key, theirs[key])
    sessions.append({"worker": "merged", "folders": [str(f) for f in folders]})
    write_environment(into, joined)
    return numbers


def _copy_units(folders: Sequence[Path], into: Path, sessions: Sequence[dict[int, int]]) -> None:
    planned, of_all = _plan(into).by_key, read_environment(into)["sessions"]
    stages = study_of(stored_config(into)).stages()
    for path in (into / "records").glob("*.merged.jsonl"):
        cut_torn_line(path)
    merged = Index.of(into)
    whole = [Index.of(f) for f in folders]
    # API replies are in no plan; they are copied because they were paid for
    parts = [i.only(planned | {k: e.unit for k, e in i.places((API_REPLIES,))}) for i in whole]
    # successful units first: a unit that failed in one shard may have succeeded in another
    for failed in (False, True):
        for index, numbers in zip(parts, sessions, strict=True):
            with index.reader() as read, Appender() as files:
                for key, entry in index.places():
                    if (entry.failed is not None) != failed or merged.is_done(key, entry.unit):
                        continue
                    if failed and merged.failed(key, entry.unit):
                        continue
                    path = into / record_file(key[0], "merged", stages)
                    unit = read(entry)
                    # a session whose environment.json was lost is known by its units alone
                    unit = replace(unit, session=numbers.get(unit.session, len(of_all)))
                    if unit.arrays is not None:
                        with beside(entry.path).open("rb") as file:
                            blob = read_blob(file, unit.arrays, beside(entry.path))
                        offset = files.add(beside(path), blob)
                        unit = replace(unit, arrays=(offset, *unit.arrays[1:]))
                    line = unit.to_line()
                    merged.put(unit.head, path, files.add(path, line), len(line))


def _same_run(one: Path, other: Path) -> None:
    here, there = (stored_config(f) for f in (one, other))
    if differing := differences(here, there, study_of(here).config().FREE):
        changes = "; ".join(f"{k}: {json.dumps(a)} and {json.dumps(b)}" for k, a, b in differing)
        raise StoreError(f"{one} and {other} are parts of different runs ({changes})")
    plans = _plan(one), _plan(other)
    if plans[0].digest != plans[1].digest:
        raise StoreError(
            f"{one} and {other} are parts of different runs: {plans[0].difference(plans[1])}; "
            "give both the same data and weights, and run again"
        )


def _plan(run_dir: Path) -> StoredPlan:
    planned = planfile.read(run_dir)
    if planned is None:
        raise StoreError(
            f"{run_dir}: has no {planfile.FILE}, which says what there is to do; "
            "it is written as soon as `faithscope run` goes on with it"
        )
    return planned
