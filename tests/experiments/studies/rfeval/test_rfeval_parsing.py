"""r′ put into the mouth of every family, and outputs taken apart as appendix C.3 has it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chat_tokenizers import CHAT, MARKED
from rf_families import R_PRIME, family
from tiny_models import tiny

from faithscope.experiments.studies.rfeval.subjects.parsing import (
    Output,
    components,
    parse_output,
    split_answer,
)
from faithscope.experiments.studies.rfeval.subjects.subjects import (
    Forced,
    forced,
    multi_turn,
    output_of,
)
from faithscope.interp.marks import MARKS, Marks


def parts(text: str, **how: object) -> tuple[str, str, str, str]:
    output = parse_output(text, **how)  # pyright: ignore[reportArgumentType]
    return output.reasoning, output.explanation, output.answer, output.outcome


def test_reasoning_explanation_and_a_tagged_answer() -> None:
    text = "I add.\n</think>\n\nSo it is four.\n\n<answer> 4 apples </answer>"
    assert parts(text) == ("I add.", "So it is four.", "4 apples", "complete")


def test_a_bare_number_in_the_tag_is_an_answer() -> None:
    """The authors' released code counts it as unfinished: it looks for a letter."""
    text = "Six by seven.</think><answer>42</answer>"
    assert parts(text) == ("Six by seven.", "", "42", "complete")
    assert parts(text, paper_compat=True)[3] == "no_answer"
    assert parts(text.replace("42", "42 km"), paper_compat=True)[3] == "complete"
    figures = "1 + 1 = 2</think>It is two.<answer>2</answer>"
    assert parts(figures)[3] == "complete"
    assert parts(figures, paper_compat=True)[3] == "no_reasoning"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It is dull. So the answer is yes. The answer is no.", "no"),
        ("We add.\n\nThe answer is: C: refutes", "C: refutes"),
        ("So the right option is option B.\nThis is plain.", "B"),
        ("Hence the answer is 3.5. Done.", "3.5"),
        ("它有毛。正确答案是B。因为A是鱼。", "B"),
    ],
)
def test_what_nothing_marks_is_taken_where_it_is_said(text: str, answer: str) -> None:
    assert parts(text, thinking="unmarked")[2:] == (answer, "complete")
    assert parts(text, thinking="unmarked", paper_compat=True)[3] == "no_answer"
    marked = f"{text}\nAnswer: D"
    assert parts(marked, thinking="unmarked")[2] == "D"


def test_several_blocks_are_one_reasoning() -> None:
    text = "first</think> between <think>second</think> Answer: B"
    assert parts(text) == ("first\n\nsecond", "between", "B", "complete")


@pytest.mark.parametrize(
    "text",
    [
        "<think>r</think>\n<answer>B</answer>",
        "[THINK]r[/THINK]<answer>B</answer>",
        "<|channel|>analysis<|message|>r<|end|><|start|>assistant<|channel|>final<|message|>"
        "<answer>B</answer><|return|>",
    ],
)
def test_the_marks_of_every_family(text: str) -> None:
    assert parts(text, thinking="written") == ("r", "", "B", "complete")


def test_harmony_goes_on_in_the_analysis_channel_that_the_prompt_opened() -> None:
    text = "r<|end|><|start|>assistant<|channel|>final<|message|>It is. **Answer:** B<|return|>"
    assert parts(text) == ("r", "It is.", "B", "complete")


@pytest.mark.parametrize(
    ("tail", "explanation", "answer"),
    [
        ("Because.\n\nAnswer: 12 km", "Because.", "12 km"),
        ("Because.\n\n**Final Answer:** 12 km\n\nDone.", "Because.\n\n\n\nDone.", "12 km"),
        ("Because. **Answer: C**", "Because.", "C"),
        ("Decision: reject\nExplanation: weak", "Explanation: weak", "reject"),
        ("Answer: B: the seller", "the seller", "B"),
        ("Answer: B. It follows.", "It follows.", "B"),
        ("Answer: True, as shown", ", as shown", "True"),
        ("Answer: Bern", "", "Bern"),
        ("So \\boxed{\\frac{15}{64}}.", "So .", "\\frac{15}{64}"),
        ("So \\boxed{\\text{D: I and II}} holds.", "So  holds.", "\\text{D: I and II}"),
        ("The correct answer is **D**, as said.", ", as said.", "D"),
        ("Here:\n```python\nprint(1)\n```", "Here:", "print(1)"),
        ("Answer: A\n\nOn second thought, \\boxed{B}", "Answer: A\n\nOn second thought,", "B"),
        ("\\boxed{B}\n\nFinal answer: A", "\\boxed{B}", "A"),
        ("It is the seller.", "It is the seller.", ""),
        ("", "", ""),
    ],
)
def test_the_last_of_the_candidates(tail: str, explanation: str, answer: str) -> None:
    assert split_answer(tail) == (explanation, answer)


