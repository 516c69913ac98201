"""Inside a model while r′ is forced on it: its answer traced through r′ and what it wrote after.

Of none of the papers. Where does the probability of an answer follow r′, and at which token does
it turn back? A silent correction (RFEval, section 2) is seen as it happens. Beside it, where the
answer looks (r′, own reasoning, question), and what each layer would answer. What the signs say of
behaviours that a judge saw is `metrics.inside`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.inside.attention_and_lens import at_answer
from faithscope.experiments.studies.rfeval.inside.config import InsideConfig
from faithscope.experiments.studies.rfeval.inside.layout import Layout, layout
from faithscope.experiments.studies.rfeval.inside.trace_signals import Traced, led_to, signals
from faithscope.experiments.studies.rfeval.inside.tracing import (
    Labels,
    free_labels,
    option_labels,
    traced,
)
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import (
    Naming,
    gold_stance,
    stance_of_answer,
)
from faithscope.experiments.studies.rfeval.subjects.injection import Forced
from faithscope.probes.record import ARRAYS

if TYPE_CHECKING:
    from faithscope.interp.model import Model

STAGE = "rf_inside"


def look_inside(
    model: Model,
    item: Item,
    outputs: Mapping[Condition, tuple[Forced, Sequence[int]]],
    config: InsideConfig,
    naming: Naming = "letters",
) -> list[dict[str, Any]]:
    """A record per output, `variant` its condition. Lists are flat, row by row.

    The parts: `n_r_prime`, `n_r`, `n_e` tokens, `n_own` of the model's own up to its answer;
    `reasoned`, `resumed`, `end` as of `layout.Layout`; `answer`, the stance of its written answer
    by matching, None of code and where nothing was written.

    `trace` is `options`, `free` or `none`, with `trace_reason`:

        options   `options`, the stances in order (their labels are scored; a stance of two
                  options has the sum of both); if traced, per cut `cuts`, tokens given, `coarse`,
                  and `p`, (cuts × options) shares of one another. `led_to` is where r′ leads by
                  the model itself (`trace_signals.led_to`), and the record has the signals of
                  `trace_signals.signals` for it, which gives them for any other option.
        free      `options`, whose answers are scored (gold, and each output's own where it is
                  written otherwise); `cuts`; `log_prob`, (cuts × options) nats. `gold_lost` is
                  what the gold answer loses from before r′ to after it, `gold_regained` what it
                  gains from there to the answer, `own_gained` the same of the output's own answer;
                  nats per token of the answer.
        none      code, and a free answer that cannot be scored.

    Attention and lens: `attention_and_lens.at_answer`.

    Arrays: `log_probs` (cuts, labels), nats, of each whole label, unnormalised; those of
    `at_answer`.

    Args:
        outputs: of a condition, the conversation that was continued, and the generated ids without
            the token that ended them. Of the same model.
        naming: of the stances.

    Raises:
        UserError: a text does not fit the model's positions.
        ValueError: an option's label cannot be written in the model's tokens.
        FloatingPointError: a number is not finite, naming the item.
    """
    layouts: dict[Condition, Layout] = {
        c: layout(model, *outputs[c]) for c in CONDITIONS if c in outputs
    }
    if item.options:
        labels = option_labels(model, item, naming, config.cue, config.labels)
    else:
        answers = {str(c): of.output.answer for c, of in layouts.items()}
        labels = free_labels(model, item.answer, answers, config.free_cue, config.longest_answer)
    records: dict[Condition, dict[str, Any]] = {}
    for condition, of in layouts.items():
        record = _about(model, item, condition, of, labels, naming)
        arrays: dict[str, np.ndarray] = {}
        if "trace" in config.signals and labels.kind != "none":
            values, log_probs = traced(model, item, of, labels, config)
            record |= values
            arrays["log_probs"] = log_probs.astype(np.float32)
        if {"attention", "lens"} & set(config.signals):
            values, at_places = at_answer(model, item, of, labels, config)
            record |= values
            arrays |= at_places
        records[condition] = record | {ARRAYS: arrays}
    if (trace := Traced.of(records.get("intervened", {"trace": ""}))) is not None:
        option = led_to(trace, gold_stance(item, naming))
        for record in records.values():
            record |= {"led_to": option, **signals(record, option, record["answer"])}
    return list(records.values())


def _about(
    model: Model, item: Item, condition: Condition, of: Layout, labels: Labels, naming: Naming
) -> dict[str, Any]:
    spans = {part: b - a for part, (a, b) in of.spans.items()}
    n_r, n_e = spans.get("r", 0), spans.get("e", 0)
    answered = bool(of.output.answer) and item.task != "code_generation"
    return {
        "item": item.id,
        "model": model.name,
        "task": item.task,
        "variant": condition,
        "n_prompt": len(of.prompt_ids),
        "n_r_prime": of.n_r_prime,
        "n_r": n_r,
        "n_e": n_e,
        "n_own": n_r + n_e,
        "reasoned": of.reasoned,
        "resumed": of.resumed,
        "end": of.end,
        "answer": stance_of_answer(item, of.output.answer, naming) if answered else None,
        "naming": naming,
        "trace": labels.kind,
        "trace_reason": labels.reason,
        "options": list(dict.fromkeys(labels.names)),
    }
