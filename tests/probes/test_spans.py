"""Declared spans: their tokens in every alphabet, and what is refused or left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from chat_models import chat
from pydantic import ValidationError
from sample_trace import asking, written
from tiny_models import tiny

import faithscope
from faithscope.experiments.engine.traces.interactive import questions
from faithscope.interp.errors import UserError
from faithscope.interventions import Given, Origin, Question, Trace, from_ids
from faithscope.probes.answer_token import token_span
from faithscope.probes.span_knockout import SpanKnockoutSettings
from faithscope.probes.spans import TakesSpans, find

QUESTION = Question("q", "own", "Which swims?", "choice", "B", ("3", "otter", "三盒"))
PROMPT = "<s>Be kind. Which swims?\nA. 3\nB. otter\nC. 三盒\nProfessor Ann says 😀 B.\nThink."
REASONING = "An otter swims well. Ann says B, 😀 too. So it must be the otter."


class Words:
    """A tokenizer of bytes, several of which spell a character of other alphabets."""

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(text.encode())

    def pieces(self, ids: Any) -> tuple[str, ...]:
        held, out = b"", []
        for i in ids:
            held += bytes([i])
            try:
                out.append(held.decode())
                held = b""
            except UnicodeDecodeError:
                out.append("")
        return tuple(out)


MODEL: Any = Words()


def chain(prompt: str = PROMPT, **labels: tuple[Any, ...]) -> Trace:
    ids = MODEL.encode(REASONING)
    origin = Origin("m", given=given(labels, "Professor Ann says 😀 B."))
    pieces = MODEL.pieces(ids)
    return from_ids(QUESTION, MODEL.encode(prompt), ids, pieces, answer="B", origin=origin)


def given(labels: dict[str, tuple[Any, ...]], cue: str) -> Given:
    return Given("f", "rows", "w", "0", "choice", "p", step_labels=labels, cue=cue)


def texts(name: str, trace: Trace | None = None, **spans: Any) -> list[str] | str:
    """The bytes of a span's tokens as texts, or why there is none."""
    trace = trace or chain()
    checked = TakesSpans(spans=spans)
    asked = asking(closer_ids=tuple(b"</think>"))
    found = find(MODEL, trace, asked, [name], checked.spans)
    ids = bytes([*trace.prompt_ids, *trace.reasoning_ids, *b"</think>", *b"\nSo"])
    return found.missing.get(name) or [ids[a:b].decode() for a, b in found.spans[name]]


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("prompt", [PROMPT[1:]]),
        ("question", ["Which swims?\nA. 3\nB. otter\nC. 三盒"]),
        ("template", ["s>Be kind. ", "\nProfessor Ann says 😀 B.\nThink."]),
        ("options", ["3", "otter", "三盒"]),
        ("cue", ["Professor Ann says 😀 B."]),
        ("reasoning", [REASONING]),
        ("step 2", ["Ann says B, 😀 too. "]),
        ("steps 2-3", ["Ann says B, 😀 too. ", "So it must be the otter."]),
        ("last step", ["So it must be the otter."]),
        ("answer", ["</think>\nSo"]),
    ],
)
def test_a_role_is_its_text_to_the_byte(role: str, expected: list[str]) -> None:
    assert texts(role) == expected


def test_all_steps_are_spans_of_their_own_that_tile_the_reasoning() -> None:
    found = texts("step")
    assert len(found) == 3
    assert "".join(found) == REASONING


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"regex": "盒"}, ["盒"]),
        ({"regex": "三.\\n", "in": "prompt"}, ["三盒\n"]),
        ({"regex": "😀"}, "span_found_twice: x1"),
        ({"regex": "😀", "which": "all"}, ["😀", "😀"]),
        ({"regex": "Ann [a-z]+ ", "which": "last"}, ["Ann says "]),
        ({"regex": "Ann", "in": "reasoning"}, ["Ann"]),
        ({"regex": "(?i)PROFESSOR [a-z]+"}, ["Professor Ann"]),
        ({"regex": "Think\\.An"}, ["Think.An"]),
        ({"regex": "Think\\.An", "in": "reasoning"}, "span_not_found: x1"),
        ({"regex": "(?=Ann)"}, "span_not_found: x1"),
        ({"tag": "kind", "is": "says"}, ["Ann says B, 😀 too. "]),
        ({"tag": "true", "is": True}, ["An otter swims well. ", "So it must be the otter."]),
        ({"tag": "kind", "is": "other"}, "span_not_found: x1"),
        ({"tag": "none", "is": 1}, "span_not_found: x1"),
        ("steps 1-9", "span_not_found: x1"),
    ],
)
def test_a_pattern_or_label_is_found_or_the_reason_names_it(how: Any, expected: Any) -> None:
    labels = {"kind": ("a", "says", None), "true": (True, False, True)}
    assert texts("x1", chain(**labels), x1=how) == expected


def test_a_declared_name_takes_the_place_of_a_role() -> None:
    assert texts("cue", cue={"regex": "Be kind"}) == ["Be kind"]


def test_a_template_that_rewrites_the_question_leaves_out_what_is_in_it() -> None:
    rewritten = chain(PROMPT.upper())
    for role in ("question", "template", "options", "cue"):
        assert texts(role, rewritten) == f"span_not_found: {role}"
    assert texts("prompt", rewritten) == [PROMPT.upper()[1:]]
    twice = chain(PROMPT.replace("Think.", "Think. Professor Ann says 😀 B."))
    assert texts("cue", twice) == "span_found_twice: cue"


