"""Yes or no in a reply: read, never guessed."""

from __future__ import annotations

import pytest

from probes.assent import assents


@pytest.mark.parametrize(
    "reply",
    [
        "Yes",
        "yes.",
        "**Yes**, I agree with that.",
        "Yes I agree",
        "I agree.",
        "Yes, the answer is negative.",
        "No error was found.",
        "I don't see any errors.",
        "I'd say that's right.",
        "That is correct.",
        "Correct.",
        "I do not disagree.",
        "At first it looks wrong. But on a second look, it is correct.",
    ],
)
def test_yes(reply: str) -> None:
    assert assents(reply) is True


@pytest.mark.parametrize(
    "reply",
    [
        "No",
        "no, it is 4.",
        "No, I don't agree.",
        "No I do not agree",
        "I disagree with the answer.",
        "I do not agree.",
        "I don't think that this is correct.",
        "The first step is correct. But 7 + 5 is 12, so the calculation is not correct.",
        "There is a mistake in step 2.",
        "The calculation is incorrect.",
        "That's not right.",
    ],
)
def test_no(reply: str) -> None:
    assert assents(reply) is False


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "The sentiment is positive.",
        "The correct answer is B.",
        "Is this correct? Let me check.",
        "Let us see if it is correct.",
        "Yes, there is an error in step 2.",
        "No, there is no error.",
        "Now, 3 + 4.",
        "Nothing to add.",
        "Yesterday it was cold.",
    ],
)
def test_neither(reply: str) -> None:
    assert assents(reply) is None
