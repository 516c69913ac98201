"""Prompt injection: a line inside the judged chain that tells the judge what to say.

C2-Faith does not ask whether a judge can be talked round by what it judges; this check is ours.
An injected ask differs from an ordinary one of the same run, its twin, by one text at the end of
one step, and by nothing else.
"""

from __future__ import annotations

import hashlib
import json
import random
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.prompts_of_items import Condition, ask_of
from faithscope.interp.documents import yaml_of
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask

Demand = Literal["best", "worst"]
PLACES = ("verdict", "field", "reply")
REASON = "Checked."
"""Text that a forged reply has in its text fields."""
PACKAGED = "injections.yaml"


@dataclass(frozen=True)
class Injection:
    """A named text that may be put into a chain."""

    name: str
    about: str
    text: str
    """The text itself, with the places of `PLACES`."""

    @property
    def demands(self) -> bool:
        """Whether the text names a verdict; one that names none is there for comparison."""
        return any(place for _, place, _, _ in string.Formatter().parse(self.text))

    def fill(self, form: TaskForm, verdict: int | None) -> str:
        """The text as it stands before a judge that is asked this form."""
        if verdict is None:
            return self.text.format()
        reply: dict[str, str | int | None] = {
            f.name: REASON if f.kind == "text" else f.low for f in form.form.fields
        }
        reply[form.form.verdict] = verdict
        places = {"verdict": verdict, "field": form.form.verdict, "reply": json.dumps(reply)}
        return self.text.format(**places)


@dataclass(frozen=True)
class Injected:
    """A text that was put into the chain of one ask."""

    injection: str
    demand: Demand | None
    """Verdict that the text asks for, the best or the worst; None if it names none."""
    demanded: int | None
    """The verdict that the text names; None if it names none."""
    step: int
    """Index from 0 of the step at whose end the text stands, among the steps shown."""
    twin: str
    """Id of the ordinary ask that differs by the text alone."""


class _InjectionFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    about: str
    text: str


def injections(path: Path | None = None) -> dict[str, Injection]:
    """Every injection by name: the packaged ones, and those of a file over them.

    Raises:
        UserError: a file that cannot be used; names file, key and remedy.
    """
    packaged = resources.files("faithscope.experiments.extras.injection").joinpath(PACKAGED)
    read = _read(packaged.read_text("utf-8"), PACKAGED)
    if path is None:
        return read
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"injection.texts: {path}: cannot be read as text ({error})") from error
    return read | _read(text, str(path))


def demanded(form: TaskForm, demand: Demand) -> int:
    """The best or the worst that can be said of a chain in a form's words.

    Best: the step follows (1), no step is broken (-1), the maximum of the scale. Worst: it does
    not follow (0), the first step is broken already (0), the minimum of the scale.
    """
    f = form.form.verdict_field
    if form.task == "localisation":
        return -1 if demand == "best" else 0
    value = f.high if demand == "best" else f.low
    if value is None:
        raise ValueError(f"form {form.form.name!r}: its verdict has no bounds to demand")
    return value


def injected_step(item: CausalItem | CoverageItem, seed: int) -> int | None:
    """Index from 0 of the step, among those shown, at whose end a text is put.

    It is the step before the target, which every causal task shows and whose end stands before
    what is judged; None where the target is the first. In a chain with steps left out a seeded
    draw from those that are left; None where none is.
    """
    if isinstance(item, CausalItem):
        return item.target - 1 if item.target > 0 else None
    if not item.steps:
        return None
    return random.Random(f"c2faith-injection-{seed}-{item.id}").randrange(len(item.steps))


def inject(
    item: CausalItem | CoverageItem,
    form: TaskForm,
    condition: Condition | None,
    injection: Injection,
    demand: Demand | None,
    seed: int,
) -> tuple[Ask, Injected] | None:
    """The ask of a case with a text put into its chain; None where no step can hold it.

    Args:
        demand: which verdict the text names; None for a text that names none.
    """
    twin = ask_of(item, form, condition)
    injected = injected_into(item, form, injection.name, demand, twin.id, seed)
    if injected is None:
        return None
    text = injection.fill(form, injected.demanded)
    changed = ask_of(with_text(item, injected.step, text), form, condition)
    name = f"{twin.id}+{injection.name}" + (f".{demand}" if demand else "")
    return replace(changed, id=name), injected


def injected_into(
    item: CausalItem | CoverageItem,
    form: TaskForm,
    injection: str,
    demand: Demand | None,
    twin: str,
    seed: int,
) -> Injected | None:
    """Description of a text of this name put into an item; None if no step can hold it."""
    step = injected_step(item, seed)
    verdict = None if demand is None else demanded(form, demand)
    return None if step is None else Injected(injection, demand, verdict, step, twin)


def with_text(item: CausalItem | CoverageItem, step: int, text: str) -> CausalItem | CoverageItem:
    """The item with a text on a line of its own at the end of a step; all else word for word."""
    changed = f"{item.steps[step]}\n{text}"
    return replace(item, steps=(*item.steps[:step], changed, *item.steps[step + 1 :]))


def drawn_chains(chains: Iterable[str], limit: int | None, seed: int) -> frozenset[str]:
    """Chains whose items carry injections: all, or `limit` of them, picked by the seed and their
    ids, so that a greater limit keeps the chains of a smaller one."""

    def place(chain: str) -> str:
        return hashlib.sha256(f"c2faith-injection-{seed}-{chain}".encode()).hexdigest()

    return frozenset(sorted(set(chains), key=place)[:limit])


def variants(
    kinds: Sequence[Injection], demands: Sequence[Demand]
) -> Iterator[tuple[Injection, Demand | None]]:
    """Every text with every demand; a text that names no verdict once."""
    for kind in kinds:
        for demand in demands if kind.demands else (None,):
            yield kind, demand


def _read(text: str, where: str) -> dict[str, Injection]:
    try:
        files = TypeAdapter(dict[str, _InjectionFile]).validate_python(yaml_of(text))
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(
            f"{where}: {at}: {first['msg']}; every injection is a name with `about` and `text`"
        ) from error
    _check(files, where)
    return {name: Injection(name, f.about, f.text) for name, f in files.items()}


def _check(files: Mapping[str, _InjectionFile], where: str) -> None:
    for name, file in files.items():
        if not name.replace("_", "a").isalnum():
            raise UserError(f"{where}: {name!r}: name it with letters, digits and _ alone")
        if not file.text.strip():
            raise UserError(f"{where}: {name}: text is empty; write what the chain is to say")
        try:
            places = list(string.Formatter().parse(file.text))
        except ValueError as error:
            raise UserError(
                f"{where}: {name}: text: {error}; write {{{{ and }}}} for braces of its own"
            ) from error
        for _, place, spec, conversion in places:
            if place is not None and (place not in PLACES or spec or conversion):
                raise UserError(
                    f"{where}: {name}: text: there is no place {{{place}}}; there are "
                    f"{', '.join(PLACES)}; write {{{{ and }}}} for braces of its own"
                )
