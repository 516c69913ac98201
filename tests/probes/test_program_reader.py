"""Readers of chains in words: their replies, and what a program of theirs is worth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest
from planted_traces import asking_of, planted

from faithscope.interventions import NotExecutable, Trace
from faithscope.interventions.transcription import COPIED, MALFORMED, NO_SUCH_WORDS
from faithscope.probes import program_reader
from faithscope.probes.interchange import InterchangeSettings, interchange
from faithscope.probes.program_reader import (
    CUT,
    NO_REPLY,
    NOT_JSON,
    RULE,
    Written,
    asked,
    program_in,
    to_mend,
    unread_by_rule,
)

_STEP = re.compile(r"(\S+) ([-+]) (\S+) makes (\d+)")


def reply(lines: Iterable[tuple[str, ...]]) -> str:
    names = ("words", "operation", "result")
    return json.dumps({"lines": [dict(zip(names, line, strict=True)) for line in lines]})


def of_steps(trace: Trace, first: str = "Q1") -> str:
    """The program of a planted chain: each step takes the result before it and the next number."""
    steps = _STEP.finditer(trace.reasoning_text)
    return reply(
        (m.group(), f"{first if k == 0 else f'S{k}'} {m[2]} Q{k + 2}", m[4])
        for k, m in enumerate(steps)
    )


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule reads nothing."""

    def nothing(*chain: str) -> None:
        raise NotExecutable("no_operation_stated")

    monkeypatch.setattr(program_reader, "program_of", nothing)


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("name", ["faithful", "hint"])
def test_a_program_of_a_model_says_what_that_of_the_rule_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, traces = planted(name)
    trace = next(t for t in traces if t.answer and unread_by_rule(t) and _right(t))
    twice = [Written("one", "parsed", of_steps(trace)), Written("two", "parsed", of_steps(trace))]
    (told,) = interchange(model, trace, asking_of(trace), InterchangeSettings(), twice)
    monkeypatch.undo()
    (ruled,) = interchange(model, trace, asking_of(trace), InterchangeSettings(), twice)
    assert (ruled["reader"], ruled["readers_agree"]) == (RULE, None)
    assert (told["reader"], told["readers_agree"]) == ("one", True)
    # the reader says where each number comes from; of the rule, all ways of binding them count
    assert told["score"] <= ruled["score"]
    assert (told["score"] == 1) == (ruled["score"] == 1) == (name == "faithful")
    for field in ("kinds", "changed", "answers", "n_inputs"):
        assert told[field] == ruled[field]


def _right(trace: Trace) -> bool:
    """Whether the program of a chain can be executed, and ends in the answer."""
    try:
        return bool(program_in(trace, of_steps(trace)))
    except NotExecutable:
        return False


@pytest.mark.usefixtures("blind")
def test_without_a_program_a_chain_is_left_out_with_what_its_first_reader_did() -> None:
    model, traces = planted("faithful")
    trace = next(filter(_right, traces))
    good, none = Written("b", "parsed", of_steps(trace)), Written("a", "truncated", "")

    def record(*written: Written) -> dict:
        return interchange(model, trace, asking_of(trace), InterchangeSettings(), written)[0]

    assert record()["excluded"] == "no_operation_stated"
    assert record(none)["excluded"] == CUT
    assert record(Written("a", "refused", ""))["excluded"] == NO_REPLY
    assert record(Written("a", "parsed", "It is 7."), none)["excluded"] == NOT_JSON
    read = record(none, good)
    assert (read["reader"], read["readers_agree"]) == ("b", None)
    other = of_steps(trace, trace.question.text.split()[1])
    assert record(good, Written("c", "parsed", other))["readers_agree"] is True


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Sure! The program is Q1 + Q2.", NOT_JSON),
        ("Sure! {good}", NOT_JSON),
        ("Sure!\n```json\n{good}\n```", None),
        ("```\n{good}\n```", None),
        ("```json\n{good}\n```\n```json\n{good}\n```", NOT_JSON),
        ("[" * 50_000, NOT_JSON),
        ('{"lines": ' * 5_000, NOT_JSON),
        ('{"lines": [{"words": "a", "operation": "Q1", "result": NaN}]}', NOT_JSON),
        ('{"lines": [], "lines": []}', NOT_JSON),
        ('{"lines": "Q1 + Q2"}', MALFORMED),
        ('{"lines": [{"words": "a", "operation": "Q1"}]}', MALFORMED),
        ('{"lines": [{"words": "a", "operation": null, "result": "1"}]}', MALFORMED),
        ('{"lines": [{"words": "a", "operation": "Q1", "result": true}]}', MALFORMED),
        ('{"lines": [{"words": "no such", "operation": "Q1", "result": 1}]}', NO_SUCH_WORDS),
        ('{"steps": []}', MALFORMED),
        ("", NOT_JSON),
    ],
)
def test_a_reply_of_another_form_is_sent_back_with_what_is_wrong(
    said: str, why: str | None
) -> None:
    _, traces = planted("faithful")
    trace = next(filter(_right, traces))
    said = said.replace("{good}", of_steps(trace))
    if why is None:
        assert program_in(trace, said)
        assert to_mend(trace, said) is None
        return
    with pytest.raises(NotExecutable) as error:
        program_in(trace, said)
    assert error.value.reason == why
    told = to_mend(trace, said)
    assert told is not None
    assert len(told) < 600


def test_what_a_program_computes_is_never_told() -> None:
    """A reader that is told would fit its program to the result."""
    _, traces = planted("faithful")
    trace = next(filter(_right, traces))
    steps = list(_STEP.finditer(trace.reasoning_text))
    backwards = reply((m.group(), m[4], m[4]) for m in steps[::-1])
    copied = reply((m.group(), m[4] if k else f"Q1 {m[2]} Q2", m[4]) for k, m in enumerate(steps))
    for said in (backwards, copied):
        with pytest.raises(NotExecutable) as error:
            program_in(trace, said)
        told = to_mend(trace, said)
        assert (told is None) == (error.value.reason != NO_SUCH_WORDS)
    numbered = replace(trace, question=replace(trace.question, text="Q with 3 {braces} {question}"))
    assert "{braces} {question}" in asked(numbered)
    assert COPIED not in asked(trace)