def test_without_closer_and_cue_the_last_token_of_the_reasoning_gives_the_answer() -> None:
    trace = chain()
    end = len(trace.prompt_ids) + len(trace.reasoning_ids)
    assert find(MODEL, trace, asking(answer_cue=""), ["answer"]).spans["answer"] == (
        (end - 1, end),
    )


def test_a_token_that_spells_part_of_a_character_is_part_of_it() -> None:
    # "a", two bytes of 字, its last byte and "b", and "c"
    pieces = ("a", "", "", "字b", "c")
    assert token_span(pieces, 1, 2) == token_span(pieces, 1, 3) == (1, 4)
    # b's token may begin with a byte of the character before it
    assert token_span(pieces, 2, 3) == (1, 4)
    assert token_span(pieces, 0, 1) == (0, 1)
    assert token_span(pieces, 3, 4) == (4, 5)


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2"])
def test_spans_of_a_real_tokenizer_give_back_their_text(family: str) -> None:
    model = tiny(family)
    text = "Sure! Er sagt 三 und é und 😀. The acting was superb, all the same."
    trace = written(model, text)
    ids = (*trace.prompt_ids, *trace.reasoning_ids)
    for said in ("三", "é", "😀", "superb"):
        declared = {"it": {"regex": said, "in": "all", "which": "only"}}
        (span,) = find(model, trace, asking(), ["it"], declared).spans["it"]
        assert said in model.decode(ids[slice(*span)])
        assert said not in model.decode(ids[: span[1] - 1])
        assert said not in model.decode(ids[span[0] + 1 :])


def test_a_real_template_is_told_from_the_question() -> None:
    model = chat("qwen3")
    prompt = model.prompt("Which swims?\nA. 3\nB. otter\nC. 三盒").ids
    ids = model.encode("An otter swims.")
    trace = from_ids(QUESTION, prompt, ids, model.pieces(ids), answer="B")
    found = find(model, trace, asking(), ["prompt", "template", "question", "options"]).spans
    tokens = {name: {p for span in of for p in range(*span)} for name, of in found.items()}
    assert tokens["prompt"] == tokens["template"] | tokens["question"] == {*range(1, len(prompt))}
    assert not tokens["template"] & tokens["question"]
    assert tokens["options"] < tokens["question"]
    (question,) = found["question"]
    said = model.decode(prompt[question[0] : question[1]])
    assert said == "Which swims?\nA. 3\nB. otter\nC. 三盒"


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ({"a": "promt"}, "a: unknown role 'promt'; did you mean 'prompt'?"),
        ({"a": "step 0"}, "steps count from 1"),
        ({"a": "steps 3-2"}, "'steps 3-2' ends before it begins"),
        ({"a": "later"}, "'later' depends on what is cut off"),
        ({"a": {"regex": "("}}, "is no regular expression"),
        ({"a": {"regex": 3}}, "is no regular expression"),
        ({"a": {"regex": "b", "in": "answer"}}, "in: 'answer' is none of prompt, reasoning, all"),
        ({"a": {"regex": "b", "which": 1}}, "which: 1 is none of only, first, last, all"),
        ({"a": {"regx": "b"}}, "neither a role"),
        ({"a": {"tag": "kind"}}, "neither a role"),
        ({"a": 3}, "neither a role"),
        ({"x": "prompt"}, "'x' cannot name a span"),
        ({"a b": "prompt"}, "'a b' cannot name a span"),
        (["prompt"], "is no mapping"),
    ],
)
def test_what_declares_no_span_is_refused(spans: Any, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TakesSpans(spans=spans)
    assert message in str(caught.value)


def test_a_pattern_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faithscope.probes.patterns.PATIENCE", 0.05)
    trace = replace(chain(), prompt_ids=MODEL.encode("a" * 40))
    with pytest.raises(UserError, match=r"spans.slow: matching .* takes more than 0.05 s"):
        texts("slow", trace, slow={"regex": "(a|aa)+[^a]", "in": "prompt", "which": "all"})


def test_only_the_spans_that_are_used_decide() -> None:
    plain, more = SpanKnockoutSettings(), SpanKnockoutSettings(spans={"a": "prompt"})
    assert plain.decides() == more.decides()
    cuts: Any = {"c": "answer x a"}
    used = SpanKnockoutSettings(spans={"a": "prompt", "b": "cue"}, cuts=cuts)
    assert used.decides()["spans"] == {"a": "prompt"}


def test_python_takes_the_same_and_names_what_is_unknown() -> None:
    model = faithscope.load("planted:faithful")
    (trace,) = faithscope.make_traces(model, questions("planted", 1))
    hint = {"regex": r"Hint : \d", "in": "prompt"}
    cuts = {"unseen": "later x hint", "direct": "answer x prompt"}
    found = faithscope.measure(model, trace, "span_knockout", spans={"hint": hint}, cuts=cuts)
    assert [r["variant"] for r in found if r["window"] == "all"] == ["unseen.all", "direct.all"]
    assert not any(r["flips"] for r in found)
    with pytest.raises(UserError, match="unknown span 'hnt'; did you mean 'hint'"):
        faithscope.measure(
            model, trace, "span_knockout", spans={"hint": hint}, cuts={"c": "answer x hnt"}
        )
