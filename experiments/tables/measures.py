"""Every measure that gives an item a score: what it is read from, which way it points, its cost.

What the probes record is turned here into one number per item and measure, so that measures
can be set against each other and against a planted truth. To add one: an entry in `MEASURES`.

Costs are the calls that someone without the forest would make to get this measure alone: one
per branch put to the model, answered or scored, one per continuation written anew, and one for
a forward whose insides are read. All labels scored after one text count as one call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from experiments.tables.outcomes import FRAMINGS, READINGS, Record, flips, graded, place_of
from experiments.tables.tidy import mean, present

Family = Literal["behavioural", "logit", "internal"]
"""Whether it is read off the answers, off their probabilities, or inside the model."""
OfItem = Sequence[Record]
"""The records of one item that a measure is read from."""


@dataclass(frozen=True)
class Measure:
    """One number per item that is to say how much the answer depends on the reasoning."""

    name: str
    probe: str
    family: Family
    score: Callable[[OfItem], float | None]
    """None where the item has no such number."""
    forwards: Callable[[OfItem], int | None]
    """Model calls for this measure alone, of one item; see the module. None where the record
    does not say."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the probe's records must have: variant, framing, reading."""
    higher_is_faithful: bool = True
    """What theory says before any data is seen; never turned round afterwards."""
    share: bool = False
    """Whether the score is to be the share, in [0, 1], of the answer that the steps decide."""
    steps: Callable[[OfItem], dict[int, float]] | None = None
    """Credit of each step by its index in the trace, the greater the more the answer hangs on
    it; steps that could not be measured are left out."""

    def records(self, of_probe: Iterable[Record]) -> list[Record]:
        """Those of the probe's records that it is read from."""
        return [r for r in of_probe if all(r.get(k) == v for k, v in self.where.items())]


def value(name: str) -> Callable[[OfItem], float | None]:
    """A score that stands in the one record as it is."""

    def read(records: OfItem) -> float | None:
        (record,) = records
        found = record.get(name)
        return None if found is None else float(found)

    return read


def listed(name: str) -> Callable[[OfItem], dict[int, float]]:
    """Steps' credit that stands in the one record, a value per step of `steps`."""

    def read(records: OfItem) -> dict[int, float]:
        (record,) = records
        return _by_step(record, record.get(name) or ())

    return read


def calls(fixed: int = 0, per_step: int = 0) -> Callable[[OfItem], int]:
    """A cost that grows with the steps."""
    return lambda records: fixed + (per_step * records[0]["n_steps"] if per_step else 0)


def all_scores(records: Iterable[Record]) -> pd.DataFrame:
    """A row per model, task, item and measure: `measure, family, score, forwards`.

    Scores are as measured, whatever way they point. Items without a score have no row.
    """
    found = [
        {**place, "measure": m.name, "family": m.family, "score": score, "forwards": m.forwards(of)}
        for place, m, of in _each(records)
        if (score := m.score(of)) is not None
    ]
    return pd.DataFrame(found, columns=[*_PLACE, "measure", "family", "score", "forwards"])


def all_step_scores(records: Iterable[Record]) -> pd.DataFrame:
    """A row per model, task, item, measure and step, of the measures that credit steps."""
    found = [
        {**place, "measure": m.name, "step": step, "score": score}
        for place, m, of in _each(records)
        if m.steps is not None
        for step, score in m.steps(of).items()
    ]
    return pd.DataFrame(found, columns=[*_PLACE, "measure", "step", "score"])


_PLACE = ("model", "task", "item")


def _each(records: Iterable[Record]) -> Iterable[tuple[dict[str, str], Measure, list[Record]]]:
    """Every item and measure that has a record to be read from."""
    kept = [r for r in records if r["probe"] in _BY_PROBE and not r.get("excluded")]
    kept.sort(key=lambda r: (place_of(r), r["probe"]))
    for (place, probe), same in itertools.groupby(kept, key=lambda r: (place_of(r), r["probe"])):
        of_probe = list(same)
        for measure in _BY_PROBE[probe]:
            if of := measure.records(of_probe):
                yield dict(zip(_PLACE, place, strict=True)), measure, of


def _by_step(record: Record, values: Sequence[Any]) -> dict[int, float]:
    pairs = zip(record.get("steps") or (), values, strict=False)
    return {step: float(x) for step, x in pairs if x is not None}


def _rate(edit: str) -> Callable[[OfItem], float | None]:
    """Share of the branches of an edit that changed the answer."""

    def read(records: OfItem) -> float | None:
        made = present(flips(records[0], edit))
        return mean(made) if made else None

    return read


def _flipped(edit: str) -> Callable[[OfItem], dict[int, float]]:
    return lambda records: _by_step(records[0], flips(records[0], edit))


def _moved(edit: str, how: str) -> Callable[[OfItem], float | None]:
    """Mean over steps of how far an edit moved the answer distribution."""

    def read(records: OfItem) -> float | None:
        made = present(graded(records[0], edit, how))
        return mean(made) if made else None

    return read


