"""Information flow against cosines taken straight from transformers' hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sample_trace import asking, written
from tiny_models import hidden_states, tiny

from faithscope.probes.flow import FlowSettings, cosines, flow
from faithscope.probes.framing import prefix_ids

CLOSED = asking(closer_ids=(10, 11))


@pytest.mark.parametrize("family", ["llama", "gemma3", "gpt2", "falcon", "qwen3_next"])
def test_cosines_are_those_of_the_hidden_states(family: str) -> None:
    model = tiny(family)
    # In several chunks: a model that the forest cannot serve must not be cut into them.
    model.chunk = 32
    trace = written(model)
    (record,) = flow(model, trace, CLOSED, FlowSettings())
    ids = prefix_ids(model, CLOSED, trace)
    states = hidden_states(model, ids)
    assert len(states) == model.n_layers + 1
    start = len(trace.prompt_ids)
    span = slice(start, start + len(trace.reasoning_ids))

    def alike(a: torch.Tensor, b: torch.Tensor) -> float:
        return float(torch.cosine_similarity(a, b, dim=-1).mean())

    whole = [alike(h[span].mean(0), h[-1]) for h in states]
    assert record["arrays"]["cosine"] == pytest.approx(whole, abs=1e-4)
    assert record["cosine"] == pytest.approx(whole[1:], abs=1e-4)
    assert record["token_cosine"] == pytest.approx(
        [alike(h[span], h[-1]) for h in states[1:]], abs=1e-4
    )
    for i, step in enumerate(trace.counted_steps):
        own = slice(start + step.tokens[0], start + step.tokens[1])
        of_step = [alike(h[own].mean(0), h[-1]) for h in states]
        assert record["arrays"]["steps"][:, i] == pytest.approx(of_step, abs=1e-4)
        assert record["step_peak_layers"][i] == 1 + int(np.argmax(of_step[1:]))
    assert record["arrays"]["tokens"].shape == (model.n_layers + 1, len(trace.reasoning_ids))
    assert record["peak_layer"] == 1 + int(np.argmax(whole[1:]))
    assert record["peak_depth"] == record["peak_layer"] / model.n_layers
    assert record["peak_value"] == pytest.approx(max(whole[1:]), abs=1e-4)


def test_cosines_by_hand() -> None:
    states = np.array([[3.0, 4.0], [-1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    found = cosines(states, np.array([2.0, 0.0]))
    assert found[:3] == pytest.approx([0.6, -1, 0])
    assert np.isnan(found[3])


def test_states_that_are_not_finite_are_told_by_item() -> None:
    model = tiny("llama")
    model.structure.layers[1].mlp.down_proj.weight.data.fill_(float("nan"))  # pyright: ignore
    with pytest.raises(FloatingPointError, match="item 'q1', flow: tiny:llama"):
        flow(model, written(model), CLOSED, FlowSettings())
