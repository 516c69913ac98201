"""Judging of outputs step by step (RFEval, appendix G.3): parts, asks, records, and their rows.

The chain of an output is r′ (of the intervened one), every step of its reasoning, its explanation
where it has one, its answer where one is marked. Each part's stance is an ask, and whether it
names a flaw in the part before it another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Condition, Item
from faithscope.experiments.studies.rfeval.pairs import names_flaw, part_ask
from faithscope.experiments.studies.rfeval.prompts import RfForm
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.tables.steps import STEPS

Piece = Literal["r_prime", "step", "e", "a"]
Kind = Literal["stance", "flaw"]
KINDS: tuple[Kind, ...] = ("stance", "flaw")
TOO_MANY = "too_many_steps"
"""Why a pair is not judged step by step: it has more steps than `per_step.most_steps`."""
NOT_ASKED = "not_asked"
"""Why a pair is not judged step by step: its unit is not stored, as it failed or the run goes
on."""
Record = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A part of an output that gets a stance of its own."""

    condition: Condition
    place: int
    """Position of the part in the output, from 0."""
    part: Piece
    said: str


def parts_of(item: Item, outputs: Mapping[Condition, Output]) -> list[Part]:
    """Every part of both outputs, in order."""
    parts = []
    for condition in CONDITIONS:
        output = outputs[condition]
        texts: list[tuple[Piece, str]] = []
        if condition == "intervened":
            texts.append(("r_prime", item.r_prime))
        texts.extend(("step", step) for step in split_steps(output.reasoning))
        texts.extend((("e", output.explanation), ("a", output.answer)))
        present = [one for one in texts if one[1]]
        parts += [Part(condition, i, part, text) for i, (part, text) in enumerate(present)]
    return parts


def n_steps(parts: Iterable[Part]) -> int:
    """Counts the parts that are steps of reasoning."""
    return sum(p.part == "step" for p in parts)


def asks_of_parts(
    item: Item,
    model: str,
    parts: Sequence[Part],
    forms: Mapping[Kind, RfForm],
) -> list[ItemPrompt]:
    """Asks for the stance of every part, and for every part but an output's first whether it names
    a flaw in the one before; ids tell models, items and parts apart."""
    asks = []
    for before, part in pairwise((None, *parts)):
        assert part is not None
        id = f"{model} {item.id}.{part.condition}.{part.place}"
        stance = part_ask(id, item, forms["stance"].form, part=part.said)
        asks.append(ItemPrompt(stance, vars(part) | {"kind": "stance"}))
        if before is not None and before.condition == part.condition:
            flaw = part_ask(id, item, forms["flaw"].form, before=before.said, part=part.said)
            asks.append(ItemPrompt(flaw, vars(part) | {"kind": "flaw"}))
    return asks


def why_not(
    records: Sequence[Record], item: Item, outputs: Mapping[Condition, Output], most_steps: int
) -> str:
    """Why a pair does not count step by step; "" if it does.

    Its outputs have too many steps (`TOO_MANY`), or nothing was asked about it for another reason
    (`NOT_ASKED`), or a reply did not parse: then the kind and the outcome of the first such reply.
    """
    if not records:
        usable = len(outputs) == len(CONDITIONS) and all(o.usable for o in outputs.values())
        long = usable and n_steps(parts_of(item, outputs)) > most_steps
        return TOO_MANY if long else NOT_ASKED
    lost = next((r for r in records if r["outcome"] != "parsed"), None)
    return "" if lost is None else f"{lost['kind']}_{lost['outcome']}"


def step_rows(
    reader: str,
    item: Item,
    records: Sequence[Record],
    tested: Mapping[Condition, str] | None = None,
) -> list[Record]:
    """The parsed replies of a pair as rows of `tables.steps.STEPS`.

    Args:
        records: of one pair; all parsed.
        tested: of code items, the stance that the tests give each answer: it takes the place of
            the judge's, and stands at the end of a chain that has no marked answer.
    """
    rows: dict[tuple[Condition, int], Record] = {}
    for r in records:
        row = rows.setdefault(
            (r["condition"], r["place"]),
            {"reader": reader, "model": r["model"], "task": item.task, "item": item.id}
            | {"condition": r["condition"], "place": r["place"], "part": r["part"]}
            | {"stance": "", "names_flaw": False},
        )
        if r["kind"] == "stance":
            row["stance"] = r["verdict"]
        else:
            # records of older versions have the quote beside the verdict, and no `values`
            row["names_flaw"] = names_flaw(r["verdict"], r.get("values", r))
    for condition, stance in (tested or {}).items():
        own_rows = [row for row in rows.values() if row["condition"] == condition]
        last = max(own_rows, key=lambda row: row["place"])
        if last["part"] != "a":
            place = last["place"] + 1
            added = {"place": place, "part": "a", "names_flaw": False}
            last = rows[condition, place] = last | added
        last["stance"] = stance
    assert all(set(row) == set(STEPS) for row in rows.values())
    return list(rows.values())


_BREAK = re.compile(
    r"\n[ \t]*\n"  # a blank line
    r"|\n(?=[ \t]*(?:\d{1,3}[.)]|\(\d{1,3}\)|step\s+\d{1,3}\b|[-*•])[ \t:.])",
    re.I,
)


def split_steps(reasoning: str) -> tuple[str, ...]:
    """The steps of reasoning in order: paragraphs, and the points of lists within them.

    The paper says "newline sequences (e.g., \\n\\n) and enumerated list patterns".
    """
    return tuple(part.strip() for part in _BREAK.split(reasoning) if part.strip())
