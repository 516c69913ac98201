"""FINE-CoT, the annotated chains of FaithCoT-Bench (arXiv 2510.04040), a `response_I.json` each.

The fields of a response are those that the released README and pipelines write; `faithful_type` is
a further field, which the released scoring reads. The labels themselves lie in an archive that
could not be read here: the field names of reason, steps and principles below are inferred from
appendix A.5, and `faithscope annotate` writes them so.

Two fields say whether a chain is unfaithful, and they contradict each other in 56 released rows:

    faithful_type    1 and 3 are faithful, 2 and 4 unfaithful (1 and 2 wrong answers, 3 and 4 right
                     ones in the rows; the README has it the other way round, so that this is not
                     used: the answers themselves tell whether they are right)
    unfaithfulness   1 is unfaithful, 0 faithful (Definition 1; the annotators' sheet A.3 writes 0
                     for unfaithful, and no released field follows it), 2 uncertain

Both are kept, as `unfaithful.faithful_type` and `unfaithful.unfaithfulness`: true for unfaithful.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from faithscope.experiments.data.given.cells import facts_of, is_right, located, text
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.principles import PRINCIPLES
from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.rows import SourceRow, each, has, text_of, usable
from faithscope.interp.errors import UserError, did_you_mean

LabelSource = Literal["faithful_type", "unfaithfulness"]
SOURCES: tuple[LabelSource, ...] = get_args(LabelSource)
UNFAITHFUL = "unfaithful."
"""Prefix of a label's name, before the label's source."""
_FILE = re.compile(r"response_(\d+)\.json")
_STEP = re.compile(r"step_(\d+)")
_MARKER = re.compile(r"Step \d+:\s*\Z")
_RANGE = re.compile(r"\s*(?:steps?\s*)?(\d+)\s*(?:(?:-|–|—|to)\s*(?:steps?\s*)?(\d+)\s*)?", re.I)
_REASON = ("unfaithful_reason", "unfaithfulness_reason")
_STEPS = ("unfaithful_steps", "unfaithfulness_steps")
_KEPT = ("hardness", "distribution", "confidence")
"""Fields that become labels unchanged, if a file has them (Figures 6b and 6c)."""
_IDS = {
    re.sub(r"\W+", " ", name.casefold()).strip(): p.id
    for p in PRINCIPLES
    for name in (p.id, p.name, p.also)
}


def step_indices(said: Any, row: SourceRow) -> tuple[int, ...]:
    """Steps as annotators name them ("2-4", "3,5", [3, 5]), counted from 1, as indices from 0.

    Raises:
        UserError: `said` is no such text or list, or a range goes backwards.
    """
    parts = said if isinstance(said, list) else re.split(r"[,;]|\band\b", str(said))
    indices: set[int] = set()
    for part in (str(p) for p in parts):
        if not part.strip():
            continue
        match = _RANGE.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not 1 <= first <= last < 10_000:
            raise UserError(
                f"{row.where}: unfaithful steps {str(said)[:60]!r}: {part.strip()[:40]!r} is no "
                "step or range of steps; write 2-4 or 3,5, counted from 1"
            )
        indices |= set(range(first - 1, last))
    return tuple(sorted(indices))


def principle_ids(said: Any, row: SourceRow) -> tuple[str, ...]:
    """Ids of principles given by either of their names (A.2.1 and A.2.2, or A.2.3).

    Raises:
        UserError: a name is in neither list; the message suggests the nearest.
    """
    names = said if isinstance(said, list) else re.split(r"[;,/]", str(said))
    ids = []
    for name in (str(n).strip() for n in names if str(n).strip()):
        plain = re.sub(r"\W+", " ", name.casefold()).strip()
        plain = plain if plain in _IDS else name.casefold()
        if plain not in _IDS:
            guess = did_you_mean(plain, list(_IDS)) or f"; there are {', '.join(_IDS)}"
            raise UserError(f"{row.where}: unknown principle {name!r}{guess}")
        ids.append(_IDS[plain])
    return tuple(dict.fromkeys(ids))


def chains_of(row: SourceRow) -> Iterator[GivenChain]:
    """The chains of one response file; labels beside its samples belong to the first sample.

    The reasoning is the response up to its final answer. Steps are the file's, with their numbers,
    if the reasoning holds them word for word; else their texts make up the reasoning. A labelled
    step number right after the last step means the statement of the answer: it becomes the label
    `unfaithful_answer`.

    Raises:
        UserError: a field is missing or invalid; the message names the file, the value and the
            remedy.
    """
    samples = [(n, s) for n, s in row.values.items() if n.startswith("sample_")]
    for place, (name, sample) in enumerate(samples):
        if not isinstance(sample, Mapping):
            raise UserError(f"{row.where}: {name!r} is a {type(sample).__name__}; give an object")
        beside = {n: v for n, v in row.values.items() if place == 0 or _plain(n) not in _LABELS}
        values = {_plain(n): v for n, v in {**beside, **sample}.items()}
        own = SourceRow(
            row.id if place == 0 else f"{row.id}.{place}", values, f"{row.where}, {name}"
        )
        yield _chain(own)


_LABELS = ("faithful_type", "unfaithfulness", "principles", *_REASON, *_STEPS, *_KEPT)


def _chain(row: SourceRow) -> GivenChain:
    facts = facts_of(row, ("label",), text(row, "parsed_final_answer"))
    whole = row.values.get("full_response")
    response = "" if whole is None or not str(whole).strip() else usable(whole, "response", row)
    final = text(row, "final_answer")
    at = response.rfind(final) if final else -1
    reasoning = response[:at].rstrip() if at > 0 else response
    texts = _steps(row)
    spans = None
    if texts:
        try:
            reasoning, spans = located(reasoning or None, texts, row, "\n")
            spans = _with_markers(reasoning, spans)
        except UserError:
            # the authors' parser changed the words, and labels count the parser's steps
            reasoning, spans = located(None, texts, row, "\n")
    about = row.values.get("annotation")
    about = about if isinstance(about, Mapping) else {}
    named = _named_steps(row, 0 if spans is None else len(spans))
    labels = {
        **{UNFAITHFUL + source: _unfaithful(source, row) for source in SOURCES},
        "correct": is_right(facts),
        "principles": list(principle_ids(row.values.get("principles") or [], row)),
    }
    beside = {"uncertain": _uncertain(row), "reason": text(row, *_REASON)}
    beside |= {name: text(row, name) for name in _KEPT}
    labels |= {name: value for name, value in beside.items() if value is not None}
    of_steps: dict[str, tuple[Any, ...]] = {}
    if named is not None and spans is not None:
        labels["unfaithful_answer"] = len(spans) in named
        of_steps["unfaithful"] = tuple(i in named for i in range(len(spans)))
    return GivenChain(
        id=str(about.get("item", row.id)),
        dataset=str(about.get("dataset", row.values["of_dataset"])),
        question=text_of(row, ("question",)),
        reasoning=reasoning,
        **facts,
        steps=spans,
        model=str(about.get("model", row.values["of_model"])),
        labels=labels,
        step_labels=of_steps,
        where=row.where,
    )


def _with_markers(text: str, spans: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Spans of steps, extended to include the "Step 2: " before each."""
    made, at = [], 0
    for start, end in spans:
        marker = _MARKER.search(text, at, start)
        made.append((start if marker is None else marker.start(), end))
        at = end
    return tuple(made)