def test_an_article_is_no_choice() -> None:
    assert split_answer("x\n\nAnswer: A rectangle") == ("x", "A rectangle")
    assert split_answer("x\n\nAnswer: a rectangle") == ("x", "a rectangle")
    assert split_answer("x\n\nAnswer: a rectangle", paper_compat=True)[1] == "a"
    assert split_answer("x\n\nAnswer: E's law")[1] == "E's law"


def test_an_answer_that_holds_everything_is_looked_into() -> None:
    """Rule 4 of the paper's appendix C.3."""
    tail = "<answer>We add the two.\n\nFinal Answer: 12 km</answer>"
    assert split_answer(tail) == ("We add the two.", "12 km")
    code = "<answer>\n```python\nprint(1)\n```\n</answer>"
    assert split_answer(code) == ("", "print(1)")
    assert split_answer(f"As follows. {code}")[1].startswith("```python")


@pytest.mark.parametrize(
    "program",
    [
        "answer: int = 0",
        "answer: int = 0\nfor i in range(3):\n    answer += i\n\nprint(answer)",
        "def f():\n    # the correct answer is **B**, \\boxed{C}\n    return 1",
    ],
)
def test_a_program_is_not_searched_for_labels(program: str) -> None:
    fenced = f"```python\n{program}\n```"
    assert split_answer(fenced) == ("", program)
    assert split_answer(f"<answer>{fenced}</answer>") == ("", program)
    assert split_answer(f"Here.\n\n{fenced}\n\nIt runs.")[1] == program
    assert split_answer(f"Answer: B\n\nNot this:\n```java\n{program}\n```")[1] == "B"
    # the authors' released code reads on inside
    assert split_answer(fenced, paper_compat=True)[1] != program


def test_a_program_without_a_mark_of_its_language_is_one_too() -> None:
    program = "answer: int = 0\nprint(answer)"
    assert split_answer(f"<answer>{program}</answer>") == ("", program)
    assert split_answer(f"```\n{program}\n```")[1] == ""
    # Python, too, and none that does something
    assert split_answer("```\nAnswer: B\n```")[1] == "B"
    assert split_answer("<answer>Yes\nAnswer: B</answer>") == ("Yes", "B")


def test_an_answer_by_a_label_or_a_box_is_looked_into() -> None:
    assert split_answer("Answer: \\boxed{B}") == ("", "B")
    assert split_answer("Answer: The correct answer is **B**") == ("", "B")


def test_an_empty_tag_is_passed_over() -> None:
    assert split_answer("<answer></answer> Answer: B")[1] == "B"


@pytest.mark.parametrize(
    ("text", "how", "outcome"),
    [
        ("", {}, "empty"),
        ("  \n", {"finished": False}, "truncated"),
        ("I think and think", {"finished": False}, "truncated"),
        ("I think and stop", {}, "unclosed"),
        ("</think> <answer>B</answer>", {}, "no_reasoning"),
        ("r</think>  ", {}, "no_answer"),
        ("r</think>It is B.", {}, "complete"),
        ("r</think>It is", {"finished": False}, "truncated"),
        ("Answer: B", {"thinking": "written"}, "no_reasoning"),
        ("I think and stop", {"paper_compat": True}, "no_reasoning"),
    ],
)
def test_outcomes(text: str, how: dict[str, object], outcome: str) -> None:
    assert parts(text, **how)[3] == outcome


def test_a_model_without_marks_reasons_before_its_answer() -> None:
    text = "Two and two make four.\nAnswer: 4"
    assert parts(text, thinking="unmarked") == ("Two and two make four.", "", "4", "complete")
    assert parts("Answer: 4", thinking="unmarked")[3] == "no_reasoning"


def test_a_cut_between_tokens_goes_on_from_there() -> None:
    whole = parse_output("r</think>\n\ne <answer>4</answer>")
    assert components("r", "</think>\n\ne <answer>4</answer>") == whole
    assert whole == Output("r", "e", "4", "complete")
    assert whole.usable


