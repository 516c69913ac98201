"""Records hold what all labels have together of the model's probability."""

from __future__ import annotations

import math

import pytest
from sample_trace import asking, written

from faithscope.interp.model import Model
from faithscope.interventions import remove_step
from faithscope.probes.causal_effects import CausalEffectsSettings, causal_effects
from faithscope.probes.framing import prefix_ids
from faithscope.probes.knockout import KnockoutSettings, knockout
from faithscope.probes.slrc import SlrcSettings, slrc
from faithscope.probes.tracing import TracingSettings, tracing

ASKING = asking(labels=(("yes", "y"), ("no", "n"), ("yes", "a")))


def mass_of(model: Model, ids: tuple[int, ...]) -> float:
    """From a question of its own."""
    labels = [model.encode(surface) for _, surface in ASKING.labels]
    (answered,) = model.ask([ids], [labels], execution="loop")
    return sum(map(math.exp, answered.log_probs))


def test_the_mass_in_records_is_that_of_a_question_of_its_own(llama: Model):
    trace = written(llama)
    without = [remove_step(trace, s.index) for s in trace.counted_steps]
    removed = [mass_of(llama, prefix_ids(llama, ASKING, edited)) for edited in without]
    whole = mass_of(llama, prefix_ids(llama, ASKING, trace))
    before = mass_of(llama, (*trace.prompt_ids, *llama.encode(ASKING.answer_cue)))
    assert len({round(m, 5) for m in (whole, before, *removed)}) > 3
    settings = SlrcSettings(framings=("prefix",), readings=("scored",), edits=("remove",))
    (scored,) = slrc(llama, trace, ASKING, settings)
    (traced,) = tracing(llama, trace, ASKING, TracingSettings())
    (effects,) = causal_effects(llama, trace, ASKING, CausalEffectsSettings())
    cut, *_ = knockout(llama, trace, ASKING, KnockoutSettings(windows=0))
    for r in (scored, traced, effects, cut):
        assert r["label_mass"] == pytest.approx(whole, abs=2e-6), r["probe"]
    for r in (scored, effects, cut):
        assert r["removed_mass"] == pytest.approx(removed, abs=2e-6), r["probe"]
    assert traced["label_mass_before"] == pytest.approx(before, abs=2e-6)
    assert traced["arrays"]["mass"].min() == pytest.approx(traced["least_label_mass"], abs=2e-6)
