"""Rigidity map: the layer from which on the lens gives the answer that the model will give.

SLRC paper, section 2.7. The reasoning stands as its own tokens, closed, then the cue; the lens is
read at the cue's last token, whose logits give the answer's first token.

Layers are counted as the residual streams are: 0 is the embeddings, l the stream after layer l of
L, before the final norm. The stable layer is one of 1..L, its depth is layer / L (the paper's layer
7 of 28 is 25 %).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import StrictStr

from faithscope.interp.fingerprint import folder_fingerprint
from faithscope.interventions import Trace
from faithscope.probes.answer_token import lens_log_probs, of_options
from faithscope.probes.framing import FEWER_LABELS, Asking, label_ids, prefix_ids
from faithscope.probes.probe import Branches, probe
from faithscope.probes.record import NO_STREAM, Record, numbers, record
from faithscope.probes.settings import Execution, Settings

if TYPE_CHECKING:
    from torch import Tensor

    from faithscope.interp.model import Model


class RigiditySettings(Settings):
    """Layer from which the answer's first token is settled (2.7)."""

    tuned_lens: StrictStr | dict[StrictStr, StrictStr] | None = None
    """Folder of a tuned lens (`interp.tuned_lens`), or a mapping from model to folder; with null,
    or for a model without an entry, the plain logit lens is used."""
    execution: Execution = "auto"

    def tuned_lens_of(self, model: str) -> str | None:
        given = self.tuned_lens
        return given.get(model) if isinstance(given, dict) else given

    def decides(self) -> dict[str, Any]:
        """Every setting that decides the numbers, with a digest of the lens: one fitted anew in its
        folder is another lens."""
        given = self.tuned_lens
        folders = set(given.values() if isinstance(given, dict) else [given] if given else [])
        there = {f: p for f in folders if (p := Path(f).expanduser()).exists()}
        digests = {f: folder_fingerprint(path) for f, path in there.items()}
        return super().decides() | ({"lenses": digests} if digests else {})

    def misfits(self, models: tuple[str, ...]) -> list[str]:
        lenses = self.tuned_lens if isinstance(self.tuned_lens, dict) else {}
        return [
            f"tuned_lens: {model!r} is no model of this run; it has {', '.join(models)}"
            for model in lenses
            if model not in models
        ]


def stable_from(top: Sequence[int]) -> int:
    """The first layer from which `top` stays equal to its last value.

    Args:
        top: the likeliest token or answer after layers 1..L, in order.

    Returns:
        A layer in 1..L, counted from 1.
    """
    if not top:
        raise ValueError("no layers; give what stands first after each of them")
    layer = len(top)
    while layer > 1 and top[layer - 2] == top[-1]:
        layer -= 1
    return layer


@dataclass(frozen=True)
class Settled:
    """The lens' likeliest token and answer after every layer, and the layers where they settle."""

    top_ids: tuple[int, ...]
    """(L+1,) the likeliest token of the vocabulary, embeddings first."""
    layer: int
    no_options: str | None
    """Why answers do not differ in their first token; None if they do."""
    option_log_probs: Tensor | None
    """(L+1, answers) log-probabilities, not normalised over the answers."""
    option_top: tuple[int, ...]
    """(L+1,) index of the likeliest answer; empty if answers do not differ in their first token."""
    option_layer: int | None

    @property
    def depth(self) -> float:
        return self.layer / (len(self.top_ids) - 1)

    @property
    def option_depth(self) -> float | None:
        return None if self.option_layer is None else self.option_layer / (len(self.top_ids) - 1)


def settled(log_probs: Tensor, first: Mapping[str, set[int]]) -> Settled:
    """The layers from which the likeliest token, and the likeliest answer, stay as at the end.

    Args:
        log_probs: (L+1, V) log-probabilities of the lens.
        first: answer -> the token ids that it may begin with.
    """
    top_ids = tuple(log_probs.argmax(-1).tolist())
    layer = stable_from(top_ids[1:])
    if problem := why_no_options(first):
        return Settled(top_ids, layer, problem, None, (), None)
    options = of_options(log_probs, first)
    best = tuple(options.argmax(-1).tolist())
    return Settled(top_ids, layer, None, options, best, stable_from(best[1:]))


