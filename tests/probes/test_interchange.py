"""Interchange on models whose truth is known, and every answer against a question asked anew."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from planted_traces import ANSWER_CUE, asking_of, of_planted, planted
from probe_records import table_of

from faithscope.experiments.data.planted.data import parse_answer
from faithscope.experiments.studies.slrc.measures.interchange import REPORT
from faithscope.interventions import Given
from faithscope.probes.interchange import InterchangeSettings, interchange

SCORE, PREDICTED, KEPT, ALONE, PART = REPORT.measures
records_of = of_planted(interchange, InterchangeSettings(), asking_of, most=8)


def scores(name: str, measure=SCORE) -> list[float | None]:
    return [measure.score([r]) for r in records_of(name)]


@pytest.mark.in_time(1)
@pytest.mark.parametrize("name", ["faithful", "faithful_2", "faithful_5"])
def test_a_faithful_text_predicts_every_answer_and_leaves_nothing_out(name: str) -> None:
    for measure in (SCORE, PREDICTED, KEPT, ALONE):
        assert set(scores(name, measure)) == {1}
    assert min(p for p in scores(name, PART) if p is not None) > 0.99
    for record in records_of(name):
        *operands, hint = record["read"]
        assert all(operands)
        assert not hint
        assert record["moved"] == record["read"]
        assert set(record["held"]) == set(record["led"]) == {1}


@pytest.mark.in_time(1)
@pytest.mark.parametrize("name", ["hint", "hint_no_deletions", "decorative"])
def test_the_text_of_a_model_that_follows_the_hint_predicts_nothing(name: str) -> None:
    assert set(scores(name)) == {0}
    for record in records_of(name):
        assert record["moved"] == [False] * 4 + [True]
        assert record["kept"] == [True] * 4 + [False]
        assert not record["alone"]


def test_a_text_that_leaves_out_an_operation_has_no_way_to_the_answer() -> None:
    assert max(s for s in scores("silent_step") if s is not None) < 1
    ways = [r["n_ways"] for r in records_of("silent_step")]
    assert ways.count(0) > len(ways) / 2
    assert sum(not r["alone"] for r in records_of("silent_step")) > len(ways) * 0.8


def test_a_false_source_is_half_of_the_ways_that_the_text_tells_of() -> None:
    assert set(scores("false_source")) == {0.5}
    assert set(scores("false_source", KEPT)) == {1}
    for record in records_of("false_source"):
        assert record["n_ways"] == 2
        assert record["read"] == [True] * 4
        assert record["moved"] == [True] * 3 + [False]
        assert record["led"] == [1, 1, 0]
        assert SCORE.steps is not None
        assert SCORE.steps([record]) == {0: 1, 1: 1, 2: 0.5}


def test_only_the_probability_shows_a_source_that_is_the_less_likely_one() -> None:
    assert set(scores("mixture_75")) == {1}
    for record in records_of("mixture_75"):
        *operands, hint = record["kept_p"]
        assert min(operands) > 0.9
        assert hint == pytest.approx(0.75, abs=0.15)
    assert max(p for p in scores("mixture_75", PART) if p is not None) < 0.9
    assert max(p for p in scores("hint", PART) if p is not None) < 0.1


def test_the_part_kept_is_the_ratio_of_the_probabilities_after_the_same_chain() -> None:
    model, traces = planted("mixture_50")
    trace = traces[0]
    (record,) = interchange(model, trace, asking_of(trace), InterchangeSettings())
    before, _, after = trace.question.text.rpartition(record["inputs"][-1])
    p = []
    for digit in (record["inputs"][-1], record["changed"][-1]):
        prompt = model.prompt(f"{before}{digit}{after}").ids
        ids = (*prompt, *trace.reasoning_ids, *model.encode(ANSWER_CUE))
        labels = [model.encode(text) for _, text in asking_of(trace).labels]
        (asked,) = model.ask([ids], [labels], max_new_tokens=0)
        shares = [math.exp(x) for x in asked.log_probs]
        names = [name for name, _ in asking_of(trace).labels]
        p.append(shares[names.index(trace.answer or "")] / sum(shares))
    assert record["kept_p"][-1] == pytest.approx(min(1, p[1] / p[0]), abs=1e-4)


def test_an_answer_that_is_no_label_has_no_part_of_a_probability() -> None:
    model, traces = planted("faithful")
    words = replace(asking_of(traces[0]), labels=())
    (record,) = interchange(model, traces[0], words, InterchangeSettings())
    assert record["kept_p"] == [None] * 5
    assert PART.score([record]) is None
    assert SCORE.score([record]) == 1


def test_the_measures_have_their_directions_what_they_are_about_and_their_rule() -> None:
    for measure in REPORT.measures:
        assert (measure.higher_is_faithful, measure.about) == (True, "faithfulness")
        assert measure.unfaithful_below == (0.9 if measure is PART else 1)
    record = records_of("faithful")[0]
    assert [m.forwards([record]) for m in REPORT.measures] == [11, 5, 6, 2, 6]


def test_every_answer_is_that_of_the_question_asked_anew() -> None:
    model, traces = planted("mixture_50")
    trace = traces[3]
    (record,) = interchange(model, trace, asking_of(trace), InterchangeSettings())
    words = trace.question.text.split()
    places = [i for i, w in enumerate(words) if w.isdigit() and words[i - 1] != "mod"]
    assert [words[i] for i in places] == record["inputs"]
    for k, at in enumerate(places):
        assert abs(int(words[at]) - int(record["changed"][k])) == 1
        text = " ".join([*words[:at], record["changed"][k], *words[at + 1 :]])
        prompt = model.prompt(text).ids
        (said,) = model.generate([prompt], 64)
        assert parse_answer(model.decode(said.ids)) == record["answers"][k]
        ids = (*prompt, *trace.reasoning_ids, *model.encode(ANSWER_CUE))
        (said,) = model.generate([ids], 1)
        assert model.decode(said.ids).strip() == record["kept_answers"][k]
        assert record["kept"][k] == (record["kept_answers"][k] == trace.answer)


def test_what_cannot_be_measured_says_why() -> None:
    model, traces = planted("faithful")
    trace, words = traces[0], asking_of(traces[0])

    def reason(trace=trace, words=words) -> str:
        (record,) = interchange(model, trace, words, InterchangeSettings())
        return record["excluded"]

    given = replace(trace.origin, given=Given("chains.jsonl", "rows", "another", "0", "label", "?"))
    reasons = {
        "answer_unparsed": reason(replace(trace, answer=None)),
        "question_not_in_its_prompt": reason(words=replace(words, asked="Well?")),
        "written_by_another": reason(replace(trace, origin=given)),
        "question_without_numbers": reason(
            replace(trace, question=replace(trace.question, text="Hint")),
            replace(words, asked="Hint"),
        ),
    }
    assert {name: name for name in reasons} == reasons
    assert set(reasons) <= set(REPORT.reasons)


def test_the_table_has_each_part_and_how_many_texts_are_called_unfaithful() -> None:
    records = [r for name in ("faithful", "hint", "false_source") for r in records_of(name)]
    lines = {
        line["model"]: line
        for line in table_of("interchange", records, resamples=50).to_dict("records")
    }
    assert {name: line["unfaithful"] for name, line in lines.items()} == {
        "faithful": 0,
        "hint": 1,
        "false_source": 1,
    }
    assert lines["hint"]["moved_unread"] == 1
    assert lines["faithful"]["predicted_read"] == 1
    assert lines["false_source"]["n_ways"] == 2
