"""Forms of one's own: what is refused, what a verdict means, and which chains lack a place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from faithscope.experiments.analysis.verdicts import meaning_of, verdict_of
from faithscope.experiments.engine.forms import form_at, trace_forms
from faithscope.experiments.engine.forms.tasks import NO_STEP, ChainView, Verdict
from faithscope.interp.errors import UserError
from faithscope.probes.judge.parse import read, schema
from faithscope.probes.judge.template import Listed

KEY = "judges.forms"
PLAIN: dict[str, Any] = {
    "asks": "property",
    "higher_is": "faithful",
    "prompt": "{{ cot }}",
    "fields": {"why": "text", "says": "boolean"},
}
STEPS = ("It is red.", "I was told B.", "So B.")


def chain(**values: Any) -> ChainView:
    known = {"question": "Which?", "cot": " ".join(STEPS), "steps": Listed(STEPS)} | values
    return ChainView(
        "Which?", STEPS, (0, 1, 2), "", lambda i: " ".join(STEPS[:i]), known, ("A", "B")
    )


def made(folder: Path, **changes: Any) -> Any:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in (PLAIN | changes).items() if v is not None}))
    return form_at(path, KEY)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"prompt": "{{ cot }} {{ cues }}"},
            "prompt: unknown place {{ cues }}; did you mean 'cue'",
        ),
        ({"system": "{{ colour }}"}, "system: unknown place {{ colour }}; there are question, opt"),
        ({"prompt": "{{ step }} {{ cot }}"}, "place {{ step }}; it is of forms with each: step"),
        ({"prompt": "{{ cot "}, "prompt: is no template: line 1: unexpected end"),
        ({"prompt": "{{ cot | shout }}"}, "is no template: line 1: No filter named 'shout'"),
        ({"prompt": "{{ cot.tail }}"}, "is no template: 'str object' has no attribute 'tail'"),
        (
            {"prompt": "{{ question }}"},
            "prompt: shows nothing of the chain; it needs one of {{ cot",
        ),
        ({"each": "step"}, "shows nothing of the chain; it needs one of {{ step }}"),
        ({"asks": None}, "asks: Field required"),
        ({"higher_is": None}, "higher_is: missing; say what more of the property speaks for"),
        ({"asks": "error", "higher_is": None}, "flags: missing; name the verdicts"),
        ({"asks": "error", "flags": [True]}, "holds, higher_is: are of a form with asks: property"),
        ({"flags": [True]}, "flags: are of a form that asks for an error"),
        ({"holds": [1]}, "holds: 1 is no value of 'says', which has false, true"),
        ({"verdict": "why"}, "verdict: 'why' is none of says"),
        ({"fields": {"why": "text"}}, "fields: all are texts"),
        ({"fields": {"a": "boolean", "b": "0-4"}}, "verdict: missing; name one of a, b"),
        ({"fields": {"a": "4-0"}}, "fields.a: an integer needs low and high, low below high"),
        ({"fields": {"a": "bolean"}}, "fields.a.type: Input should be 'text', 'boolean'"),
        ({"fields": {"a": [True, False]}}, "fields.a.labels.0: Input should be a valid string"),
        ({"fields": {"a": ["x", "x"]}}, "fields.a: a label needs two or more different values"),
        ({"fields": {"a": ["x", "y"]}}, "fields.a: labels have no order; give holds, or a score"),
        (
            {"fields": {"a": {"type": "boolean", "score": {True: 2, False: 0}}}},
            "fields.a: score 2.0; give a number from 0 to 1",
        ),
        (
            {"fields": {"a": {"type": "label", "labels": ["x", "y"], "score": {"x": 1}}}},
            "fields.a: score has x, and the values are x, y",
        ),
        ({"score": "says"}, "score: Extra inputs are not permitted"),
    ],
)
def test_a_form_that_cannot_be_asked_is_refused_with_file_and_remedy(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError) as refused:
        made(tmp_path, **changes)
    assert str(refused.value).startswith(f"{tmp_path / 'mine.yaml'}: ")
    assert says in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"judges.forms: .*none.yaml' cannot be read"):
        form_at(tmp_path / "none.yaml", KEY)


@pytest.mark.parametrize(
    ("prompt", "values", "lacks"),
    [
        ("{{ cot }} {{ cue }}", {}, "cue"),
        ("{{ cot }} {{ cue }}", {"cue": "I think B."}, None),
        ("{{ cot }}{% if cue %} {{ cue }}{% endif %}", {}, None),
        ("{{ cot }} {{ gold or 'not known' }}", {}, None),
        ("{{ cot }} {% if answer == cue_target %}!{% endif %}", {"answer": "B"}, "cue_target"),
        ("{% for o in options %}{{ o }}{% endfor %}{{ cot }}", {}, "options"),
    ],
)
def test_a_place_without_a_value_leaves_the_chain_out_unless_it_is_tested(
    tmp_path: Path, prompt: str, values: dict[str, str], lacks: str | None
) -> None:
    form = made(tmp_path, prompt=prompt)
    (one,) = form.judged.asks(form.form, chain(**values), "x")
    assert one.lacks == lacks


def test_places_of_papers_words_may_be_any_of_a_chain(tmp_path: Path) -> None:
    (tmp_path / "faithful_judge_ack.yaml").write_text(
        "task: faithful_judge\nsource: x\nours: true\nverdict: kind\n"
        "fields: [{name: kind, kind: integer, low: 0, high: 2}]\n"
        "template: '{cue} {answer} {question} {cot}'\n"
    )
    form = form_at(tmp_path / "faithful_judge_ack.yaml", KEY)
    (one,) = form.judged.asks(form.form, chain(answer="B"), "x")
    assert one.lacks == "cue"
    (one,) = form.judged.asks(form.form, chain(answer="B", cue="I think B."), "x")
    assert one.ask.prompt.startswith("I think B. B Which? ")


def record(verdict: Any, *p: float, **more: Any) -> dict[str, Any]:
    return {"verdict": verdict, "probabilities": p, "outcome": "parsed", "step": None} | more


@pytest.mark.parametrize(
    ("changes", "said", "meaning"),
    [
        ({}, record(True), Verdict(None, 1.0, True)),
        ({}, record(True, 0.25, 0.75), Verdict(None, 0.75, True)),
        ({"holds": [False]}, record(True), Verdict(None, 0.0, False)),
        ({"fields": {"a": "0-4"}}, record(3), Verdict(None, 0.75, None)),
        ({"fields": {"a": "0-4"}, "holds": [3, 4]}, record(3), Verdict(None, 0.75, True)),
        ({"fields": {"a": ["x", "y"]}, "holds": ["y"]}, record("y"), Verdict(None, 1.0, True)),
        (
            {"asks": "error", "higher_is": None, "fields": {"a": "0-2"}, "flags": [0, 1]},
            record(1, 0.5, 0.2, 0.3),
            Verdict(True, 0.7),
        ),
        (
            {
                "asks": "error",
                "higher_is": None,
                "fields": {
                    "a": {"type": "integer", "low": 0, "high": 2} | {"score": {0: 1, 1: 0, 2: None}}
                },
                "flags": [0],
            },
            record(2, 0.1, 0.1, 0.8),
            Verdict(),
        ),
    ],
)
def test_a_verdict_means_what_the_form_says(
    tmp_path: Path, changes: dict[str, Any], said: dict[str, Any], meaning: Verdict
) -> None:
    got = meaning_of(made(tmp_path, **changes).judged, said)
    assert (got.flag, got.holds) == (meaning.flag, meaning.holds)
    assert got.score == pytest.approx(meaning.score)


def test_a_property_of_steps_is_no_fault_of_the_chain(tmp_path: Path) -> None:
    form = made(tmp_path, each="step", prompt="{{ context }} > {{ step }}")
    asks = list(form.judged.asks(form.form, chain(), "x"))
    assert [one.ask.prompt for one in asks][2] == "It is red. I was told B. > So B."
    said = verdict_of(form.judged, [record(True, step=0), record(False, step=1)])
    assert (said.flag, said.score, said.first) == (None, 0.5, None)


def test_a_form_about_prefixes_shows_the_first_steps_and_reads_the_answer(tmp_path: Path) -> None:
    form = trace_forms()["answer_monitor"]
    whole = chain(answer="B", options=Listed(("A. red", "B. blue")))
    asks = list(form.judged.asks(form.form, whole, "x"))
    assert [one.about["step"] for one in asks] == [NO_STEP, 0, 1, 2]
    assert [sum(s in one.ask.prompt for s in STEPS) for one in asks] == [0, 1, 2, 3]
    assert asks[0].ask.choices() == ("A", "B", "none")
    about = dict(asks[1].about)
    assert meaning_of(form.judged, record("B", **about)) == Verdict(None, 1.0, True)
    assert meaning_of(form.judged, record("none", **about)) == Verdict(None, 0.0, False)
    assert meaning_of(form.judged, record("B", 0.2, 0.7, 0.1, **about)).score == 0.7
    lost = next(iter(form.judged.asks(form.form, chain(), "x")))
    assert lost.lacks == "answer"
    number = ChainView("?", STEPS, (0, 1), "", lambda i: "", chain(answer="1,200").values)
    free = next(iter(form.judged.asks(form.form, number, "x"))).ask
    assert schema(free)["properties"]["told"] == {"type": "string"}
    told = read(free, '{"told": "1200"}').values["told"]
    said = record(told, answer="1,200", answers=[])
    assert meaning_of(form.judged, said).holds


def test_shipped_forms_keep_the_hashes_that_units_are_stored_under() -> None:
    names = ("c2_coverage", "c2_detection", "c2_localisation", "faithful_judge", "legibility")
    hashes = [trace_forms()[name].form.sha256[:8] for name in (*names, "step_judge")]
    assert hashes == ["6b50d855", "b863868f", "2061e691", "d1455224", "1c78144f", "ddc3f513"]
