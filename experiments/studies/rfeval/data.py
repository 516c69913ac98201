"""What RFEval reads from files: its items as released (`snu-aidas/RFEval`), also from the hub, and
people's labels of parts of outputs (RFEval, appendix D.4).

Items are in one data file per task, named for it, JSON or JSON lines (or what else `data.tasks`
reads), or in one file with the rows of several tasks. Options are a list, or the text
"A: yes\\nB: no".
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pandas as pd

from faithscope.experiments.data.tasks.sources.files import SUFFIXES, read_rows, suffix_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow, begin_file, has, text_of
from faithscope.experiments.studies.rfeval.items import TASKS, Item, Task, item_of
from faithscope.experiments.studies.rfeval.judging.stances import stance_set
from faithscope.experiments.studies.rfeval.tables.frames import FLAWS, STANCES
from faithscope.experiments.studies.rfeval.tables.people import ANNOTATIONS, VALID
from faithscope.interp import hub
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.plain import from_cell

REPOSITORY = "snu-aidas/RFEval"
SPLIT = "train"
"""The only split of the data set; every task is a config."""


@dataclass(frozen=True)
class Source:
    """Origin of the items of one task or one file."""

    name: str
    """Name of the file; for the hub, `snu-aidas/RFEval/TASK`."""
    sha256: str
    """SHA-256 of the file; for the hub, of its items."""
    n_items: int


def read_rfeval(
    path: Path | None = None,
    tasks: Sequence[Task] | None = None,
    limit: int | None = None,
    repository: str = REPOSITORY,
    *,
    bare: bool = False,
    key: str = "data.path",
) -> tuple[list[Item], list[Source]]:
    """Reads items, in the order of files and of `tasks`, with the sources they are from.

    Args:
        path: a file, whose rows of `tasks` are kept; or a folder that holds, at any depth, a file
            named for each of `tasks`; None for the hub.
        tasks: None takes all that a file or folder holds, and all seven from the hub.
        limit: number of items of each task, the first ones.
        repository: another data set of the hub laid out like it, or a folder that `datasets`
            takes for one.
        bare: whether items may lack r′ (`items.item_of`).
        key: what messages call `path`.

    Raises:
        UserError: a task without items, a file that is not there or cannot be read, a row that
            cannot be used; names file, line, field and remedy.
    """
    for task in tasks or ():
        if task not in TASKS:
            guess = did_you_mean(task, TASKS) or f"; there are {', '.join(TASKS)}"
            raise UserError(f"RFEval: unknown task {task!r}{guess}")
    if path is None:
        read = [_from_hub(repository, task, bare) for task in tasks or TASKS]
    else:
        read = [_from_file(file, tasks or TASKS, bare) for file in _files(path, tasks, key)]
    items_of_task: dict[Task, list[Item]] = {task: [] for task in tasks or TASKS}
    seen: dict[str, str] = {}
    sources = []
    for name, digest, rows in read:
        n = 0
        for row, item in rows:
            if item.id in seen:
                raise UserError(f"{row.where}: id {item.id!r} is that of {seen[item.id]}; rename")
            seen[item.id] = row.where
            row.cells.name_row(row.where, item.id)
            if limit is None or len(items_of_task[item.task]) < limit:
                items_of_task[item.task].append(item)
                n += 1
        sources.append(Source(name, digest, n))
    if empty := [task for task in tasks or () if not items_of_task[task]]:
        raise UserError(
            f"RFEval: no item of task {empty[0]!r} in {', '.join(s.name for s in sources)}; leave "
            "the task out, or give a file that has some"
        )
    return [item for of_task in items_of_task.values() for item in of_task], sources


_Read = tuple[str, str, list[tuple[SourceRow, Item]]]


def _from_file(file: Path, tasks: Sequence[Task], bare: bool) -> _Read:
    rows = read_rows(file, "")
    named: Task | None = next((task for task in TASKS if file.stem.startswith(task)), None)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    read = ((row, item_of(row, named, bare)) for row in rows)
    return file.name, digest, [(row, item) for row, item in read if item.task in tasks]


def _files(path: Path, tasks: Sequence[Task] | None, key: str) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"{key}: no such file or folder: {str(path)!r}; check the path")
    data_files = sorted(f for f in path.rglob("*") if suffix_of(f) in SUFFIXES and f.is_file())
    task_files = []
    for task in tasks or TASKS:
        # released as `TASK.json`, in the authors' working copies `TASK_validated.json`
        candidates = [f for f in data_files if f.stem in (task, f"{task}_validated")]
        if len(candidates) > 1:
            named = ", ".join(str(f.relative_to(path)) for f in candidates)
            raise UserError(f"{key}: {path} holds {task!r} several times ({named}); keep one")
        if not candidates and tasks is not None:
            shown = ", ".join(str(f.relative_to(path)) for f in data_files[:8]) or "no data file"
            raise UserError(
                f"{key}: {path} has no {task}.json or {task}.jsonl; it holds {shown}. Give "
                "the folder of all, or leave the task out (data.tasks)"
            )
        task_files += candidates
    if not task_files:
        raise UserError(
            f"{key}: {path} has no file of any task; give files named {TASKS[0]}.json, "
            f"{TASKS[1]}.jsonl …, or one file"
        )
    return task_files


def _from_hub(repository: str, task: Task, bare: bool) -> _Read:
    remedy = "give a local copy: --set data.path=FILE_OR_FOLDER"
    try:
        from datasets import load_dataset  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError(
            f"RFEval reads {repository} through the datasets package: "
            f"pip install 'faithscope[data]', or {remedy}"
        ) from error
    name = f"{repository}/{task}"
    problem = None if Path(repository).is_dir() else hub.unreachable()
    try:
        loaded = list(load_dataset(repository, task, split=SPLIT))
    except MemoryError:
        raise
    except Exception as error:  # whatever the network, the hub or Arrow come up with
        # Arrow cannot infer a schema where nested fields differ from row to row; the authors'
        # own loader then reads the file itself, and so do we
        try:
            rows = read_rows(_hub_file(repository, task), "")
        except Exception as second:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise UserError(
                f"RFEval: could not load {name} from the hub: {problem or reason}; "
                f"nor its file data/{task}.json ({type(second).__name__}); {remedy}"
            ) from error
    else:
        file = begin_file(name)
        rows = [
            file.row(f"{task}-{i}", dict(r), f"{name}, row {i + 1}") for i, r in enumerate(loaded)
        ]
    read = [(row, item_of(row, task, bare)) for row in rows]
    digest = hashlib.sha256("\n".join(item.sha256 for _, item in read).encode()).hexdigest()
    return name, digest, cast("list[tuple[SourceRow, Item]]", read)


def _hub_file(repository: str, task: Task) -> Path:
    if (local := Path(repository) / "data" / f"{task}.json").is_file():
        return local
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(repository, f"data/{task}.json", repo_type="dataset"))


DECISIONS = {"stance": STANCES, "flaw": FLAWS, VALID: ("r_prime",)}
"""Kind of label -> the components that have it: parts of an output, links between two, or r′."""
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


def item_name(model: str, item: str, models: Collection[str]) -> str:
    """Name of an output's item in annotations: with its model if a run has several.

    A review of r′ is of no model, and has the item's id alone.
    """
    return f"{model} {item}" if len(models) > 1 else item


def annotations_of(path: Path, items: Collection[Item], models: Collection[str]) -> pd.DataFrame:
    """The labels of a file, for a run of these items and models; see `read_annotations`.

    Raises:
        UserError: also where none of its labels is of such an item, or a stance is none that its
            item has.
    """
    labels = read_annotations(path)
    known = {item_name(m, item.id, models): item for item in items for m in models}
    reviewed = {item.id for item in items}
    if not any(
        name in (reviewed if decision == VALID else known)
        for name, decision in zip(labels["item"], labels["decision"], strict=True)
    ):
        raise UserError(
            f"annotations: {path}: none of its {len(labels)} labels is of an item of this run: it "
            f"has {labels['item'].iloc[0]!r}, the run {next(iter(known), 'none')!r}; give labels "
            "of `load_run(RUN).decisions`"
        )
    stances = labels.loc[labels["decision"] == "stance"]
    for name, label in zip(stances["item"], stances["label"], strict=True):
        if name in known and label not in (right := stance_set(known[name])):
            raise UserError(
                f"annotations: {path}: label {label!r} of item {name!r} is none of its stances; "
                f"give one of {', '.join(map(repr, right))}"
            )
    return labels


def read_annotations(path: Path) -> pd.DataFrame:
    """The labels of a file with the columns `ANNOTATIONS`, a row for each label of each person.

    A label of a flaw, or of whether an r′ is valid, is yes or no, in whatever way; one of a stance
    is taken as it stands. A row without a label is one that was left open, and is not among them.

    Raises:
        UserError: the file cannot be read, no row has a label, another cell is empty, a decision
            is none of `DECISIONS` or has no such component, a label that should be yes or no is
            neither, or one person labelled a decision twice.
    """
    if not path.is_file():
        raise UserError(f"annotations: no such file: {str(path)!r}; check the path, or give null")
    labels: list[dict[str, str]] = []
    seen: dict[tuple[str, ...], str] = {}
    rows = read_rows(path, "")
    for row in rows:
        if "label" in row.values and not has(row, "label"):
            continue
        values = {name: from_cell(text_of(row, (name,))) for name in ANNOTATIONS}
        if values["decision"] not in DECISIONS:
            raise UserError(
                f"{row.where}: decision {values['decision']!r}; give one of {', '.join(DECISIONS)}"
            )
        components = DECISIONS[values["decision"]]
        if values["component"] not in components:
            listed = f"; give one of {', '.join(components)}"
            raise UserError(
                f"{row.where}: a {values['decision']} has no component {values['component']!r}"
                f"{did_you_mean(values['component'], components) or listed}"
            )
        if values["decision"] != "stance":
            answer = values["label"].casefold()
            if answer not in (*_YES, *_NO):
                raise UserError(
                    f"{row.where}: label {values['label']!r} of decision {values['decision']!r}; "
                    "give yes or no"
                )
            values["label"] = str(answer in _YES)
        key = tuple(values[name] for name in ANNOTATIONS if name != "label")
        if key in seen:
            raise UserError(f"{row.where}: labels what {seen[key]} labels; keep one of the two")
        seen[key] = row.where
        labels.append(values)
    if not labels:
        raise UserError(f"annotations: {path}: no label in {len(rows)} rows; fill in 'label'")
    return pd.DataFrame(labels, columns=list(ANNOTATIONS))