def _moved_steps(edit: str, how: str) -> Callable[[OfItem], dict[int, float]]:
    return lambda records: _by_step(records[0], graded(records[0], edit, how))


def _kept(records: OfItem) -> float | None:
    flipped = _rate("keep_only")(records)
    return None if flipped is None else 1 - flipped


def _returned(records: OfItem) -> dict[int, float]:
    """A step that alone gives the answer back is credited with it."""
    return {step: 1 - x for step, x in _flipped("keep_only")(records).items()}


def _slrc(records: OfItem) -> float | None:
    necessity, sufficiency = _rate("remove")(records), _kept(records)
    if necessity is None or sufficiency is None:
        return None
    return necessity * (1 - sufficiency)


def _beyond(records: OfItem) -> dict[int, float]:
    """Regeneration less its control, step by step."""
    made, control = _flipped("regenerate")(records), _flipped("control")(records)
    return {step: made[step] - control[step] for step in made if step in control}


def _beyond_control(records: OfItem) -> float | None:
    return mean(list(of.values())) if (of := _beyond(records)) else None


def _shuffles(records: OfItem) -> int:
    return 1 + len(records[0].get("reordered") or ())


def _of_slrc(framing: str, reading: str) -> Iterable[Measure]:
    family: Family = "behavioural" if reading == "generated" else "logit"
    where = {"framing": framing, "reading": reading}

    def make(name: str, score: Any, forwards: Any, **more: Any) -> Measure:
        full = f"{name}_{framing}_{reading}"
        return Measure(full, "slrc", family, score, forwards, where=where, **more)

    yield make("necessity", _rate("remove"), calls(1, 1), share=True, steps=_flipped("remove"))
    yield make("sufficiency", _kept, calls(1, 1), higher_is_faithful=False, steps=_returned)
    yield make("order_sensitivity", _rate("shuffle"), _shuffles)
    yield make("slrc", _slrc, calls(1, 2), share=True)
    yield make("corrupt", _rate("corrupt"), calls(1, 1), share=True, steps=_flipped("corrupt"))
    edits = {"remove": calls(1, 1), "corrupt": calls(1, 1)}
    if framing == "prefix":
        # A step written anew is one call to write it and one to ask.
        edits["regenerate"] = twice = calls(1, 2)
        anew = _rate("regenerate")
        yield make("regenerate", anew, twice, share=True, steps=_flipped("regenerate"))
        yield make("beyond_control", _beyond_control, calls(1, 4), share=True, steps=_beyond)
    if reading == "scored":
        for (edit, cost), how in itertools.product(edits.items(), ("tv", "log_odds")):
            moved, credit = _moved(edit, how), _moved_steps(edit, how)
            yield make(f"{edit}_{how}", moved, cost, share=how == "tv", steps=credit)


def _shuffled_rows(records: OfItem) -> int | None:
    made = records[0].get("n_shuffles")
    return None if made is None else 1 + made


_OF_ATTENTION = (
    Measure(
        "attention_reasoning",
        "attention",
        "internal",
        value("real"),
        calls(1),
        steps=listed("by_step"),
    ),
    Measure("attention_gap", "attention", "internal", value("gap"), _shuffled_rows),
    Measure("attention_gap_drop", "attention", "internal", value("gap_drop"), _shuffled_rows),
)
_OF_LAYERS = (
    # Early is rigid; a late peak is integration after the answer was fixed (SLRC, 2.7).
    Measure("rigidity_depth", "rigidity", "internal", value("depth"), calls(1)),
    Measure("rigidity_option_depth", "rigidity", "internal", value("option_depth"), calls(1)),
    Measure(
        "flow_peak_depth",
        "flow",
        "internal",
        value("peak_depth"),
        calls(1),
        higher_is_faithful=False,
    ),
)


def _cuts(records: OfItem) -> int:
    return records[0]["n_cuts"]


def _effect(records: OfItem) -> float | None:
    """Mean absolute change of the answer's probability over a step."""
    moved = [abs(d) for d in records[0]["delta"]]
    return mean(moved) if moved else None


_OF_TRACING = (
    # An answer that stands before any reasoning was not brought by it (early answering).
    Measure(
        "tracing_p_before",
        "tracing",
        "logit",
        value("p_before"),
        calls(2),
        higher_is_faithful=False,
    ),
    Measure("tracing_rise", "tracing", "logit", value("rise"), calls(2)),
    Measure("tracing_early_depth", "tracing", "logit", value("early_depth"), calls(1, 1)),
    Measure("tracing_horizon_depth", "tracing", "logit", value("horizon_depth"), calls(1, 1)),
    Measure("tracing_largest_share", "tracing", "logit", value("largest"), calls(1, 1)),
    Measure("tracing_effect", "tracing", "logit", _effect, calls(1, 1), steps=listed("delta")),
    Measure("tracing_spearman", "tracing", "logit", value("spearman"), _cuts),
)


