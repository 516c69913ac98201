"""Names of a file's columns: the user's mapping, one stored beside the file, and a proposed one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from faithscope.experiments.data.given.conditions import column_of, second_of
from faithscope.experiments.data.tasks.sources.files import suffix_of
from faithscope.experiments.data.tasks.sources.json_text import NotJson, json_of
from faithscope.experiments.data.tasks.sources.rows import (
    SourceRow,
    columns_called,
    folded,
    is_filled,
)
from faithscope.interp.documents import yaml_of
from faithscope.interp.errors import UserError, did_you_mean

KEY = "traces.columns"
Columns = Mapping[str, str | Sequence[str] | Mapping[str, str]]
"""A reader's column -> the file's: a name, or a dotted path into objects and lists
(`answers.0.letter`), where `*` is each entry, a chain of its own (`samples.*.cot`). `options`,
`labels` and `id` may name several: `labels` may give them names of its own, and the parts of an id
are joined with `/`. `=TEXT` is no column but the value of all rows (`model: =org/name`)."""
KNOWN = (
    *("id", "dataset", "question", "prompt", "reasoning", "steps", "options", "kind", "gold"),
    *("answer", "model", "sample", "finish", "truncated", "prefilled", "cue", "cue_target"),
    *("prompt_raw", "assistant_prefix", "cued_question"),
    *("labels", "cued", "reversed", "pair", "cue_name", "cue_place", "cue_mention"),
    *(f"{of}_{what}" for of in ("cued", "reversed") for what in ("reasoning", "answer", "prompt")),
    *("reversed_question", "reversed_gold"),
)
"""The columns that a mapping can name."""
_CHAINS = ("reasoning", "steps", "cued_reasoning", "reversed_reasoning")
_ALSO_KNOWN = ("target", "correct_answer", "answer_idx", "answerKey", "choices", "messages")
"""Columns that are read under their own names, too."""
_SEVERAL = {"id": (list,), "options": (list,), "labels": (list, dict)}
_LABEL = "label_"
_EACH, _IS = "*", "="
_ABSENT = object()
_PLACE = re.compile(r"\{([\w.]+)\}")
_Path = tuple[str, ...]

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SOUNDS_LIKE: dict[str, tuple[str, ...]] = {
    "question": ("question", "problem", "query", "task", "instruction", "stem"),
    "reasoning": (
        *("cot", "reasoning", "thinking", "thought", "thoughts", "chain", "rationale", "rollout"),
        *("generated", "generation", "completion", "response", "output", "trace", "solution"),
    ),
    "options": ("options", "choices", "alternatives", "candidates"),
    "gold": ("gold", "truth", "correct", "gt", "target", "expected", "true"),
    "answer": ("predicted", "prediction", "pred", "extracted", "answer", "answers"),
    "model": ("model", "generator", "llm"),
}
"""A reader's column -> words in the names of columns that may hold it, the surest first."""
_NOTES = re.compile(r"n|num|counts?|rate|share|mean|p|prob|is|has|len|length|type|label|template")
"""Words in names of columns that tell about a text or an answer and hold none."""


def columns_problem(columns: Any) -> str | None:
    """Why a value is no mapping of columns; None if it is one."""
    if not isinstance(columns, Mapping):
        return "must map names of columns, such as {question: problem, reasoning: cot}"
    for name, value in columns.items():
        if name not in KNOWN:
            guess = did_you_mean(str(name), KNOWN) or f"; known: {', '.join(KNOWN)}"
            return f"{name!r} is no column that is read{guess}"
        kinds = _SEVERAL.get(str(name), ())
        values = [value] if not isinstance(value, kinds) else value
        texts = values.values() if isinstance(values, Mapping) else values
        if not texts or not all(isinstance(t, str) and t.strip() for t in texts):
            several = " or several" if kinds else ""
            return f"{name}: must be the name of a column of the file{several}, got {value!r}"
    return None


def stored_beside(path: Path) -> Path:
    """The file in which a mapping for `path` may lie: `chains.columns.yaml` beside `chains.csv`,
    `chains.jsonl.gz` or a folder `chains`."""
    stem = path.name if path.is_dir() else path.name.removesuffix(suffix_of(path))
    return path.with_name(f"{stem}.columns.yaml")


