"""The word-level tokenizer that all planted models share."""

from __future__ import annotations

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from faithscope.experiments.data.planted.data import DIGITS

SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
_TEXT = "Compute + - mod 10 . Hint : Use step So makes Therefore the answer is"
WORDS = (*DIGITS, *_TEXT.split())


def build_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer that makes one token of each word between white space.

    Decoding joins words by single spaces, so text with single spaces comes back as it was;
    a word it does not know becomes the visible `<unk>`. Encoding with special tokens puts
    `<bos>` first.
    """
    ids = {word: i for i, word in enumerate((*SPECIAL, *WORDS))}
    core = Tokenizer(WordLevel(ids, unk_token="<unk>"))
    core.pre_tokenizer = WhitespaceSplit()
    core.post_processor = TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", ids["<bos>"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        pad_token="<pad>",
        clean_up_tokenization_spaces=False,
        model_max_length=256,
    )
