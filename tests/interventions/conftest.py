"""A real byte-level BPE tokenizer, trained on the spot, whose characters span tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from faithscope.interventions import Question, Trace, from_ids

CORPUS = (
    "So 3 + 4 makes 7. Then 7 - 2 makes 5. The acting is terrible but the story is good.",
    "Step 1: we add 12 and 30. Step 2: the total is 42.\r\n\r\nTherefore, the answer is 42.",
    "It is positive. It is negative. More or less, an increase of the price to $1,200.50.",
)


@dataclass(frozen=True)
class Coder:
    """Encodes, and tells the text of every id, as `interp.Model` does."""

    tokenizer: Tokenizer

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        out: list[str] = []
        before = ""
        for i in range(len(ids)):
            text = self.tokenizer.decode(list(ids[: i + 1]), skip_special_tokens=False)
            if text.endswith("\ufffd"):
                out.append("")
                continue
            out.append(text[len(before) :])
            before = text
        return tuple(out)


@pytest.fixture(scope="session")
def coder() -> Coder:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    return Coder(tokenizer)


@pytest.fixture(scope="session", params=["always", "first", "words"])
def word_coder(request: pytest.FixtureRequest) -> Coder:
    """Tokenizers that mark word beginnings, and lose blanks when they decode from the middle."""
    if request.param == "words":
        words = sorted({word for text in CORPUS for word in text.split()} | set("0123456789."))
        tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, words[0]))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        return Coder(tokenizer)
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    marked = {"replacement": "▁", "prepend_scheme": request.param}
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(**marked)
    tokenizer.decoder = decoders.Metaspace(**marked)
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator([*CORPUS * 3, "0123456789"], trainer)
    return Coder(tokenizer)


@pytest.fixture(scope="session")
def make_trace(coder: Coder) -> Callable[..., Trace]:
    def make(text: str, **settings: object) -> Trace:
        ids = coder.encode(text)
        question = Question(id="q1", dataset="made", text="How many?", kind="number", gold="5")
        return from_ids(question, coder.encode("How many?"), ids, coder.pieces(ids), **settings)

    return make
