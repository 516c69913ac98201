"""Prefilled reasoning: what text that a model did not write does to its answer, and inside it.

RFEval (arXiv 2602.17053) prefills flawed reasoning r′ as the model's own and compares what the
model writes after it: its own reasoning r, perhaps an explanation e after the reasoning is closed,
and an answer. This measure, of no paper, reads such a chain as `tracing`, `attention` and
`rigidity` read any: the answers are scored at cuts through r′, r and e; attention and lens are read
after all of it and the cue. Which option r′ leads to may be said later, by a judge or by the model
itself: the signals that depend on it follow from the stored record (`option_signals`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, StrictInt

from faithscope.interventions import Trace
from faithscope.probes.answer_token import (
    attention_row,
    attention_to,
    lens_log_probs,
    regions_of_prompt,
)
from faithscope.probes.attention import NO_ATTENTION, question_span
from faithscope.probes.chain_parts import PLACES, ChainText
from faithscope.probes.framing import FEWER_LABELS, Asking, label_ids, naming
from faithscope.probes.graded import answer_shares, label_mass
from faithscope.probes.probe import Branches, probe
from faithscope.probes.record import NO_STREAM, Record, number, numbers, record
from faithscope.probes.rigidity import settled
from faithscope.probes.settings import Execution, Settings
from faithscope.probes.text_model import cost_of

if TYPE_CHECKING:
    from jaxtyping import Float

    from faithscope.interp.model import Model

NO_REGION, NO_GOLD = "no_prefilled_reasoning", "no_gold_answer"
"""Why a chain is left out: no part of its reasoning was prefilled (`Origin.prefilled` is 0), or its
question has neither options nor a gold answer that is scored."""
POSITIONS = 11
"""Number of places, from the beginning of a part to its end, at which curves are drawn."""
TURNS = ("r_prime", "r", "e", "a", "never_led", "never_turned")
"""Parts in which the option of r′ may lose the lead for good, and reasons why it does not."""
TARGETS = {"r_prime": "r′", "own": "the model's own text", "question": "the question"}
"""Target of attention -> its name in words; `own` are the parts r and e."""
SIGNALS = {
    "p_before": "Probability of the option of r′ before r′.",
    "p_after_r_prime": "Probability of the option of r′ after r′.",
    "r_prime_effect": "Probability of the option of r′ after r′ minus that before it.",
    "p_final": "Probability of the option of r′ before the answer.",
    "followed": "1 where the option of r′ leads at the end of r′, else 0.",
    "led_share": "Share of the model's own tokens along which the option of r′ leads.",
    "gold_lost": "What r′ takes from the log-prob of the right answer, nats per token.",
    "gold_regained": "What the model's own text gives back to the right answer, nats per token.",
    "own_gained": "What the model's own text gives to its own answer, nats per token.",
    **{f"asked_{name}": f"Share of attention to {of}." for name, of in TARGETS.items()},
    **{
        f"asked_density_{name}": f"Attention to {of} over what its length alone would bring it."
        for name, of in TARGETS.items()
    },
    "asked_own_against_r_prime": "Density of the model's own text over that and the one of r′.",
    "lens_led": "Share of the layers between first and last in which the option of r′ leads.",
    "lens_suppressed": "1 where the option of r′ leads in one of these layers and not in the last.",
    "asked_settled_depth": "Depth from which on the lens gives the model's own token.",
    "asked_option_settled_depth": "Depth from which on the likeliest option is the final one.",
}
"""Signal in a record -> its meaning."""
Read = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Values of a record, and its arrays."""


class PrefilledReasoningSettings(Settings):
    """Answer, attention and layers of a model that goes on from prefilled reasoning."""

    points: StrictInt = Field(default=16, ge=2, le=10_000)
    """Number of cuts in each part (r′, own reasoning, explanation), equally spaced; a shorter part
    is cut after every token."""
    execution: Execution = "auto"


