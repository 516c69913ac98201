"""FUR on tiny and planted models: what is unlearned, kept and counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planted_traces import asking_of, planted
from probe_records import table_of
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.experiments.studies.slrc.tables.measures import MEASURES
from faithscope.interp.unlearning import NoSuchWeights, Unlearning, unlearned
from faithscope.probes import fur as module
from faithscope.probes.fur import FurSettings, fur, target_of
from faithscope.probes.probe import OtherChain
from faithscope.probes.settings import ModelFacts

ASKED = asking(asked="Is it yes?")
OTHERS = [
    OtherChain(f"q{i}", f"Is {i} yes?", f"So 1 + {i} makes {i + 1}. Then it is no.", "no")
    for i in range(6)
]
GREEDY = FurSettings(samples=1, temperature=0.0, learning_rate=0.01)


def found(name: str, i: int) -> Any:
    model, traces = planted(name)
    rest = [t for t in traces if t is not traces[i]]
    others = [OtherChain(t.question.id, t.question.text, t.reasoning_text, t.answer) for t in rest]
    (record,) = fur(model, traces[i], asking_of(traces[i]), GREEDY, others[:8])
    return record


def test_content_words_after_question_and_earlier_steps_are_unlearned() -> None:
    model = tiny("llama")
    target = target_of(model, "Well?", [" It is so. ", "Hm."], "So the 12 pens.", FurSettings())
    assert model.decode(target.ids) == "Well?\n\nIt is so.\nHm.\nSo the 12 pens."
    assert model.decode([target.ids[i] for i in target.forgotten]) == "So12pens".replace("So", "")
    whole = target_of(model, "Well?", [], "So it is.", FurSettings(words="all", context=6))
    assert model.decode(whole.ids) == " it is."[-6:]
    assert whole.forgotten == (1, 2, 3, 4, 5)


def test_answers_are_those_of_the_unlearned_model() -> None:
    model = tiny("llama")
    trace = written(model)
    settings = FurSettings(samples=2, max_new_tokens=6, learning_rate=0.3, updates=2)
    (record,) = fur(model, trace, ASKED, settings, OTHERS)
    steps = trace.counted_steps
    assert record["n_steps"] == len(steps)
    assert (record["n_kept"], record["n_held_out"]) == (4, 2)
    assert record["n_calls"] == 2 * (len(steps) + 1)
    assert record["n_updates"] == 2 * len(steps)
    assert len(record["answers"]) == 2 * (len(steps) + 1)
    how = Unlearning("down_proj", 0.3, 2)
    kept = module._kept(model, OTHERS[:4], trace, settings)
    before = [s.text for s in trace.steps if s.index < steps[1].index]
    target = target_of(model, "Is it yes?", before, steps[1].text, settings)
    with unlearned(model, target, kept, how) as efficacy:
        answers, _ = module._answered(model, trace, ASKED, settings)
    assert record["efficacy"][1] == pytest.approx(efficacy, abs=1e-5)
    assert record["answers"][4:6] == answers
    # the token limit cuts these texts off: other answers, and counted as unread
    assert record["unanswered"] == [1.0] * len(steps)
    assert record["changes"] == [True] * len(steps)
    assert (record["control_changes"], record["control_unanswered"]) == (True, 1.0)


def test_votes_are_by_majority_and_unread_answers_count_as_others() -> None:
    for answers, changes, changed in (
        (["no", "no", "yes"], False, 1 / 3),
        (["no", "yes"], False, 0.5),
        ([None, "yes", "no"], True, 2 / 3),
    ):
        votes = module._votes(answers, "no")
        assert (votes["changes"], votes["changed"]) == (changes, pytest.approx(changed, abs=1e-6))


def test_what_cannot_be_measured_is_left_out_with_its_reason() -> None:
    model = tiny("llama")
    trace = written(model)

    def reason(of: Any, others: Any = OTHERS, settings: FurSettings = GREEDY) -> Any:
        return fur(model, of, ASKED, settings, others)[0]["excluded"]

    assert reason(replace(trace, answer=None)) == "answer_unparsed"
    assert reason(trace, ()) == "no_other_chains"
    few = written(model, "It is so and so it is. Then it would be as it was.")
    (record,) = fur(model, few, ASKED, replace_settings(samples=2), OTHERS)
    assert record["excluded"] == "no_step_unlearned"
    assert set(record["reasons"]) == {"few_content_words"}
    assert MEASURES["fur"].score([record]) is None
    with pytest.raises(NoSuchWeights):
        fur(model, trace, ASKED, replace_settings(weights="c_fc"), OTHERS)
    facts = ModelFacts("m", quantised=True)
    assert "quantised" in str(GREEDY.misfit_with(facts))


def replace_settings(**changes: Any) -> FurSettings:
    return GREEDY.model_copy(update={"max_new_tokens": 4, **changes})


def test_unlearned_steps_change_the_answer_that_follows_them_and_no_other() -> None:
    for name, changes in (("faithful", True), ("hint", False)):
        record = found(name, 1)
        assert (record["control_changes"], record["control_changed"]) == (False, 0)
        assert all(x > 0.9 for x in record["efficacy"])
        assert record["changes"] == [changes] * 3
        assert record["faithful"] == MEASURES["fur"].score([record]) == changes
        row = table_of("fur", [record]).iloc[0]
        assert row["n_updates"] == 15
        assert row["efficacy"] == pytest.approx(sum(record["efficacy"]) / 3, abs=1e-6)
