"""Pairs of given chains: with and without a cue, and of a question and its reverse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_traces import asking_of, planted
from probe_records import bare_trace, base, table_of

from faithscope.experiments.analysis.statistics.stats import clustered_means
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.tasks import LoadSettings
from faithscope.experiments.data.tasks.own import load
from faithscope.experiments.data.traces import TraceSettings
from faithscope.interp.errors import UserError
from faithscope.interventions import Given, GivenUncued, OfPair, Trace
from faithscope.interventions.trace import Origin
from faithscope.probes.cues import offers, write_chains
from faithscope.probes.hints import HintsSettings, hints
from faithscope.probes.mediation import MediationSettings, mediation

Row = dict[str, Any]
WIDE: Row = {
    "question": "Which is a mammal?",
    "choices": ["trout", "otter", "carp"],
    "answer_label": "B",
    "clean_cot": "An otter has fur.\nSo it is the otter.",
    "clean_answer": "B",
    "cue_text": "A key marks (C) as correct.",
    "cue_prepended": False,
    "hint_label": "C",
    "hinted_cot": "The key says C.\nSo I take C.",
    "hinted_answer": "carp",
    "acknowledged": True,
}
PLAIN: Row = {
    "id": "a",
    "question": "Which is a mammal?",
    "options": ["trout", "otter"],
    "reasoning": "An otter has fur. So B.",
    "answer": "B",
    "cued": False,
}
CUED: Row = PLAIN | {
    "reasoning": "The key says A. So A.",
    "answer": "A",
    "cued": True,
    "cue": "Key: A",
    "cue_name": "key",
    "cue_place": "above",
    "cue_target": "trout",
}


def test_a_row_holds_both_chains_as_the_field_names_them() -> None:
    plain, cued = read_chains([WIDE]).chains
    assert (plain.condition, plain.answer, plain.gold, plain.cue) == ("uncued", "B", "B", None)
    assert (cued.condition, cued.answer, cued.gold, cued.cue_target) == ("cued", "C", "B", "C")
    assert (cued.cue, cued.cue_place) == ("A key marks (C) as correct.", "below")
    assert (plain.labels, cued.labels) == ({}, {"acknowledged": True})
    assert cued.uncued == plain
    asked = question_of_chain(cued, "f", "pairs")
    assert asked.prompt.endswith(f"\n\n{cued.cue}")
    assert asked.uncued is not None
    assert f"{asked.uncued.prompt}\n\n{cued.cue}" == asked.prompt
    other = replace(cued, uncued=replace(plain, reasoning="Another."))
    assert question_of_chain(other, "f", "pairs").sha256 != asked.sha256


def test_a_mapping_of_labels_leaves_both_chains_of_a_row(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(WIDE | {"followed": True, "placebo_answer": "B"}))
    read = read_chains(path, columns={"labels": ["followed"]})
    plain, cued = read.chains
    assert (plain.reasoning, cued.reasoning) == (WIDE["clean_cot"], WIDE["hinted_cot"])
    assert cued.labels == {"followed": True, "acknowledged": True}
    # a mapping that names the chain says what the row is
    alone = read_chains(path, columns={"reasoning": "hinted_cot", "answer": "hinted_answer"})
    assert [c.condition for c in alone.chains] == [""]


def test_prompts_tell_the_cue_and_its_place() -> None:
    row = {"question": "Is it so?", "options": ["yes", "no"], "kind": "label"}
    row |= {"cot_plain": "It is so. Yes.", "cot_with_hint": "The user says no. No."}
    row |= {"prompt_plain": "Is it so? Say.", "prompt_with_hint": "I say no. Is it so? Say."}
    _, cued = read_chains([row | {"hint_answer": "no"}]).chains
    assert (cued.cue, cued.cue_place, cued.cue_target) == ("I say no.", None, "no")
    assert question_of_chain(cued, "f", "pairs").prompt == "I say no. Is it so? Say."


def test_samples_of_both_conditions_are_partners_by_sample() -> None:
    rows = [row | {"sample": k} for k in (0, 1) for row in (PLAIN, CUED)]
    rows[2] |= {"reasoning": "Another time. So B."}
    chains = read_chains(rows).chains
    assert [c.id for c in chains] == ["a/uncued#0", "a/key#0", "a/uncued#1", "a/key#1"]
    partners = [c.uncued.reasoning for c in chains if c.uncued]
    assert partners == [PLAIN["reasoning"], "Another time. So B."]
    assert {question_of_chain(c, "f", "pairs").question.asked_id for c in chains} == {
        "a/uncued",
        "a/key",
    }
    # one chain without the cue is that of all samples under it
    once = read_chains([PLAIN, *({**CUED, "sample": k} for k in (0, 1))]).chains
    assert [c.id for c in once] == ["a/uncued", "a/key#0", "a/key#1"]
    assert [c.uncued.reasoning for c in once if c.uncued] == [PLAIN["reasoning"]] * 2
    wide = read_chains([WIDE | {"id": "w", "sample": k} for k in "xy"])
    assert [c.sample for c in wide.chains] == ["x", "x", "y", "y"]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([PLAIN | {"sample": 0}, CUED | {"sample": 1}], r"pair .*, sample '0', has no partner"),
        ([PLAIN | {"sample": 0}, CUED | {"sample": 0}, CUED], r"has no 'sample', and others"),
        ([PLAIN | {"sample": 0}, PLAIN | {"sample": 0}, CUED | {"sample": 0}], "second uncued"),
    ],
)
def test_samples_without_a_partner_are_refused(rows: list[Row], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        read_chains(rows)


def test_a_row_holds_one_chain_and_several_cues_share_the_uncued_one() -> None:
    placebo = CUED | {"cue": "Hm.", "cue_name": "quiet", "cue_place": "system", "cue_target": None}
    plain, one, other = read_chains([PLAIN, CUED, placebo]).chains
    assert [c.id for c in (plain, one, other)] == ["a/uncued", "a/key", "a/quiet"]
    assert (one.cue_target, other.cue_target) == ("A", None)
    assert one.uncued is not None
    assert one.uncued.reasoning == plain.reasoning
    said = question_of_chain(other, "f", "pairs").message
    assert said.system == "Hm."
    assert "Key" not in said.user


def test_a_question_and_its_reverse() -> None:
    row = {"question": "Is X above Y?", "reversed_question": "Is Y above X?", "kind": "label"}
    row |= {"options": ["YES", "NO"], "gold": "YES", "reversed_gold": "NO", "id": "xy"}
    row |= {"reasoning": "X is high.", "answer": "YES"}
    row |= {"reversed_reasoning": "Y is high.", "reversed_answer": "YES"}
    one, other = read_chains([row]).chains
    assert [(c.condition, c.question, c.gold) for c in (one, other)] == [
        ("forward", "Is X above Y?", "YES"),
        ("reversed", "Is Y above X?", "NO"),
    ]
    assert one.pair == other.pair == "xy"


def test_both_yes_is_a_contradiction_and_the_pair_is_its_unit() -> None:
    def row(pair: str, turned: bool, answer: str | None, item: str) -> Row:
        about = base("trace", "m", "own", item, "")
        return about | {"pair": pair, "reversed": turned, "answer": answer}

    records = [row("a", False, "YES", "1"), row("a", True, "YES", "2")]
    # of two chains to the question one contradicts the one to its reverse
    records += [row("b", False, x, f"b{x}") for x in ("YES", "NO")] + [row("b", True, "NO", "3")]
    records += [row("c", False, None, "4"), row("c", True, "NO", "5")]
    records += [bare_trace("m", "own", "6")]
    (line,) = table_of("reversed", records).to_dict("records")
    assert (line["n_pairs"], line["n_unknown"]) == (3, 1)
    assert line["contradictory"] == pytest.approx((1 + 1 / 2) / 2)
    pairs = np.array([1, 1 / 2]), np.arange(2), np.zeros(2, dtype=int)
    assert line["contradictory_high"] == pytest.approx(clustered_means(*pairs, 1)[2][0])


def test_questions_of_ones_own_are_reversed_in_pairs(tmp_path: Path) -> None:
    one = {"question": "Is 9 above 5?", "options": ["YES", "NO"], "kind": "label", "pair": "9-5"}
    other = one | {"question": "Is 5 above 9?", "reversed": "true"}
    file = tmp_path / "q.jsonl"

    def read(*rows: Row) -> list[OfPair | None]:
        file.write_text("\n".join(map(json.dumps, rows)))
        return [q.of_pair for q in load(LoadSettings(file))]

    both = read(one | {"reversed": False}, other, without(one, "pair"))
    assert both == [OfPair("9-5", False), OfPair("9-5", True), None]
    with pytest.raises(UserError, match="'9-5' has no question with reversed: false"):
        read(one, other)
    with pytest.raises(UserError, match="line 1: says 'reversed'"):
        read(without(other, "pair"))


def without(row: Row, name: str) -> Row:
    return {k: v for k, v in row.items() if k != name}


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([PLAIN], ["row 0", "uncued chain", "no cued chain", "'cued'"]),
        ([CUED], ["row 0", "no uncued chain", "traces.format: rows"]),
        ([PLAIN, PLAIN | {"id": "b"}, CUED], ["row 1", "a second uncued chain", "'pair'"]),
        ([PLAIN, without(CUED, "cue_place")], ["row 1", "has no place", "'cue_place'"]),
        ([PLAIN, without(CUED, "cue")], ["row 1", "no cue", "'cued_prompt'"]),
        ([PLAIN, CUED | {"cue_place": "sytem"}], ["row 1", "'cue_place'", "'system'"]),
        ([PLAIN, CUED | {"cue_target": "C"}], ["row 1", "'cue_target' is 'C'", "trout, otter"]),
        ([PLAIN, without(CUED, "cued")], ["row 1", "which of its pair"]),
        ([WIDE | {"hint_label": "newt"}], ["row 0", "'hint_label' is 'newt'"]),
        ([WIDE, WIDE | {"hinted_cot": None}], ["row 1", "which of its pair"]),
        ([without(WIDE, "cue_prepended")], ["row 0", "has no place"]),
    ],
)
def test_a_pair_that_is_not_whole(rows: list[Row], parts: list[str]) -> None:
    with pytest.raises(UserError) as error:
        read_chains(rows)
    assert all(part in str(error.value) for part in parts), error.value


def given(trace: Trace, **changes: Any) -> Trace:
    told = Given("f", "pairs", "somebody/else", "0" * 64, "label", "?", **changes)
    return replace(trace, origin=Origin(trace.origin.model, given=told))


def test_a_given_pair_is_measured_as_if_the_model_had_written_it() -> None:
    model, traces = planted("hint")
    plain, words = traces[0], asking_of(traces[0])
    offer = offers(plain, words, (), 0)["hint"]
    assert offer.cue is not None
    written = write_chains(model, plain, words, {"hint": offer.cue.sent})
    assert written is not None
    chain = written[0]["hint"]
    uncued = GivenUncued(
        "?", plain.prompt_ids, plain.reasoning_text, plain.reasoning_ids, plain.answer
    )
    cued = replace(
        plain,
        prompt_ids=chain.prompt_ids,
        reasoning_ids=chain.reasoning_ids,
        pieces=model.pieces(chain.reasoning_ids),
        steps=(),
        answer=chain.answer,
    )
    cue = {"cue": "Hint", "cue_target": offer.option, "cue_name": "hint", "uncued": uncued}
    cued = given(cued, condition="cued", cue_mention=r"\bHint\b", **cue)
    for probe, settings in ((hints, HintsSettings()), (mediation, MediationSettings())):
        by_cue = {r["cue"]: r for r in probe(model, plain, words, settings)}
        (paired,) = probe(model, cued, words, settings)
        for name in ("option", "own", "answer", "switched", "total", "direct", "indirect", "words"):
            if name in by_cue["hint"]:
                assert paired[name] == pytest.approx(by_cue["hint"][name], abs=1e-4), name
        (alone,) = probe(model, given(plain, condition="uncued"), words, settings)
        assert alone["excluded"] == "measured_with_its_cued_chain"
        own = replace(cued.origin.given, cue_target=plain.answer)  # type: ignore[type-var]
        (followed,) = probe(
            model, replace(cued, origin=replace(cued.origin, given=own)), words, settings
        )
        assert followed["excluded"] == "cue_points_to_own_answer"


def test_both_chains_are_encoded_in_the_reading_models_tokens() -> None:
    model, _ = planted("faithful")
    row = {"question": "Compute 1 + 2 mod 10 .", "gold": "3", "kind": "number", "model": "m"}
    row |= {"reasoning": "So 1 + 2 makes 3 .", "answer": "3", "cue": "Hint : 4 ."}
    row |= {"cued_reasoning": "So 1 + 2 makes 4 .", "cued_answer": "4", "cue_place": "below"}
    plain, cued = (
        given_trace(model, question_of_chain(c, "f", "pairs"), TraceSettings())
        for c in read_chains([row | {"cue_target": "4"}]).chains
    )
    told = cued.origin.given
    assert told is not None
    assert told.uncued is not None
    assert (told.uncued.prompt_ids, told.uncued.reasoning_ids, told.uncued.answer) == (
        plain.prompt_ids,
        plain.reasoning_ids,
        plain.answer,
    )
    assert (told.cue_target, cued.answer) == ("4", "4")
