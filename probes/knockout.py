"""Attention knockout: the answer when later tokens cannot attend to a step whose text stays.

The attention edges from later tokens to the tokens of one step are cut, the text is left in place:
no hole, no new length, every position unchanged (Thought Anchors, arXiv 2506.19143, suppress a
step's attention in this way). A model that flips when a step's *text* is removed may do so because
the remaining text is unlike any it has seen; here the text is unchanged. Each step's removal is run
in the same pack.

`later` cuts the step off from every later token, those of later steps included: its indirect effect
through them is cut, too. `answer` cuts it off only from the tokens after the reasoning (its closer,
the cue, the answer): its effect through later steps stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, StrictBool, StrictInt

from faithscope.interventions import Trace
from faithscope.probes.edited import Run, Scored, beside_removal, removals, scored, windows
from faithscope.probes.floor import rounded
from faithscope.probes.framing import BASELINE, FEWER_LABELS, Arm, Asking, prefix_ids
from faithscope.probes.probe import Branches, Size, probe
from faithscope.probes.readings import Outcome
from faithscope.probes.record import Record, record
from faithscope.probes.settings import Execution, Settings, Some

if TYPE_CHECKING:
    from faithscope.interp.edits import Knockout
    from faithscope.interp.model import Model

Queries = Literal["later", "answer"]
QUERIES: tuple[Queries, ...] = ("later", "answer")
NO_KNOCKOUT = "no_attention_knockout"
TOP_HEADS = 10
_ALL = "all"


class KnockoutSettings(Settings):
    """Later tokens cut off from a step, its text left in place."""

    queries: Some[Queries] = QUERIES
    """Tokens that cannot see the step: every later token, or only those after the reasoning."""
    windows: StrictInt = Field(default=3, ge=0)
    """Windows of layers that are also cut one at a time; 0 cuts all layers at once only."""
    heads: StrictBool = False
    """Whether every single head is cut, too, for the step that moves the answer most."""
    length_normalise: StrictBool = False
    """Divide a label's log-prob by its number of tokens."""
    execution: Execution = "auto"


def _cuts(size: Size, settings: KnockoutSettings) -> int:
    """Number of cuts of one step for one kind of query: in all layers, and in each window."""
    parts = len(windows(size.layers, settings.windows))
    # a single window equals all layers
    return 1 + (parts if parts > 1 else 0)


def _calls(size: Size, settings: KnockoutSettings) -> int:
    heads = settings.heads * (1 + size.layers * size.heads)
    return 1 + size.steps * (1 + len(settings.queries) * _cuts(size, settings)) + heads


def _branches(size: Size, settings: KnockoutSettings) -> Branches | None:
    if settings.heads:
        # which step's heads are cut is known once its knockout is measured
        return None
    cuts = _cuts(size, settings)
    return Branches(
        late=size.steps * (1 + settings.queries.count("later") * cuts),
        ends=size.steps * settings.queries.count("answer") * cuts,
    )


@probe(
    "later tokens kept from looking at a step that stands, beside removal of its text",
    listed=11,
    samples_steps=True,
    words=("cue", "labels"),
    reads_labels=True,
    follows_answer=True,
    calls=_calls,
    branches=_branches,
    version=2,
)
def knockout(
    model: Model, trace: Trace, asking: Asking, settings: KnockoutSettings
) -> list[Record]:
    """A record for each kind of query and window of layers, in `prefix` framing.

    Variants are `later.all`, `later.1-10`, …, by layers from 1. Lists have a value per counted
    step:

        knocked, removed      the likeliest answer, the step cut off or its text removed
        flips, removed_flips  whether it is another than on the whole reasoning
        tv, removed_tv        total variation of the distribution over the task's answers
        knocked_mass, removed_mass  what all labels together have of the model's probability;
                              `label_mass`, on the whole reasoning
        log_odds, removed_…   drop of the log-odds of `answer`, the chain's, in nats; None
                              where infinite. `forced_log_odds`, …: of the forced choice
        margin, removed_…     by how much the closer of the two answers was decided, in nats: a
                              flip by no more than `noise_floor` is within the dtype's noise

    Records `later.all` and `answer.all` also hold the windows as arrays: `tv`, `log_odds` (windows,
    steps), and `layers` (windows, 2), first and last from 1. With `heads`, a record of variant
    `heads`: `tv` and `log_odds` (L, H) as arrays, and the heads that move the answer most, as
    "layer.head" from 1.

    Raises:
        FloatingPointError: a label's log-probability is NaN; the message names item and branch.
    """
    if len(asking.answers) < 2:
        return [record(trace, "knockout", "", None, excluded=FEWER_LABELS)]
    if not model.supports_tree:
        return [record(trace, "knockout", "", None, excluded=NO_KNOCKOUT)]
    layers = {_ALL: None} | {
        f"{a + 1}-{b}": (a, b) for a, b in windows(model.n_layers, settings.windows)
    }
    if len(layers) == 2:
        # a single window equals all layers
        layers = {_ALL: None}
    ids, n = prefix_ids(model, asking, trace), len(trace.counted_steps)
    kinds = list(product(settings.queries, layers.items()))
    runs = removals(trace)
    sampled = [i for i, step in enumerate(trace.counted_steps) if trace.is_sampled(step.index)]
    for (queries, (name, window)), i in product(kinds, sampled):
        cut = cut_of(trace, i, queries, window and tuple(range(*window)))
        runs[f"{queries}.{name}", i] = (ids, (cut,))
    # sorted by step, so that a step's cut and its removal share a pack where both fit
    of_steps = dict(sorted(runs.items(), key=lambda run: run[0][1]))
    pack = scored(model, trace, asking, of_steps, settings)
    shared = {"n_layers": model.n_layers, **beside_removal(trace, pack)}
    records = []
    for queries, (name, window) in kinds:
        first, last = window or (0, model.n_layers)
        by_window = name == _ALL and len(layers) > 1
        records.append(
            record(
                trace,
                "knockout",
                f"{queries}.{name}",
                None,
                arrays=_by_window(queries, layers, pack, n) if by_window else None,
                queries=queries,
                window=name,
                first_layer=first + 1,
                last_layer=last,
                **shared,
                **pack.lists("knocked", "", f"{queries}.{name}", n),
                **pack.cost,
            )
        )
    if settings.heads and n:
        records.append(_heads(model, trace, asking, settings, pack))
    return records


