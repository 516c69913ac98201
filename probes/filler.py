"""Filler tokens: a step's content is removed without a hole, and without moving later tokens.

A step, the steps up to it, or the whole reasoning is replaced by the same number of tokens that say
nothing; every other token keeps its id and its position. Lanham et al. (2023), "Measuring
Faithfulness in Chain-of-Thought Reasoning", section 2.5, replace whole chains by as many " ...", to
see whether the room for computing is what helps; here single steps and growing prefixes are
replaced, too, and each step's removal is run in the same pack.

If removal changes the answer and filler does not, the hole or the moved text was the cause. If only
filler changes it, the filler was: the model may never have seen such text, so several fillers are
better than one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

from pydantic import StrictBool

from faithscope.interventions import Trace, replace_step
from faithscope.probes.edited import beside_removal, removals, scored
from faithscope.probes.framing import FEWER_LABELS, Asking
from faithscope.probes.probe import probe
from faithscope.probes.record import Record, record
from faithscope.probes.settings import Execution, Settings, Some

if TYPE_CHECKING:
    from faithscope.interp.model import Model

Filler = Literal["dots", "stop", "dash", "newline"]
FILLERS: dict[Filler, str] = {"dots": " ...", "stop": " .", "dash": " -", "newline": "\n"}
"""Name of a filler -> the text that is repeated until the place is full."""
NOT_WRITABLE = "filler_not_writable"
"""Why a filler is left out: the tokenizer has no tokens that read as its text."""


class FillerSettings(Settings):
    """A step, the steps up to it, or the whole reasoning replaced by tokens that say nothing."""

    fillers: Some[Filler] = ("dots", "stop")
    """Fillers put in place of the text: " ...", " .", " -" or a line break, repeated."""
    length_normalise: StrictBool = False
    """Divide a label's log-prob by its tokens."""
    execution: Execution = "auto"


@probe(
    "a step's tokens replaced by as many that say nothing, beside removal of its text",
    samples_steps=True,
    words=("cue", "labels"),
    reads_labels=True,
    follows_answer=True,
    calls=lambda size, s: 1 + len(s.fillers) + size.steps * (1 + 2 * len(s.fillers)),
    version=2,
)
def filler(model: Model, trace: Trace, asking: Asking, settings: FillerSettings) -> list[Record]:
    """A record for each filler, its name the variant. Lists have a value per counted step:

        filled, prefix, removed     the likeliest answer: the step filled, all up to its end
                                    filled, its text removed
        flips, prefix_…, removed_…  whether it is another than on the whole reasoning
        tv, …                       total variation of the distribution over the task's answers
        log_odds, …                 drop of the log-odds of `answer`, the chain's, in nats; None
                                    where infinite. `forced_log_odds`, …: of the forced choice
        margin, …                   by how much the closer of the two answers was decided, in nats:
                                    a flip by no more than `noise_floor` is within the noise
        filled_mass, prefix_mass, removed_mass
                                    what all labels together have of the model's probability;
                                    `label_mass`, on the whole reasoning

    `whole`, `whole_flips`, `whole_tv`, `whole_log_odds`, `whole_mass`: all of the reasoning filled.

    Raises:
        FloatingPointError: a label's log-probability is NaN, naming item and branch.
    """
    if len(asking.answers) < 2:
        return [record(trace, "filler", "", None, excluded=FEWER_LABELS)]
    tokens: dict[Filler, tuple[int, ...]] = {
        name: tokens_of(model, FILLERS[name]) for name in settings.fillers
    }
    steps = trace.counted_steps
    runs = removals(trace)
    for name, ids in ((name, ids) for name, ids in tokens.items() if ids):
        for i, step in enumerate(steps):
            if not trace.is_sampled(step.index):
                continue
            runs[f"{name}.step", i] = filled(model, trace, ids, *step.tokens)
            runs[f"{name}.prefix", i] = filled(model, trace, ids, 0, step.tokens[1])
        runs[f"{name}.whole", 0] = filled(model, trace, ids, 0, len(trace.reasoning_ids))
    pack = scored(model, trace, asking, runs, settings)
    shared = beside_removal(trace, pack)
    records = []
    for name, ids in tokens.items():
        known = {"filler": FILLERS[name], **shared}
        if not ids:
            records.append(record(trace, "filler", name, None, excluded=NOT_WRITABLE, **known))
            continue
        records.append(
            record(
                trace,
                "filler",
                name,
                None,
                **known,
                **pack.lists("filled", "", f"{name}.step", len(steps)),
                **pack.lists("prefix", "prefix_", f"{name}.prefix", len(steps)),
                **pack.whole(f"{name}.whole"),
                **pack.cost,
            )
        )
    return records


def tokens_of(model: Model, text: str) -> tuple[int, ...]:
    """The token ids of a filler's text; none if they would not read as that text."""
    ids = tuple(model.encode(text))
    return ids if "".join(model.pieces(ids)).strip(" ") == text.strip(" ") else ()


def filled(model: Model, trace: Trace, ids: tuple[int, ...], start: int, end: int) -> Trace:
    """The trace with its steps from token `start` to token `end` filled with repeated `ids`."""
    for step in trace.steps:
        a, b = step.tokens
        if start <= a and b <= end:
            new = tuple(itertools.islice(itertools.cycle(ids), b - a))
            trace = replace_step(trace, step.index, new, model.pieces(new), kind="filler")
    return trace
