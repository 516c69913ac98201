"""Chat templates and weights that come with a model's files, and with which something is wrong."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from hostile_inputs import ENDLESS, TEMPLATES
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from faithscope.interp import checkpoint, prompts
from faithscope.interp.errors import UserError
from faithscope.interp.loading import load, load_language, wrap
from faithscope.interp.model import Model

USER = "{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.mark.in_time(1)
@pytest.mark.parametrize(("template", "why"), TEMPLATES)
def test_a_template_that_does_not_end_or_fails_is_refused(
    llama: Model, monkeypatch: pytest.MonkeyPatch, template: str, why: str
) -> None:
    monkeypatch.setattr(prompts, "TEMPLATE_SECONDS", 0.5)
    monkeypatch.setattr(llama.tokenizer, "chat_template", template)
    with pytest.raises(UserError, match=f"chat template .*{why}"):
        llama.prompt("2 + 2 is 4, ok?")


def test_a_template_without_a_limit_to_its_output_is_refused(
    llama: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "TEMPLATE_SECONDS", 2.0)
    template = ENDLESS + "{{ messages[0].content * 99 }}{% endfor %}{% endfor %}"
    monkeypatch.setattr(llama.tokenizer, "chat_template", template)
    with pytest.raises(UserError, match=r"chat template (does not end|takes more than 2 GB)"):
        llama.prompt("2 + 2?" * 20)


SYSTEM = [{"role": "system", "content": "You are terse.\nYou are kind."}]
SHOTS = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "It is 2."}]
ASKED = [{"role": "user", "content": "2 + 2?"}]


@pytest.mark.parametrize(
    ("template", "messages", "what"),
    [
        ("{{ messages[-1].content }}", SHOTS + ASKED, r"messages\[0\] \(user\)"),
        ("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", SHOTS + ASKED,
         r"messages\[1\] \(assistant\): 'It is 2.'"),
        ("{% for m in messages %}{{ m.content.split('\n')[0] }}{% endfor %}", SYSTEM + ASKED,
         r"messages\[0\] \(system\): 'You are kind.'"),
        # what only begins like a switch is none
        ("{% for m in messages %}{{ m.content | replace('/thinkpad', '') }}{% endfor %}",
         [{"role": "user", "content": "What is in ~/thinkpad?"}], r"messages\[0\] \(user\)"),
    ],
)  # fmt: skip
def test_a_template_that_loses_a_part_of_the_messages_is_refused(
    llama: Model, monkeypatch: pytest.MonkeyPatch, template: str, messages: list, what: str
) -> None:
    monkeypatch.setattr(llama.tokenizer, "chat_template", template)
    with pytest.raises(UserError, match=f"leaves out or changes {what}"):
        llama.prompt(messages)


@pytest.mark.parametrize(
    ("template", "messages"),
    [
        # all of it stands in the prompt, in another place or without its outer white space
        (USER, SYSTEM + ASKED),
        ("{% for m in messages %}{{ m.content | trim }}{% endfor %}", SYSTEM + SHOTS + ASKED),
        ("{{ messages[-1].content }}", SYSTEM + ASKED),
        ("{% for m in messages %}{{ m.content | replace('/no_think', '') }}{% endfor %}",
         [{"role": "system", "content": "You are terse. /no_think"}, *ASKED]),
        ("{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}",
         [SHOTS[0], {"role": "assistant", "content": "<think>one, two</think>\nIt is 2."}, *ASKED]),
    ],
)  # fmt: skip
def test_a_template_that_keeps_the_messages_is_served(
    llama: Model, monkeypatch: pytest.MonkeyPatch, template: str, messages: list
) -> None:
    monkeypatch.setattr(llama.tokenizer, "chat_template", template)
    assert "2 + 2?" in llama.prompt(messages).text


def test_weights_that_are_no_numbers_are_named(llama: Model) -> None:
    broken = copy.deepcopy(llama.hf)
    broken.get_parameter("model.layers.0.mlp.down_proj.weight").data[0] = torch.nan
    with pytest.raises(UserError, match=r"1 of its weights hold NaN .*layers\.0\.mlp\.down"):
        wrap(broken, llama.tokenizer, name="broken")


def test_no_weights_go_to_a_device_that_holds_none() -> None:
    with pytest.raises(UserError, match="device 'meta' holds no weights"):
        load("bundled:smollm2-135m", device="meta")


@pytest.fixture
def folder(tmp_path: Path, llama: Model) -> Path:
    llama.hf.save_pretrained(tmp_path / "tiny")
    llama.tokenizer.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def configure(folder: Path, **changes: object) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return str(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 2}, r"9 weights .* no place for .*first: model\.layers\.2\.input"),
        ({"num_hidden_layers": 5}, r"lacks 18 weights .*first: model\.layers\.3\.input"),
        ({"attention_bias": True}, r"lacks 12 weights .*k_proj\.bias"),
        ({"intermediate_size": 48}, "weights have other shapes than config.json describes"),
        ({"vocab_size": 10**12}, "weights have other shapes than config.json describes"),
        ({"hidden_size": 10**12}, "weights have other shapes than config.json describes"),
        ({"hidden_size": -64}, "negative"),
        ({"num_attention_heads": 0}, "ZeroDivisionError"),
        ({"num_hidden_layers": 10**6}, r"config.json: num_hidden_layers: 1000000 is no number of"),
        ({"num_hidden_layers": 0}, r"config.json: num_hidden_layers: 0 is no number of layers"),
        ({"num_hidden_layers": -1}, r"config.json: num_hidden_layers: -1 is no number of layers"),
        ({"text_config": {"n_layers": 10**9}}, r"config.json: text_config.n_layers: 1000000000 is"),
    ],
)
def test_a_config_that_describes_another_model_than_the_weights_is_refused(
    folder: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        load(configure(folder, **changes), device="cpu")


def test_no_model_of_more_modules_than_any_has_is_built(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "MAX_MODULES", 100)
    with pytest.raises(UserError, match="more than 100 modules"):
        load(configure(folder, num_hidden_layers=40), device="cpu")


def rewrite(folder: Path, **more: torch.Tensor) -> str:
    path = folder / "model.safetensors"
    save_file(load_file(path) | more, path, metadata={"format": "pt"})
    return str(folder)


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.1.self_attn.q_norm.weight",
        "model.layers.0.mlp.up_proj.weight_scale",
        "model.norm.bias",
        "lm_head.bias",
    ],
)
def test_weights_that_belong_to_a_part_and_have_no_place_are_refused(
    folder: Path, name: str
) -> None:
    with pytest.raises(UserError, match=rf"1 weights .* no place for .*first: {name}\)"):
        load(rewrite(folder, **{name: torch.ones(64)}), device="cpu")


def test_weights_of_other_parts_are_a_caution(folder: Path) -> None:
    old = "model.layers.0.self_attn.rotary_emb.inv_freq"
    path = rewrite(folder, **{"score.weight": torch.ones(1, 64), old: torch.ones(8)})
    (caution,) = load(path, device="cpu").cautions
    assert caution.startswith("1 weights of its files are not part of the LlamaForCausalLM")
    assert "score.weight" in caution


def test_an_untied_unembedding_is_read_though_the_config_ties_it(
    folder: Path, llama: Model
) -> None:
    model = load(configure(folder, tie_word_embeddings=True), dtype="float32", device="cpu")
    head = model.hf.get_parameter("lm_head.weight")
    assert torch.equal(head, llama.hf.get_parameter("lm_head.weight"))


def test_a_template_is_tried_at_load(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages[-1].content }}" * 2)
    (caution,) = load(str(folder), device="cpu").cautions
    assert caution == "its chat template writes the question 2 times into every prompt"
    assert load_language(str(folder)).cautions == (caution,)
    (folder / "chat_template.jinja").write_text("{{ messages[-1].content[:4000] }}")
    for read in (load, load_language):
        with pytest.raises(UserError, match=r"model .*tiny': the chat template leaves out"):
            read(str(folder))


@pytest.mark.parametrize(
    ("called", "end", "said"),
    [
        ("Some-7B-Instruct", None, "'Some-7B-Instruct' says 'Instruct'"),
        ("gemma-2b-it", None, "says 'it'"),
        ("some-7b-chat-hf", None, "says 'chat'"),
        ("some-7b", "<|eot_id|>", "ends its texts with <|eot_id|>"),
        ("some-7b", "<|endoftext|>", ""),
        ("digits-chatter", None, ""),
    ],
)
def test_a_chat_model_without_a_template_is_a_caution(
    folder: Path, called: str, end: str | None, said: str
) -> None:
    named = folder.rename(folder.parent / called)
    if end is not None:
        tokenizer = AutoTokenizer.from_pretrained(named)
        tokenizer.add_special_tokens({"eos_token": end})
        tokenizer.save_pretrained(named)
    (*cautions,) = load_language(str(named)).cautions
    assert len(cautions) == bool(said)
    assert said in "".join(cautions)