def _plain(name: str) -> str:
    """The plain form of a field name: `Unfaithful Steps` as `unfaithful_steps`."""
    return re.sub(r"\W+", "_", name.strip().casefold())


def _steps(row: SourceRow) -> list[str]:
    numbered = {int(m[1]): n for n in row.values if (m := _STEP.fullmatch(n)) and has(row, n)}
    return [usable(row.values[n], repr(n), row) for _, n in sorted(numbered.items())]


def _named_steps(row: SourceRow, n: int) -> tuple[int, ...] | None:
    """Indices of the steps that the file names unfaithful; None if it names none."""
    name = next((s for s in _STEPS if has(row, s) and row.values[s] != []), None)
    if name is None:
        return None
    named = step_indices(row.values[name], row)
    if named and n and named[-1] > n:
        raise UserError(
            f"{row.where}: unfaithful steps {row.values[name]!r}: there are {n} steps; name one of "
            f"1 to {n}, or {n + 1} for the statement of the answer"
        )
    return named


def _uncertain(row: SourceRow) -> str | None:
    """The label `yes` if annotators could not tell (2 of the sheet, A.3), else None."""
    return "yes" if str(row.values.get("unfaithfulness")).strip() in ("2", "2.0") else None


def _unfaithful(source: LabelSource, row: SourceRow) -> bool | None:
    """Whether one field says unfaithful; None if it is missing, or says uncertain."""
    if not has(row, source):
        return None
    value = row.values[source]
    try:
        code = int(float(value))
        whole = code == float(value)
    except (TypeError, ValueError):
        code, whole = -1, False
    kinds: dict[int, bool | None] = {0: False, 1: True, 2: None}
    if source == "faithful_type":
        kinds = {1: False, 2: True, 3: False, 4: True}
    if not whole or code not in kinds:
        raise UserError(
            f"{row.where}: {source!r} is {value!r}; give one of {', '.join(map(str, kinds))}"
        )
    return kinds[code]


def _files(path: Path) -> list[Path]:
    found = [path] if path.is_file() else [f for f in path.rglob("*.json") if _FILE.match(f.name)]
    return sorted(found, key=lambda f: (f.parent, int((_FILE.match(f.name) or "00")[1])))


def _rows(path: Path) -> list[SourceRow]:
    """One row per file, with data set and model by its folder: `DATASET/MODEL/RUN/responses/` as in
    the authors' runs, or `DATASET/MODEL/`; neither if the path has too few folders."""
    rows = []
    for file in _files(path):
        above = [] if path.is_file() else list(file.relative_to(path).parts[:-1])
        folders = [path.name, *above] if above or path.is_dir() else []
        if folders and folders[-1] == "responses":
            folders = folders[:-2]
        model = folders[-1] if len(folders) > 1 else ""
        dataset = folders[-2].casefold() if len(folders) > 1 else "fine_cot"
        (row,) = read_rows(file, "")
        number = (_FILE.match(file.name) or [file.stem, file.stem])[1]
        values = row.cells | {"of_dataset": dataset, "of_model": model}
        rows.append(SourceRow(str(number), values, str(file)))
    return rows


def _chains(rows: Sequence[SourceRow]) -> Iterator[GivenChain]:
    for made in each(map(_placed, rows), lambda row: [*chains_of(row)]):
        yield from made


def _placed(row: SourceRow) -> SourceRow:
    if "of_dataset" in row.values:
        return row
    return SourceRow(row.id, row.cells | {"of_dataset": "fine_cot", "of_model": ""}, row.where)


FINE_COT = Reader(
    "fine_cot",
    "FINE-CoT (FaithCoT-Bench): response_I.json in folders DATASET/MODEL, with its labels",
    lambda row: "sample_0" in row and "question" in row,
    _chains,
    _rows,
    lambda path: bool(_FILE.match(path.name)) or (path.is_dir() and bool(_files(path))),
)
