"""Measures inside a model under r′: its answer traced through r′ and what it wrote after.

Not in any paper. Where does the probability of an answer follow r′, and at which token does
it turn back? A silent correction (RFEval, section 2) is seen as it happens. What the signs say of
behaviours that a judge saw is `metrics.inside`.

Two more: where the answer looks (r′, own reasoning, question), and what each layer would answer.
Both are read at two places, as branches of one pack: `asked`, after the cue that follows all that
stands before the answer, at the token whose output tells the labels apart (what their ids have in
common at the start, a blank of its own in some tokenizers, is given); and `written`, the token
before the answer in the model's own text, whose output is the answer's first token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from faithscope.experiments.studies.rfeval.config_sections import InsideConfig
from faithscope.experiments.studies.rfeval.inside.layout import Layout, layout, text_span
from faithscope.experiments.studies.rfeval.inside.trace_signals import (
    COMPARED,
    Traced,
    led_to,
    signals,
)
from faithscope.experiments.studies.rfeval.inside.tracing import (
    Labels,
    free_labels,
    option_labels,
    traced,
)
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Condition, Item
from faithscope.experiments.studies.rfeval.judging.stances import gold_stance, stance_of_answer
from faithscope.experiments.studies.rfeval.subjects.subjects import Forced
from faithscope.probes.answer_token import (
    Span,
    attention_row,
    attention_to,
    lens_log_probs,
    regions_of_prompt,
)
from faithscope.probes.record import ARRAYS, NO_STREAM, number, numbers
from faithscope.probes.rigidity import settled

if TYPE_CHECKING:
    from faithscope.interp.model import Model

STAGE = "rf_inside"


def look_inside(
    model: Model,
    item: Item,
    outputs: Mapping[Condition, tuple[Forced, Sequence[int]]],
    config: InsideConfig,
) -> list[dict[str, Any]]:
    """A record per output, with its condition as `variant`. Lists are flat, row by row.

    The parts: `n_r_prime`, `n_r`, `n_e` tokens, `n_own` of the model's own up to its answer;
    `reasoned`, `resumed`, `end` as in `layout.Layout`; `answer`, the stance of its written answer
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

    Attention and lens: `at_answer`.

    Arrays: `log_probs` (cuts, labels), nats, of each whole label, unnormalised; those of
    `at_answer`.

    Args:
        outputs: condition -> the conversation that was continued, and the generated ids without
            the token that ended them. Both outputs are of `model`.

    Raises:
        UserError: a text does not fit the model's positions.
        ValueError: an option's label cannot be written in the model's tokens.
        FloatingPointError: a number is not finite, naming the item.
    """
    layouts: dict[Condition, Layout] = {
        c: layout(model, *outputs[c]) for c in CONDITIONS if c in outputs
    }
    if item.options:
        labels = option_labels(model, item, config.cue, config.labels)
    else:
        answers = {str(c): of.output.answer for c, of in layouts.items()}
        labels = free_labels(model, item.answer, answers, config.free_cue, config.longest_answer)
    records: dict[Condition, dict[str, Any]] = {}
    for condition, of in layouts.items():
        record = _about(model, item, condition, of, labels)
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
        option = led_to(trace, gold_stance(item))
        for record in records.values():
            record |= {"led_to": option, **signals(record, option, record["answer"])}
    return list(records.values())


def _about(
    model: Model, item: Item, condition: Condition, of: Layout, labels: Labels
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
        "answer": stance_of_answer(item, of.output.answer) if answered else None,
        "naming": item.naming,
        "trace": labels.kind,
        "trace_reason": labels.reason,
        "options": list(dict.fromkeys(labels.names)),
    }


if TYPE_CHECKING:
    from torch import Tensor

    from faithscope.interp.model import Model

REGIONS = ("first_token", "template", "question", "r_prime", "r", "e", "asking")
"""Regions that tile the text before the answer. `question` is question, context and options in the
prompt, `template` the rest of the prompt but its first token; `asking` is what closes the
reasoning, and the cue."""
NO_ROWS = "no_attention_rows"
NO_ANSWER = "no_answer_written"
Read = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Numbers for the record, and arrays for its file."""


def at_answer(model: Model, item: Item, layout: Layout, labels: Labels, c: InsideConfig) -> Read:
    """Attention and lens at the places asked for; see `attention_values` and `lens_values`.

    Values begin with the place (`asked_own`, `written_settled_layer`). A place that is not there,
    attention of a model that gives none, and the lens of one whose residual stream cannot be told
    have a reason (`written_reason`, `attention_reason`, `lens_reason`, "" of most) and no values.

    Raises:
        UserError: the text does not fit the model's positions.
        FloatingPointError: attention rows or logits are not finite, naming the item.
    """
    from faithscope.interp.forest import Branch

    prefixes = {
        "asked": (*layout.prefix(layout.last), *labels.cue, *labels.shared),
        "written": (*layout.prompt_ids, *layout.written[: layout.end]),
    }
    missing = {"asked": labels.reason, "written": "" if layout.output.answer else NO_ANSWER}
    rows = "attention" in c.signals and model.supports_tree
    lens = "lens" in c.signals and model.structure.unknown is None
    values: dict[str, Any] = {
        "n_layers": model.n_layers,
        "question_found": None,
        "attention_reason": "" if rows or "attention" not in c.signals else NO_ROWS,
        "lens_reason": "" if lens or "lens" not in c.signals else NO_STREAM,
        **{f"{place}_reason": missing[place] for place in c.places},
    }
    arrays: dict[str, np.ndarray] = {}
    places = [place for place in c.places if not missing[place]]
    if not places or not (rows or lens):
        return values, arrays
    branches = [Branch(prefixes[place]) for place in places]
    ran = model.run(branches, rows=rows, residuals=lens, execution=c.execution)
    for place, branch in zip(places, ran.branches, strict=True):
        what = f"item {item.id!r}, {place}"
        readings: list[Read] = []
        if rows:
            row = attention_row(model, branch.rows, what)
            spans = regions(model, item, layout, row.shape[-1])
            values["question_found"] = bool(spans["question"])
            readings.append(attention_values(row, spans))
        if branch.residuals is not None:
            log_probs = lens_log_probs(model, branch.residuals[0], branch.logits, what)
            readings.append(lens_values(model, log_probs, labels if place == "asked" else None))
        for numbers_of, arrays_of in readings:
            values |= {f"{place}_{name}": x for name, x in numbers_of.items()}
            arrays |= {f"{place}_{name}": x for name, x in arrays_of.items()}
    return values, arrays