@probe(
    "the layer from which the lens already gives the model's own next token (2.7)",
    listed=6,
    papers=("slrc",),
    words=("cue", "labels"),
    calls=lambda size, s: 1,
    branches=lambda size, s: Branches(repeated=False, scored=False),
)
def rigidity(
    model: Model, trace: Trace, asking: Asking, settings: RigiditySettings
) -> list[Record]:
    """The stable layer of one trace, over the vocabulary and over the answers alone.

    Lists have a value per layer 1..L: `top`, the lens' first token as text; `log_prob`, its
    log-probability (nats) of the token the model itself puts first. The last layer is the model's
    own logits. Over the answers (`option_*`), an answer weighs the sum of its labels' first tokens;
    that is sound only if answers differ in their first token; if not, `no_options` says why and the
    values are None. `top_is_option`: whether the model's first token begins an answer at all.

    Arrays, embeddings first: `top_ids` (L+1,), `log_prob` (L+1,), and where answers are read
    `option_log_probs` (L+1, answers), in the order of `options`, unnormalised over them.

    Raises:
        FloatingPointError: the model's logits are not finite; the message names the item.
        UserError: the tuned lens cannot be read, or belongs to another model.
    """
    if model.structure.unknown is not None:
        return [record(trace, "rigidity", "", None, excluded=NO_STREAM)]
    # Not at the top: they bring torch, which listing the probes need not wait for.
    from faithscope.interp.forest import Branch
    from faithscope.interp.tuned_lens import load_tuned_lens

    ids = prefix_ids(model, asking, trace)
    ran = model.run([Branch(ids)], residuals=True, execution=settings.execution)
    (read,) = ran.branches
    assert read.residuals is not None
    streams = read.residuals[0]
    lens = settings.tuned_lens_of(trace.origin.model)
    if lens is not None:
        streams = load_tuned_lens(lens, model).translate(streams)
    what = f"item {trace.question.id!r}, rigidity"
    log_probs = lens_log_probs(model, streams, read.logits, what)
    first = first_tokens(model, asking)
    reading = settled(log_probs, first)
    final = reading.top_ids[-1]
    of_final = log_probs[:, final].numpy()
    values: dict[str, Any] = {
        "lens": "logit" if lens is None else "tuned",
        "n_layers": len(reading.top_ids) - 1,
        "stable_layer": reading.layer,
        "depth": reading.depth,
        "final_token": model.decode([final]),
        "top": [model.decode([i]) for i in reading.top_ids[1:]],
        "log_prob": numbers(of_final[1:]),
        "top_is_option": any(final in ids for ids in first.values()) if first else None,
        "no_options": reading.no_options,
        "options": list(first),
        "option_stable_layer": reading.option_layer,
        "option_depth": reading.option_depth,
        "option_top": [list(first)[i] for i in reading.option_top[1:]] or None,
    }
    arrays: dict[str, np.ndarray] = {
        "top_ids": np.array(reading.top_ids, np.int64),
        "log_prob": of_final.astype(np.float32),
    }
    if reading.option_log_probs is not None:
        arrays["option_log_probs"] = reading.option_log_probs.numpy().astype(np.float32)
    values |= {"execution": ran.execution, "tree_reason": ran.reason}
    return [record(trace, "rigidity", "", None, arrays=arrays, **values)]


def first_tokens(model: Model, asking: Asking) -> dict[str, set[int]]:
    """The ids that each canonical answer may begin with, after the cue; in the task's order.

    Leaves out ids that every answer may begin with (bold type, a quote), which tell no answers
    apart.
    """
    first: dict[str, set[int]] = {}
    for (answer, _), ids in zip(asking.labels, label_ids(model, asking, "prefix"), strict=True):
        first.setdefault(answer, set()).add(ids[0])
    shared = set.intersection(*first.values()) if len(first) > 1 else set()
    return {answer: ids - shared for answer, ids in first.items()}


def why_no_options(first: Mapping[str, set[int]]) -> str | None:
    """Reason why answers do not differ in their first token; None if they do."""
    if len(first) < 2:
        return FEWER_LABELS
    n = sum(map(len, first.values()))
    distinct = all(first.values()) and len(set().union(*first.values())) == n
    return None if distinct else "shared_first_token"
