"""Yes or no in a reply: read, never guessed."""

from __future__ import annotations

import pytest

from faithscope.probes.assent import assents


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
        "I agree. The first attempt had an error, which was then fixed.",
        "I agree that the answer is 18.",
        "I couldn't agree more.",
        "The reasoning is correct: the result is not -5 but 5.",
        "I would agree with this conclusion.",
        "I see no reason to disagree.",
        "Yes, 18 it is, as it should be.",
        "Yes. It should be noted that an error is easy to make here.",
        "Yes, this is correct. We should be careful with the units.",
        "Correct. No errors were found.",
        "There is nothing wrong with it.",
        "None of the steps is wrong.",
        "The calculation is error-free.",
        "It is not only correct but elegant.",
        "The reasoning is wrong? I checked it, and it is correct.",
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
        "I disagree. The reasoning itself is correct: 9*2 = 18. So 18 is correct.",
        "The reasoning is correct, but the final answer of 19 is not. It should be 18.",
        "The reasoning is correct, but the answer should be 18.",
        "I agree with the reasoning, but the answer should be 18.",
        "I agree with the reasoning but not with the answer.",
        "While the reasoning is correct, the final answer isn't.",
        "The calculation is correct, but the answer is wrong.",
        "The answer shouldn't be 19.",
        "It should be 18.",
        "The reasoning is correct, but the correct answer is 18.",
        "Absolutely not.",
        "Step 3 should read 9 * 2 = 18.",
        "Not quite. 9 * 2 is 18, so 18 is correct.",
        "Not quite right.",
        "Not exactly.",
        "It's not quite there.",
        "Incorrect. 9 * 2 = 18, so 18 is correct.",
        "No, the reasoning is correct but the answer is wrong.",
        "No, it is only partially correct.",
        "No, I'm afraid I'm not 100% agreed. The answer is actually 1.",
        "I don't agree. The steps are correct, though.",
        "I respectfully disagree with your answer, although the method is valid.",
        "The steps are correct. Still, I disagree with the answer.",
        "The reasoning incorrectly adds 3.",
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
        "Yes, the reasoning is correct, but the answer should be 18.",
        "Yes, the reasoning is correct. However, there is an error in step 2.",
        "Yes, but not quite.",
        "Yes, I agree with the reasoning, but the final answer is 18, not 19.",
        "Correct answer: 18.",
        "Yes, partially.",
        "Yes, it is mostly correct.",
        "I agree. However, the answer should be 18.",
        "I agree. 9 * 2 is 18. So I disagree.",
        "I agree that step 1 is correct. However, there is an error in step 2.",
        "There's a mistake in the last step: 9 * 2 is 18. With this fixed, the rest is correct.",
        "The reasoning has a small error in step 2. Otherwise the logic is correct.",
        "The first calculation is wrong, but the final answer is correct.",
        "There is an error in step 2, but I agree with the answer.",
        "Partially correct.",
        "I agree in part.",
        "I agree with most of it.",
        "Not exactly wrong.",
        "Not quite sure.",
        "I'm not sure that this is correct.",
        "I would have agreed.",
        "It is correct only if x is positive.",
        "It should be noted that 18 is even.",
        "Let me check for errors.",
        "To correct this, we add 3.",
    ],
)
def test_neither(reply: str) -> None:
    assert assents(reply) is None