def regions(model: Model, item: Item, layout: Layout, length: int) -> dict[str, tuple[Span, ...]]:
    """Half-open spans of every region of `REGIONS` in a branch of `length` tokens."""
    n = len(layout.prompt_ids)
    question = text_span(
        model.pieces(layout.prompt_ids), (item.question, item.context, item.lettered)
    )
    parts = {part: (n + x, n + y) for part, (x, y) in layout.spans.items()}
    end = max([n, *(y for _, y in parts.values())])
    closer = (n + layout.reasoned, n + layout.resumed) if "e" in parts else (end, end)
    return {
        **regions_of_prompt(n, question),
        **{part: (parts[part],) if part in parts else () for part in ("r_prime", "r", "e")},
        "asking": tuple((x, y) for x, y in (closer, (end, length)) if x < y),
    }


def attention_values(row: Float[np.ndarray, "L H P"], spans: Mapping[str, Sequence[Span]]) -> Read:
    """Shares of one token's attention, means over all heads of all layers.

        r_prime, own, question      share of the row
        density_…                   the share of the region in all attention but the first token's,
                                    over its share of the tokens but the first: 1 is what its
                                    length alone would bring it. Heads look nearby more than far
                                    away; this takes out length, not distance.
        own_against_r_prime         own / (own + r_prime) of the densities, in [0, 1]
        first_token                 the sink's share

    A region that is not there has None. `…_by_layer` lists are means over heads.

    Arrays: `regions` (L, H, R) shares in the order of `REGIONS`, `tokens` (R,) of each.
    """
    shares = np.stack([attention_to(row, spans[name]) for name in REGIONS], axis=-1)
    tokens = np.array([sum(b - a for a, b in spans[name]) for name in REGIONS])
    by_layer = shares.mean(axis=1)
    means = by_layer.mean(axis=0)
    rest = means[1:].sum() / max(1, tokens[1:].sum())
    values: dict[str, Any] = {"first_token": number(means[0])}
    for name, regions_of in COMPARED.items():
        at = [REGIONS.index(region) for region in regions_of]
        there = tokens[at].sum() > 0
        per_token = means[at].sum() / tokens[at].sum() if there else 0.0
        values[name] = number(means[at].sum()) if there else None
        values[f"density_{name}"] = number(per_token / rest) if there and rest else None
        values[f"{name}_by_layer"] = numbers(by_layer[:, at].sum(axis=1)) if there else None
    own, forced = values["density_own"], values["density_r_prime"]
    both = None if own is None or forced is None or own + forced == 0 else own + forced
    values["own_against_r_prime"] = number(own / both) if both else None
    return values, {"regions": shares.astype(np.float32), "tokens": tokens.astype(np.int64)}


def lens_values(model: Model, log_probs: Tensor, labels: Labels | None) -> Read:
    """What each layer's residual stream would answer (`probes.answer_token.lens_log_probs`).

        top                 the first token that each layer 1..L puts first, as text
        settled_layer       the first layer from which this is what the model says;
                            `settled_depth`, over L
        option_settled_layer, option_settled_depth   the same among the options, by the tokens
                            that tell their labels apart
        lens_p              row by row, the options' shares after layer 0 (the embeddings) to L
        no_options          why options cannot be told apart so; "" if they can

    Arrays: `top_ids` (L+1,), `option_log_probs` (L+1, options), unnormalised.

    Args:
        labels: those of options; None, or those of a free answer, read the vocabulary alone.
    """
    of_options = labels is not None and labels.kind == "options"
    first: dict[str, set[int]] = {}
    if labels is not None and of_options:
        for name, label in zip(labels.names, labels.ids, strict=True):
            first.setdefault(name, set()).add(label[len(labels.shared)])
    reading = settled(log_probs, first)
    values: dict[str, Any] = {
        "top": [model.decode([i]) for i in reading.top_ids[1:]],
        "settled_layer": reading.layer,
        "settled_depth": reading.depth,
    }
    arrays: dict[str, np.ndarray] = {"top_ids": np.array(reading.top_ids, np.int64)}
    if not of_options:
        return values, arrays
    options = reading.option_log_probs
    values |= {
        "no_options": reading.no_options or "",
        "lens_p": None if options is None else numbers(options.softmax(-1).numpy().ravel()),
        "option_settled_layer": reading.option_layer,
        "option_settled_depth": reading.option_depth,
    }
    if options is not None:
        arrays["option_log_probs"] = options.float().numpy()
    return values, arrays
