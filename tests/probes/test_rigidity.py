"""The rigidity map against the lens and logits it is made of, and its tuned lens."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sample_trace import asking, written
from tiny_models import tiny

from faithscope import interp
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.traces import TraceSettings, asking_for, make_traces
from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.interp.tuned_lens import load_tuned_lens
from faithscope.probes.framing import prefix_ids
from faithscope.probes.rigidity import (
    RigiditySettings,
    first_tokens,
    rigidity,
    stable_from,
    why_no_options,
)

LOGIT = RigiditySettings()
ASKING = asking(labels=(("yes", "yes"), ("no", "no"), ("yes", "aye")))
FAMILIES = ["llama", "gemma2", "gpt2", "cohere", "qwen3_next"]


def zeros(model: Model) -> dict[str, torch.Tensor]:
    """Translators that change nothing."""
    width = model.hf.config.get_text_config().hidden_size
    layers = range(model.n_layers)
    weights = {f"{i}.weight": torch.zeros(width, width) for i in layers}
    return weights | {f"{i}.bias": torch.zeros(width) for i in layers}


@pytest.mark.parametrize(
    ("top", "layer"),
    [([5, 5, 5], 1), ([4, 5, 5], 2), ([5, 4, 5], 3), ([5, 5, 4, 5, 5], 4), ([7], 1)],
)
def test_the_stable_layer_is_that_of_the_last_change(top: list[int], layer: int) -> None:
    assert stable_from(top) == layer


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_are_the_lens_of_hidden_states_and_the_last_the_logits(family: str) -> None:
    model = tiny(family)
    trace = written(model)
    (record,) = rigidity(model, trace, ASKING, LOGIT)
    assert json.loads(json.dumps({k: v for k, v in record.items() if k != "arrays"}))
    ids = prefix_ids(model, ASKING, trace)
    with torch.inference_mode():
        out = model.hf(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
        # transformers' last hidden state is behind the norm already: all but that one.
        lens = [model.lens(h[0, -1]) for h in out.hidden_states[:-1]]
        said = torch.stack([*lens, out.logits[0, -1].float()]).double().log_softmax(-1)
    top = said.argmax(-1)
    arrays = record["arrays"]
    assert arrays["top_ids"].tolist() == top.tolist()
    assert arrays["log_prob"] == pytest.approx(said[:, top[-1]].numpy(), abs=1e-3)
    assert record["log_prob"] == pytest.approx(arrays["log_prob"][1:], abs=1e-5)
    assert record["stable_layer"] == stable_from(top.tolist()[1:])
    assert record["depth"] == record["stable_layer"] / model.n_layers
    assert len(record["top"]) == record["n_layers"] == model.n_layers
    yes = said[:, [model.encode(x)[0] for x in ("yes", "aye")]].logsumexp(-1)
    no = said[:, model.encode("no")[0]]
    assert arrays["option_log_probs"] == pytest.approx(torch.stack([yes, no], -1).numpy(), abs=1e-3)
    names = ["yes" if a > b else "no" for a, b in zip(yes, no, strict=True)]
    assert record["option_top"] == names[1:]
    assert record["option_stable_layer"] == stable_from([n == names[-1] for n in names[1:]])


def test_a_model_that_does_nothing_after_its_first_layer_is_stable_there() -> None:
    model = tiny("llama")
    for layer in list(model.structure.layers)[1:]:
        for name, weight in layer.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.data.zero_()
    (record,) = rigidity(model, written(model), ASKING, LOGIT)
    assert record["stable_layer"] == record["option_stable_layer"] == 1
    assert len(set(record["top"])) == 1
    assert record["log_prob"] == pytest.approx([record["log_prob"][-1]] * 3, abs=1e-4)


def test_answers_are_read_only_where_their_first_token_tells_them_apart(llama: Model) -> None:
    shared = asking(labels=(("12", " 12"), ("15", " 15")))
    (record,) = rigidity(llama, written(llama), shared, LOGIT)
    assert record["no_options"] == "shared_first_token"
    assert record["option_stable_layer"] is record["option_top"] is None
    assert "option_log_probs" not in record["arrays"]
    alone = replace(shared, labels=(("12", "12"),))
    assert why_no_options(first_tokens(llama, alone)) == "fewer_than_2_labels"
    (record,) = rigidity(llama, written(llama), replace(shared, labels=()), LOGIT)
    assert (record["no_options"], record["top_is_option"]) == ("fewer_than_2_labels", None)


@pytest.mark.parametrize("file", ["params.pt", "params.safetensors"])
def test_translators_of_zeros_are_the_logit_lens(llama: Model, tmp_path: Path, file: str) -> None:
    state = zeros(llama)
    torch.save(state, tmp_path / file) if file.endswith("pt") else save_file(state, tmp_path / file)
    trace = written(llama)
    (plain,) = rigidity(llama, trace, ASKING, LOGIT)
    (tuned,) = rigidity(llama, trace, ASKING, RigiditySettings(tuned_lens=str(tmp_path)))
    assert (plain.pop("lens"), tuned.pop("lens")) == ("logit", "tuned")
    for name, array in plain.pop("arrays").items():
        assert np.array_equal(array, tuned["arrays"][name]), name
    del tuned["arrays"]
    assert plain == tuned


def test_a_translator_is_added_to_the_stream_before_its_layer(llama: Model, tmp_path: Path) -> None:
    state = zeros(llama)
    state["1.weight"] += torch.eye(64)
    state["2.bias"] += 3.0
    torch.save(state, tmp_path / "params.pt")
    streams = torch.randn(llama.n_layers + 1, 64)
    moved = load_tuned_lens(tmp_path, llama).translate(streams)
    assert torch.equal(moved, torch.stack([streams[0], 2 * streams[1], streams[2] + 3, streams[3]]))


@pytest.mark.parametrize(
    ("name", "tensor", "said"),
    [
        ("1.weight", torch.zeros(32, 32), r"1\.weight has shape \(32, 32\), tiny:llama needs \(64"),
        ("0.bias", torch.zeros(8), r"0\.bias has shape \(8,\)"),
        ("3.weight", torch.zeros(64, 64), "translators for 4 layers, tiny:llama has 3 layers"),
        ("unembed.weight", torch.zeros(1), "unknown tensor 'unembed.weight'"),
    ],
)
def test_a_lens_of_another_model_is_one_clear_error(
    llama: Model, tmp_path: Path, name: str, tensor: torch.Tensor, said: str
) -> None:
    torch.save(zeros(llama) | {name: tensor}, tmp_path / "params.pt")
    with pytest.raises(UserError, match=said) as error:
        rigidity(llama, written(llama), ASKING, RigiditySettings(tuned_lens=str(tmp_path)))
    assert "\n" not in str(error.value)


def test_no_lens_and_a_damaged_one(llama: Model, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no params\.safetensors or params\.pt there"):
        load_tuned_lens(tmp_path, llama)
    (tmp_path / "params.pt").write_bytes(b"no checkpoint")
    with pytest.raises(UserError, match="cannot be read"):
        load_tuned_lens(tmp_path, llama)


@pytest.mark.parametrize(("name", "layer"), [("planted:faithful", 1), ("planted:hint", 2)])
def test_on_planted_models_early_settling_is_not_rigidity(name: str, layer: int) -> None:
    """The one that uses its steps settles first: its answer is copied from the last of them."""
    model = interp.load(name)
    task = get_task("planted")
    asked = [(task, question) for question in task.load(LoadSettings(limit=3))]
    for trace in make_traces(model, asked, TraceSettings(max_new_tokens=48)):
        (record,) = rigidity(model, trace, asking_for(model, task, trace), LOGIT)
        assert record["top_is_option"] is True
        assert record["option_top"][-1] == trace.answer == record["final_token"].strip()
        assert record["stable_layer"] == record["option_stable_layer"] == layer
