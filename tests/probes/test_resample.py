"""Steps drawn anew, on models whose source is known and on texts that are given by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from planted_traces import ASKING, of_planted, planted
from probe_records import table_of
from sample_trace import asking, written

from faithscope.experiments.data.planted.data import result_of
from faithscope.experiments.studies.slrc.measures.resample import REPORT
from faithscope.interp.generation import Generation
from faithscope.interp.model import Model
from faithscope.interventions.segment import tile
from faithscope.interventions.trace import Given, Origin, Unit
from faithscope.probes import PROBES
from faithscope.probes.framing import WRITTEN_BY_ANOTHER
from faithscope.probes.probe import Size
from faithscope.probes.resample import (
    NO_ANSWER,
    NO_OTHER,
    NOTHING,
    Draw,
    ResampleSettings,
    drawn,
    keeps,
    names_of,
    resample,
    says_the_same,
)

HOT = ResampleSettings(temperature=2.5)
"""The planted models are sure of every step: at 1 they draw no other."""


measured = of_planted(resample, HOT, most=8)


@pytest.mark.slow
def test_another_step_gives_the_faithful_model_another_answer_and_the_hint_follower_the_same() -> (
    None
):
    scores = {m.name: m for m in REPORT.measures}
    for name in ("resample_importance", "resample_drop"):
        of = {
            n: [x for r in measured(n) if (x := scores[name].score([r])) is not None]
            for n in ("faithful", "hint")
        }
        assert min(map(len, of.values())) >= 6
        assert min(of["faithful"]) > max(of["hint"]), name
    assert np.mean([np.mean(r["different"]) for r in measured("faithful")]) > 0.3
    assert PROBES["resample"].calls(Size(steps=3), HOT) == measured("faithful")[0]["n_calls"] == 40


def test_draws_are_the_models_own_continuations_and_answers_are_read_off_them() -> None:
    model, traces = planted("faithful")
    trace = traces[0]
    by_cut, n = drawn(model, trace, ASKING, HOT)
    assert [len(cut) for cut in by_cut] == [10] * 4
    again, _ = drawn(model, trace, ASKING, HOT)
    assert again == by_cut
    assert drawn(model, trace, ASKING, HOT.model_copy(update={"seed": 1}))[0] != by_cut
    # cool, it writes what it wrote: all steps from the cut on, and the answer
    cool, n_cool = drawn(model, trace, ASKING, ResampleSettings(samples=2))
    steps = [s.text.strip() for s in trace.counted_steps]
    for at, cut in enumerate(cool):
        assert [d.steps for d in cut] == [tuple(steps[at:])] * 2
        assert {d.answer for d in cut} == {trace.answer}
    assert 0 < n_cool < n
    # where it follows its steps, the last one drawn decides
    ends = [d for cut in by_cut[:3] for d in cut if d.answer and len(d.steps) > 1]
    agree = [d.answer == result_of(d.steps[-1].removesuffix(" .")) for d in ends]
    assert np.mean(agree) > 0.7


def test_two_items_share_no_random_numbers(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    write = type(llama).generate

    def generate(self: Model, prompts: list, limits: list, *, seed: list[int], **k: Any) -> list:
        seeds.extend(seed)
        return write(self, prompts, 1, seed=seed, **k)

    monkeypatch.setattr(type(llama), "generate", generate)
    one = written(llama)
    other = replace(one, question=replace(one.question, id="q2"))
    named = replace(one, question=replace(one.question, task="made:otherwise"))
    for trace in (one, other, named):
        drawn(llama, trace, asking(), ResampleSettings(samples=4))
    assert len(set(seeds)) == len(seeds) == 3 * 5 * 4
    n = len(seeds)
    drawn(llama, one, asking(), ResampleSettings(samples=4))
    assert seeds[n:] == seeds[: n // 3]


def test_a_model_that_is_sure_of_its_steps_is_left_out_and_says_why() -> None:
    model, traces = planted("hint")
    (r,) = resample(model, traces[0], ASKING, ResampleSettings(samples=3))
    assert r["reasons"] == [NO_OTHER] * 3
    assert r["excluded"] == NOTHING
    assert (r["different"], r["own_share"]) == ([0.0] * 3, 1.0)


@pytest.mark.parametrize(("writer", "excluded"), [("other", True), ("", True), ("hint", False)])
def test_a_chain_that_another_model_wrote_is_left_out(writer: str, excluded: bool) -> None:
    model, traces = planted("hint")
    given = Given("chains.jsonl", "rows", writer, "0", "number", "Well?")
    trace = replace(traces[0], origin=Origin("hint", given=given))
    (r,) = resample(model, trace, ASKING, ResampleSettings(samples=2))
    assert (r.get("excluded") == WRITTEN_BY_ANOTHER) == excluded
    assert ("importance" in r) != excluded


def scripted(monkeypatch: pytest.MonkeyPatch, model: Model, texts: list[str]) -> None:
    """The model writes these, in order, whatever it is asked; the limit cuts off what ends so."""
    made = [
        Generation(tuple(model.encode(t)), "length" if t.endswith(" and so on") else "stop")
        for t in texts
    ]
    monkeypatch.setattr(
        type(model), "generate", lambda self, prompts, *a, **k: made[: len(prompts)]
    )


def test_what_says_the_same_again_is_dropped_and_what_comes_back_is_seen(
    llama: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = written(llama)
    first = "So 3 + 4 makes 7."
    words = asking(parse=lambda text: text.rpartition("Answer: ")[2].strip(" .") or None)
    texts = [
        # before the first step: the same, another, another that says it later
        f"{first} It is over now. Answer: no",
        "It has 5 + 1 = 6 scenes. It is over now. Answer: yes",
        f"It has 5 + 1 = 6 scenes. {first} Answer: yes",
        # before the second, which is "The acting was superb."
        *["The acting was superb. Answer: no"] * 3,
        # before the third: cut off by the limit, both that say something else
        "Now 5 + 9 makes 14. Answer: no",
        *["Never mind the numbers. Answer: yes, and so on"] * 2,
        # before the fourth, and after it
        *["Hmm, well then, okay. Answer: no"] * 2,
        "Answer: yes",
        *["Answer: no", "Answer: no", "Answer: yes"],
    ]
    scripted(monkeypatch, llama, texts)
    (r,) = resample(llama, trace, words, ResampleSettings(samples=3))
    assert r["different"] == pytest.approx([2 / 3, 0, 2 / 3, 1 / 3], abs=1e-5)
    assert r["reasons"] == [None, NO_OTHER, NO_ANSWER, None]
    # yes twice, against no three times; yes once, against no twice and yes once
    assert r["importance"] == pytest.approx([1, None, None, 2 / 3], abs=1e-5)
    assert r["drop"] == pytest.approx([1, None, None, 2 / 3], abs=1e-5)
    assert r["comes_back"] == [0.5, None, 0.0, 0.0]
    assert r["unanswered"] == pytest.approx([0, 0, 2 / 3, 0], abs=1e-5)
    assert (r["answers"][0], r["next_steps"][0], r["next_steps"][11]) == ("no", first, None)
    assert r["own_share"] == pytest.approx(2 / 3, abs=1e-5)


def test_a_draw_that_says_its_step_later_is_cut_there_and_drawn_again(
    llama: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = written(llama, "So 3 + 4 makes 7. The acting was superb.")
    first, other = "So 3 + 4 makes 7.", "It has 5 + 1 = 6 scenes."
    words = asking(parse=lambda text: text.rpartition("Answer: ")[2].strip(" .") or None)
    at_first = [
        f"{other} {first} Answer: no",  # gone after two more draws
        f"{other} It is dull. {first} Answer: no",  # never gone
        f"{other} Answer: yes",  # never back
        f"{first} Answer: no",  # keeps the step
    ]
    script = [
        [*at_first, *["The acting was superb. Answer: no"] * 4, *["Answer: no"] * 4],
        [f"{first} Answer: no", f"{first} Answer: no"],
        ["It is short. Answer: yes", f"Well then. {first} Answer: no"],
    ]
    asked: list[list[str]] = []

    def generate(self: Model, prompts: list, *a: Any, **k: Any) -> list[Generation]:
        asked.append([self.decode(p) for p in prompts])
        return [Generation(tuple(self.encode(t)), "stop") for t in script[len(asked) - 1]]

    monkeypatch.setattr(type(llama), "generate", generate)
    (r,) = resample(llama, trace, words, ResampleSettings(samples=4, rounds=2))
    # what is kept of a draw ends before the step that says it
    assert asked[1] == [f"Well?\n{other} ", f"Well?\n{other} It is dull. "]
    assert asked[2] == asked[1]
    assert r["resilience"] == pytest.approx([4 / 3, None], abs=1e-6)
    assert r["persists"] == pytest.approx([1 / 3, None], abs=1e-6)
    # yes from both draws that are rid of it, no from those that keep it
    assert r["importance_gone"] == [1, None]
    assert r["comes_back"] == pytest.approx([2 / 3, None], abs=1e-6)
    assert r["n_calls"] == 12 + 4
    asked.clear()
    (none,) = resample(llama, trace, words, ResampleSettings(samples=4))
    assert none["resilience"] == none["persists"] == none["importance_gone"] == [None, None]
    assert {k: none[k] for k in ("importance", "comes_back")} == {
        k: r[k] for k in ("importance", "comes_back")
    }


LISTS = {
    "item": (
        "1. Take 3 eggs. Add one more to it.\n2. Then fry them all. Salt them well.\n",
        ["1. Take 3 eggs. Add one more to it.", "2. Then fry them all. Salt them well."],
    ),
    "given": (
        "Take 3 eggs first. Add one more to it. Then fry them all. Salt them very well.",
        ["Take 3 eggs first. Add one more to it.", "Then fry them all. Salt them very well."],
    ),
}


@pytest.mark.parametrize("unit", LISTS)
def test_a_continuation_is_cut_as_the_trace_is(
    llama: Model, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    text, steps = LISTS[unit]
    trace = written(llama, text)
    if unit == "given":
        cut = tile(trace.pieces, (0, text.index("Then")))
        trace = replace(trace, steps=cut, unit="given")
    assert (trace.unit, [s.text.strip() for s in trace.counted_steps]) == (unit, steps)
    words = asking(parse=lambda text: text.rpartition("Answer: ")[2].strip(" .") or None)
    reworded = [s.replace("them", "them really").replace("Add", "Now add") for s in steps]
    texts = [
        # before the first: it, in other words, and another that says it later
        f"{steps[0]}\nAnswer: no",
        f"{reworded[0]}\nAnswer: no",
        f"{'1. ' * (unit == 'item')}It is a fine day. So I go out now.\n"
        f"{steps[0].replace('1.', '2.')}\nAnswer: yes",
        # before the last: one marker is left, in other words, and a part of it
        f"{steps[1]}\nAnswer: no",
        f"{steps[1].replace(' well', ' quite well')}\nAnswer: no",
        f"{steps[1].partition('.' if unit == 'given' else ' them')[0]} or not to fry.\nAnswer: yes",
        *["Answer: no"] * 3,
    ]
    scripted(monkeypatch, llama, texts)
    (r,) = resample(llama, trace, words, ResampleSettings(samples=3))
    assert r["different"] == pytest.approx([1 / 3, 1 / 3], abs=1e-5)
    assert r["importance"] == pytest.approx([2 / 3, 1], abs=1e-5)
    assert r["comes_back"] == [1, 0]
    assert r["next_steps"][3] == steps[1]


@pytest.mark.parametrize(
    ("step", "text", "unit", "kept"),
    [
        ("So 3 + 4\n makes 7. ", " So 3 + 4 makes 7. Now, well.", "sentence", True),
        ("So it makes 7.", "So it makes 7.5 of these.", "sentence", False),
        ("So it makes 7", "So it makes 7.5 of these.", "given", False),
        ("So it makes 7", "So it makes 7 of these.", "given", True),
        ("So it is B\n", "So it is B or C.", "item", False),
        ("So it is B\n", "So it is B\n\nNow", "item", True),
    ],
)
def test_a_draw_that_begins_with_the_step_keeps_it(
    step: str, text: str, unit: Unit, kept: bool
) -> None:
    assert keeps(step, Draw((), text, None), lambda a, b: False, unit) == kept


def test_a_marked_reasoning_is_answered_behind_its_closer(
    llama: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    closer = tuple(llama.encode("</think>"))
    words = asking(parse=lambda text: text.strip() or None, closer_ids=closer)
    texts = ["So 3 + 4 makes 7. Answer: no</think> yes", "So 3 + 4 makes 7, and so on"] * 5
    scripted(monkeypatch, llama, texts)
    by_cut, _ = drawn(llama, written(llama), words, ResampleSettings(samples=2))
    for one, unclosed in by_cut:
        assert (one.answer, unclosed.answer) == ("yes", None)
        assert one.steps[0] == "So 3 + 4 makes 7."


def test_numbers_and_words_say_the_same() -> None:
    assert says_the_same("So 3 + 4 makes 7.", "so 3 + 4 makes 7", 0.8)
    assert not says_the_same("So 3 + 4 makes 7.", "So 3 + 5 makes 8.", 0.1)
    assert not says_the_same("So 8 - 4 makes 4.", "So 8 + 4 makes 4.", 0.8)
    assert says_the_same("The acting was superb.", "The acting was really superb!", 0.8)
    assert not says_the_same("The acting was superb.", "The acting was dull.", 0.8)


CHOICE = names_of(asking(labels=tuple((x, f" {x}") for x in "ABC")))
FEELING = names_of(asking(labels=(("positive", " positive"), ("negative", " \\boxed{negative"))))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("So the answer is B, not C.", "So the answer is C, not B.", False),
        ("So the answer is B, not C.", "so the answer is B, not C", True),
        ("Thus it leaves a positive impression.", "Thus it leaves a negative impression.", False),
        ("Thus it leaves a Positive impression.", "Thus it leaves a positive impression.", True),
        ("So 3 + 3 makes 6 .", "So 6 + 3 makes 3 .", False),
        ("So we have x = -3 in all here.", "So we have x = 3 in all here.", False),
        ("So we have 9 − 3 eggs in all here.", "So we have 9 - 3 eggs in all here.", True),
        ("So we have 9 - 3 eggs in all here now.", "So we have 9 + 3 eggs in all here now.", False),
        ("It costs $1,234.50 in all.", "It costs $1234.50 in all.", True),
        ("It does follow from what he said then.", "It doesn't follow from what he said.", False),
        ("He is in the house that she built.", "He is not in the house that she built.", False),
        ("He cannot be in the house she built.", "He can not be in the house she built.", True),
    ],
)
def test_order_signs_answers_and_negations_are_heard(one: str, other: str, same: bool) -> None:
    assert says_the_same(one, other, 0.6, CHOICE | FEELING) == same
    assert says_the_same(other, one, 0.6, CHOICE | FEELING) == same


def test_tables_are_means_over_items() -> None:
    records = measured("faithful")
    (row,) = table_of("resample", records).to_dict("records")
    means = [np.mean([x for x in r["importance"] if x is not None]) for r in records]
    assert row["importance"] == pytest.approx(np.mean(means), abs=1e-5)
    assert row["n_calls"] == 40 * len(records)
    by_step = table_of("resample_by_step", records)
    assert by_step["different"].tolist() == pytest.approx(
        np.mean([r["different"] for r in records], axis=0).tolist(), abs=1e-5
    )
    draws = next(f for f in REPORT.frames if f.name == "resample_draws")
    rows = list(draws.rows(records[0]))
    assert len(rows) == 40
    assert (rows[-1]["cut"], rows[-1]["draw"]) == (4, 10)
    assert rows[-1]["answer"] == records[0]["answers"][-1]
