"""Export of the labels on which two annotators agree, in the layout of FINE-CoT, with their
agreement."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.exports.chains_to_label import Chain, Source
from faithscope.experiments.analysis.statistics.raters import gwet_ac2, saturated
from faithscope.experiments.analysis.statistics.stats import agreement, kappa
from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.data.principles import BY_ID, PRINCIPLES
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.extras.annotation.labels import LEVELS, Label
from faithscope.experiments.extras.annotation.rounds import ROUNDS, Protocol, differences
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.numerals import decimal
from faithscope.interp.errors import UserError
from faithscope.probes.record import is_right

RESPONSES = "responses"
"""Folder of the files `DATASET/MODEL/response_I.json`, which programs that read FINE-CoT take."""
TABLES = ("agreement", "labels", "fates")
AGREEMENT = ("round", "dataset", "of", "n", "agreement", "kappa", "ac2", "saturated")
SHOWN = AGREEMENT[4:]
ALL = "all"
"""Value of `dataset` in the rows of agreement over the chains of all data sets."""


def write_export(protocol: Protocol, source: Source, folder: Path) -> Path:
    """Write responses and tables, and return the folder.

    Raises:
        UserError: the folder holds files that are not of an earlier export.
    """
    known = {*(f"{name}.csv" for name in TABLES), RESPONSES}
    if folder.exists() and (strange := sorted({p.name for p in folder.glob("[!.]*")} - known)):
        raise UserError(
            f"{folder}: holds {strange[0]!r}, which no export wrote; give another folder"
        )
    written, places = set(), Counter[Path]()
    for chain in protocol.chains:
        part = folder / RESPONSES / _file_name(chain.dataset) / _file_name(chain.place[0])
        if isinstance(unfaithful := protocol.outcome(chain.place), bool):
            # a chain keeps its number, whether or not the chains before it are exported
            written.add(file := make_folder(part) / f"response_{places[part]}.json")
            values = _response(protocol, chain, unfaithful)
            write_atomically(file, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
        places[part] += 1
    for old in {*(folder / RESPONSES).rglob("response_*.json")} - written:
        old.unlink()
    tables = (agreement_table(protocol), labels_table(protocol), fates_table(protocol, source))
    for name, table in zip(TABLES, tables, strict=True):
        write_atomically(make_folder(folder) / f"{name}.csv", to_csv(table))
    return folder


def _response(protocol: Protocol, chain: Chain, unfaithful: bool) -> dict[str, Any]:
    pair = protocol.pair(chain.place, ROUNDS[-1])
    assert pair is not None
    one, other = pair
    # in released rows 1 and 2 mean a wrong answer, 3 and 4 a right one; 2 and 4 are unfaithful.
    # No code exists for an unreadable answer: `parsed_final_answer` shows that its correctness is
    # unknown, and programs that read the file go by that
    right = bool(is_right(chain.answer, chain.gold))
    kind = None if chain.gold is None else 1 + 2 * right + unfaithful
    letters = {o: chr(65 + i) for i, o in enumerate(chain.options) if chain.kind == "label"}
    kept = one.model_copy(
        update={
            name: tuple(x for x in getattr(one, name) if x in getattr(other, name) and unfaithful)
            for name in ("steps", "principles")
        }
    )
    reasons = dict.fromkeys((one.reason, other.reason)) if unfaithful else ()
    model, task, item = chain.place
    return {
        "question": chain.question,
        "options": [f"{chr(65 + i)}. {option}" for i, option in enumerate(chain.options)],
        "label": letters.get(str(chain.gold), chain.gold),
        "sample_0": {
            "full_response": "".join(text for _, text in chain.parts) + chain.tail,
            **{f"step_{i}": text.strip() for i, text in enumerate(chain.steps, 1)},
            "final_answer": chain.tail.strip(),
            "parsed_final_answer": letters.get(str(chain.answer), chain.answer),
        },
        "faithful_type": kind,
        "unfaithfulness": int(unfaithful),
        "unfaithful_reason": " / ".join(reasons),
        "unfaithful_steps": ranges(kept.steps),
        "principles": [BY_ID[id].name for id in kept.principles],
        "annotation": {
            "dataset": chain.dataset,
            "task": task,
            "model": model,
            "item": item,
            "annotators": [annotator.name for annotator in protocol.annotators],
            "not_agreed": differences(one, other),
        },
    }


def ranges(steps: Sequence[int]) -> str:
    """Step numbers in FINE-CoT's notation: `1-3, 5`."""
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip(".") or "_"


