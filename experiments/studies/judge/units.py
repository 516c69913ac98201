"""The units of work: one form about one chain, put to one judge, read in one way; what is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.fingerprint import fingerprint
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.forms import TaskForm, trace_forms
from faithscope.experiments.engine.forms.lines import as_lines, as_numbered_lines
from faithscope.experiments.engine.models.judges import decides, replied
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.studies.judge.chains import JudgedChain
from faithscope.experiments.studies.judge.config import JudgeStudyConfig
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.judge.form import Ask, Reply
from faithscope.probes.record import Record, head

STAGES: dict[Reading, str] = {"generated": "judge_generated", "scored": "judge_scored"}
READINGS: dict[str, Reading] = {stage: reading for reading, stage in STAGES.items()}
OF_STEPS = ("step_judge", "detection")
"""Tasks that are asked about every step by itself, with those before it."""
NOTHING_BEFORE = "(nothing; this is the first step)"


@dataclass(frozen=True)
class Judging(Planned):
    """One chain and one form, put to one judge."""

    model: str
    form: TaskForm
    of: JudgedChain
    asks: tuple[tuple[int | None, Ask], ...]
    """(step, ask); no step where the chain as a whole is asked about."""
    units: dict[str, str]

    @property
    def task(self) -> str:
        return self.form.form.name

    @property
    def item(self) -> str:
        return self.of.id


def forms_of(config: JudgeStudyConfig) -> dict[str, TaskForm]:
    """The forms of a run by name.

    Raises:
        ConfigError: a name without a form.
        UserError: a folder of forms that cannot be used.
    """
    known = trace_forms(None if config.prompts is None else Path(config.prompts).expanduser())
    for name in config.forms:
        if name not in known:
            guess = did_you_mean(name, known) or f"; known: {', '.join(known)}"
            raise ConfigError([f"forms: unknown form {name!r}{guess}"])
    return {name: known[name] for name in config.forms}


def judgings(
    config: JudgeStudyConfig, forms: Mapping[str, TaskForm], chains: Sequence[JudgedChain]
) -> Iterator[Judging]:
    """Everything that is asked, in the order in which it is worked on."""
    for model in config.judge.model:
        weights = None if model.startswith(API) else fingerprint(model, config.judge.revision)
        known = {
            "schema": SCHEMA,
            "seed": config.seed,
            "weights": weights,
            **decides(model, config.judge),
        }
        for form in forms.values():
            ids = {
                STAGES[reading]: UnitIds(**known, reading=reading, form=form.form.sha256)
                for reading in config.judge.readings_of(model)
            }
            for chain in chains:
                asks = tuple(asks_of(chain, form))
                about = [(step, ask.id, dict(ask.values), ask.high) for step, ask in asks]
                units = {s: i.of(asks=about, chain=chain.sha256) for s, i in ids.items()}
                yield Judging(model, form, chain, asks, units)


def asks_of(chain: JudgedChain, form: TaskForm) -> Iterator[tuple[int | None, Ask]]:
    """What is asked about a chain by a form; nothing of one without steps.

    Raises:
        UserError: its steps cannot be numbered (localisation).
    """
    steps = [text.strip() for text in chain.steps]
    places = chain.places
    if not places:
        return
    if form.task in OF_STEPS:
        for i in places:
            before = as_lines(step for step in steps[:i] if step) or NOTHING_BEFORE
            values = {"question": chain.question, "context": before, "step": steps[i]}
            yield i, Ask(f"{chain.id} {i}", form.form, values)
        return
    high = None
    if form.task == "localisation":
        try:
            cot = as_numbered_lines([steps[i] for i in places])
        except UserError as error:
            raise UserError(f"chain {chain.id!r}: {error}") from None
        high = len(places) - 1
    elif form.task == "coverage":
        cot = as_lines(step for step in steps if step)
    else:
        cot = chain.text
    # coverage calls the chain by another name
    shown = {"question": chain.question, "cot": cot, "degraded_cot": cot}
    yield None, Ask(chain.id, form.form, shown, high=high)


def judged_record(
    item: Judging, step: int | None, ask: Ask, reading: Reading, reply: Reply, seed: int
) -> Record:
    """One judgement, word for word; `verdict` is None where the reply is not of the form.

    What localisation names is told as an index of the chain's steps, -1 for none.
    """
    verdict = reply.values.get(ask.form.verdict)
    if item.form.task == "localisation" and verdict is not None and verdict >= 0:
        verdict = item.of.places[verdict]
    return {
        **head(
            dataset=item.of.dataset,
            task=item.form.task,
            item=item.of.id,
            model=item.of.model or None,
            judge=item.model,
            probe=STAGES[reading],
            variant=item.task,
            seed=seed,
        ),
        "step": step,
        "verdict": verdict,
        "values": dict(reply.values),
        "probabilities": list(reply.probabilities),
        "mass": reply.mass,
        "form_sha256": ask.form.sha256,
        "system": ask.system,
        "asked": ask.prompt,
        **replied(reply),
    }