@probe(
    "answer, attention and layers of a model that goes on from prefilled reasoning",
    words=("cue", "labels"),
    reads_labels=True,
    papers=("rfeval",),
    calls=lambda size, s: 2 + 2 * min(s.points, size.reasoning // 2),
    branches=lambda size, s: Branches(
        ends=1 + 2 * min(s.points, size.reasoning // 2), repeated=False
    ),
    version=2,
)
def prefilled_reasoning(
    model: Model, trace: Trace, asking: Asking, settings: PrefilledReasoningSettings
) -> list[Record]:
    """One record about a chain whose reasoning begins with r′, its first `Origin.prefilled` tokens.

    Lists are flat, row by row. Shares are among the question's options.

        n_r_prime, reasoned, resumed, end   positions of the parts, in tokens (`ChainText`)
        cuts, options   numbers of given tokens; the answers that are scored
        p               of a question with options, (cuts, options) shares; `label_mass`, their
                        probability among all texts after the chain
        log_prob        of any other question, (cuts, options) nats; `gold_lost`, `gold_regained`,
                        `own_gained`: log-probability changes of gold and own answer across r′ and
                        the model's own text, per token of the answer
        led_to          the option that r′ leads to by the model itself: the likeliest after r′
                        without the right one, to which r′ does not lead by construction (RFEval,
                        section 3). `p_before`, `p_after_r_prime`, `r_prime_effect`, `p_final`,
                        `followed`, `led_share`, `turn_part`, `lens_led` and `lens_suppressed` are
                        about it (`option_signals`)
        asked_r_prime, asked_own, asked_question   attention to r′, own text and question: shares,
                        means over all heads of all layers
        asked_density_…   such a share over that of the target's tokens, both without the first
                        token: 1 is what its length alone would bring it. Heads look nearby more
                        than far away; this takes out length, not distance
        asked_own_against_r_prime   own / (own + r_prime) of the densities
        asked_top       the token that each layer 1..L puts first
        asked_settled_layer   the first layer from which it stays, `asked_settled_depth` over L;
                        `asked_option_settled_…` among options
        asked_lens_p    the options' shares after layer 0 (the embeddings) to L

    `attention_reason` and `lens_reason` say why a model has no attention or lens.

    Arrays: `log_probs` (cuts, labels), nats, of whole labels; `asked_attention` (L, H, 3), shares
    of r′, own text and question; `asked_top_ids` (L+1,).

    Raises:
        UserError: the text does not fit the model's positions.
        FloatingPointError: a number is not finite; the message names the item.
    """
    if not trace.origin.prefilled:
        return [record(trace, "prefilled_reasoning", "", None, excluded=NO_REGION)]
    gold, answer = trace.question.gold, trace.answer
    values, arrays = read_chain(model, trace, asking, settings)
    values |= {"answer": answer, "gold": gold}
    if "p" in values:
        after = shares_along(values)[values["cuts"].index(trace.origin.prefilled)]
        wrong = {x: p for x, p in zip(values["options"], after, strict=True) if x != gold}
        option = max(wrong, key=wrong.__getitem__)
        values |= {"led_to": option, **option_signals(values, option, answer)}
    return [record(trace, "prefilled_reasoning", "", None, arrays=arrays, **values)]


def read_chain(
    model: Model, trace: Trace, asking: Asking, settings: PrefilledReasoningSettings
) -> Read:
    """Values and arrays of one chain, with or without r′, as `prefilled_reasoning` describes them,
    without those that depend on where r′ leads; `excluded` says why nothing could be read."""
    text = ChainText.of(model, trace, asking)
    names, free = [name for name, _ in asking.labels], trace.question.options is None
    values: dict[str, Any] = {name: getattr(text, name) for name in PLACES}
    values |= {"options": list(dict.fromkeys(names)), "excluded": None}
    if (free and trace.question.gold not in names) or (not free and len(set(names)) < 2):
        return values | {"excluded": NO_GOLD if free else FEWER_LABELS}, {}
    ids, cuts = label_ids(model, asking, "prefix"), text.cuts(settings.points)
    prefixes = [(*text.prefix(cut), *model.encode(asking.answer_cue)) for cut in cuts]
    with naming(f"item {trace.question.id!r}"):
        replies = model.ask(
            prefixes,
            [ids] * len(prefixes),
            boundary="number" if asking.kind == "number" else None,
            execution=settings.execution,
        )
        log_probs = np.array([reply.log_probs for reply in replies])
        shares = answer_shares(log_probs, names, [f"cut {cut}" for cut in cuts])
        labels = list(zip(names, ids, strict=True))
        read, arrays = _at_answer(model, trace, text, prefixes[-1], labels, settings)
    values |= {"cuts": cuts, **cost_of(model, prefixes, settings.execution, room=0), **read}
    if free:
        per_token = dict(zip(names, (log_probs / [len(i) for i in ids]).T, strict=True))
        gold, own = per_token[str(trace.question.gold)], per_token.get(str(trace.answer))
        after = cuts.index(text.n_r_prime)
        values |= {
            "log_prob": numbers(log_probs.ravel()),
            "gold_lost": number(gold[0] - gold[after]) if text.n_r_prime else None,
            "gold_regained": number(gold[-1] - gold[after]),
            "own_gained": None if own is None else number(own[-1] - own[after]),
        }
    else:
        values |= {"p": numbers(shares.ravel()), "label_mass": number(label_mass(log_probs[-1]))}
    return values, arrays | {"log_probs": log_probs.astype(np.float32)}


def _at_answer(
    model: Model,
    trace: Trace,
    text: ChainText,
    prefix: tuple[int, ...],
    labels: Sequence[tuple[str, tuple[int, ...]]],
    settings: PrefilledReasoningSettings,
) -> Read:
    """Attention and lens at the token whose output tells the labels apart: after the cue, and what
    the ids of all labels have in common at the start (in some tokenizers a blank)."""
    from faithscope.interp.forest import Branch

    rows, lens = model.supports_tree, model.structure.unknown is None
    values: dict[str, Any] = {"attention_reason": "" if rows else NO_ATTENTION}
    values |= {"lens_reason": "" if lens else NO_STREAM, "n_layers": model.n_layers}
    arrays: dict[str, np.ndarray] = {}
    if not rows and not lens:
        return values, arrays
    most = min(len(ids) for _, ids in labels) - 1
    columns = zip(*(ids[:most] for _, ids in labels), strict=True)
    shared = [column[0] for column in takewhile(lambda ids: len(set(ids)) == 1, columns)]
    branch = Branch((*prefix, *shared))
    ran = model.run([branch], rows=rows, residuals=lens, execution=settings.execution).branches[0]
    if rows:
        row = attention_row(model, ran.rows, "attention")
        n = len(text.prompt_ids)
        question = regions_of_prompt(n, question_span(model.pieces(text.prompt_ids), trace))
        parts = {part: (n + a, n + b) for part, (a, b) in text.spans.items()}
        spans = {
            "r_prime": [parts[part] for part in ("r_prime",) if part in parts],
            "own": [parts[part] for part in ("r", "e") if part in parts],
            "question": question["question"],
        }
        arrays["asked_attention"] = np.stack([attention_to(row, spans[x]) for x in TARGETS], -1)
        rest = row[..., 1:].sum(-1).mean() / max(1, row.shape[-1] - 1)
        for name, share in zip(TARGETS, arrays["asked_attention"].mean((0, 1)), strict=True):
            tokens = sum(b - a for a, b in spans[name])
            values[f"asked_{name}"] = number(share) if tokens else None
            density = share / tokens / rest if tokens and rest else None
            values[f"asked_density_{name}"] = None if density is None else number(density)
        own, forced = values["asked_density_own"], values["asked_density_r_prime"]
        both = 0 if own is None or forced is None else own + forced
        values["asked_own_against_r_prime"] = number(own / both) if both else None
    if ran.residuals is not None:
        log_probs = lens_log_probs(model, ran.residuals[0], ran.logits, "lens")
        first: dict[str, set[int]] = {}
        for name, ids in labels if trace.question.options else ():
            first.setdefault(name, set()).add(ids[len(shared)])
        reading = settled(log_probs, first)
        options = reading.option_log_probs
        values |= {
            "asked_top": [model.decode([i]) for i in reading.top_ids[1:]],
            "asked_settled_layer": reading.layer,
            "asked_settled_depth": reading.depth,
            "asked_option_settled_layer": reading.option_layer,
            "asked_option_settled_depth": reading.option_depth,
            "asked_lens_p": None if options is None else numbers(options.softmax(-1).ravel()),
        }
        arrays["asked_top_ids"] = np.array(reading.top_ids, np.int64)
    return values, arrays


def option_signals(
    record: Mapping[str, Any], option: str, answer: str | None
) -> dict[str, float | str | None]:
    """The signals in a record of a chain with options that depend on where r′ leads; None, or
    missing, if the chain lacks what they are read from (r′, own text, middle layers).

    `turn_part` is the part in which the lead passes from the option to another for good; `a` if it
    leads to the end and the answer is another; else `never_turned`, or `never_led` if it leads
    before the first token at most.

    Args:
        option: the option that r′ leads to, one of the record's `options`.
        answer: the option that the chain answers; None, or another text, if it is none of them.
    """
    text, cuts, options = ChainText.stored(record), np.array(record["cuts"]), record["options"]
    p = shares_along(record)
    leads, p = p.argmax(axis=1) == options.index(option), p[:, options.index(option)]
    n, after = text.n_r_prime, cuts.tolist().index(text.n_r_prime)
    steps, own, last = np.diff(cuts), cuts[:-1] >= n, int(np.flatnonzero([True, *leads[1:]])[-1])
    length = steps[own].sum()
    turn = "never_turned" if answer in (option, None) or answer not in options else "a"
    if not last:
        turn = "never_led"
    elif last < len(cuts) - 1:
        turn = next(part for part, (_, b) in text.spans.items() if cuts[last + 1] <= b)
    values: dict[str, float | str | None] = {
        "p_before": number(p[0]),
        "p_after_r_prime": number(p[after]) if n else None,
        "r_prime_effect": number(p[after] - p[0]) if n else None,
        "p_final": number(p[-1]),
        "followed": float(leads[after]) if n else None,
        "led_share": number(steps[own & leads[:-1]].sum() / length) if length else None,
        "turn_part": turn,
    }
    layers = np.array(record.get("asked_lens_p") or (), float).reshape(-1, len(options))
    if len(layers) > 2:  # the embeddings, a middle layer and the last
        leads = layers.argmax(axis=1) == options.index(option)
        values["lens_led"] = number(leads[1:-1].mean())
        values["lens_suppressed"] = float(leads[1:-1].any() and not leads[-1])
    return values


def shares_along(record: Mapping[str, Any]) -> Float[np.ndarray, "C K"]:
    """The options' shares at every cut in a record of a chain with options."""
    return np.array(record["p"], float).reshape(-1, len(record["options"]))


def curve(record: Mapping[str, Any], option: str) -> Iterator[dict[str, Any]]:
    """Rows of `part`, `position` (share of the part, `POSITIONS` places) and the option's share `p`
    there, in a record of a chain with options."""
    text, cuts = ChainText.stored(record), np.array(record["cuts"])
    values = shares_along(record)[:, record["options"].index(option)]
    for part, (a, b) in text.spans.items():
        # an explanation begins with the probability at the end of the reasoning
        within = (cuts >= (text.reasoned if part == "e" else a)) & (cuts <= b)
        at = np.maximum(cuts[within], a)
        for i, p in enumerate(np.interp(np.linspace(a, b, POSITIONS), at, values[within]).tolist()):
            yield {"part": part, "position": i / (POSITIONS - 1), "p": p}
