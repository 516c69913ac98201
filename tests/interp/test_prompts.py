"""Prompts token in, token out, held to the families' real templates.

The expected strings are written by hand, from what the families' documents show.
"""

import copy
import hashlib
import re
from collections import Counter

import pytest
from chat_tokenizers import CHAT, FAMILIES, MARKED, TEMPLATES, tokenizer
from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerBase

from faithscope.interp import sources
from faithscope.interp.control import controls, encode_text
from faithscope.interp.errors import UserError
from faithscope.interp.formats import detect_format
from faithscope.interp.prompts import end_ids, render, render_direct, render_raw, template_hash

QUESTION = [{"role": "user", "content": "What is 2 + 3?"}]
BRIEF = [{"role": "system", "content": "Be brief."}, *QUESTION]
REASONING = "Two plus three makes 5."

READS = {
    "llama3_1": (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
        "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nWhat is 2 + 3?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nTwo plus three makes 5."
    ),
    "qwen2_5": (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n"
        "<|im_start|>assistant\nTwo plus three makes 5."
    ),
    "qwen3": (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\nTwo plus three makes 5."
    ),
    "deepseek_r1_distill": (
        "<｜begin▁of▁sentence｜>Be brief.<｜User｜>What is 2 + 3?<｜Assistant｜><think>\n"
        "Two plus three makes 5."
    ),
    "mistral_nemo": "<s>[INST]Be brief.\n\nWhat is 2 + 3?[/INST]Two plus three makes 5.",
    "ministral3_reasoning": (
        "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]What is 2 + 3?[/INST][THINK]"
        "Two plus three makes 5."
    ),
    "magistral": (
        "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]What is 2 + 3?[/INST]<think>"
        "Two plus three makes 5."
    ),
    "nemotron_super_v1": (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nWhat is 2 + 3?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n<think>\nTwo plus three makes 5."
    ),
    "nemotron_super_v1_5": (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.\n\n<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nWhat is 2 + 3?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n<think>\nTwo plus three makes 5."
    ),
    # Its tokens swallow the line break after them and a space comes before each stretch.
    "phi3_5": (
        "<|system|> Be brief.<|end|><|user|> What is 2 + 3?<|end|><|assistant|>"
        "Two plus three makes 5."
    ),
    "phi4": (
        "<|im_start|>system<|im_sep|>Be brief.<|im_end|><|im_start|>user<|im_sep|>"
        "What is 2 + 3?<|im_end|><|im_start|>assistant<|im_sep|>Two plus three makes 5."
    ),
    "gemma2": (
        "<bos><start_of_turn>user\nBe brief.\n\nWhat is 2 + 3?<end_of_turn>\n"
        "<start_of_turn>model\nTwo plus three makes 5."
    ),
    "gpt_oss": (
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\nCurrent date: 2024-07-26\n\nReasoning: medium\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every "
        "message.<|end|><|start|>developer<|message|># Instructions\n\nBe brief.\n\n<|end|>"
        "<|start|>user<|message|>What is 2 + 3?<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>Two plus three makes 5."
    ),
    "smollm3": (
        "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n"
        "Reasoning Mode: /think\n\n## Custom Instructions\n\nBe brief.\n\n<|im_end|>\n"
        "<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n<|im_start|>assistant\n<think>\n"
        "Two plus three makes 5."
    ),
    "gpt2": "Be brief.\n\nWhat is 2 + 3?\nTwo plus three makes 5.",
    "llama2_base": "<s> Be brief.\n\nWhat is 2 + 3?\nTwo plus three makes 5.",
}
SAME_PROMPTS = {
    "llama3_1": ("llama3_2",),
    "qwen2_5": (
        "qwen3_instruct_2507",
        "mimo",
        "mimo_spelled",
        "smollm2",
    ),
    "qwen3": ("qwq",),
    "deepseek_r1_distill": (
        "deepseek_r1_distill_llama",
        "deepseek_r1_distill_qwen",
        "deepseek_r1_distill_older",
    ),
    "mistral_nemo": ("mistral_nemo_sp",),
    "gemma2": ("gemma3",),
    "smollm3": ("smollm3_spelled",),
}
READS |= {other: READS[name] for name, others in SAME_PROMPTS.items() for other in others}

