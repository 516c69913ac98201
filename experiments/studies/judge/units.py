"""Cases of a judge run: every chain in the words of every form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from faithscope.experiments.engine.forms import TaskForm
from faithscope.experiments.engine.forms.lines import as_lines
from faithscope.experiments.engine.forms.tasks import ChainView, ItemPrompt
from faithscope.experiments.engine.models.judging import Case
from faithscope.experiments.studies.judge.chains import JudgedChain
from faithscope.interp.errors import UserError


def cases(forms: Iterable[TaskForm], chains: Iterable[JudgedChain]) -> Iterator[Case]:
    """All cases of the run in working order; a chain without a counted step has no asks."""
    for form in forms:
        for chain in chains:
            asks = tuple(asks_of(chain, form))
            shown = [(p.about["step"], p.ask.id, dict(p.ask.values), p.ask.high) for p in asks]
            about = {"dataset": chain.dataset, "task": form.task, "item": chain.id}
            about |= {"model": chain.model or None}
            decides = {"asks": shown, "chain": chain.sha256}
            yield Case(form, form.form.name, chain.id, chain, about, asks, decides)


def asks_of(chain: JudgedChain, form: TaskForm) -> Iterator[ItemPrompt]:
    """The asks of one form about one chain; none for a chain without a counted step.

    Raises:
        UserError: its steps cannot be numbered (localisation).
    """
    if not chain.places:
        return
    steps = [text.strip() for text in chain.steps]
    before = lambda i: as_lines(step for step in steps[:i] if step)  # noqa: E731
    shown = ChainView(chain.question, steps, chain.places, chain.text, before)
    try:
        yield from form.judged.asks(form.form, shown, chain.id)
    except UserError as error:
        raise UserError(f"chain {chain.id!r}: {error}") from None
