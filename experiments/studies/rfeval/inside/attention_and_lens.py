"""Where a model looks when it answers, and what each of its layers would answer.

Read at two places, as branches of one pack: `asked`, after the cue that follows all that stands
before the answer, at the token whose output tells the labels apart (what their ids have in common
at the start, a blank of its own in some tokenizers, is given); and `written`, the token before the
answer in the model's own text, whose output is the answer's first token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from faithscope.experiments.studies.rfeval.inside.config import InsideConfig
from faithscope.experiments.studies.rfeval.inside.layout import Layout, text_span
from faithscope.experiments.studies.rfeval.inside.trace_signals import COMPARED
from faithscope.experiments.studies.rfeval.inside.tracing import Labels
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.probes.answer_token import (
    Span,
    attention_row,
    attention_to,
    lens_log_probs,
    regions_of_prompt,
)
from faithscope.probes.record import NO_STREAM, number, numbers
from faithscope.probes.rigidity import settled

if TYPE_CHECKING:
    from torch import Tensor

    from faithscope.interp.model import Model

REGIONS = ("first_token", "template", "question", "r_prime", "r", "e", "asking")
"""They tile what stands before the answer. `question` is question, context and options in the
prompt, `template` the rest of it but its first token; `asking`, what closes the reasoning, and the
cue."""
NO_ROWS = "no_attention_rows"
NO_ANSWER = "no_answer_written"
Read = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Numbers for the record, and arrays."""


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
    """Half-open spans of every region of `REGIONS` in a branch of so many tokens."""
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

    None of a region that is not there. `…_by_layer` lists are means over heads.

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
        labels: of options; None, or of a free answer, for the vocabulary alone.
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
