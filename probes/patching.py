"""Activation patching: the layers and tokens at which a step's content is found.

Two runs of one length, aligned token by token: the real reasoning, and a copy with one step
corrupted and all later text frozen. Activations at one layer and site are put from one run into the
other, and the answer is read: `denoise` puts the real states into the corrupted run, `noise` the
corrupted ones into the real run. The part of the real answer's log-odds that is restored (or lost)
tells what passes through these states (Meng et al., arXiv 2202.05262; Heimersheim and Nanda, arXiv
2404.15255, on what either direction shows).

There are two places: the tokens of the `step`, and those of the `answer`, from the end of the
reasoning to where the answer begins. Above the layer in which later tokens read the step, the
step's own states no longer matter, and those of the answer do: a share at the step that falls to
zero early says that the step was read early, not that it was not read. Other places are declared
spans and roles (`probes.spans`), such as `last step`; those before the step have the same states in
both runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from faithscope.interventions import NotCorruptible, NotWritable, Step, Trace, corrupt_step
from faithscope.probes.edited import Run, Scored, scored
from faithscope.probes.floor import baseline_of, rounded
from faithscope.probes.framing import BASELINE, FEWER_LABELS, Arm, Asking, prefix_ids
from faithscope.probes.graded import log_odds
from faithscope.probes.probe import Size, probe
from faithscope.probes.record import Record, record
from faithscope.probes.reference_answer import FORCED, ReferenceAnswer
from faithscope.probes.settings import Execution, Seed, Some
from faithscope.probes.spans import Found, TakesSpans, find
from faithscope.probes.text_model import added_costs

if TYPE_CHECKING:
    from faithscope.interp.edits import Site
    from faithscope.interp.model import Model

Direction = Literal["denoise", "noise"]
SITES: tuple[Site, ...] = ("residual", "attention", "mlp")
DIRECTIONS: tuple[Direction, ...] = ("denoise", "noise")
PLACES = ("step", "answer")
NO_CORRUPTION = "no_aligned_corruption"
NO_SITE = "no_patching_site"
_CORRUPTED: Arm = ("corrupted", 0)
_TRIES = 8
"""Number of seeds tried for a corruption of equal length."""


class PatchingSettings(TakesSpans):
    """States exchanged between the real reasoning and one with a corrupted step."""

    places: Some[StrictStr] = PLACES
    """Tokens whose states are patched: those of the corrupted `step`, those from the reasoning to
    the `answer`, or those of a declared span or another role (`faithscope docs spans`)."""
    sites: Some[Literal["residual", "attention", "mlp"]] = SITES
    """Patched activations: the stream after a layer, or the output of its attention or MLP."""
    directions: Some[Direction] = DIRECTIONS
    """Directions: real states into the corrupted run, or corrupted states into the real run."""
    layers: StrictInt = Field(default=8, ge=0)
    """Number of layers, evenly spaced, the last included; 0 for all."""
    least: StrictFloat = Field(default=0.5, gt=0)
    """Steps whose corruption moves the answer's log-odds by less (nats) are not patched."""
    length_normalise: StrictBool = False
    """Divide a label's log-prob by its number of tokens."""
    seed: Seed = 0
    execution: Execution = "auto"

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(place for place in self.places if place not in PLACES)


def _calls(size: Size, settings: PatchingSettings) -> int:
    places = len(settings.places)
    kinds = places * len(settings.sites) * len(settings.directions)
    # both runs, to see whether the corruption has an effect; once for each place, to take their
    # states; and beside the patched runs
    of_a_step = 2 + 2 * places + 2 + kinds * len(spaced(size.layers, settings.layers))
    return size.steps * of_a_step


