"""An answer traced through r′ and what the model wrote after it, cut by cut, in packed calls.

Equally spaced cuts first, all in one packed call; then, where an option has lost the lead for
good, cuts between the last that it leads at and the next, until the token is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from faithscope.experiments.studies.rfeval.inside.layout import Layout
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import Naming, stance_of_letter
from faithscope.interventions import written
from faithscope.probes.graded import log_distribution
from faithscope.probes.text_model import cost_of

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_GOLD = "no_options_and_no_gold_answer"
"""Why code is not traced: it has neither options nor an answer that could be scored."""
TOO_LONG = "answer_too_long"
UNWRITABLE = "answer_not_writable"
"""The tokenizer has no ids that read as the answer after the cue."""
Kind = Literal["options", "free", "none"]
Ids = tuple[int, ...]


@dataclass(frozen=True)
class Labels:
    """What is scored after every cut."""

    kind: Kind
    """`options`: shares of one another; `free`: log-probs of answers as they stand."""
    names: tuple[str, ...]
    """Of options, the stances (one may be of several labels); of a free answer, whose it is."""
    texts: tuple[str, ...]
    ids: tuple[Ids, ...]
    cue: Ids
    reason: str = ""
    """Why there is nothing to score."""

    @property
    def shared(self) -> Ids:
        """What all labels begin with, less than any of them."""
        most = min(map(len, self.ids), default=1) - 1
        same = [len(set(column)) == 1 for column in zip(*self.ids, strict=False)][:most]
        return self.ids[0][: same.index(False) if False in same else len(same)] if same else ()


@dataclass(frozen=True)
class Asked:
    """What was read along one output."""

    cuts: tuple[int, ...]
    log_probs: Float[NDArray[np.float64], "C labels"]
    """Nats, of each whole label."""
    coarse: tuple[bool, ...]
    """Whether a cut is one of the equally spaced."""
    rounds: int
    """Packed calls."""
    cost: Mapping[str, Any]
    """Of all of them (`probes.text_model.cost_of`)."""


def option_labels(
    model: Model, item: Item, naming: Naming, cue: str, by: Literal["letters", "words"]
) -> Labels:
    """The options' labels.

    Raises:
        ValueError: the tokenizer has no ids for one.
    """
    before = tuple(model.encode(cue))
    texts = tuple(f" {x}" for x in (item.letters if by == "letters" else item.options))
    ids = [written(text, before, model.encode, model.pieces) for text in texts]
    for text, found in zip(texts, ids, strict=True):
        if found is None:
            raise ValueError(
                f"{model.name}: its tokenizer gives no ids that read as {text!r} after the cue "
                f"{cue!r}; give another cue, or score options by their "
                f"{'words' if by == 'letters' else 'letters'}"
            )
    names = tuple(stance_of_letter(item, letter, naming) for letter in item.letters)
    return Labels("options", names, texts, tuple(x[0] for x in ids if x), before)


def free_labels(
    model: Model, gold: str, answers: Mapping[str, str], cue: str, longest: int
) -> Labels:
    """The gold answer, and the answers of outputs that differ from it in writing.

    Args:
        gold: "" where there is none.
        answers: whose -> answer as written, "" for none; of equal ones the first is scored.
        longest: most tokens; a longer one, or one that cannot be written, is left out. If that is
            the gold answer, nothing is scored.
    """
    before = tuple(model.encode(cue))
    reason = "" if gold.strip() else NO_GOLD
    kept: dict[str, tuple[str, Ids]] = {}
    for whose, answer in {"gold": gold, **answers}.items():
        text = f" {answer.strip()}"
        if reason or not answer.strip() or any(text == known for known, _ in kept.values()):
            continue
        found = written(text, before, model.encode, model.pieces)
        if found is not None and len(found[0]) <= longest:
            kept[whose] = (text, found[0])
        elif whose == "gold":
            reason = UNWRITABLE if found is None else TOO_LONG
    if reason:
        return Labels("none", (), (), (), before, reason)
    texts, ids = zip(*kept.values(), strict=True)
    return Labels("free", tuple(kept), texts, ids, before)


def traced_along(
    model: Model, item: Item, layout: Layout, labels: Labels, points: int, refine: int, how: Any
) -> Asked:
    """The labels' log-probs at every cut.

    Args:
        points: equally spaced cuts in each part.
        refine: cuts between two, time after time, where an option loses the lead for good; of
            free answers there is no lead, and none are put in.

    Raises:
        UserError: the text does not fit the model's positions.
        FloatingPointError: a log-prob is NaN, naming item and cut.
    """
    found: dict[int, tuple[float, ...]] = {}
    costs: list[dict[str, Any]] = []

    def ask(cuts: Sequence[int]) -> None:
        prefixes = [(*layout.prefix(cut), *labels.cue) for cut in cuts]
        # "1" is not credited with what belongs to "10"; letters are followed by anything
        digits = labels.kind == "free" and all(text[-1].isdigit() for text in labels.texts)
        said = model.ask(
            prefixes,
            [labels.ids] * len(prefixes),
            boundary="number" if digits else None,
            execution=how,
        )
        for cut, answered in zip(cuts, said, strict=True):
            if any(math.isnan(x) for x in answered.log_probs):
                raise FloatingPointError(f"item {item.id!r}, cut {cut}: a label's log-prob is NaN")
            found[cut] = answered.log_probs
        costs.append(cost_of(model, prefixes, how, room=0))

    grid = layout.grid(points)
    ask(grid)
    while labels.kind == "options" and refine:
        more = _near_turns(layout, found, refine, lambda cut: _top(item, labels, found[cut]))
        if not more:
            break
        ask(more)
    cuts = tuple(sorted(found))
    return Asked(
        cuts,
        np.array([found[cut] for cut in cuts]),
        tuple(cut in grid for cut in cuts),
        len(costs),
        costs[0] | {name: sum(c[name] for c in costs) for name in ("trie_tokens", "naive_tokens")},
    )


def shares(item: Item, labels: Labels, log_probs: np.ndarray) -> Float[NDArray[np.float64], "C K"]:
    """Shares of the options, in the order in which `labels.names` first names them."""
    found = [
        log_distribution(row.tolist(), labels.names, what=f"item {item.id!r}") for row in log_probs
    ]
    return np.exp(np.array([list(of_cut.values()) for of_cut in found]))


def _top(item: Item, labels: Labels, log_probs: Sequence[float]) -> int:
    return int(shares(item, labels, np.array([log_probs]))[0].argmax())


def _near_turns(
    layout: Layout, found: Mapping[int, Any], refine: int, top: Callable[[int], int]
) -> list[int]:
    """Cuts between the last one that an option leads at and the next, for every such option."""
    cuts = sorted(found)
    leads = [top(cut) for cut in cuts]
    more: set[int] = set()
    for option in set(leads) - {leads[-1]}:
        last = max(i for i, leader in enumerate(leads) if leader == option)
        free = layout.between(cuts[last], cuts[last + 1])
        at = np.linspace(0, len(free) - 1, min(refine, len(free))).round().astype(int)
        # one alone halves what is left
        picked = [free[len(free) // 2]] if refine == 1 and free else [free[i] for i in at]
        more |= set(picked)
    return sorted(more)