FORMATS = {
    "think_tags": {
        *("qwen3", "qwq", "smollm3", "smollm3_spelled", "deepseek_r1_distill"),
        *("deepseek_r1_distill_llama", "deepseek_r1_distill_qwen", "deepseek_r1_distill_older"),
        *("magistral", "nemotron_super_v1", "nemotron_super_v1_5"),
    },
    "mistral_think": {"ministral3_reasoning"},
    "harmony": {"gpt_oss"},
}
BY_TEMPLATE = {
    *("qwq", "deepseek_r1_distill", "deepseek_r1_distill_llama", "deepseek_r1_distill_qwen"),
}
SWITCHABLE = {"qwen3", "qwq", "smollm3", "smollm3_spelled", "deepseek_r1_distill_qwen"}


def spelled_ids(tok: PreTrainedTokenizerBase, ids: tuple[int, ...]) -> Counter[str]:
    """How often each control token is among the ids."""
    names = {i: t for t, i in controls(tok).ids.items()}
    return Counter(names[i] for i in ids if i in names)


def with_template(tok: PreTrainedTokenizerBase, template: str) -> PreTrainedTokenizerBase:
    out = copy.deepcopy(tok)
    out.chat_template = template
    return out


@pytest.mark.parametrize("name", FAMILIES)
def test_prompt_and_injected_reasoning_read_as_written(name: str):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    prompt = render(tok, fmt, BRIEF, thinking=True if fmt.marks else None)
    ids = prompt.ids + encode_text(tok, REASONING)
    assert tok.decode(ids, skip_special_tokens=False) == READS[name]
    assert prompt.text == tok.decode(prompt.ids) == READS[name].removesuffix(REASONING)
    assert prompt.opener_in_prompt == fmt.marks
    assert prompt.opener_by_template == (name in BY_TEMPLATE)
    assert (prompt.opener, prompt.closer) == (fmt.opener, fmt.closer)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_format_is_detected(name: str):
    expected = next((f for f, names in FORMATS.items() if name in names), "none")
    assert detect_format(tokenizer(name)).name == expected


CONVERSATION = [
    {"role": "user", "content": "Is 1 + 1 = 2?"},
    {"role": "assistant", "content": "Yes, it is."},
    {"role": "user", "content": "And  what\tis 2 + 3?\n\nThink about <b>it</b> 🙂 é\r\n- now"},
]


@pytest.mark.parametrize("name", CHAT)
@pytest.mark.parametrize("messages", [QUESTION, CONVERSATION], ids=["single", "several"])
def test_ids_are_those_of_the_template(name: str, messages: list[dict[str, str]]):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    prompt = render(tok, fmt, messages)
    if name in {"llama3_2", "gpt_oss"}:
        text = tok.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        dates = r"\d\d [A-Z][a-z]{2} 20\d\d|20\d\d-\d\d-\d\d"
        pinned = re.sub(dates, "26 Jul 2024" if name == "llama3_2" else "2024-07-26", text)
        plain = tok(pinned, add_special_tokens=False)["input_ids"]
    else:
        plain = tok.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    opener = prompt.ids[len(plain) :]
    assert list(prompt.ids[: len(plain)]) == plain
    assert tok.decode(opener) == ("" if prompt.opener_by_template else prompt.opener)


@pytest.mark.parametrize("name", FAMILIES)
def test_control_strings_in_a_question_are_text(name: str):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    tokens = [t for t in controls(tok).ids if not t.isspace()]
    hostile = f"Is {' or '.join(tokens)}2 + 3?{tokens[-1]}"
    message = [{"role": "user", "content": hostile}]
    prompt = render(tok, fmt, message)
    harmless = render(tok, fmt, [{"role": "user", "content": "Is it 2 + 3?"}])
    assert spelled_ids(tok, prompt.ids) == spelled_ids(tok, harmless.ids)
    assert hostile in prompt.text
    assert prompt.text.replace(hostile, "Is it 2 + 3?") == harmless.text


@pytest.mark.parametrize("name", FAMILIES)
def test_masking_changes_no_token_of_the_rest(name: str):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    token = next(iter(controls(tok).ids))
    one = render(tok, fmt, [{"role": "user", "content": f"Two plus three. {token}"}])
    two = render(tok, fmt, [{"role": "user", "content": "Two plus three. <im_end>"}])
    shared = [a == b for a, b in zip(one.ids, two.ids, strict=False)].index(False)
    assert tok.decode(two.ids[:shared]).rstrip(" <[").endswith("Two plus three.")


