"""Chains given as texts: every step its own tokens, whatever stands beside it."""

from __future__ import annotations

import pytest

from faithscope.interventions import (
    NotWritable,
    Origin,
    Question,
    Trace,
    from_steps,
    remove_step,
    written,
)

QUESTION = Question("q", "made", "How many?", "number")
STEPS = ("So 3 + 4 makes 7.\n", "Then 7 - 2 makes 5.\n", "Right.\n", "It is 5.")


def chain(coder, steps: tuple[str, ...] = STEPS) -> Trace:
    prompt = coder.encode("How many?\n")
    origin = Origin(model="made")
    return from_steps(QUESTION, prompt, steps, coder.encode, coder.pieces, origin=origin)


def test_steps_are_the_texts_given_and_tile_the_tokens(coder) -> None:
    trace = chain(coder)
    assert tuple(s.text for s in trace.steps) == STEPS
    assert trace.reasoning_text == "".join(STEPS)
    assert [s.index for s in trace.steps] == [0, 1, 2, 3]
    # "Right." is shorter than what a model's own prose would have to be to count
    assert trace.counted_steps == trace.steps
    assert trace.origin.model == "made"
    for step in trace.steps:
        assert trace.step_ids(step) == coder.encode(step.text)
        assert trace.reasoning_text[slice(*step.chars)] == step.text


def test_an_exchanged_step_leaves_every_other_token(coder) -> None:
    one = chain(coder)
    other = chain(coder, (STEPS[0], "Then 7 + 2 makes 9.\n", *STEPS[2:]))
    for a, b in zip(one.steps, other.steps, strict=True):
        assert (one.step_ids(a) == other.step_ids(b)) == (a.index != 1)
    assert remove_step(one, 1).reasoning_ids == remove_step(other, 1).reasoning_ids


def test_characters_of_several_tokens(coder) -> None:
    steps = ("Dâ„ é.\n", "\u6570\u5b66 7.\n")
    trace = chain(coder, steps)
    assert tuple(s.text for s in trace.steps) == steps


def test_a_step_without_text_is_refused(coder) -> None:
    with pytest.raises(ValueError, match="step 1 of 2 is ' \\\\n'; give steps with text"):
        chain(coder, ("So 3.", " \n"))


def test_words_that_a_tokenizer_lacks_are_refused(word_coder) -> None:
    with pytest.raises(NotWritable, match=r"chain of 'q': .*no ids for step 0 \('Quux"):
        chain(word_coder, ("Quux \u6570.",))


def test_nothing_is_written_as_nothing(coder) -> None:
    assert written("", (1, 2), coder.encode, coder.pieces) == ((), ())