@pytest.mark.parametrize("compat", [False, True])
def test_reasoning_that_is_taken_up_again_after_the_cut_is_reasoning(compat: bool) -> None:
    """Rule 1: all content within think tags, wherever the cut between tokens was."""
    tail = "</think> So I say. <think>more, so B</think> <answer>A b</answer>"
    output = components("r one", tail, paper_compat=compat)
    assert output == Output("r one\n\nmore, so B", "So I say.", "A b", "complete")
    assert output == parse_output(f"r one{tail}", paper_compat=compat)
    twice = "e [THINK]two [/THINK]<think> </think>f<think>three</think>\nAnswer: B"
    assert components("one", twice).reasoning == "one\n\ntwo\n\nthree"
    assert components("", "</think><think>two</think><answer>B</answer>").reasoning == "two"
    # a block without an end is none
    assert components("one", "e <think>two").explanation == "e <think>two"


def test_an_analysis_after_the_final_channel_is_reasoning() -> None:
    again = "<|end|><|start|>assistant<|channel|>analysis<|message|>two<|end|><|start|>assistant"
    tail = f"It is so.{again}<|channel|>final<|message|><answer>B</answer><|return|>"
    assert components("one", tail) == Output("one\n\ntwo", "It is so.", "B", "complete")


@pytest.mark.parametrize(
    ("tail", "answer"),
    [
        ("\\[\n\\boxed{42}\n\\]", "42"),
        ("The correct answer is **D**.", "D"),
        ("<answer>B</answer>.", "B"),
        ("---\n\n<answer>B</answer>", "B"),
        ("**\\boxed{B}**", "B"),
        ("**Final Answer**\n\n$$\\boxed{7}$$", "7"),
    ],
)
def test_what_holds_no_word_is_no_explanation(tail: str, answer: str) -> None:
    assert parts(f"I add.</think>{tail}") == ("I add.", "", answer, "complete")
    assert parts(f"I add.</think>{tail}", paper_compat=True)[1]
    spoken = parts(f"I add.</think>Zwölf ist zu viel. {tail}")
    assert spoken[1].startswith("Zwölf ist zu viel.")


def test_an_answer_alone_is_no_reasoning() -> None:
    assert parts("The answer is B.", thinking="unmarked") == ("", "", "B", "no_reasoning")
    assert parts("Hm.</think>\n---\n")[1:] == ("", "", "no_answer")


@pytest.mark.parametrize("name", CHAT)
@pytest.mark.in_time(9)
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
    output = output_of(model, start, written)
    assert (output.reasoning, output.explanation, output.answer) == (
        "No, 2 + 3 is 5.",
        "So it is five.",
        "5",
    )
    assert output.outcome == "complete"
    cut = output_of(model, start, written[:4], finished=False)
    assert (cut.outcome, cut.answer) == ("truncated", "")
    assert output_of(model, start, written[:4]).outcome == "unclosed"
    assert output_of(model, start, ()).outcome == "empty"


def test_a_model_without_marks_reasons_in_prose() -> None:
    model = tiny("llama")
    start = forced(model, "What?", "So it is 4.")
    assert model.decode(start.r_prime_ids) == "So it is 4."
    output = output_of(model, start, model.encode(" Wait, no.\nAnswer: 5"))
    assert (output.reasoning, output.answer) == ("Wait, no.", "5")


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


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So it is.\nAnswer: B\n\nQuestion: Which one?\nAnswer: C", "B"),
        ("So it is \\boxed{18}.\n\nProblem: 4 and 5?\n\\boxed{9}", "18"),
        ("Both fit. Answer: B or C", "B or C"),
        ("Both fit. Answer: A, B", "A, B"),
        ("It fits. Answer: B, since A does not", "B"),
        ("毛がある。答えは10です。", "10です"),
    ],
)
def test_an_answer_is_read_whole_and_is_the_first_questions(text: str, answer: str) -> None:
    assert parts(f"r</think>{text}")[2:] == (answer, "complete")


@pytest.mark.parametrize("marks", MARKS, ids=lambda m: m.name)
def test_reasoning_in_any_known_marks(marks: Marks) -> None:
    text = f"{marks.opener}I add.{marks.closer}So it is four.\n\nAnswer: B"
    assert parts(text, thinking="written") == ("I add.", "So it is four.", "B", "complete")
    opened = text.removeprefix(marks.opener)
    assert parts(opened) == ("I add.", "So it is four.", "B", "complete")
    if marks.nests:
        inner = f"{marks.opener}It may write {marks.opener}12{marks.closer} there.{marks.closer}"
        nested = parts(f"{inner}So it is four.\n\nAnswer: B", thinking="written")
        assert nested == ("It may write 12 there.", "So it is four.", "B", "complete")
