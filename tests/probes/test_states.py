"""Stored states against transformers' own hidden states, and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sample_trace import asking, written
from tiny_models import hidden_states, tiny

from faithscope.interp.errors import UserError
from faithscope.probes import PROBES
from faithscope.probes.framing import prefix_ids
from faithscope.probes.probe import Size
from faithscope.probes.settings import ModelFacts
from faithscope.probes.states import StatesSettings, states

CLOSED = asking(closer_ids=(10, 11))


def settings(**values: Any) -> StatesSettings:
    return StatesSettings.model_validate({"layers": None, "precision": "float32", **values})


@pytest.mark.in_time(3)
@pytest.mark.parametrize("family", ["llama", "gemma3", "qwen3_next"])
@pytest.mark.parametrize("pool", ["none", "mean", "last"])
def test_residuals_are_the_hidden_states_of_the_spans(family: str, pool: str) -> None:
    model = tiny(family)
    trace = written(model)
    made = states(model, trace, CLOSED, settings(pool=pool, at=["step", "answer"]))
    whole = torch.stack(hidden_states(model, prefix_ids(model, CLOSED, trace))[1:], dim=1).numpy()
    start, steps = len(trace.prompt_ids), trace.counted_steps
    expected = {
        "step": [(start + a, start + b) for a, b in (s.tokens for s in steps)],
        "answer": [(start + len(trace.reasoning_ids), len(whole))],
    }
    assert [r["variant"] for r in made] == ["step", "answer"]
    for record in made:
        spans = expected[record["variant"]]
        assert record["arrays"]["spans"].tolist() == [list(span) for span in spans]
        parts = [whole[a:b] for a, b in spans]
        if pool != "none":
            parts = [x[-1:] if pool == "last" else x.mean(0, keepdims=True) for x in parts]
        wanted = np.concatenate(parts)
        assert record["arrays"]["residual"] == pytest.approx(wanted, abs=1e-4)
        assert record["n_rows"] == len(wanted)
        assert record["n_tokens"] == sum(b - a for a, b in spans)
    assert made[0]["all_steps"] == [s.index for s in steps]
    assert "all_steps" not in made[1]


def test_a_stream_is_the_one_before_it_with_what_attention_and_mlp_put_out() -> None:
    model = tiny("llama")
    sites = ["residual", "attention", "mlp"]
    (record,) = states(model, written(model), CLOSED, settings(at="reasoning", sites=sites))
    found, n = record["arrays"], model.n_layers
    assert record["sites"] == [f"{site} {layer}" for site in sites for layer in range(1, n + 1)]
    between = found["residual"][:, 1:] - found["residual"][:, :-1]
    assert between == pytest.approx((found["attention"] + found["mlp"])[:, 1:], abs=1e-4)


def test_hook_names_and_lists_of_layers_are_the_same_places() -> None:
    model = tiny("llama")
    trace = written(model)
    every = states(model, trace, CLOSED, settings(at="answer", sites=["residual", "mlp"]))
    names = ["blocks.1.hook_resid_post", "blocks.0.hook_resid_pre", "blocks.2.hook_mlp_out"]
    (hooked,) = states(model, trace, CLOSED, settings(at="answer", hooks=names))
    assert hooked["sites"] == ["residual 0", "residual 2", "mlp 3"]
    whole = torch.stack(hidden_states(model, prefix_ids(model, CLOSED, trace)), dim=1).numpy()
    span = slice(*hooked["arrays"]["spans"][0])
    assert hooked["arrays"]["residual"] == pytest.approx(whole[span][:, [0, 2]], abs=1e-4)
    assert np.array_equal(hooked["arrays"]["mlp"], every[0]["arrays"]["mlp"][:, [2]])
    (listed,) = states(model, trace, CLOSED, settings(at="answer", layers=[3, 1]))
    assert listed["sites"] == ["residual 1", "residual 3"]


def test_spans_are_those_that_are_declared_and_a_missing_one_says_so() -> None:
    model = tiny("llama")
    trace = written(model)
    declared = {"first": "step 1", "none": {"regex": "zzz"}}
    first, none = states(model, trace, CLOSED, settings(spans=declared))
    assert first["n_tokens"] == len(trace.step_ids(trace.counted_steps[0]))
    assert none["excluded"] == "span_not_found: none"
    assert settings().named == ("step", "answer")


def test_what_is_not_there_is_refused() -> None:
    model = tiny("llama")
    with pytest.raises(UserError, match=r"states\.layers: layer 9 is not there; .* 1 to 3"):
        states(model, written(model), CLOSED, settings(layers=[1, 9]))
    facts = ModelFacts.of(model)
    assert settings(layers=[1, 9]).misfit_with(facts) == (
        "layers: layer 9 is not there; the model has layers 1 to 3"
    )
    assert settings(layers=[1, 3]).misfit_with(facts) is None
    assert settings(hooks=["blocks.3.hook_resid_pre"]).misfit_with(facts) == (
        "hooks: blocks.3.hook_resid_pre is not there; the model has blocks.0 to blocks.2"
    )
    with pytest.raises(ValueError, match=r"unknown hook name 'blocks\.1\.hook_q'"):
        settings(hooks=["blocks.1.hook_q"])
    with pytest.raises(ValueError, match="pool to mean or last"):
        settings(labels=["a"])
    model.structure.layers[1].mlp.down_proj.weight.data.mul_(1e9)  # pyright: ignore
    with pytest.raises(FloatingPointError, match=r"in float16; set states\.precision"):
        states(model, written(model), CLOSED, settings(precision="float16"))


@pytest.mark.parametrize("pool", ["none", "mean"])
def test_what_is_foretold_of_the_disk_is_what_is_stored(pool: str) -> None:
    model = tiny("llama")
    trace, of = written(model), settings(pool=pool, at=["step"], precision="float16")
    (record,) = states(model, trace, CLOSED, of)
    steps, tokens = len(trace.counted_steps), record["n_tokens"]
    width = record["arrays"]["residual"].shape[-1]
    size = Size(steps, round(tokens / steps), model.n_layers, width=width)
    stored = PROBES["states"].stored
    assert stored is not None
    told = stored(size, of)
    assert told.bytes == pytest.approx(record["arrays"]["residual"].nbytes, rel=0.2)
