"""Any probe on one trace of one's own."""

from __future__ import annotations

import re
from typing import Any

import pytest

import faithscope
from faithscope import interp
from faithscope.experiments.data.traces import TraceSettings
from faithscope.interp.errors import UserError
from faithscope.interventions import Trace
from faithscope.probes import PROBES


@pytest.fixture(scope="module")
def model() -> interp.Model:
    return interp.load("planted:faithful")


@pytest.fixture(scope="module")
def trace(model: interp.Model) -> Trace:
    (made,) = faithscope.make_traces(model, faithscope.questions("planted", 1))
    return made


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_measures_a_trace_by_its_name(
    model: interp.Model, trace: Trace, probe: str
) -> None:
    records = faithscope.measure(model, trace, probe)
    assert records
    assert {(r["probe"], r["item"], r["model"]) for r in records} == {
        (probe, trace.question.id, "planted:faithful")
    }
    head = f"{len(records)} record{'s' * (len(records) > 1)} of {probe} about item "
    assert repr(records).startswith(head)
    assert head in records._repr_html_()
    assert len(records.frame) == len(records)


def test_settings_are_those_of_a_config(model: interp.Model, trace: Trace) -> None:
    (few,) = faithscope.measure(model, trace, "tracing", every=100)
    (all_of_them,) = faithscope.measure(model, trace, "tracing")
    assert few["n_cuts"] < all_of_them["n_cuts"] == len(trace.reasoning_ids) + 1