def stored(path: Path) -> Columns:
    """The mapping beside a file or folder, empty if there is none.

    Raises:
        UserError: the file beside it is no mapping of columns.
    """
    beside, columns = stored_beside(path), dict[str, Any]()
    if not beside.is_file():
        return columns
    try:
        columns = yaml_of(beside.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{beside}: cannot be read ({reason}); mend it, or take it away") from error
    if problem := columns_problem(columns):
        raise UserError(f"{beside}: {problem}")
    return columns


def renamed(rows: Sequence[SourceRow], columns: Columns, file: str) -> list[SourceRow]:
    """The rows with the columns that readers know, one for each chain.

    A column that is neither mapped nor known by its name is left out, and is reported as not used.
    So is a column that another one is mapped to. Names of pairs (`hinted_cot`) are known in a row
    that holds both chains, if the mapping names none.

    Args:
        file: name of the file, for messages.

    Raises:
        UserError: no row has a column that is mapped, or a `*` goes through no list or object, or
            through two.
    """
    mapped = dict(_paths(columns))
    found = dict.fromkeys(mapped, False)
    known = {folded(n) for n in (*KNOWN, *_ALSO_KNOWN)} - {folded(n) for n in mapped}
    own_chains = not any(name in mapped for name in _CHAINS)
    done = []
    for row, paths_of, keys in chain.from_iterable(_expanded(r, mapped, ()) for r in rows):
        held = {name: [_at(row, path) for path in paths] for name, paths in paths_of.items()}
        taken = {source for pairs in held.values() for _, source in pairs}
        is_pair = own_chains and bool(second_of(row.values))
        values = {
            name: row.cells.plain[name]
            for name in map(str, row.values)
            if name not in taken
            and (
                folded(name) in known
                or name.startswith(_LABEL)
                or (is_pair and any(column_of(name)))
            )
        }
        sources = {}
        if keys:
            values.setdefault("sample", keys[-1])
        for name, pairs in held.items():
            if any(value is _ABSENT for value, _ in pairs):
                continue
            found[name] = True
            several = [value for value, _ in pairs]
            values[name] = "/".join(map(str, several)) if name == "id" else several
            if len(pairs) == 1:
                values[name] = several[0]
                if name == "cue":
                    values[name] = _filled(several[0], row)
                if name == "reasoning" and keys and not is_filled(several[0]):
                    values[name] = ""  # a sample that was not given is counted
            sources[name] = tuple(source for _, source in pairs)
        where = ", ".join([row.where, *(f"sample {key}" for key in keys[-1:])])
        row.cells.name_row(row.where, where)
        cells = row.cells.renamed(values, sources)
        done.append(SourceRow(".".join([row.id, *keys[:-1]]), cells, where))
    if rows and (lost := [name for name, is_there in found.items() if not is_there]):
        have = list(dict.fromkeys(str(c) for row in rows[:100] for c in row.values))
        key = f"{KEY}.{'labels' if lost[0].startswith(_LABEL) else lost[0]}"
        paths = (".".join(p) for p in mapped[lost[0]])
        path = next((p for p in paths if p not in have), ".".join(mapped[lost[0]][0]))
        guess = did_you_mean(path, have) or f"; it has {', '.join(have)}"
        raise UserError(f"{key}: no row of {file} has a column {path!r}{guess}")
    return done


def _filled(text: Any, row: SourceRow) -> Any:
    """A text whose places are columns of the row, `the answer is {letter}`, with their values."""
    if not isinstance(text, str):
        return text
    held = {name: _at(row, tuple(name.split(".")))[0] for name in set(_PLACE.findall(text))}
    return _PLACE.sub(lambda m: m[0] if held[m[1]] is _ABSENT else str(held[m[1]]), text)


def _paths(columns: Columns) -> Iterator[tuple[str, tuple[_Path, ...]]]:
    for name, value in columns.items():
        named = value if isinstance(value, Mapping) else {}
        paths = [value] if isinstance(value, str) else list(named.values() or value)
        parts = [tuple(path.split(".")) for path in paths]
        if name != "labels":
            yield name, tuple(parts)
            continue
        names = list(named) or [path[-1].removeprefix(_LABEL) for path in parts]
        yield from ((_LABEL + n, (path,)) for n, path in zip(names, parts, strict=True))


_OfChain = tuple[SourceRow, dict[str, tuple[_Path, ...]], tuple[str, ...]]


def _expanded(
    row: SourceRow, wanted: dict[str, tuple[_Path, ...]], keys: tuple[str, ...]
) -> Iterator[_OfChain]:
    """A row for each entry of the list or object that a `*` in the paths goes through, with the
    paths into that entry, and the keys of the entries."""
    before = {p[: p.index(_EACH)] for paths in wanted.values() for p in paths if _EACH in p}
    if not before:
        yield row, wanted, keys
        return
    if len(before) > 1:
        shown = " and ".join(repr(".".join(p)) for p in sorted(before))
        raise UserError(
            f"{KEY}: '*' goes through {shown}; map the entries of one, in a run of its own"
        )
    prefix = before.pop()
    value = _at(row, prefix)[0] if prefix else dict(row.cells.plain)
    value = _opened(value, row)
    if not isinstance(value, list | Mapping):
        raise UserError(
            f"{row.where}: {'.'.join(prefix)!r} is no list or object that '*' could go through"
        )
    entries = value if isinstance(value, Mapping) else range(len(value))
    for key in map(str, entries):
        begin = (*prefix, key)
        of_entry = {
            name: tuple(
                (*begin, *p[len(begin) :]) if p[: len(begin)] == (*prefix, _EACH) else p
                for p in paths
            )
            for name, paths in wanted.items()
        }
        yield from _expanded(row, of_entry, (*keys, key))


def _at(row: SourceRow, path: _Path) -> tuple[Any, str]:
    """The value at a path in a row, `_ABSENT` if there is none, and the column it is in.

    Objects and lists on the way may be JSON text, as in CSV.
    """
    plain = row.cells.plain
    if path[0].startswith(_IS):
        return ".".join(path).removeprefix(_IS).strip(), ""
    for n in range(len(path), 0, -1):
        called = columns_called(row, ".".join(path[:n]))
        column = next((c for c in called if is_filled(plain[c])), called[0] if called else None)
        if column is not None:
            value = plain[column]
            for part in path[n:]:
                value = _within(value, part, row)
            return value, column
    return _ABSENT, ".".join(path)


def _opened(value: Any, row: SourceRow) -> Any:
    """The value that a text is JSON of; the text if it is none."""
    if not isinstance(value, str):
        return value
    try:
        return json_of(value, row.where)
    except NotJson:
        return value


def _within(value: Any, part: str, row: SourceRow) -> Any:
    value = _opened(value, row)
    if isinstance(value, Mapping):
        return value.get(part, _ABSENT)
    if isinstance(value, list) and part.lstrip("-").isdigit():
        at = int(part)
        return value[at] if -len(value) <= at < len(value) else _ABSENT
    return _ABSENT


def proposed(row: Mapping[str, Any]) -> dict[str, str]:
    """A mapping that may be meant: a reader's column -> the column of `row` whose name sounds most
    like it and whose value can be it. Columns that a reader knows by their names are left out."""
    inside = {f"{n}.{k}": v for n, o in row.items() if isinstance(o, Mapping) for k, v in o.items()}
    cells = {str(n): v for n, v in {**row, **inside}.items() if is_filled(v)}
    have = {folded(name) for name in cells}
    mapping: dict[str, str] = {}
    for name, words in _SOUNDS_LIKE.items():
        if folded(name) in have:
            continue
        fitting = [
            (rank, len(column), column)
            for column, value in cells.items()
            if column not in mapping.values() and _can_be(name, value)
            if (rank := _rank(column, words)) is not None
        ]
        if fitting:
            mapping[name] = min(fitting)[2]
    return mapping


def _rank(column: str, words: Sequence[str]) -> int | None:
    of_column = [word.lower() for word in _WORD.findall(column)]
    if any(map(_NOTES.fullmatch, of_column)):
        return None
    return next((i for i, word in enumerate(words) if word in of_column), None)


def _can_be(name: str, value: Any) -> bool:
    if name == "reasoning":
        return isinstance(value, str) and len(value.split()) >= 3
    if name == "options":
        return isinstance(value, list | str | Mapping)
    if name in ("question", "model"):
        return isinstance(value, str)
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def line_of(columns: Mapping[str, str]) -> str:
    """The option of the command that sets a mapping."""
    pairs = ", ".join(f"{name}: {column}" for name, column in columns.items())
    return f"--set '{KEY}={{{pairs}}}'"