def agreement_table(protocol: Protocol) -> pd.DataFrame:
    """Agreement of the two at the end of each round, for each data set and for all (`ALL`): n, raw
    agreement, Cohen's kappa, Gwet's AC2.

    `label` (unfaithful, uncertain, faithful) is over chains that both labelled; `unfaithful` over
    chains where neither is uncertain; each principle over chains that both call unfaithful;
    `steps` over all steps of the latter.
    """
    rows = []
    for round in ROUNDS:
        pairs = [(c, p) for c in protocol.chains if (p := protocol.pair(c.place, round))]
        if not pairs or (round > 1 and not protocol.may_open(round)):
            continue
        for name in (ALL, *dict.fromkeys(chain.dataset for chain, _ in pairs)):
            of_set = [(c, p) for c, p in pairs if name in (ALL, c.dataset)]
            for of, labels, levels in _labelled(of_set):
                left, right = [a for a, _ in labels], [b for _, b in labels]
                values = (agreement(left, right), kappa(left, right))
                values += (gwet_ac2(left, right, levels), saturated(left, right))
                row = (round, name, of, len(labels), *values)
                rows.append(dict(zip(AGREEMENT, row, strict=True)))
    return pd.DataFrame(rows, columns=list(AGREEMENT))


def _labelled(
    pairs: Sequence[tuple[Chain, tuple[Label, Label]]],
) -> Iterator[tuple[str, list[tuple[Hashable, Hashable]], Sequence[Hashable]]]:
    """Yields (label name, paired values, categories) for inter-annotator agreement."""
    both = [(c, a, b) for c, (a, b) in pairs if a.unfaithful and b.unfaithful]
    yield "label", [(a.label, b.label) for _, (a, b) in pairs], LEVELS
    yes_no = (False, True)
    whole = [(a.unfaithful, b.unfaithful) for _, (a, b) in pairs]
    yield "unfaithful", [pair for pair in whole if None not in pair], yes_no
    for principle in PRINCIPLES:
        named = [(principle.id in a.principles, principle.id in b.principles) for _, a, b in both]
        yield principle.name, [*named], yes_no
    steps = [(s in a.steps, s in b.steps) for c, a, b in both for s in range(1, len(c.steps) + 1)]
    yield "steps", [*steps], yes_no


def labels_table(protocol: Protocol) -> pd.DataFrame:
    """A table of all finished labels of each annotator, round by round."""
    rows = [
        {
            "annotator": annotator.name,
            "round": label.round,
            **dict(zip(("model", "task", "item"), label.place, strict=True)),
            "label": label.label,
            "unfaithful": None if label.unfaithful is None else int(label.unfaithful),
            "confidence": label.confidence,
            "principles": "; ".join(BY_ID[id].name for id in label.principles),
            "steps": ranges(label.steps),
            "reason": label.reason,
        }
        for annotator in protocol.annotators
        for _, label in sorted(annotator.labels.items())
        if label.done
    ]
    return pd.DataFrame(rows).astype({"unfaithful": "Int64"} if rows else {})


def fates_table(protocol: Protocol, source: Source) -> pd.DataFrame:
    """Numbers of the run's chains by outcome; `exported` counts those with a response file."""
    outcomes = [protocol.outcome(chain.place) for chain in protocol.chains]
    fates = Counter({f"excluded: {reason}": n for reason, n in sorted(source.excluded.items())})
    fates["not_drawn"] = len(source.chains) - len(outcomes)
    fates.update(outcome if isinstance(outcome, str) else "exported" for outcome in outcomes)
    return pd.DataFrame([row for row in fates.items() if row[1]], columns=["fate", "n"])


def in_lines(folder: Path) -> list[str]:
    """The tables of agreement and of outcomes of an export, as lines for a terminal. With several
    data sets, each one's agreement is shown on whether chains are unfaithful."""
    table, fates = (pd.read_csv(folder / f"{name}.csv") for name in (TABLES[0], TABLES[2]))
    several = len(set(table["dataset"])) > 2
    body = [
        (r["of"], f"round {r['round']}", r["dataset"], r["n"], *(_shown(r[k]) for k in SHOWN))
        for r in table.to_dict("records")
        if r["n"] and (r["dataset"] == ALL or (several and r["of"] == "unfaithful"))
    ]
    head = ("of", "", "dataset", *AGREEMENT[3:])
    lines = columns([head, *body]) if body else ["nothing is labelled twice"]
    return [*lines, "", *(f"{r['fate']}: {r['n']}" for r in fates.to_dict("records"))]


def _shown(value: float | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return decimal(value, 3)
