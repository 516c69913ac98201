"""The states that a linear probe keeps, against transformers' own hidden states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sample_trace import asking, written
from tiny_models import hidden_states, tiny

from faithscope.probes.framing import prefix_ids
from faithscope.probes.linear_probe import LinearProbeSettings, chosen_layers, linear_probe, places

CLOSED = asking(closer_ids=(10, 11))


@pytest.mark.parametrize("family", ["llama", "gemma3", "gpt2", "falcon", "qwen3_next"])
@pytest.mark.parametrize("step_state", ["end", "mean"])
def test_states_are_the_hidden_states_of_their_places(family: str, step_state) -> None:
    model = tiny(family)
    # In several chunks: a model that the forest cannot serve must not be cut into them.
    model.chunk = 32
    trace = written(model)
    settings = LinearProbeSettings(positions=3, step_state=step_state, precision="float32")
    (record,) = linear_probe(model, trace, CLOSED, settings)
    ids = prefix_ids(model, CLOSED, trace)
    states = torch.stack(hidden_states(model, ids)[1:], dim=1).numpy()
    start, steps = len(trace.prompt_ids), trace.counted_steps
    found = record["arrays"]["states"]
    assert found.shape == (5, model.n_layers, states.shape[-1])
    near = {"abs": 1e-4}
    assert found[0] == pytest.approx(states[start - 1], **near)
    assert found[4] == pytest.approx(states[len(ids) - 1], **near)
    for i, step in enumerate(record["steps"]):
        (asked,) = [s for s in steps if s.index == step]
        own = states[start + asked.tokens[0] : start + asked.tokens[1]]
        wanted = own[-1] if step_state == "end" else own.mean(0)
        assert found[1 + i] == pytest.approx(wanted, **near)
    assert record["steps"][-1] == steps[-1].index


def test_the_record_says_what_may_be_asked_for() -> None:
    model = tiny("llama")
    trace = replace(written(model), answer="7")
    (record,) = linear_probe(model, trace, CLOSED, LinearProbeSettings(positions=8, layers=2))
    assert (record["answer"], record["gold"]) == ("7", trace.question.gold)
    assert record["positions"] == list(places(8))
    assert record["layers"] == [2, 3]
    n = len(trace.counted_steps)
    wanted = [trace.counted_steps[-(-i * n // 8) - 1].index for i in range(1, 9)]
    assert record["steps"] == wanted
    assert record["arrays"]["states"].dtype == np.float16
    # Another item with the same prompt is of the same group.
    other = replace(trace, question=replace(trace.question, id="other"), answer="8")
    (again,) = linear_probe(model, other, CLOSED, LinearProbeSettings())
    assert again["group"] == record["group"]
    longer = replace(trace, prompt_ids=(*trace.prompt_ids, 5))
    (elsewhere,) = linear_probe(model, longer, CLOSED, LinearProbeSettings())
    assert elsewhere["group"] != record["group"]


def test_layers_are_spread_and_hold_the_last() -> None:
    assert chosen_layers(3, None) == chosen_layers(3, 8) == (1, 2, 3)
    assert chosen_layers(28, 4) == (7, 14, 21, 28)
    for n in range(1, 90):
        for most in range(1, n + 1):
            found = chosen_layers(n, most)
            assert len(set(found)) == most
            assert found[-1] == n
            assert min(found) >= 1


def test_a_trace_without_steps_is_refused() -> None:
    model = tiny("llama")
    bare = replace(written(model), reasoning_ids=(), pieces=(), steps=())
    with pytest.raises(ValueError, match="'q1' has no steps"):
        linear_probe(model, bare, CLOSED, LinearProbeSettings())


def test_states_beyond_float16_are_told_with_the_remedy() -> None:
    model = tiny("llama")
    model.structure.layers[1].mlp.down_proj.weight.data.mul_(1e9)  # pyright: ignore
    with pytest.raises(FloatingPointError, match=r"in float16; set linear_probe\.precision"):
        linear_probe(model, written(model), CLOSED, LinearProbeSettings())
    kept = LinearProbeSettings(precision="float32")
    assert linear_probe(model, written(model), CLOSED, kept)
    model.structure.layers[1].mlp.down_proj.weight.data.fill_(float("nan"))  # pyright: ignore
    with pytest.raises(FloatingPointError, match=r"item 'q1'.*in float32; set model\.dtype"):
        linear_probe(model, written(model), CLOSED, kept)
