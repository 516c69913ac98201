"""Marks of reasoning in text: one parser of nested, attributed and late blocks."""

import pytest

from faithscope.interp.marks import MARKS, Marks, plain, split, without_opener

TURN = "<|end|><|start|>assistant"


@pytest.mark.parametrize("marks", MARKS, ids=lambda m: m.name)
def test_every_pair_is_taken_apart(marks):
    opener, closer = marks.opener, marks.closer
    anywhere = (
        (f"Sure. {opener}So 5.{closer}5", "So 5.", "5"),
        (f"{opener}a{closer}x{opener}b{closer}y", "a\n\nb", "y"),
    )
    for text, thinking, answer in (
        (f"{opener}So 5.{closer}5", "So 5.", "5"),
        (f"{opener}\nSo 5.\n{closer}\n\n5", "So 5.", "5"),
        (f" \n{opener.upper() if opener.isascii() else opener}So 5.{closer}5", "So 5.", "5"),
        *([(f"So 5.{closer}5", "So 5.", "5")] if not marks.pairs_only else []),
        *(anywhere if marks.name != "granite_prose" else ()),
    ):
        thought = split(text)
        assert (thought.thinking, thought.marked, thought.closed) == (thinking, True, True)
        assert thought.answer.strip().endswith(answer)
        assert opener.strip() not in thought.answer
        assert not thought.unpaired
    endless = split(f"{opener}So 5, or")
    assert (endless.thinking, endless.answer.strip(), endless.closed) == ("So 5, or", "", False)
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


def test_words_that_other_texts_hold_are_marks_only_as_a_pair():
    for text in (
        "So 5.</details>5",
        "Here is my response: 5",
        "Then here is my thought process: 5",
    ):
        assert split(text).answer == text
    assert split("<details><summary>S</summary>x</details>5").answer.endswith("x</details>5")
    assert not split("<think>It may end </details> or").unpaired


def test_blocks_of_open_webui_are_unquoted():
    begins = '<details type="reasoning" done="true"><summary>Thought for 3 seconds</summary>\n'
    for block in ("> 3 < 4.\n>\n> So 5.", "&gt; 3 &lt; 4.\n&gt;\n&gt; So 5.", "3 < 4.\n\nSo 5."):
        thought = split(f"{begins}{block}\n</details>\n5")
        assert (thought.thinking, thought.answer) == ("3 < 4.\n\nSo 5.", "\n5")


def test_escaped_marks_are_read_unescaped():
    thought = split("&lt;think&gt;3 &lt; 4&lt;/think&gt;5 &amp; 6")
    assert (thought.thinking, thought.answer) == ("3 < 4", "5 & 6")
    # a mention of a mark is no mark
    for text in ("Write &lt;think&gt; so.", "<b>&lt;/b&gt;</b>"):
        assert split(text).answer == text


@pytest.mark.parametrize(
    "text",
    [
        " to=self<|message|>So 5.<|eom|><|start|>assistant to=user<|message|>5<|eot|>",
        "<|content_thinking|>So 5.<|end_message|><|message_model|><|content_text|>5<|end_message|>",
        "<|content_thinking|>So 5.<|content_text|>5<|content_model_end_sampling|>",
        "<think:6124c78e>So 5.</think:6124c78e>5",
        "[unused16]So 5.[unused17]5[unused10]",
        "So 5.<|close|>think<|sep|><|open|>response<|sep|>5<|close|>response<|sep|><|end_of_msg|>",
        "Here's my thought process:\nSo 5.\n\nHere's my response:\n5",
    ],
)
def test_replies_of_newer_families(text):
    thought = split(text)
    assert (thought.thinking.strip(), thought.answer.strip(), thought.unpaired) == (
        "So 5.",
        "5",
        "",
    )


def test_marks_that_a_user_states_are_the_only_ones():
    own = (Marks("own", "<mull>", "</mull>"),)
    thought = split("<mull>So <think>5</think>.</mull>5", pairs=own)
    assert (thought.thinking, thought.answer) == ("So <think>5</think>.", "5")
    assert not split("<think>a</think>5", pairs=own).marked
    assert not split("<think>a</think>5", pairs=()).marked


def test_an_opener_that_ends_a_prompt_is_no_part_of_it():
    assert without_opener("Who?\n<think>\n") == "Who?"
    for text in ("What does <think> do?", "<think>a</think>"):
        assert without_opener(text) == text