@probe(
    "states exchanged between real and corrupted reasoning, per layer, site and step",
    listed=13,
    words=("cue", "labels"),
    reads_labels=True,
    follows_answer=True,
    calls=_calls,
    version=3,
)
def patching(
    model: Model, trace: Trace, asking: Asking, settings: PatchingSettings
) -> list[Record]:
    """A record for each place, site and direction, variants `step.residual.denoise`, ….

    Lists have a value per counted step:

        share           greatest part of `difference` that a patch of one layer moves
        difference      log-odds (nats) of the chain's answer (`answer`), real minus corrupted;
                        `forced_difference`, of the forced choice (`probes.reference_answer`)
        not_patched     why a step was not: `not_corruptible`, `not_writable`, `length_differs`
                        (of all corruptions tried), `no_effect` (below `least`); None if it was
        corrupted_mass  what all labels together have of the model's probability in the corrupted
                        run; `label_mass`, in the real one; `least_mass`, in any patched one
        corrupted_text  the step in the corrupted run

    `moved` has a value per layer and step, layer after layer: the log-odds that the patch gives
    back (`denoise`) or takes away (`noise`), None where a step was not patched. The array `moved`
    is (layers, steps) with NaN; divided by `difference` it is the share. The array `forced_moved`
    follows the forced choice, for the same steps. `layers` are counted from 1: `residual` is the
    stream after the layer. A place that the chain has not is left out with the reason
    (`span_not_found: expert`).

    Only the states of one step and place are held at a time: 2 × tokens × 3 × L × D numbers.

    Raises:
        UserError: a place is no span.
        FloatingPointError: a label's log-probability is NaN; the message names item and branch.
    """
    if len(asking.answers) < 2:
        return [record(trace, "patching", "", settings.seed, excluded=FEWER_LABELS)]
    parts = model.structure.stream
    known = {
        "residual": parts is not None,
        "attention": parts is not None and None not in parts.attentions,
        "mlp": parts is not None and None not in parts.mlps,
    }
    sites: list[Site] = [s for s in settings.sites if known[s]]
    if not sites:
        return [record(trace, "patching", "", settings.seed, excluded=NO_SITE)]
    steps = trace.counted_steps
    corrupted_traces = [_corrupted(model, trace, step, settings.seed) for step in steps]
    if all(isinstance(m, str) for m in corrupted_traces):
        return [record(trace, "patching", "", settings.seed, excluded=NO_CORRUPTION)]
    found = find(model, trace, asking, settings.named, settings.spans)
    left_out = [
        record(trace, "patching", ".".join(kind), settings.seed, excluded=why)
        for place, why in found.missing.items()
        for kind in product((place,), sites, settings.directions)
    ]
    places = [place for place in settings.places if place not in found.missing]
    if not places:
        return left_out
    layers = spaced(model.n_layers, settings.layers)
    kinds = list(product(places, sites, settings.directions))
    readings = ("", FORCED)
    moved = {
        (kind, x): np.full((len(layers), len(steps)), np.nan) for kind in kinds for x in readings
    }
    difference: dict[str, list[float | None]] = {x: [None] * len(steps) for x in readings}
    why = [m if isinstance(m, str) else None for m in corrupted_traces]
    followed: ReferenceAnswer | None = None
    costs: list[dict[str, Any]] = []
    mass: dict[str, list[float | None]] = {
        name: [None] * len(steps) for name in ("label", "corrupted", "least")
    }
    for i, (step, other) in enumerate(zip(steps, corrupted_traces, strict=True)):
        if isinstance(other, str):
            continue
        asked = _Asked(model, trace, other, asking, step, settings, found, places)
        first = asked.score({})
        followed = followed or first.answer
        mass["label"][i], mass["corrupted"][i] = first.mass[BASELINE], first.mass[_CORRUPTED]
        for reading, answer in followed.readings.items():
            odds = [log_odds(first.arms[arm], answer) for arm in (BASELINE, _CORRUPTED)]
            difference[reading][i] = rounded(odds[0] - odds[1])
        gap = difference[""][i]
        if gap is None or abs(gap) < settings.least:
            why[i] = "no_effect"
            costs.append(first.cost)
            continue
        pack = asked.score(asked.patches(layers, sites))
        costs.append(pack.cost)
        mass["least"][i] = min(pack.mass.values())
        for reading, answer in followed.readings.items():
            by_arm = {arm: log_odds(of, answer) for arm, of in pack.arms.items()}
            for kind, (at, layer) in product(kinds, enumerate(layers)):
                arm = ".".join(kind), layer
                real, corrupted = (
                    baseline_of(by_arm, pack.packs[arm], of) for of in (BASELINE, _CORRUPTED)
                )
                toward = by_arm[arm] - corrupted if kind[2] == "denoise" else real - by_arm[arm]
                moved[kind, reading][at, i] = toward if math.isfinite(toward) else np.nan
    assert followed is not None
    shared: dict[str, Any] = {
        "n_layers": model.n_layers,
        "n_steps": len(steps),
        "n_patched": why.count(None),
        "layers": [layer + 1 for layer in layers],
        "steps": [s.index for s in steps],
        "gold": trace.question.gold,
        **followed.fields,
        "difference": difference[""],
        "forced_difference": difference[FORCED],
        "label_mass": next((m for m in mass["label"] if m is not None), None),
        "corrupted_mass": mass["corrupted"],
        "least_mass": mass["least"],
        "not_patched": why,
        "corrupted_text": [
            None if isinstance(m, str) else next(s.text for s in m.steps if s.index == step.index)
            for step, m in zip(steps, corrupted_traces, strict=True)
        ],
    }
    return left_out + [
        record(
            trace,
            "patching",
            f"{place}.{site}.{direction}",
            settings.seed,
            arrays={
                f"{reading}moved": moved[(place, site, direction), reading].astype(np.float32)
                for reading in readings
            },
            place=place,
            site=site,
            direction=direction,
            share=_greatest(moved[(place, site, direction), ""], difference[""]),
            moved=[
                None if np.isnan(x) else rounded(float(x))
                for x in moved[(place, site, direction), ""].flat
            ],
            **shared,
            **added_costs(costs),
        )
        for place, site, direction in kinds
    ]


