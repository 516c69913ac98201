"""Units of work of a judge run: one form about one chain, put to one judge, read in one way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from faithscope.experiments.engine.forms import TaskForm
from faithscope.experiments.engine.forms.lines import as_lines
from faithscope.experiments.engine.forms.tasks import Shown
from faithscope.experiments.engine.models.judges import STAGES, decides
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.studies.judge.chains import JudgedChain
from faithscope.experiments.studies.judge.config import JudgeStudyConfig
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask


@dataclass(frozen=True)
class Judging(Planned):
    """One chain and one form, put to one judge."""

    model: str
    form: TaskForm
    of: JudgedChain
    asks: tuple[tuple[int | None, Ask], ...]
    """Asks of the unit as (step index, ask); the index is None where the ask is about the whole
    chain."""
    units: dict[str, str]

    @property
    def task(self) -> str:
        return self.form.form.name

    @property
    def item(self) -> str:
        return self.of.id


def judgings(
    config: JudgeStudyConfig, forms: Mapping[str, TaskForm], chains: Sequence[JudgedChain]
) -> Iterator[Judging]:
    """All units of the run in working order."""
    for model in config.judge.model:
        known = decides(model, config.judge, config.seed)
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
    """Asks of one form about one chain; none for a chain without a counted step.

    Raises:
        UserError: its steps cannot be numbered (localisation).
    """
    steps = [text.strip() for text in chain.steps]
    if not chain.places:
        return
    before = lambda i: as_lines(step for step in steps[:i] if step)  # noqa: E731
    shown = Shown(chain.question, steps, chain.places, chain.text, before)
    try:
        for step, values, high in form.judged.cases(shown):
            name = chain.id if step is None else f"{chain.id} {step}"
            yield step, Ask(name, form.form, values, high=high)
    except UserError as error:
        raise UserError(f"chain {chain.id!r}: {error}") from None
