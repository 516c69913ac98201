"""Text that only a normalizer makes a control token of stays text."""

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from faithscope.interp.control import controls, encode_text
from faithscope.interp.formats import detect_format
from faithscope.interp.prompts import render

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)


def tokenizer(normalizer: normalizers.Normalizer) -> PreTrainedTokenizerFast:
    letters = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab=letters, merges=[]))
    inner.normalizer = normalizer
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    ended = AddedToken("<|call|>", normalized=True, special=True)
    inner.add_special_tokens(["<|im_start|>", "<|im_end|>", ended])
    inner.add_tokens([AddedToken("<think>"), AddedToken("</think>")])
    tok = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>")
    tok.chat_template = TEMPLATE
    return tok


@pytest.mark.parametrize(
    ("normalizer", "text"),
    [
        (normalizers.NFKC(), "＜think＞x＜/think＞"),
        (normalizers.NFKC(), "﹤think﹥ and ＜／think＞"),
        (normalizers.NFKC(), "＜|call|＞<think>"),
        (normalizers.Lowercase(), "</THINK><|CALL|>"),
        (normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]), "</thínk>"),
        (normalizers.Replace("#", ""), "</th#ink>"),
    ],
)
def test_a_control_token_behind_a_normalizer_is_text(normalizer, text):
    tok = tokenizer(normalizer)
    control = set(controls(tok).ids.values())
    assert control & set(tok(text, add_special_tokens=False)["input_ids"])
    assert not control & set(encode_text(tok, text))
    fmt = detect_format(tok)
    ids, harmless = (
        render(tok, fmt, [{"role": "user", "content": f"Is it {word} here?"}]).ids
        for word in (text, "so")
    )
    assert [i for i in ids if i in control] == [i for i in harmless if i in control]