def _greatest(moved: np.ndarray, difference: Sequence[float | None]) -> list[float | None]:
    """Per step the greatest share of its difference that a patch of one layer moves; None where it
    was not patched.

    Args:
        moved: (layers, steps), NaN where a step was not patched.
    """
    return [
        rounded(float(np.nanmax(of / by))) if by and not np.isnan(of).all() else None
        for of, by in zip(moved.T, difference, strict=True)
    ]


def spaced(n_layers: int, wanted: int) -> list[int]:
    """Indices of `wanted` layers at equal distances, the last included; all for 0."""
    if not wanted or wanted >= n_layers:
        return list(range(n_layers))
    return sorted({round((k + 1) * n_layers / wanted) - 1 for k in range(wanted)})


def _corrupted(model: Model, trace: Trace, step: Step, seed: int) -> Trace | str:
    """The trace with a step corrupted and every position unchanged, or why there is none."""
    why = "length_differs"
    for k in range(_TRIES):
        try:
            other = corrupt_step(trace, step.index, seed + k, model.encode, model.pieces)
        except NotCorruptible:
            return "not_corruptible"
        except NotWritable:
            why = "not_writable"
            continue
        if [s.tokens for s in other.steps] == [s.tokens for s in trace.steps]:
            return other
    return why


@dataclass(frozen=True)
class _Asked:
    """The real and the corrupted run of one step."""

    model: Model
    trace: Trace
    other: Trace
    asking: Asking
    step: Step
    settings: PatchingSettings
    found: Found
    places: list[str]
    """Places that the chain has."""

    @property
    def ids(self) -> dict[str, tuple[int, ...]]:
        """Direction -> ids of the run that receives the patch; the other run gives it."""
        return {
            "denoise": prefix_ids(self.model, self.asking, self.other),
            "noise": prefix_ids(self.model, self.asking, self.trace),
        }

    def score(self, patches: Mapping[Arm, Run]) -> Scored:
        """Score both runs and all `patches` in one pack."""
        runs: dict[Arm, Run] = {BASELINE: self.trace, _CORRUPTED: self.other, **patches}
        repeat = (BASELINE, _CORRUPTED)
        return scored(self.model, self.trace, self.asking, runs, self.settings, repeat=repeat)

    def positions(self, place: str) -> tuple[int, ...]:
        start, n = len(self.trace.prompt_ids), len(self.ids["noise"])
        if place == "step":
            return tuple(range(start + self.step.tokens[0], start + self.step.tokens[1]))
        if place not in PLACES:
            return tuple(sorted({p for span in self.found.spans[place] for p in range(*span)}))
        # with neither closer nor cue, the last token of the reasoning gives the answer
        return tuple(range(min(start + len(self.trace.reasoning_ids), n - 1), n))

    def patches(self, layers: list[int], sites: list[Site]) -> dict[Arm, Run]:
        """Arm -> run with patched states, for every place, site, direction and layer."""
        # Not at the top: it brings torch, which listing the probes need not wait for.
        from faithscope.interp.edits import Patch
        from faithscope.interp.forest import Branch

        into = self.ids
        runs: dict[Arm, Run] = {}
        for place in self.places:
            positions = self.positions(place)
            real, corrupted = self.model.run(
                [Branch(into["noise"], positions), Branch(into["denoise"], positions)],
                residuals=True,
                sites=[s for s in sites if s != "residual"],
                logits=False,
                execution=self.settings.execution,
            ).branches
            for direction in self.settings.directions:
                donor = real if direction == "denoise" else corrupted
                assert donor.residuals is not None
                for site, layer in product(sites, layers):
                    # the first residual stream is the embeddings, hence layer + 1
                    values = (
                        donor.residuals[:, layer + 1]
                        if site == "residual"
                        else donor.outputs[site][:, layer]
                    )
                    patch = Patch(site, layer, positions, values)
                    runs[f"{place}.{site}.{direction}", layer] = (into[direction], (patch,))
        return runs
