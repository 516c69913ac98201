"""Reader of rollouts from every step of a chain, as thought-anchors writes them (arXiv 2506.19143).

A folder for each problem: `problem.json`, `base_solution.json` (the chain), `chunks_labeled.json`
(its steps, with tags and importances) and `chunk_N/solutions.json` (rollouts that replace step N
and what follows); or a table of such files, `path` and `content`, as on the hub.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from faithscope.experiments.data.given.cells import facts_of, located, step_labels
from faithscope.experiments.data.given.chain import GivenChain, Reader, rows_of_file
from faithscope.experiments.data.given.thinking import apart
from faithscope.experiments.data.tasks.sources.json_text import NotJson, json_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow, begin_file, each, usable
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Sent

_BASE, _CHUNKS, _PROBLEM, _ROLLOUTS = (
    *("base_solution.json", "chunks_labeled.json", "problem.json", "solutions.json"),
)
_DEPTH = 4
"""Most folders between the one that is given and one of a problem."""
_NO_LABELS = ("chunk_idx", "depends_on", "chunk", "function_tags")


def rows(path: Path) -> list[SourceRow]:
    """A row for each problem below a folder, or the rows of a file."""
    if not path.is_dir() or not _bases(path):
        return rows_of_file(path)
    read = begin_file(str(path))
    return [
        read.row(_id_of(base.parent.parts), {"files": _files(base.parent)}, str(base.parent))
        for base in _bases(path)
    ]


def _bases(path: Path) -> list[Path]:
    depths = ("/".join(["*"] * n + [_BASE]) for n in range(_DEPTH + 1))
    return next((found for d in depths if (found := sorted(path.glob(d)))), [])


def _files(folder: Path) -> dict[str, str]:
    of_steps = sorted(folder.glob(f"chunk_*/{_ROLLOUTS}"))
    paths = [p for n in (_BASE, _CHUNKS, _PROBLEM) if (p := folder / n).is_file()] + of_steps
    return {str(p.relative_to(folder)): p.read_text("utf-8") for p in paths}


def _of_table(table: Iterable[SourceRow]) -> Iterator[SourceRow]:
    """The rows of problems, from rows of their files."""
    problems: dict[PurePosixPath, dict[str, str]] = {}
    first: dict[PurePosixPath, SourceRow] = {}
    for row in table:
        if "files" in row.values:
            yield row
            continue
        path = PurePosixPath(usable(row.values["path"], "'path'", row))
        folder = path.parent.parent if path.parent.name.startswith("chunk_") else path.parent
        text = row.values.get("content")
        if text is not None and path.name in (_BASE, _CHUNKS, _PROBLEM, _ROLLOUTS):
            first.setdefault(folder, row)
            problems.setdefault(folder, {})[str(path.relative_to(folder))] = text
    for folder, files in problems.items():
        cells = first[folder].cells | {"files": files}
        yield SourceRow(_id_of(folder.parts), cells, f"{first[folder].where}, {folder}")


def _id_of(parts: Sequence[str]) -> str:
    """The problem's folder, and those that tell whose solution it is."""
    return "/".join(parts[-2:])


