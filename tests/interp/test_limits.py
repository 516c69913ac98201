"""Rows of one call that may grow by different lengths, and what a longer text costs."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from chat_tokenizers import TEXT, tokenizer
from tiny_models import byte_tokenizer, tiny
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from faithscope.interp.detokenise import GrowingText, decode
from faithscope.interp.errors import UserError
from faithscope.interp.model import Model

PREFIXES = [tuple(range(1, n)) for n in (30, 12, 12, 50)]
LIMITS = [3, 9, 5, 0]


@pytest.mark.in_time(8)
def test_every_prefix_is_continued_up_to_its_own_limit(tree_model: Model):
    labels = [[[1, 2], [3]]] * len(PREFIXES)
    together = tree_model.ask(PREFIXES, labels, LIMITS)
    for prefix, limit, answered in zip(PREFIXES, LIMITS, together, strict=True):
        (alone,) = tree_model.ask([prefix], labels[:1], limit)
        assert answered.generated == alone.generated
        assert answered.log_probs == pytest.approx(alone.log_probs, abs=1e-3)
    assert [a.generated and len(a.generated.ids) for a in together] == [3, 9, 5, None]
    loop = tree_model.ask(PREFIXES, labels, LIMITS, execution="loop")
    assert [a.generated for a in loop] == [a.generated for a in together]


def test_a_prefix_needs_room_for_its_own_limit_alone():
    model = tiny("llama", max_position_embeddings=64)
    long, short = tuple(range(60)), tuple(range(10))
    answered = model.ask([long, short], None, [4, 40])
    assert [len(a.generated.ids) for a in answered if a.generated] == [4, 40]
    with pytest.raises(UserError, match="65 tokens does not fit its 64 positions"):
        model.ask([long, short], None, [5, 40])
    with pytest.raises(ValueError, match="2 prompts but 1 limits"):
        model.ask([long, short], None, [5])


def words() -> PreTrainedTokenizerFast:
    """Marks word beginnings and strips the first, with bytes for what it does not know."""
    inner = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    special = ["<unk>", *(f"<0x{i:02X}>" for i in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=special, show_progress=False)
    inner.train_from_iterator(TEXT, trainer)
    # as bytes, not as special tokens: those are left out of what a decoder joins
    inner = Tokenizer.from_str(inner.to_str().replace('"special":true', '"special":false'))
    return PreTrainedTokenizerFast(tokenizer_object=inner)


@pytest.mark.parametrize("make", [byte_tokenizer, words, lambda: tokenizer("qwen3")])
def test_the_growing_text_is_what_decoding_everything_gives(make):
    tok = make()
    written = "Two plus three 好好学习 😀👩‍👩‍👧 makes\n\n five,  naïve \ufffd so.\t"
    draw = random.Random(0)
    ids = tok(written, add_special_tokens=False)["input_ids"]
    cases = [ids, [], [i for i in ids for _ in range(2)]]
    cases += [draw.choices(range(len(tok)), k=60) for _ in range(40)]
    # whole characters with a broken one here and there
    cases += [[i for i in ids if draw.random() > 0.1] for _ in range(40)]
    for case in cases:
        text = GrowingText(tok)
        for n, token in enumerate(case, 1):
            assert text.add(token) == decode(tok, case[:n])


@pytest.mark.parametrize("execution", ["packed", "loop"])
def test_a_stop_test_costs_no_more_late_than_early(execution, monkeypatch):
    model = tiny("llama")
    # random bytes are mostly no characters; of letters alone the text grows token by token
    letters = torch.full((256,), -1e9)
    letters[list(model.encode("abcdefgh "))] = 0
    model.hf.register_forward_hook(
        lambda module, args, out: out | {"logits": out.logits + letters}  # pyright: ignore
    )
    sizes: list[int] = []
    real = type(model.tokenizer).decode

    def counted(self: Any, token_ids: list[int], **settings: Any) -> Any:
        sizes.append(len(token_ids))
        return real(self, token_ids, **settings)

    monkeypatch.setattr(type(model.tokenizer), "decode", counted)
    n = 120
    (answered,) = model.ask([[1, 2, 3]], None, n, stop=lambda text: False, execution=execution)
    assert answered.generated is not None
    assert len(answered.generated.ids) == n
    assert sum(sizes) <= 8 * n