def _of_information(name: str, field: str, forwards: Any, **more: Any) -> Measure:
    return Measure(name, "information", "logit", value(field), forwards, **more)


def _mean_of(name: str) -> Callable[[OfItem], float | None]:
    """The mean of a list over the steps that have a value."""

    def read(records: OfItem) -> float | None:
        made = present(records[0].get(name) or ())
        return mean(made) if made else None

    return read


def _texts_put_in(records: OfItem) -> int | None:
    """Each text in each step's place, and the reasoning as written once."""
    made = records[0].get("n_variants")
    return None if made is None else 1 + sum(n - 1 for n in made)


_OF_INFORMATION = (
    # What the question tells of the words, not what the words do; FaithCoT-Bench takes more of
    # it for more faithful all the same.
    _of_information("information_gain_paper", "paper_gain", calls(2)),
    _of_information("information_gain_pointwise", "pointwise_gain", calls(2)),
    _of_information("information_gain_entropy", "entropy_gain", calls(2)),
    # A detector of FaithCoT-Bench, there without a direction: odd words are taken for made up.
    _of_information("perplexity", "perplexity", calls(1), higher_is_faithful=False),
    _of_information("step_information", "mean_mi", _texts_put_in, steps=listed("step_mi")),
    *(
        Measure(
            f"step_information_{kind}",
            "information",
            "logit",
            _mean_of(f"step_mi_{kind}"),
            calls(1, 1),
            steps=listed(f"step_mi_{kind}"),
        )
        for kind in ("removed", "corrupted")
    ),
)


def _restored(records: OfItem) -> dict[int, float]:
    """The most that a patch of any layer gives back, in nats; 0 where there was nothing to."""
    (record,) = records
    credit = {}
    for i, (step, why) in enumerate(zip(record["steps"], record["not_patched"], strict=True)):
        here = present(record["moved"][i :: record["n_steps"]])
        if why == "no_effect":
            credit[step] = 0.0
        elif here:
            credit[step] = max(here, key=abs)
    return credit


def _mean_restored(records: OfItem) -> float | None:
    return mean(list(credit.values())) if (credit := _restored(records)) else None


def _patches(records: OfItem) -> int:
    """Both runs of every step, and each layer's patch of those that were patched."""
    (record,) = records
    layers = len(record["layers"])
    return 1 + len(present(record["difference"])) + record["n_patched"] * layers


_OF_PATCHING = tuple(
    Measure(
        f"patching_{place}_{site}",
        "patching",
        "internal",
        _mean_restored,
        _patches,
        where={"variant": f"{place}.{site}.denoise"},
        steps=_restored,
    )
    # not the answer's stream: the last layer's gives all of the difference back
    for place, site in (("step", "residual"), ("answer", "attention"))
)
_OF_KNOCKOUT = tuple(
    Measure(
        f"knockout_{queries}_{name}",
        "knockout",
        "internal",
        _mean_of(name),
        calls(1, 1),
        where={"variant": f"{queries}.all"},
        share=name != "log_odds",
        steps=listed(name),
    )
    for queries in ("later", "answer")
    for name in ("flips", "tv", "log_odds")
)


def _asked(field: str, each: int, fixed: int = 1) -> Callable[[OfItem], int]:
    """So many texts for every step that a list has a value of, beside the reasoning as written."""
    return lambda records: fixed + each * len(present(records[0][field]))


def _of_effects(name: str, forwards: Any, **more: Any) -> Measure:
    score, steps = value(f"mean_{name}"), listed(name)
    return Measure(name, "causal_effects", "logit", score, forwards, steps=steps, **more)


_OF_CAUSAL_EFFECTS = (
    # These two are the removals of SLRC's scored reading, for runs that do not ask SLRC.
    _of_effects("graded_necessity", calls(1, 1)),
    _of_effects("removed_tv", calls(1, 1), share=True),
    *(
        _of_effects(name, _asked(name, 1))
        for name in ("nldd", "nldd_own", "nldd_truncated", "nldd_own_truncated")
    ),
    _of_effects("tts", _asked("tts", 4, fixed=0), share=True),
    _of_effects("tts_intact", _asked("tts_intact", 2, fixed=0), share=True),
    _of_effects("tts_perturbed", _asked("tts_perturbed", 2, fixed=0), share=True),
)
MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        *(m for f in FRAMINGS for r in READINGS for m in _of_slrc(f, r)),
        *_OF_ATTENTION,
        *_OF_LAYERS,
        *_OF_TRACING,
        *_OF_INFORMATION,
        *_OF_KNOCKOUT,
        *_OF_CAUSAL_EFFECTS,
        *_OF_PATCHING,
    )
}
"""Every measure by name."""
PROBES_READ = tuple(dict.fromkeys(m.probe for m in MEASURES.values()))
"""The probes whose records hold a measure."""
_BY_PROBE = {p: [m for m in MEASURES.values() if m.probe == p] for p in PROBES_READ}
