"""Folders of PEFT adapters as names of models: merged into their base, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_models import saved, tiny
from transformers import AutoModelForCausalLM

from faithscope import interp
from faithscope.interp.adapters import BASE, FILE
from faithscope.interp.errors import UserError


def adapter(base: str, folder: Path, rank: int = 4) -> Path:
    """A trained adapter as PEFT saves it."""
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base),
        LoraConfig(r=rank, target_modules="all-linear", base_model_name_or_path=base),
    )
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.requires_grad):
            parameter.normal_(std=0.1, generator=torch.manual_seed(0))
    model.peft_config["default"].base_model_name_or_path = base
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture
def base(tmp_path: Path) -> str:
    return saved(tiny("llama"), tmp_path / "base")


def test_an_adapter_reads_as_peft_runs_it(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    model = interp.load(str(folder), device="cpu")
    ids = (5, 9, 2, 7)
    peft = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base), LoraConfig.from_pretrained(str(folder))
    )
    peft.load_adapter(str(folder), "default")
    with torch.no_grad():
        theirs = peft.eval()(input_ids=torch.tensor([ids])).logits[0, -1]
    ours = model.hf(input_ids=torch.tensor([ids])).logits[0, -1]
    assert torch.allclose(ours, theirs, atol=1e-4)
    plain = interp.load(base, device="cpu").hf(input_ids=torch.tensor([ids])).logits[0, -1]
    assert not torch.allclose(ours, plain, atol=1e-2)
    assert model.name == str(folder)
    assert model.supports_tree


def test_the_language_of_an_adapter_is_its_bases(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    language = interp.load_language(str(folder))
    assert language.name == str(folder)
    assert language.encode("ab") == interp.load_language(base).encode("ab")


def _without_base(folder: Path) -> str:
    config = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(config | {BASE: None}))
    return BASE


def _of_an_adapter(folder: Path) -> str:
    config = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(config | {BASE: str(folder)}))
    return "merge that one"


def _torn(folder: Path) -> str:
    (folder / FILE).write_text("{")
    return "get the file again"


def _without_weights(folder: Path) -> str:
    (folder / "adapter_model.safetensors").unlink()
    return "does not fit its base model"


def _of_a_missing_base(folder: Path) -> str:
    config = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(config | {BASE: "/nowhere/at/all"}))
    return "does not exist"


@pytest.mark.parametrize(
    "damage", [_without_base, _of_an_adapter, _torn, _without_weights, _of_a_missing_base]
)
def test_a_damaged_adapter_is_named(base, tmp_path, damage):
    folder = adapter(base, tmp_path / "adapter")
    remedy = damage(folder)
    with pytest.raises(UserError, match=remedy):
        interp.load(str(folder), device="cpu")


def test_an_adapter_of_another_shape_is_refused(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    other = saved(tiny("llama", hidden_size=32), tmp_path / "other")
    config = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(config | {BASE: other}))
    with pytest.raises(UserError, match="does not fit its base model"):
        interp.load(str(folder), device="cpu")
