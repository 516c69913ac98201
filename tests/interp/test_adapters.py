"""Folders of PEFT adapters as names of models: merged into their base, or refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from tiny_models import saved, tiny
from transformers import AutoModelForCausalLM

from faithscope import interp
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.engine.models.loading import open_backend
from faithscope.experiments.engine.traces.sections import ModelConfig
from faithscope.interp import adapters
from faithscope.interp.adapters import BASE, FILE, TRAINED_ON
from faithscope.interp.errors import UserError


def adapter(base: str, folder: Path, std: float = 0.1, **settings: Any) -> Path:
    """A trained adapter as PEFT saves it."""
    settings = {"r": 4, "target_modules": ["q_proj", "v_proj"]} | settings
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(base), LoraConfig(**settings))
    draw = torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                start = 0 if "lora_A" in name or "lora_B" in name else parameter
                parameter.copy_(start + std * torch.randn(parameter.shape, generator=draw))
    model.peft_config["default"].base_model_name_or_path = base
    model.save_pretrained(str(folder))
    return folder


def change(folder: Path, **values: Any) -> None:
    config = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(config | values))


def change_weights(folder: Path, made: Callable[[dict], dict]) -> None:
    path = folder / "adapter_model.safetensors"
    save_file(made(load_file(path)), path)


@pytest.fixture
def base(tmp_path: Path) -> str:
    return saved(tiny("llama"), tmp_path / "base")


@pytest.fixture
def tied(tmp_path: Path) -> str:
    return saved(tiny("llama", tie_word_embeddings=True), tmp_path / "tied")


IDS = (5, 9, 2, 7)


def last_logits(hf: Any) -> torch.Tensor:
    with torch.no_grad():
        return hf(input_ids=torch.tensor([IDS])).logits[0, -1]


def peft_logits(base: str, folder: Path) -> torch.Tensor:
    hf = AutoModelForCausalLM.from_pretrained(base)
    return last_logits(PeftModel.from_pretrained(hf, str(folder)).eval())


@pytest.mark.parametrize(
    ("of_tied", "settings"),
    [
        (False, {"target_modules": "all-linear"}),
        (False, {"use_dora": True, "use_rslora": True}),
        (True, {"target_modules": ["lm_head", "q_proj"]}),
        (True, {"target_modules": ["embed_tokens", "lm_head"], "ensure_weight_tying": True}),
        (True, {"modules_to_save": ["lm_head"]}),
        (True, {"trainable_token_indices": {"embed_tokens": [5, 9]}}),
    ],
    ids=["linear", "dora", "tied head", "tied on purpose", "saved head", "tokens"],
)
@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
def test_an_adapter_reads_as_peft_runs_it(base, tied, tmp_path, of_tied, settings):
    below = tied if of_tied else base
    folder = adapter(below, tmp_path / "adapter", **settings)
    model = interp.load(str(folder), device="cpu", verify_model=False)
    ours = last_logits(model.hf)
    assert torch.allclose(ours, peft_logits(below, folder), atol=1e-4)
    plain = last_logits(AutoModelForCausalLM.from_pretrained(below))
    assert not torch.allclose(ours, plain, atol=1e-2)
    assert not any("base_layer" in name for name, _ in model.hf.named_modules())
    assert model.name == str(folder)
    assert model.supports_tree
    assert model.cautions == ()


def test_experts_in_one_parameter_are_adapted_as_peft_does(tmp_path):
    base = saved(tiny("mixtral"), tmp_path / "experts")
    folder = adapter(base, tmp_path / "adapter", target_modules="all-linear")
    model = interp.load(str(folder), device="cpu", verify_model=False)
    assert torch.allclose(last_logits(model.hf), peft_logits(base, folder), atol=1e-4)


def test_an_adapter_that_a_dtype_would_round_away_is_not_merged(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter", std=0.004)
    (caution,) = interp.load(str(folder), device="cpu", dtype="bfloat16").cautions
    assert "merging in bfloat16 loses its small changes" in caution


def test_an_adapter_that_changes_nothing_is_said(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter", std=0)
    model = interp.load(str(folder), device="cpu", verify_model=False)
    assert [c for c in model.cautions if "reads as the base model does" in c]


def test_an_adapter_is_asked_under_the_template_saved_with_it(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    tokenizer = interp.load(base, device="cpu", verify_model=False).tokenizer
    tokenizer.chat_template = "{% for m in messages %}[{{ m['content'] }}]{% endfor %}"
    tokenizer.save_pretrained(folder)
    for speaks in (interp.load_language(str(folder)), interp.load(str(folder), device="cpu")):
        assert speaks.prompt("2 + 2").text == "[2 + 2]"


def test_the_language_of_an_adapter_is_its_bases(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    language = interp.load_language(str(folder))
    assert language.name == str(folder)
    assert language.encode("ab") == interp.load_language(base).encode("ab")


def test_vllm_in_process_does_not_write_as_the_base_alone(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    section, settings = BackendSection(backend="vllm"), ModelConfig(name=[str(folder)])
    with pytest.raises(UserError, match="would write as its base model does"):
        open_backend(section, str(folder), settings)


def _without_base(folder: Path) -> None:
    change(folder, **{BASE: None})


def _of_an_adapter(folder: Path) -> None:
    change(folder, **{BASE: str(folder)})


def _torn(folder: Path) -> None:
    (folder / FILE).write_text("{")


def _too_deep(folder: Path) -> None:
    (folder / FILE).write_text('{"x":' + 100_000 * "[")


def _alpha_twice(folder: Path) -> None:
    text = (folder / FILE).read_text().replace('"r":', '"lora_alpha": 99, "r":')
    (folder / FILE).write_text(text)


def _without_weights(folder: Path) -> None:
    change_weights(folder, lambda _: {})


def _truncated(folder: Path) -> None:
    path = folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:900])


def _of_a_missing_base(folder: Path) -> None:
    change(folder, **{BASE: "/nowhere/at/all"})


def _of_a_wrapper(folder: Path) -> None:
    change_weights(
        folder, lambda d: {k.replace("model.layers", "text.layers"): v for k, v in d.items()}
    )


def _half(folder: Path) -> None:
    change_weights(folder, lambda d: {k: v for k, v in d.items() if ".1." not in k})


def _resized(folder: Path) -> None:
    name = "base_model.model.lm_head.weight"
    change_weights(folder, lambda d: d | {name: torch.zeros(260, 64)})


def _beside_a_model(folder: Path) -> None:
    shutil.copytree(folder.parent / "base", folder, dirs_exist_ok=True)


def _of_other_weights(folder: Path) -> None:
    (folder / TRAINED_ON).write_text('{"weights": "aaaa"}')


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_without_base, BASE),
        (_of_an_adapter, "merge that one"),
        (_torn, "get the file again"),
        (_too_deep, "get the file again"),
        (_alpha_twice, "'lora_alpha' stands twice"),
        (_without_weights, "files lack 12 tensors"),
        (_truncated, "does not fit its base model"),
        (_of_a_missing_base, "does not exist"),
        (_of_a_wrapper, "files lack 12 tensors"),
        (_half, "files lack 4 tensors"),
        (_resized, "size mismatch for base_model.model.lm_head.weight"),
        (_beside_a_model, "not clear which is meant"),
        (_of_other_weights, "was trained on other weights"),
    ],
)
def test_a_damaged_adapter_is_named(base, tmp_path, damage, said):
    folder = adapter(base, tmp_path / "adapter")
    damage(folder)
    with pytest.raises(UserError, match=said):
        interp.load(str(folder), device="cpu", verify_model=False)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"target_modules": ["q_proj"]}, "hold 6 tensors that fit nowhere"),
        ({"target_modules": "(q_proj"}, "does not fit its base model"),
        ({"peft_type": "IA3", "feedforward_modules": []}, "IA3 of PEFT .* knows no key 'bias'"),
        ({"peft_type": "PROMPT_TUNING"}, "does not fit its base model"),
        ({"use_dora": True}, "files lack 6 tensors .first: .*magnitude"),
        ({"alpha": 64}, "knows no key 'alpha'"),
        ({"alpha_pattern": {"up_proj": 64}}, "'up_proj' is the name of no module"),
        ({"alpha_pattern": {"v_proj": 64, r".*\.v_proj": 8}}, "two values"),
        ({"r": 2_000_000}, "rank 2,000,000 is above the size of every layer"),
        ({"rank_pattern": {"q_proj": 2_000_000}}, "rank 2,000,000"),
    ],
)
def test_a_config_that_its_tensors_do_not_fit_is_refused(base, tmp_path, values, said):
    folder = adapter(base, tmp_path / "adapter")
    change(folder, **values)
    with pytest.raises(UserError, match=said):
        interp.load(str(folder), device="cpu", verify_model=False)


def test_patterns_are_matched_in_bounded_time(base, tmp_path, monkeypatch):
    monkeypatch.setattr(adapters, "_PATIENCE", 1)
    folder = adapter(base, tmp_path / "adapter")
    for values in ({"target_modules": "(([a-z_.]+)+)+!"}, {"rank_pattern": {"((.+)+)+!": 4}}):
        change(folder, **values)
        with pytest.raises(UserError, match="takes more than 1 s"):
            interp.load(str(folder), device="cpu", verify_model=False)


def test_missing_biases_are_named(tmp_path):
    base = saved(tiny("qwen2", vocab_size=260), tmp_path / "biased")
    folder = adapter(base, tmp_path / "adapter", bias="lora_only")
    model = interp.load(str(folder), device="cpu", verify_model=False)
    assert torch.allclose(last_logits(model.hf), peft_logits(base, folder), atol=1e-4)
    change_weights(folder, lambda d: {k: v for k, v in d.items() if not k.endswith(".bias")})
    with pytest.raises(UserError, match=r"files lack 6 tensors .first: .*bias"):
        interp.load(str(folder), device="cpu", verify_model=False)


def test_an_adapter_of_another_shape_is_refused(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    change(folder, **{BASE: saved(tiny("llama", hidden_size=32), tmp_path / "other")})
    with pytest.raises(UserError, match="does not fit its base model"):
        interp.load(str(folder), device="cpu", verify_model=False)


def test_an_adapter_is_known_by_its_base_too(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    first = interp.load(str(folder), device="cpu", verify_model=False).adapter
    weights = Path(base) / "model.safetensors"
    save_file({k: v + 1 for k, v in load_file(weights).items()}, weights, {"format": "pt"})
    second = interp.load(str(folder), device="cpu", verify_model=False).adapter
    assert first is not None
    assert second is not None
    assert {k for k in first if first[k] != second[k]} == {"weights of the base model"}
    assert first["version of peft"] == version("peft")


def test_a_commit_that_an_adapter_names_is_the_one_loaded(base, tmp_path):
    folder = adapter(base, tmp_path / "adapter")
    change(folder, **{BASE: "org/model", "revision": "a" * 40})
    assert adapters.revision_of(folder, None) == "a" * 40
    with pytest.raises(UserError, match="trained on commit aaaa"):
        adapters.revision_of(folder, "main")
