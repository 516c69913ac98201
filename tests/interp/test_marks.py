"""Marks of reasoning in text: one parser of nested, attributed and late blocks."""

import pytest

from faithscope.interp.marks import MARKS, plain, split

TURN = "<|end|><|start|>assistant"


@pytest.mark.parametrize("marks", MARKS, ids=lambda m: m.name)
def test_every_pair_is_taken_apart(marks):
    opener, closer = marks.opener, marks.closer
    for text, thinking, answer in (
        (f"{opener}So 5.{closer}5", "So 5.", "5"),
        (f" \n{opener.upper() if opener.isascii() else opener}So 5.{closer}5", "So 5.", "5"),
        (f"So 5.{closer}5", "So 5.", "5"),
        (f"Sure. {opener}So 5.{closer}5", "So 5.", "5"),
        (f"{opener}a{closer}x{opener}b{closer}y", "a\n\nb", "y"),
    ):
        thought = split(text)
        assert (thought.thinking, thought.marked, thought.closed) == (thinking, True, True)
        assert thought.answer.strip().endswith(answer)
        assert opener.strip() not in thought.answer
        assert not thought.unpaired
    endless = split(f"{opener}So 5, or")
    assert (endless.thinking, endless.answer, endless.closed) == ("So 5, or", "", False)
    if marks.nests:
        nested = split(f"{opener}It may write {opener}12{closer} there.{closer}5")
        assert (nested.thinking, nested.answer) == (f"It may write {opener}12{closer} there.", "5")
    assert plain(f"{opener}So{closer}5") == "<think>So</think>5"


def test_attributes_and_summaries_of_a_block():
    signed = '<think signature="rs_0/1=" internal="a"><summary>Sum.</summary>\nSo 5.</think >5'
    assert (split(signed).thinking, split(signed).answer) == ("So 5.", "5")
    hidden = '<think redacted="true"><summary>Sum.</summary>\ngAAAA=</think>5'
    assert (split(hidden).thinking, split(hidden).withheld) == ("Sum.", True)
    assert split('<think signature="x" redacted="true">gAAAA=</think>5').thinking == ""
    # without attributes a summary is what the model wrote
    assert split("<think><summary>S</summary></think>5").thinking == "<summary>S</summary>"
    assert not split("<think />5").marked


def test_channels_of_harmony():
    text = (
        "<|channel|>analysis<|message|>One."
        f"{TURN}<|channel|>analysis<|message|>Two."
        f"{TURN}<|channel|>commentary to=functions.f <|constrain|>json<|message|>{{}}<|call|>"
        "<|start|>assistant<|channel|>final<|message|>5<|return|>"
    )
    assert (split(text).thinking, split(text).answer) == ("One.\n\nTwo.\n\n{}", "5")
    assert split("<|channel|>final<|message|>5<|return|>").answer == "5"
    # decoded without control tokens
    bare = "analysisOne.assistantanalysisTwo.assistantfinal5"
    assert (split(bare).thinking, split(bare).answer) == ("One.\n\nTwo.", "5")
    for prose in ("analysis: the assistantfinal word", "analysisOne.", "An assistantfinal"):
        assert split(prose).answer == prose
    assert plain(f"<|channel|>analysis<|message|>a{TURN}<|channel|>analysis<|message|>b") == (
        "<think>ab"
    )


@pytest.mark.parametrize(
    "text",
    [
        "<think>I close with </think> then. So 5.</think>5",
        "So 5.</think>The tag </think> ends it.",
        "<think>It may write <think>12</think> there, or",
        "<think>The word <think> stands there. So 5.</think>5",
    ],
)
def test_marks_that_do_not_pair_are_named(text):
    assert split(text).unpaired == "</think>"


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("<think>So 5.[/THINK]5", "[/THINK]"),
        ("[THINK]So 5.</think>5", "</think>"),
        ("<think>So 5.</thinking>5", "</thinking>"),
        ("<|START_THINKING|>So <think>12</think> or 5.</think>5", "</think>"),
        (f"<think>So 5.{TURN}<|channel|>final<|message|>5", f"{TURN}<|channel|>final<|message|>"),
    ],
)
def test_a_block_that_does_not_end_but_holds_another_closer_is_doubtful(text, mark):
    assert split(text).unpaired == mark


@pytest.mark.parametrize(
    "text", ["<think>In <thinking>12</thinking> or", "<think>A [/THINK] ends others.</think>5"]
)
def test_other_marks_in_a_block_are_text(text):
    assert not split(text).unpaired


def test_marks_of_the_prompt_may_be_quoted():
    prompt = "What does <think>x</think> do?"
    assert split("The <think>x</think> marks a thought.", prompt).answer == (
        "The <think>x</think> marks a thought."
    )
    assert split("The mark </think> ends it.", prompt).unpaired == "</think>"
    assert split("The mark <think> opens it.", prompt).closed
    own = split("<think>It asks for <think>x</think>.</think>A thought.", prompt)
    assert own.answer == "A thought."
    assert split("So.</think>It opens.", "What is <think>?").thinking == "So."


def test_a_text_without_marks_is_left_as_it_is():
    for text in ("", " a < b [c] ◁ <b>x</b>\n<|im_end|>", "<thinker>x</thinker>"):
        assert (split(text).answer, split(text).marked, plain(text)) == (text, False, text)
