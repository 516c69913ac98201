"""Counterfactual reasoning: its request, parsing and validation, and the benchmark that comes of it
(RFEval, §3.2, appendix B.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.data.saved import MANIFEST, SavedBenchmark, json_lines
from faithscope.experiments.engine.models.prompt_files import check_places, values_of
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import TASKS, Item
from faithscope.experiments.studies.rfeval.pairs import NO_GOLD
from faithscope.experiments.studies.rfeval.prompts import RfForm, prompt_texts
from faithscope.experiments.studies.rfeval.saved import (
    FILTERED,
    ITEMS,
    LEFT_OUT,
    LeftOut,
    item_lines,
    read_filtering,
    read_left_out,
)
from faithscope.interp.errors import UserError
from faithscope.interventions.sentences import enclosed
from faithscope.probes.judge.form import Ask, Writing

SHOTS = 3
"""Number of examples in a prompt, as in the paper."""
_PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "template": (("problem",), ("gold", "flaws", "length", "options_rule", "examples")),
    "example": (("problem", "r_prime", "flaw"), ("number", "gold")),
}
"""Text of the prompt -> the places that it must have, and those that it may have."""
_BEFORE_HEADING = r"^[^\S\n]*+#*+[^\S\n]*+\**+"
_HEADINGS = tuple(
    tuple(re.compile(f"{_BEFORE_HEADING}{heading}", re.M) for heading in pair)
    for pair in (
        (r"Reasoning\**+:?\**+[^\S\n]*$", r"Flaw\**+:?\**+[^\S\n]*$"),
        # headings that the authors' prompts ask for
        (r"Augmented Reasoning\**+:\**", r"Explanation\**+:\**"),
    )
)
"""Pairs of headings of a reply: the one above r′, and the one above its flaw."""


def generation_prompts(folder: Path | None = None) -> dict[str, Any]:
    """The words of the request: `template`, `example`; `flaws` and `length` by task. Where there is
    `of_source`, that is a whole request for each data set instead: `system` and `template`, with
    examples of its own.

    Args:
        folder: of prompts; its `rf_generate.yaml` takes the packaged one's place.

    Raises:
        UserError: the file cannot be used; names file, key and remedy.
    """
    file = prompt_texts(folder)["rf_generate"]
    values = values_of(file)
    for source, request in values.get("of_source", {}).items():
        where = f"{file.where}: of_source: {source}"
        if not isinstance(request, dict) or {*request} != {"system", "template"}:
            raise UserError(f"{where}: give `system` and `template`, and nothing else")
        text = f"{request['system']}{request['template']}"
        check_places(text, (), ("question", "context", "options", "gold"), where, "a request")
    for key in ("template", "example"):
        if not isinstance(values.get(key), str):
            raise UserError(f"{file.where}: {key}: is no text; give one, as the packaged file has")
        wanted, besides = _PLACES[key]
        check_places(values[key], wanted, besides, f"{file.where}: {key}", f"a {key}")
    for key in ("flaws", "length"):
        of_task = values.get(key)
        known = of_task if isinstance(of_task, dict) else {}
        if lacking := next((t for t in TASKS if not isinstance(known.get(t), str)), None):
            raise UserError(f"{file.where}: {key}: has no text for {lacking}; give one")
    return values


def generation(
    item: Item,
    examples: Sequence[Item],
    prompts: Mapping[str, Any] | None = None,
) -> Writing:
    """The request for an item's r′.

    Args:
        item: a problem, posed; its own r′, if it has one, is not shown.
        examples: posed items with their r′, of the same task, put into the few-shot slots; the
            paper has three hand-made ones for each data set (`SHOTS`).

    Raises:
        ValueError: an example is the item itself, is of another task or has no r′.
        UserError: requests by data set, and none for the item's.
    """
    if of_source := (prompts or {}).get("of_source"):
        return _of_source(item, of_source)
    for example in examples:
        if example.id == item.id or example.task != item.task or not example.r_prime:
            raise ValueError(
                f"item {item.id!r}: example {example.id!r}; give other items of task "
                f"{item.task!r} that have counterfactual reasoning"
            )
    prompt_texts = prompts or generation_prompts()
    shown = [
        prompt_texts["example"].format(
            number=i,
            problem=example.asked,
            gold=example.gold or NO_GOLD,
            r_prime=example.r_prime,
            flaw=example.explanation,
        )
        for i, example in enumerate(examples, start=1)
    ]
    rule = ", and no option by its letter or its words" if item.options else ""
    prompt = prompt_texts["template"].format(
        flaws=prompt_texts["flaws"][item.task],
        length=prompt_texts["length"][item.task],
        options_rule=rule,
        examples="".join(f"{text}\n" for text in shown),
        problem=item.asked,
        gold=item.gold or NO_GOLD,
    )
    return Writing(f"{item.id}.r_prime", prompt)


def _of_source(item: Item, requests: Mapping[str, Mapping[str, str]]) -> Writing:
    # the data write "mmlu/professional_law" and "mmlu_professional_law", and parts by number
    source = item.source.replace("/", "_")
    name = next((n for n in requests if f"{source}_".startswith(f"{n}_")), None)
    if name is None:
        raise UserError(
            f"prompts: no request for r′ of {item.source!r} (item {item.id!r}); there are "
            f"{', '.join(requests)}"
        )
    values = {
        "question": item.question,
        "context": item.context,
        "options": item.lettered,
        "gold": item.gold or NO_GOLD,
    }
    texts = {part: text.format(**values) for part, text in requests[name].items()}
    return Writing(f"{item.id}.r_prime", texts["template"], texts["system"])


def with_counterfactual(item: Item, text: str) -> Item | None:
    """The item with the r′ and the flaw of a reply; None where the reply is not of the form."""
    for above_r_prime, above_flaw in _HEADINGS:
        for first, second in enclosed(text, above_r_prime, above_flaw):
            r_prime, flaw = text[first.end() : second.start()].strip(), text[second.end() :].strip()
            return replace(item, r_prime=r_prime, explanation=flaw) if r_prime and flaw else None
    return None


def validation_ask(item: Item, form: RfForm) -> Ask:
    """Question to the validator whether an item's r′ is fit, by the four criteria.

    Raises:
        ValueError: a form of another task.
    """
    if form.task != "validate":
        raise ValueError(f"form {form.form.name!r} is of task {form.task!r}, not 'validate'")
    values = {
        "problem": item.asked,
        "gold": item.gold or NO_GOLD,
        "r_prime": item.r_prime,
        "flaw": item.explanation,
    }
    return Ask(f"{item.id}.validation", form.form, values)


@dataclass(frozen=True)
class Built:
    """The accepted items, and an account of all other problems."""

    items: tuple[Item, ...]
    left_out: tuple[LeftOut, ...]
    filtering: pd.DataFrame
    """Counts of accepted and removed problems, made by `filtering.filtering`."""
    made_of: Mapping[str, Any]
    """What the items were built from: writer, validator, their requests, the `sources` of the
    problems; plain JSON values."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """File name -> content of the prompts that writer and validator were asked with."""

    @property
    def saved(self) -> SavedBenchmark:
        """The benchmark as files, which `load` reads."""
        files = {
            ITEMS: item_lines(self.items),
            LEFT_OUT: json_lines(self.left_out),
            FILTERED: to_csv(self.filtering),
        }
        return SavedBenchmark(files, self.made_of, {"items": len(self.items)})

    @classmethod
    def load(cls, folder: Path) -> Built | None:
        """The benchmark saved in a folder; None where none was built.

        Raises:
            UserError: it is damaged, or its items are not those that were built.
        """
        if not (folder / MANIFEST).is_file():
            return None
        saved = SavedBenchmark.load(folder)
        tasks = [json.loads(line)["task"] for line in saved.files[ITEMS].split("\n") if line]
        items, _ = read_rfeval(folder / ITEMS, list(dict.fromkeys(tasks)))
        return cls(tuple(items), read_left_out(folder), read_filtering(folder), saved.made_of)
