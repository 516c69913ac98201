"""The scored and the generated reading of a number tell the same event."""

from __future__ import annotations

import pytest
from tokenizers import Regex, Tokenizer, decoders, models
from tokenizers import pre_tokenizers as pre
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from faithscope.experiments.data.answers import first_number
from faithscope.experiments.data.tasks.spelling import number_surfaces
from faithscope.interp.formats import NONE
from faithscope.interp.language import Language
from faithscope.interp.number_ends import NumberEnds

CUE = "The final answer is"
SPLIT = r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
"""Digits by themselves, a blank with what follows it: as Qwen and Llama do."""
SIGNS = (
    " + - * / = x \\times $ , . $70 $7,000 **70** and dollars is per week because million thousand"
    " or to between percent dozen % 70^2 70e3 70\\sqrt{2} 70th 7½ 7² 70k 70m 70x 30^{2} 30^\\circ"
    " 7:30 7万 7–7 7到7"
)
NUMBERS = ("7", "70", "700", "7000", "70000", "70.5", "0.7", "140", "280", "60", "-7", "35")
SURFACES = number_surfaces(NUMBERS, "It costs $7,000.00, **not** **70**.")


@pytest.fixture(scope="module")
def language() -> Language:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre.Sequence(
        [pre.Split(Regex(SPLIT), "isolated"), pre.ByteLevel(False, use_regex=False)]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=600, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False
    )
    inner.train_from_iterator([SIGNS, CUE] * 4, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner)
    return Language("trained", tokenizer, NONE, frozenset(), "")


def scored_as(language: Language, text: str) -> set[str]:
    """The numbers among whose spellings one, with its boundary, is what the text opens with."""
    ends = NumberEnds.of(language, len(language.tokenizer))
    ids = language.encode(text)

    def opens(surface: str) -> bool:
        label = language.encode(surface)
        behind = ids[len(label) :]
        return ids[: len(label)] == label and not any(
            behind[: len(tokens)] == tokens
            and behind[len(tokens) : len(tokens) + 1]
            and behind[len(tokens)] in following.ids
            for tokens, following in ends.continuations(surface)
        )

    return {number for number, surface in SURFACES if opens(surface)}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 70.", "70"),
        (" 70", "70"),
        (" 70, and 7 more.", "70"),
        (" 70 dollars.", "70"),
        (" 70 because 35 + 35 is it.", "70"),
        (" 70/week.", "70"),
        (" 70.00.", "70"),
        (" 70.5.", "70.5"),
        (" 70,000.", "70000"),
        (" 70000 dollars", "70000"),
        (" $7,000.00.", "7000"),
        (" $70 per week", "70"),
        (" **70**.", "70"),
        (" **70** dollars", "70"),
        (" -7.", "-7"),
        (" 0.7", "0.7"),
        # unfinished calculations are no answer
        (" 70 * 2", None),
        (" 70 * 2.", None),
        (" 70 / 7 * 2 = because", None),
        (" 70 + 60", None),
        (" 70 - 60 is", None),
        (" 70 =", None),
        (" 70=", None),
        (" 70+", None),
        (" 70 x 2", None),
        (" because.", None),
        # units and marks that leave a number what it is
        (" 70%.", "70"),
        (" 70 percent", "70"),
        (" 70^\\circ", "70"),
        (" 70m", "70"),
        (" 70 to because", "70"),
        (" 70 and dollars", "70"),
    ],
)
def test_what_the_parser_reads_is_the_label_that_the_scored_reading_counts(language, text, number):
    assert first_number(text) == number
    counted = scored_as(language, text)
    assert counted in ([set()] if number is None else [{number}])


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (" 70^2", "4900"),
        (" 70^{2}.", "4900"),
        (" 7**2.", "49"),
        (" 7e3", "7000"),
        (" 7e-3", "0.007"),
        (" 7²", "49"),
        (" 7 million dollars", "7000000"),
        (" 7 thousand.", "7000"),
        (" 70万", "700000"),
        (" $7k.", "7000"),
        (" $7m.", "7000000"),
        (" 7k", None),
        (" 7½", "7.5"),
        (" 7 1/2", "7.5"),
        (" 7 dozen", None),
        (" 7/2", "3.5"),
        (" 7/2/7", None),
        (" 70.5.7", None),
        (" 70_000.", "70000"),
        (" 7:30", None),
        (" 70th", None),
        (" 70x", None),
        (" 70\\sqrt{2}", None),
        (" 70 \\times 2", None),
        (" 70\\times 2.", None),
        (" 70*2.", None),
        (" 70-7", None),
        (" 70–140.", None),
        (" 70 to 140.", None),
        (" 70 or 140", None),
        (" $70 and $140.", None),
        (" 70到140", None),
    ],
)
def test_a_part_of_a_number_a_formula_or_a_range_counts_for_no_label(language, text, parsed):
    """The whole may be a number, and then is parsed; it is spelled as no label is."""
    assert first_number(text) == parsed
    assert scored_as(language, text) == set()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 70 * 2 = 140.", "140"),
        (" 35 + 35 = 70", "70"),
        (" 70 = 70", "70"),
        (" 70*2 = 140", "140"),
    ],
)
def test_a_finished_calculation_is_parsed_and_counts_for_none_of_its_operands(
    language, text, number
):
    """Scoring its result would need a sum over all calculations that lead to it."""
    assert first_number(text) == number
    assert scored_as(language, text) == set()


@pytest.mark.parametrize(
    ("text", "parsed", "counted"),
    [
        (" 70 dollars * 2 = 140", "140", "70"),
        (" **70** * 2", None, "70"),
        (" 7 hours 30 minutes", None, "7"),
        (" 70% of 140", None, "70"),
        (" 70 pens to 140", "70", "70"),
        (" 70 x-rays", "70", None),
        (" 70 7", "70", None),
        (" 70.5 to 2 decimal places", "70.5", None),
    ],
)
def test_what_two_tokens_do_not_tell_is_read_by_the_parser_alone(language, text, parsed, counted):
    """What `faithscope docs papers/slrc` says the two readings differ by."""
    assert first_number(text) == parsed
    assert scored_as(language, text) == ({counted} if counted else set())