@pytest.mark.parametrize("name", FAMILIES)
def test_text_is_encoded_as_it_continues_a_text(name: str):
    tok = tokenizer(name)
    head = encode_text(tok, "The answer is 5", "nothing")
    for text in ("5", " 5", "\nSo it is 5.", "\n\nSo", "  So", "é🙂", "</think>\n", "<think> a"):
        ids = encode_text(tok, text)
        assert tok.decode(head + ids) == "The answer is 5" + text
        assert not spelled_ids(tok, ids)
    assert encode_text(tok, "") == ()


@pytest.mark.parametrize("name", [n for n in FAMILIES if FAMILIES[n].kind == "bytes"])
def test_plain_text_has_the_ids_of_the_tokenizer(name: str):
    tok = tokenizer(name)
    for text in ("Two plus three makes 5.\nSo", " 10", "\n\nThe answer"):
        assert list(encode_text(tok, text)) == tok(text, add_special_tokens=False)["input_ids"]


NO_THINK = {
    "qwen3": "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "qwq": "<|im_start|>assistant\n<think>\n</think>",
    "smollm3": "<|im_start|>assistant\n<think>\n\n</think>\n",
    "smollm3_spelled": "<|im_start|>assistant\n<think>\n\n</think>\n",
    "deepseek_r1_distill_qwen": "<｜Assistant｜><think>\n</think>",
}
CLOSED_AT_ONCE = {
    "deepseek_r1_distill": "<｜Assistant｜><think>\n</think>",
    "deepseek_r1_distill_llama": "<｜Assistant｜><think>\n</think>",
    "deepseek_r1_distill_older": "<｜Assistant｜><think>\n</think>",
    "ministral3_reasoning": "[/INST][THINK][/THINK]",
    "magistral": "[/INST]<think></think>",
    "nemotron_super_v1": "assistant<|end_header_id|>\n\n<think>\n</think>",
    "nemotron_super_v1_5": "assistant<|end_header_id|>\n\n<think>\n</think>",
    "gpt_oss": (
        "<|start|>assistant<|channel|>analysis<|message|><|end|>"
        "<|start|>assistant<|channel|>final<|message|>"
    ),
}


@pytest.mark.parametrize("name", MARKED)
def test_thinking_is_turned_off_where_the_template_can(name: str):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    direct = render_direct(tok, fmt, QUESTION)
    assert direct.text.endswith((NO_THINK | CLOSED_AT_ONCE)[name])
    assert (direct.opener, direct.closer, direct.opener_in_prompt) == ("", "", False)
    if name in SWITCHABLE:
        assert render(tok, fmt, QUESTION, thinking=False) == direct
    else:
        with pytest.raises(UserError, match="no form without reasoning"):
            render(tok, fmt, QUESTION, thinking=False)


@pytest.mark.parametrize("name", MARKED)
def test_unasked_the_template_decides(name: str):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    default = render(tok, fmt, QUESTION)
    off = name in {"qwq", "deepseek_r1_distill_qwen"}  # "not enable_thinking" where unset
    assert default == (
        render(tok, fmt, QUESTION, thinking=False)
        if off
        else render(tok, fmt, QUESTION, thinking=True)
    )


def test_a_model_without_marks_cannot_be_told_to_think():
    tok = tokenizer("qwen2_5")
    with pytest.raises(UserError, match="marks no reasoning"):
        render(tok, detect_format(tok), QUESTION, thinking=True)
    assert render(tok, detect_format(tok), QUESTION, thinking=False) == render(
        tok, detect_format(tok), QUESTION
    )


def test_a_system_message_that_overrules_the_switch_is_an_error():
    tok = tokenizer("smollm3")
    fmt = detect_format(tok)
    off = [{"role": "system", "content": "Be brief. /no_think"}, *QUESTION]
    on = [{"role": "system", "content": "Be brief. /think"}, *QUESTION]
    assert not render(tok, fmt, off).opener_in_prompt
    with pytest.raises(UserError, match="the messages turn it off themselves"):
        render(tok, fmt, off, thinking=True)
    with pytest.raises(UserError, match="the messages turn it on themselves"):
        render(tok, fmt, on, thinking=False)


def test_a_reasoning_effort_stands_in_the_prompt_of_a_template_that_has_one():
    tok = tokenizer("gpt_oss")
    fmt = detect_format(tok)
    high = render(tok, fmt, BRIEF, thinking=True, effort="high")
    assert "\n\nReasoning: high\n\n" in high.text
    medium = render(tok, fmt, BRIEF, thinking=True)
    assert high.text.replace("Reasoning: high", "Reasoning: medium") == medium.text
    tok = tokenizer("qwen3")
    with pytest.raises(UserError, match="effort='high', but this model's chat template knows no"):
        render(tok, detect_format(tok), QUESTION, effort="high")


