"""Measures of the probabilities of answers and of the reasoning's own tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faithscope.experiments.tables.measures.measure import (
    Measure,
    OfItem,
    calls,
    listed,
    mean_of,
    value,
)
from faithscope.experiments.tables.tidy import mean, present


def _cuts(records: OfItem) -> int:
    return records[0]["n_cuts"]


def _effect(records: OfItem) -> float | None:
    """Mean absolute change of the answer's probability over a step."""
    moved = [abs(d) for d in records[0]["delta"]]
    return mean(moved) if moved else None


OF_TRACING = (
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


def _texts_put_in(records: OfItem) -> int | None:
    """Each text in each step's place, and the reasoning as written once."""
    made = records[0].get("n_variants")
    return None if made is None else 1 + sum(n - 1 for n in made)


OF_INFORMATION = (
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
            mean_of(f"step_mi_{kind}"),
            calls(1, 1),
            steps=listed(f"step_mi_{kind}"),
        )
        for kind in ("removed", "corrupted")
    ),
)


def _asked(field: str, each: int, fixed: int = 1) -> Callable[[OfItem], int]:
    """So many texts for every step that a list has a value of, beside the reasoning as written."""
    return lambda records: fixed + each * len(present(records[0][field]))


def _of_effects(name: str, forwards: Any, **more: Any) -> Measure:
    score, steps = value(f"mean_{name}"), listed(name)
    return Measure(name, "causal_effects", "logit", score, forwards, steps=steps, **more)


OF_CAUSAL_EFFECTS = (
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