def chain(row: SourceRow) -> GivenChain:
    """The chain of one problem, with tags and importances as labels of its steps, and of each step
    the share of rollouts that end in the right answer and in the chain's own.

    Raises:
        UserError: a file is missing or damaged, or a step is not in the chain.
    """
    files = row.values["files"]
    read = {name: _json(text, f"{row.where}/{name}") for name, text in files.items()}
    base, problem = (_object(read, name, row) for name in (_BASE, _PROBLEM))
    prompt = base.get("prompt")
    solution = usable(base.get("solution"), f"'solution' of {_BASE}", row)
    thinking, said, _ = apart(solution, row.where)
    reasoning, answer = (solution, None) if thinking is None else (thinking, said)
    chunks = read.get(_CHUNKS, [])
    if not isinstance(chunks, list) or not all(isinstance(c, Mapping) for c in chunks):
        raise UserError(f"{row.where}/{_CHUNKS}: is no list of steps; give it as it was released")
    texts = [usable(c.get("chunk"), f"'chunk' {i} of {_CHUNKS}", row) for i, c in enumerate(chunks)]
    spans = located(reasoning, texts, row, "\n\n")[1] if texts else None
    own = base.get("answer")
    given = str(own) if own not in (None, "") else answer
    cells = {"gold": problem.get("gt_answer")}
    facts = facts_of(SourceRow(row.id, cells, row.where), ("gold",), given)
    labels = {} if base.get("is_correct") is None else {"correct": bool(base["is_correct"])}
    labels |= {n: problem[n] for n in ("level", "type") if problem.get(n) is not None}
    of_steps = [
        _labels(c) | _of_rollouts(read.get(f"chunk_{c.get('chunk_idx', i)}/{_ROLLOUTS}"), own, row)
        for i, c in enumerate(chunks)
    ]
    return GivenChain(
        id=row.id,
        dataset="rollouts",
        question=usable(problem.get("problem"), f"'problem' of {_PROBLEM}", row),
        reasoning=reasoning,
        **facts,
        steps=spans,
        model=_model_of(row),
        sent=Sent(prompt) if isinstance(prompt, str) and prompt else None,
        labels=labels,
        step_labels=step_labels(of_steps) if spans else {},
        where=row.where,
    )


def _json(text: str, where: str) -> Any:
    try:
        return json_of(text, where)
    except NotJson as error:
        raise UserError(f"{where}: is no JSON ({error}); write it again") from error


def _object(read: Mapping[str, Any], name: str, row: SourceRow) -> Mapping[str, Any]:
    value = read.get(name)
    if not isinstance(value, Mapping):
        what = "is missing" if value is None else "is no object"
        raise UserError(f"{row.where}: {name} {what}; give the folder as it was released")
    return value


def _labels(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """A step's tags, as one text, and its numbers."""
    tags = chunk.get("function_tags") or []
    labels = {"tags": ", ".join(map(str, tags))} if isinstance(tags, list) and tags else {}
    numbers = {
        n: v
        for n, v in chunk.items()
        if n not in _NO_LABELS and isinstance(v, int | float) and v == v and abs(v) < float("inf")
    }
    return labels | numbers


def _of_rollouts(rollouts: Any, own: Any, row: SourceRow) -> dict[str, float]:
    """Shares of the rollouts from before a step whose answer is right, and is the chain's own;
    those without an answer count as neither."""
    if rollouts is None:
        return {}
    if not isinstance(rollouts, list) or not all(isinstance(r, Mapping) for r in rollouts):
        raise UserError(f"{row.where}: {_ROLLOUTS} of a step is no list; write it again")
    # a rollout that a service did not give has no text
    done = [r for r in rollouts if "error" not in r]
    if not done:
        return {}
    right = sum(r.get("is_correct") is True for r in done) / len(done)
    same = sum(str(r.get("answer", "")) == str(own) != "" for r in done) / len(done)
    return {"rollouts_correct": right, "rollouts_same_answer": same, "rollouts": len(done)}


def _model_of(row: SourceRow) -> str:
    """The writer by the folders' names, `MODEL/temperature_0.6_top_p_0.95/…`."""
    parts = PurePosixPath(row.where.rpartition(", ")[2]).parts
    at = next((i for i, part in enumerate(parts) if part.startswith("temperature_")), 0)
    return parts[at - 1] if at else ""


ROLLOUTS = Reader(
    "rollouts",
    "rollouts from every step (thought-anchors): folders of problems, or a table of their files",
    lambda row: {"path", "content"} <= set(row) or "files" in row,
    lambda rows: iter(each(_of_table(rows), chain)),
    rows,
    lambda path: path.is_dir() and bool(_bases(path)),
)