def test_a_template_that_cannot_think_says_so():
    tok = tokenizer("qwen3")
    fmt = detect_format(tok)
    shut = with_template(tok, "{{ messages[0].content }}<think>\n</think>")
    with pytest.raises(UserError, match="always closes the reasoning"):
        render(shut, fmt, QUESTION, thinking=True)


def test_earlier_reasoning_is_stripped_by_the_template_and_reopened_once():
    told = [
        {"role": "user", "content": "Is 1 + 1 = 2?"},
        {"role": "assistant", "content": "<think>\nOne and one.\n</think>\n\nYes."},
        *QUESTION,
    ]
    reads = {
        "qwen3": (
            "<|im_start|>user\nIs 1 + 1 = 2?<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n"
            "<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n<|im_start|>assistant\n<think>\n"
        ),
        "deepseek_r1_distill": (
            "<｜begin▁of▁sentence｜><｜User｜>Is 1 + 1 = 2?<｜Assistant｜>\n\nYes."
            "<｜end▁of▁sentence｜><｜User｜>What is 2 + 3?<｜Assistant｜><think>\n"
        ),
    }
    for name, text in reads.items():
        tok = tokenizer(name)
        prompt = render(tok, detect_format(tok), told)
        assert prompt.text == text
        assert spelled_ids(tok, prompt.ids)["<think>"] == 1


def test_reasoning_tags_count_in_system_messages_alone():
    tok = tokenizer("ministral3_reasoning")
    words = "First [THINK]draft[/THINK] then </s> answer."
    system = render(tok, detect_format(tok), [{"role": "system", "content": words}, *QUESTION])
    user = render(tok, detect_format(tok), [{"role": "user", "content": words}])
    assert system.text.count("[THINK]") == spelled_ids(tok, system.ids)["[THINK]"] == 2
    assert spelled_ids(tok, system.ids)["</s>"] == 0
    # one in the template's default system prompt, one that opens the reasoning
    assert spelled_ids(tok, user.ids)["[THINK]"] == 2
    assert user.text.count("[THINK]") == 3


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("llama3_1", {"<|eot_id|>"}),
        ("qwen3", {"<|im_end|>"}),
        ("deepseek_r1_distill", {"<｜end▁of▁sentence｜>"}),
        ("ministral3_reasoning", {"</s>"}),
        ("phi3_5", {"<|endoftext|>", "<|end|>"}),
        ("gemma2", {"<eos>", "<end_of_turn>"}),
        ("gpt_oss", {"<|return|>"}),
        ("gpt2", {"<|endoftext|>"}),
    ],
)
def test_the_turn_ends_where_the_template_ends_it(name: str, tokens: set[str]):
    tok = tokenizer(name)
    assert end_ids(tok, None) == {tok.convert_tokens_to_ids(t) for t in tokens}


def test_the_generation_config_adds_its_own_ends():
    tok = tokenizer("qwen3")
    named = end_ids(tok, GenerationConfig(eos_token_id=[7, 9]))
    assert named == {7, 9, tok.convert_tokens_to_ids("<|im_end|>")}


def test_a_base_model_reads_the_text_as_it_stands():
    tok = tokenizer("gpt2")
    fmt = detect_format(tok)
    shots = [
        {"role": "user", "content": "Q: 1 + 1\nA:"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "Q: 2 + 3\nA: "},
    ]
    assert render(tok, fmt, shots).text == "Q: 1 + 1\nA:\n\n2\n\nQ: 2 + 3\nA: "
    prompt = render(tok, fmt, QUESTION)
    assert (prompt.text, prompt.template_hash) == ("What is 2 + 3?\n", "plain")


def test_the_template_is_known_by_its_hash():
    content = (TEMPLATES / "qwen3.jinja").read_bytes()
    assert template_hash(tokenizer("qwen3")) == hashlib.sha256(content).hexdigest()[:16]


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], "must end with a user turn"),
        ([*QUESTION, {"role": "assistant", "content": "<think>\nFirst"}], "append their token ids"),
        ([{"role": "tool", "content": "5"}], r"messages\[0\]: role 'tool'"),
        ([*QUESTION, {"role": "system", "content": "a"}], r"messages\[1\]: role 'system'"),
        ([{"role": "user", "content": None}], r"messages\[0\]: content None is not text"),
        (QUESTION * 2, "refuses messages with the roles user, user: Conversation roles must"),
    ],
)
def test_messages_that_cannot_be_rendered_are_named(messages: list, error: str):
    tok = tokenizer("gemma2")
    with pytest.raises(UserError, match=error):
        render(tok, detect_format(tok), messages)


