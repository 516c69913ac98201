"""Both framings say what they mean to say, and an answer is read off its first statement."""

from __future__ import annotations

import re

import pytest

from faithscope.interventions import (
    Question,
    Trace,
    from_ids,
    keep_only_step,
    remove_step,
    shuffle_steps,
)
from faithscope.probes import Asking
from faithscope.probes.framing import _first_answer, ask, prefix_ids, quoted, reprompt_ids
from faithscope.probes.record import record

TEXT = "So 3 + 4 makes 7. Then 7 - 2 makes 5. Now 5 + 9 makes 14."


def last_number(text: str) -> str | None:
    found = re.findall(r"\d+(?:\.\d+)?", text)
    return found[-1] if found else None


def asking(**changes) -> Asking:
    words = {
        "answer_cue": "\nSo the answer is",
        "labels": (("5", " 5"), ("14", " 14")),
        "parse": last_number,
        "necessity_prompt": "How many? {} Answer:".format,
        "sufficiency_prompt": "How many? Only: {} Answer:".format,
        "kind": "number",
        "reprompt_cue": "It is",
    }
    return Asking(**(words | changes))


def written(model, text: str, **known) -> Trace:
    ids = model.encode(text)
    question = Question("q1", "made", "How many?", "number", gold="14")
    return from_ids(question, model.encode("How many?\n"), ids, model.pieces(ids), **known)


def test_prefix_framing_is_the_models_own_tokens(llama):
    trace = written(llama, TEXT)
    closed = asking(closer_ids=(7, 8))
    cue = llama.encode("\nSo the answer is")
    edited = remove_step(trace, 1)
    assert prefix_ids(llama, closed, edited) == (
        *trace.prompt_ids,
        *trace.step_ids(trace.steps[0]),
        *trace.step_ids(trace.steps[2]),
        7,
        8,
        *cue,
    )


def test_reprompt_framing_quotes_in_a_new_prompt(llama):
    trace = written(llama, TEXT)
    message = asking().necessity_prompt(quoted(trace, remove_step(trace, 0)))
    assert message == "How many? Then 7 - 2 makes 5. Now 5 + 9 makes 14. Answer:"
    ids = reprompt_ids(llama, asking(), message)
    assert llama.decode(ids).startswith(message)
    assert llama.decode(ids).endswith("It is")


def test_quoting_keeps_words_apart_and_adds_nothing_else(llama):
    trace = written(llama, TEXT)
    assert quoted(trace, trace) == TEXT
    assert quoted(trace, keep_only_step(trace, 1)) == "Then 7 - 2 makes 5."
    for seed in range(4):
        text = quoted(trace, shuffle_steps(trace, seed))
        assert sorted(re.findall(r"[^.]+\.", text.replace(". ", "."))) == sorted(
            re.findall(r"[^.]+\.", TEXT.replace(". ", "."))
        )
        assert not re.search(r"\.\w", text)
    tight = written(llama, "影片很差，故事也不怎么样，太长了。演员很好，音乐也很好，值得一看。")
    assert len(tight.counted_steps) == 2
    assert " " not in quoted(tight, shuffle_steps(tight, 0))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" 72. Because 48 + 24", "72"),
        (" 72\n\nStep 1: 5", "72"),
        (" 3.5 in all. Or 4. ", "3.5"),
        (" **72**. There are 3", "72"),
        (":\n\n$72$. Then 9", "72"),
        (" not known. It is 12. So 13. ", "12"),
        (" 7 . So 8 makes 9", "7"),
        (" 72 of the 80", "80"),
        (" none", None),
    ],
)
def test_the_first_statement_that_parses_is_the_answer(text, answer):
    assert _first_answer(last_number, "\nSo the answer is", text, whole=True) == answer


def test_an_unfinished_statement_is_no_answer_yet():
    for text in (" 7", " 72", " 3.", " 72 of"):
        assert _first_answer(last_number, "So it is", text, whole=False) is None
    assert _first_answer(last_number, "So it is", " 72. ", whole=False) == "72"


def test_without_a_cue_the_whole_reply_is_parsed():
    assert _first_answer(last_number, "", "It has 3. And 4. ", whole=True) == "4"


def test_a_cue_that_is_an_answer_is_refused(llama):
    with pytest.raises(ValueError, match="by itself parses as the answer '2'"):
        ask(llama, asking(answer_cue="So of 2,"), "prefix", [(1, 2)], ["scored"], answer_tokens=0)


def test_a_number_is_scored_to_its_end(llama):
    trace = written(llama, TEXT)
    prefix = prefix_ids(llama, asking(), trace)
    labels = [llama.encode(surface) for _, surface in asking().labels]
    for kind, boundary in (("number", "number"), ("label", None)):
        (reply,) = ask(llama, asking(kind=kind), "prefix", [prefix], ["scored"], answer_tokens=0)
        (expected,) = llama.ask([prefix], [labels], boundary=boundary)
        assert reply.log_probs == pytest.approx(expected.log_probs, abs=1e-5)
        assert reply.lengths == (2, 3)


def test_records_are_flat_and_keep_their_join_keys(llama):
    trace = written(llama, TEXT)
    made = record(trace, "slrc", "prefix", 3, n=1, flags=(True, None))
    assert made == {
        "dataset": "made",
        "task": "made",
        "item": "q1",
        "model": "unknown",
        "judge": None,
        "probe": "slrc",
        "variant": "prefix",
        "seed": 3,
        "unit": "sentence",
        "n": 1,
        "flags": [True, None],
    }
    for bad, message in (
        ({"x": {"a": 1}}, "is a dict"),
        ({"x": [[1]]}, "is a list"),
        ({"x": float("nan")}, "finite"),
        ({"item": "q2"}, "join key"),
    ):
        with pytest.raises(ValueError, match=message):
            record(trace, "slrc", "", 0, **bad)