def cut_of(
    trace: Trace,
    position: int,
    queries: Queries,
    layers: tuple[int, ...] | None = None,
    heads: tuple[int, ...] | None = None,
) -> Knockout:
    """The knockout of the counted step number `position` (from 0), in the trace's own text."""
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.edits import Knockout

    start = len(trace.prompt_ids)
    first, last = (start + i for i in trace.counted_steps[position].tokens)
    since = last if queries == "later" else start + len(trace.reasoning_ids)
    return Knockout((since, None), (first, last), layers, heads)


def _by_window(
    queries: str, layers: Mapping[str, tuple[int, int] | None], pack: Scored, n_steps: int
) -> dict[str, np.ndarray]:
    parts = {name: window for name, window in layers.items() if window is not None}
    of = [[pack.outcomes.get((f"{queries}.{name}", i)) for i in range(n_steps)] for name in parts]
    return _measures(of) | {"layers": np.array([(a + 1, b) for a, b in parts.values()])}


def _measures(outcomes: Sequence[Sequence[Outcome | None]]) -> dict[str, np.ndarray]:
    """`tv` and `log_odds` of a grid of outcomes, as arrays; NaN if a number is not finite, or
    there is no outcome."""
    return {
        name: np.array(
            [[getattr(o, name, None) for o in row] for row in outcomes], dtype=np.float32
        )
        for name in ("tv", "log_odds")
    }


def _heads(
    model: Model, trace: Trace, asking: Asking, settings: KnockoutSettings, whole: Scored
) -> Record:
    """A record of knockouts of every single head of every layer, for the step that matters most."""
    queries = settings.queries[0]
    n_steps = len(trace.counted_steps)
    of_steps = [whole.outcomes.get((f"{queries}.{_ALL}", i)) for i in range(n_steps)]
    moved = [(o and o.tv) or 0.0 for o in of_steps]
    position = int(np.argmax(moved))
    ids = prefix_ids(model, asking, trace)
    n_heads = model.hf.config.get_text_config().num_attention_heads
    runs: dict[Arm, Run] = {BASELINE: trace}
    for layer, head in product(range(model.n_layers), range(n_heads)):
        cut = cut_of(trace, position, queries, (layer,), (head,))
        runs[str(layer), head] = (ids, (cut,))
    pack = scored(model, trace, asking, runs, settings)
    grid = [
        [pack.outcomes[str(layer), head] for head in range(n_heads)]
        for layer in range(model.n_layers)
    ]
    arrays = _measures(grid)
    best = np.argsort(-arrays["tv"], axis=None, kind="stable")[:TOP_HEADS]
    places = [divmod(int(i), n_heads) for i in best]
    return record(
        trace,
        "knockout",
        "heads",
        None,
        arrays=arrays,
        queries=queries,
        position=position + 1,
        step=trace.counted_steps[position].index,
        n_layers=model.n_layers,
        n_heads=n_heads,
        all_heads_tv=rounded(moved[position]),
        top_heads=[f"{layer + 1}.{head + 1}" for layer, head in places],
        top_tv=[rounded(float(arrays["tv"][place])) for place in places],
        label_mass=pack.mass[BASELINE],
        **pack.cost,
    )
