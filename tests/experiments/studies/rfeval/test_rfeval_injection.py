"""r′ as a model's own tokens, family by family, and the cut of what comes after it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chat_tokenizers import CHAT, MARKED, tokenizer
from tiny_models import tiny

from faithscope.experiments.studies.rfeval.subjects.injection import (
    Forced,
    forced,
    multi_turn,
    output_of,
)
from faithscope.interp.formats import detect_format
from faithscope.interp.model import Model

R_PRIME = "Okay, let’s see: 3 ≤ 4,\n\nso <think> it is 5."


def family(name: str) -> Model:
    tokens = tokenizer(name)
    base = tiny("llama", vocab_size=len(tokens) + 8)
    return replace(base, tokenizer=tokens, format=detect_format(tokens))


@pytest.mark.parametrize("name", CHAT)
def test_r_prime_stands_right_after_the_opener(name: str) -> None:
    model = family(name)
    start, bare = forced(model, "What is 2 + 3?", R_PRIME), forced(model, "What is 2 + 3?")
    assert start.ids[: len(bare.ids)] == bare.ids
    assert bare.r_prime_ids == ()
    text = model.decode(start.ids)
    assert text == f"{model.decode(bare.ids)}{R_PRIME}"
    if name in MARKED:
        assert model.decode(bare.ids).endswith(model.format.opener)
        assert start.prompt.opener_in_prompt
    # the marks that r′ spells are text: the only opener is the prompt's
    spelled = model.tokenizer.convert_tokens_to_ids("<think>")
    assert spelled not in start.r_prime_ids


@pytest.mark.parametrize("name", MARKED)
def test_what_is_written_after_it_is_cut_between_tokens(name: str) -> None:
    model = family(name)
    start = forced(model, "What is 2 + 3?", R_PRIME)
    closer = model.prompt("x", thinking=True).format.closer
    written = (
        *model.encode("No, 2 + 3 is 5."),
        *model.tokenizer.encode(closer, add_special_tokens=False),
        *model.encode("\n\nSo it is five.\n\n**Answer:** 5"),
    )
    found = output_of(model, start, written)
    assert (found.reasoning, found.explanation, found.answer) == (
        "No, 2 + 3 is 5.",
        "So it is five.",
        "5",
    )
    assert found.outcome == "complete"
    cut = output_of(model, start, written[:4], finished=False)
    assert (cut.outcome, cut.answer) == ("truncated", "")
    assert output_of(model, start, written[:4]).outcome == "unclosed"
    assert output_of(model, start, ()).outcome == "empty"


def test_a_model_without_marks_reasons_in_prose() -> None:
    model = tiny("llama")
    start = forced(model, "What?", "So it is 4.")
    assert model.decode(start.r_prime_ids) == "So it is 4."
    found = output_of(model, start, model.encode(" Wait, no.\nAnswer: 5"))
    assert (found.reasoning, found.answer) == ("Wait, no.", "5")


def test_a_closed_model_is_told_r_prime_as_its_earlier_turn() -> None:
    turns = multi_turn("Q", "r")
    assert [t["role"] for t in turns] == ["user", "assistant", "user"]
    assert [t["content"] for t in turns] == ["Q", "r", "Continue the reasoning."]


def test_a_tokenizer_that_changes_r_prime_is_refused() -> None:
    model = family(MARKED[0])
    broken = replace(model)
    object.__setattr__(broken, "encode", lambda text: model.encode(text.lower()))
    with pytest.raises(ValueError, match="does not read r′ back"):
        forced(broken, "What?", "Okay")
    assert isinstance(forced(broken, "what?", "okay"), Forced)