@pytest.mark.parametrize(
    ("probe", "settings", "message"),
    [
        ("tracin", {}, "unknown probe 'tracin'; did you mean 'tracing'"),
        ("tracing", {"evry": 2}, "probe 'tracing' has no setting 'evry'; did you mean 'every'"),
        ("tracing", {"every": 0}, r"tracing\.every: .*got 0"),
        ("slrc", {"conclusion": "keep"}, "probe 'slrc' has no setting 'conclusion'"),
        ("linear_probe", {"folds": 7}, "'folds' is about the items of a run"),
        ("flow", {"evry": 1}, "probe 'flow' has no setting 'evry'; it has none"),
        ("flow", {"every": 1}, "probe 'flow' has no setting 'every'; tracing"),
        ("knockout", {"cuts": {}}, "probe 'knockout' has no setting 'cuts'; span_knockout has it"),
        ("knockout", {"spans": {}}, "has no setting 'spans'; span_knockout, .*steering.* have it"),
        ("flow", {"limit": 1}, "'limit' is about the items of a run"),
    ],
)
def test_what_cannot_be_measured_is_named(
    model: interp.Model, trace: Trace, probe: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        faithscope.measure(model, trace, probe, **settings)


def test_a_trace_that_a_run_would_exclude_is_refused_with_the_reason(model: interp.Model) -> None:
    asked = faithscope.questions("planted", 1)
    (cut,) = faithscope.make_traces(model, asked, TraceSettings(max_new_tokens=3))
    with pytest.raises(ValueError, match=r"cannot be probed \(fewer_than_2_steps\)"):
        faithscope.measure(model, cut, "tracing")


@pytest.mark.slow
def test_chains_with_short_steps_come_with_the_setting_that_takes_them() -> None:
    model = faithscope.load("bundled:smollm2-135m", verify_model=False)
    text = "3 boxes of 4 pens are 12 pens. 12 - 2 = 10."
    rows = [{"question": "How many pens are left?", "reasoning": text, "answer": 10}]
    (short,) = faithscope.given_traces(model, rows)
    with pytest.raises(ValueError, match=r"settings=TraceSettings\(min_step_chars=(\d+)\)") as said:
        faithscope.measure(model, short, "tracing")
    (helps,) = re.findall(r"min_step_chars=(\d+)", str(said.value))
    (trace,) = faithscope.given_traces(
        model, rows, settings=TraceSettings(min_step_chars=int(helps))
    )
    assert len(trace.counted_steps) == 2
    assert faithscope.measure(model, trace, "tracing")


def test_no_more_is_written_than_the_model_has_positions_for(
    model: interp.Model, trace: Trace
) -> None:
    assert model.max_positions is not None
    assert trace.origin.sampling["max_new_tokens"] == model.max_positions - len(trace.prompt_ids)


def test_a_chain_of_no_known_kind_of_answer_is_refused_by_what_reads_answers(
    model: interp.Model,
) -> None:
    row = {"question": "3 + 4 - 2", "reasoning": "So 3 + 4 makes 7 . So 7 - 2 makes 5 ."}
    (chain,) = faithscope.given_traces(model, [row])
    with pytest.raises(ValueError, match="'tracing' reads answers, and their kind is not known"):
        faithscope.measure(model, chain, "tracing")
    assert faithscope.measure(model, chain, "attention")


def test_wrong_arguments_are_named_with_the_remedy(model: interp.Model, trace: Trace) -> None:
    measure: Any = faithscope.measure
    make: Any = faithscope.make_trace
    for call, said in (
        (lambda: measure(trace, model, "slrc"), "the model comes first"),
        (lambda: measure(model, "a text", "slrc"), "str is no trace: faithscope.make_trace"),
        (lambda: measure(model, [trace], "slrc"), "list is no trace: measure one at a time"),
        (lambda: measure(model, None, "slrc"), "NoneType is no trace"),
        (lambda: measure("planted:faithful", trace, "slrc"), "str is no model: faithscope.load"),
        (lambda: measure(model, trace, "lens"), "'lens'; the word is in the summary of rigidity"),
        (lambda: faithscope.inject(model, "text", "more"), "str is no trace"),  # pyright: ignore
        (lambda: make(model, faithscope.questions("planted", 1)[0]), "tuple is no question"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            call()


def test_what_a_notebook_shows_is_short(model: interp.Model) -> None:
    size = r"[\d,]+ parameters, 3 layers, float32 on cpu"
    assert re.fullmatch(rf"Model\('planted:faithful': LlamaForCausalLM, {size}\)", repr(model))
    assert "<li>" in model._repr_html_()
    assert "<function" not in repr(faithscope.questions("planted", 1))
    assert not {"TYPE_CHECKING", "annotations", "_planted"} & {*dir(faithscope)}
    assert {*faithscope.__all__} <= {*dir(faithscope)}


def test_results_stand_first_and_settings_and_counts_last(
    model: interp.Model, trace: Trace
) -> None:
    traced = faithscope.measure(model, trace, "tracing")
    assert [*traced.numbers][:4] == ["gold_before", "gold_after", "p_before", "p_after"]
    assert [*traced.frame][-1] == "least_label_mass"
    assert {*traced.frame} == {*traced[0]} - {"arrays"}
    cut = faithscope.measure(model, trace, "knockout", windows=0)
    (first, *_) = [*cut]
    assert next(iter(cut.numbers)) == "variant"
    assert {"tv", "flips"} <= {*cut.numbers}
    assert cut.numbers["tv"][0] == pytest.approx(sum(first["tv"]) / len(first["tv"]), abs=1e-6)
    assert "of a list over steps, the mean" in cut.head


def test_traces_and_records_print_short(model: interp.Model, trace: Trace) -> None:
    shorter = faithscope.interventions.remove_step(trace, 1)
    assert repr(trace).startswith(f"<Trace planted/{trace.question.id}: 3 steps, 21 reasoning ")
    assert "edited: remove of step 2" in repr(shorter)
    assert max(map(len, map(repr, (trace, shorter)))) < 200
    (record,) = faithscope.measure(model, trace, "tracing")
    lines = repr(record).splitlines()
    assert lines[-1].split() == ["arrays['mass']", "float32", "(22,)"]
    assert max(map(len, lines)) < 100
    assert {**record} == record
