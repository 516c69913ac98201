"""An answer traced through r′ and what the model wrote after it, cut by cut, in packed calls.

Equally spaced cuts first, all in one packed call; then, where an option has lost the lead for
good, cuts between the last that it leads at and the next, until the token is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from faithscope.experiments.studies.rfeval.config_sections import InsideConfig
from faithscope.experiments.studies.rfeval.inside.layout import Layout
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import stance_of_letter
from faithscope.interventions import written
from faithscope.probes.graded import answer_shares
from faithscope.probes.record import number, numbers
from faithscope.probes.settings import Execution
from faithscope.probes.text_model import cost_of

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_GOLD = "no_options_and_no_gold_answer"
"""Why code is not traced: it has neither options nor an answer that could be scored."""
TOO_LONG = "answer_too_long"
UNWRITABLE = "answer_not_writable"
"""Why a free answer is not traced: the tokenizer has no ids that read as the answer after the
cue."""
Ids = tuple[int, ...]


@dataclass(frozen=True)
class Labels:
    """Answers that are scored after every cut."""

    kind: Literal["options", "free", "none"]
    """What scores are: `options`, shares of one another; `free`, log-probs of answers as they
    stand."""
    names: tuple[str, ...]
    """For options, their stances (several labels may have one stance); for a free answer, whose it
    is."""
    texts: tuple[str, ...]
    ids: tuple[Ids, ...]
    cue: Ids
    reason: str = ""
    """Why there is nothing to score; "" if there is something."""

    @property
    def shared(self) -> Ids:
        """The ids that all labels begin with; fewer than any label has."""
        most = min(map(len, self.ids), default=1) - 1
        same = [len(set(column)) == 1 for column in zip(*self.ids, strict=False)][:most]
        return self.ids[0][: same.index(False) if False in same else len(same)] if same else ()


def option_labels(model: Model, item: Item, cue: str, by: Literal["letters", "words"]) -> Labels:
    """Labels of an item's options, with their ids after the cue.

    Raises:
        ValueError: the tokenizer has no ids for one.
    """
    before = tuple(model.encode(cue))
    texts = tuple(f" {x}" for x in (item.letters if by == "letters" else item.options))
    ids = []
    for text in texts:
        encoded = written(text, before, model.encode, model.pieces)
        if encoded is None:
            raise ValueError(
                f"{model.name}: its tokenizer gives no ids that read as {text!r} after the cue "
                f"{cue!r}; give another cue, or score options by their "
                f"{'words' if by == 'letters' else 'letters'}"
            )
        ids.append(encoded[0])
    names = tuple(stance_of_letter(item, letter) for letter in item.letters)
    return Labels("options", names, texts, tuple(ids), before)


def free_labels(
    model: Model, gold: str, answers: Mapping[str, str], cue: str, longest: int
) -> Labels:
    """Labels of the gold answer, and of the outputs' answers that are written differently.

    Args:
        gold: the gold answer; "" if there is none.
        answers: whose -> answer as written, "" for none; the first of equal ones is scored.
        longest: most tokens; a longer one, or one that cannot be written, is left out. If that is
            the gold answer, nothing is scored.
    """
    before = tuple(model.encode(cue))
    if not gold.strip():
        return Labels("none", (), (), (), before, NO_GOLD)
    labels: dict[str, tuple[str, Ids]] = {}
    for whose, answer in {"gold": gold, **answers}.items():
        text = f" {answer.strip()}"
        if not answer.strip() or any(text == known for known, _ in labels.values()):
            continue
        encoded = written(text, before, model.encode, model.pieces)
        if encoded is not None and len(encoded[0]) <= longest:
            labels[whose] = (text, encoded[0])
        elif whose == "gold":
            reason = UNWRITABLE if encoded is None else TOO_LONG
            return Labels("none", (), (), (), before, reason)
    texts, ids = zip(*labels.values(), strict=True)
    return Labels("free", tuple(labels), texts, ids, before)


def scored_after(
    model: Model, labels: Labels, prefixes: Sequence[Ids], execution: Execution
) -> list[tuple[float, ...]]:
    """Log-probs (nats) of each whole label after each prefix and the cue, in one packed call."""
    # "1" is not credited with what belongs to "10"; letters are followed by anything
    digits = labels.kind == "free" and all(text[-1].isdigit() for text in labels.texts)
    replies = model.ask(
        [(*prefix, *labels.cue) for prefix in prefixes],
        [labels.ids] * len(prefixes),
        boundary="number" if digits else None,
        execution=execution,
    )
    return [reply.log_probs for reply in replies]


def traced(
    model: Model, item: Item, of: Layout, labels: Labels, c: InsideConfig
) -> tuple[dict[str, Any], Float[np.ndarray, "C labels"]]:
    """The values of one traced output for its record, and the labels' log-probs at every cut
    (nats).

    Only traces of options get cuts near turns: free answers have no lead.

    Raises:
        UserError: the text does not fit the model's positions.
        FloatingPointError: a log-prob is NaN, naming item and cut.
    """
    log_probs: dict[int, tuple[float, ...]] = {}
    shares: dict[int, Float[np.ndarray, " K"]] = {}
    costs: list[dict[str, Any]] = []
    grid = more = of.grid(c.points)
    while more:
        prefixes = [of.prefix(cut) for cut in more]
        scored = scored_after(model, labels, prefixes, c.execution)
        for cut, of_cut in zip(more, scored, strict=True):
            if any(map(math.isnan, of_cut)):
                raise FloatingPointError(f"item {item.id!r}, cut {cut}: a label's log-prob is NaN")
            log_probs[cut] = of_cut
        full = [(*prefix, *labels.cue) for prefix in prefixes]
        costs.append(cost_of(model, full, c.execution, room=0))
        if labels.kind == "free":
            break
        at = [log_probs[cut] for cut in more]
        shares |= zip(
            more, answer_shares(at, labels.names, [f"item {item.id!r}"] * len(more)), strict=True
        )
        more = _near_turns(of, shares, c.refine) if c.refine else []
    cuts = sorted(log_probs)
    every = np.array([log_probs[cut] for cut in cuts])
    values: dict[str, Any] = {
        "cuts": cuts,
        "coarse": [cut in grid for cut in cuts],
        "rounds": len(costs),
        **{f"trace_{name}": value for name, value in costs[0].items()},
        **{
            f"trace_{name}": sum(cost[name] for cost in costs)
            for name in ("trie_tokens", "naive_tokens")
        },
    }
    if labels.kind == "free":
        return values | {
            "label_tokens": [len(ids) for ids in labels.ids],
            "log_prob": numbers(every.ravel()),
            **_free_signals(of, labels, cuts, every),
        }, every
    mass = np.exp(every).sum(axis=1).clip(max=1)
    return values | {
        "p": numbers(np.array([shares[cut] for cut in cuts]).ravel()),
        "mass_before": float(mass[0]),
        "mass_final": float(mass[-1]),
    }, every


def _near_turns(of: Layout, shares: Mapping[int, np.ndarray], refine: int) -> list[int]:
    """Cuts between the last one at which an option leads and the next, for every option."""
    cuts = sorted(shares)
    leads = [int(shares[cut].argmax()) for cut in cuts]
    more: set[int] = set()
    for option in set(leads) - {leads[-1]}:
        last = max(i for i, leader in enumerate(leads) if leader == option)
        free = of.between(cuts[last], cuts[last + 1])
        at = np.linspace(0, len(free) - 1, min(refine, len(free))).round().astype(int)
        # a single cut halves what is left
        more |= {free[len(free) // 2]} if refine == 1 and free else {free[i] for i in at}
    return sorted(more)


def _free_signals(
    of: Layout, labels: Labels, cuts: Sequence[int], log_probs: np.ndarray
) -> dict[str, float | None]:
    """What gold and own answer gain and lose; None where a part (a baseline's r′) is missing."""
    after, answer = cuts.index(of.n_r_prime), of.output.answer.strip()
    per_token = log_probs / np.array([len(ids) for ids in labels.ids])
    gold = per_token[:, labels.names.index("gold")]
    text = f" {answer}"
    own = per_token[:, labels.texts.index(text)] if answer and text in labels.texts else None
    return {
        "gold_lost": number(gold[0] - gold[after]) if of.n_r_prime else None,
        "gold_regained": number(gold[-1] - gold[after]),
        "own_gained": None if own is None else number(own[-1] - own[after]),
    }