def test_harmony_without_its_tokens_is_refused():
    tok = with_template(tokenizer("qwen3"), tokenizer("gpt_oss").chat_template)
    with pytest.raises(UserError, match=r"gpt_oss: .* no token <\|channel\|>, <\|end\|>"):
        detect_format(tok, "gpt_oss")


@pytest.mark.parametrize(
    "name",
    [
        "smollm2-135m",
        pytest.param("qwen2.5-coder-0.5b", marks=pytest.mark.slow),
        pytest.param("gemma3-270m", marks=pytest.mark.slow),
    ],
)
def test_real_tokenizers_keep_control_strings_as_text(name: str):
    folders = sorted((sources.cache_dir() / "converted").glob(f"{name}-*/tokenizer.json"))
    if not folders:
        pytest.skip(f"{name} is not in the cache; `faithscope fetch {name}` puts it there")
    tok = AutoTokenizer.from_pretrained(folders[-1].parent)
    fmt = detect_format(tok)
    for content in ("Is it <|im_end|> or <eos> or </think>?\n\nNow.", "Plain  words, 10 é🙂"):
        prompt = render(tok, fmt, [{"role": "user", "content": content}])
        assert content in prompt.text
    plain = [{"role": "user", "content": "Plain  words, 10 é🙂"}]
    if tok.chat_template:
        assert list(render(tok, fmt, plain).ids) == tok.apply_chat_template(
            plain, add_generation_prompt=True, return_dict=False
        )
        assert tok.convert_tokens_to_ids("<|im_end|>") in end_ids(tok, None)


@pytest.mark.parametrize("name", CHAT)
def test_a_prompt_that_was_rendered_elsewhere_has_the_same_ids(name: str) -> None:
    tok = tokenizer(name)
    fmt = detect_format(tok)
    rendered = render(tok, fmt, QUESTION)
    text = rendered.text
    if rendered.opener_in_prompt and not rendered.opener_by_template:
        text = text.removesuffix(rendered.opener)
    raw = render_raw(tok, fmt, text)
    assert tok.decode(raw.ids) == text
    assert (raw.format, raw.opener_in_prompt) == (rendered.format, rendered.opener_by_template)
    # what is put in the model's mouth is one text with what stands before it
    for prompt in (render(tok, fmt, QUESTION, prefix="Let's"), render_raw(tok, fmt, text, "Let's")):
        # Phi's control tokens swallow the white space after them
        assert prompt.text.replace(" ", "") == f"{text}Let's".replace(" ", "")
        assert prompt.format.marks == rendered.opener_by_template
    if fmt.marks:
        before = text.removesuffix(fmt.closer).removesuffix(fmt.opener)
        opened = [
            render(tok, fmt, QUESTION, prefix=f"{fmt.opener}Okay"),
            render_raw(tok, fmt, before, f"{fmt.opener}Okay"),
        ]
        assert opened[0].ids == opened[1].ids
        assert opened[0].text == f"{before}{fmt.opener}Okay"
        assert all(p.format == fmt and p.opener_in_prompt for p in opened)
        shut = render(tok, fmt, QUESTION, prefix=f"{fmt.opener}{fmt.closer}\n\nSo")
        assert not shut.format.marks
        with pytest.raises(UserError, match="thinking=True"):
            render(tok, fmt, QUESTION, thinking=True, prefix=f"{fmt.opener}{fmt.closer}")


def test_harmonys_final_channel_skips_the_reasoning() -> None:
    tok = tokenizer("gpt_oss")
    prompt = render(tok, detect_format(tok), QUESTION, prefix="<|channel|>final<|message|>")
    assert prompt.text.endswith("<|start|>assistant<|channel|>final<|message|>")
    assert prompt.ids.count(controls(tok).ids["<|channel|>"]) == 1
    assert not prompt.format.marks


def test_a_prompt_rendered_for_another_family_is_refused() -> None:
    tok = tokenizer("qwen3")
    with pytest.raises(UserError, match=r"begin_of_text.*rendered for another"):
        render_raw(tok, detect_format(tok), READS["llama3_1"])
