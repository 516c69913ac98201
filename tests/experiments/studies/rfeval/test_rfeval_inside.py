"""Outputs of RFEval as chains with prefilled reasoning, and what is read inside a model of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from all_families import save
from chat_tokenizers import MARKED
from planted_traces import planted
from pydantic import ValidationError
from rf_families import R_PRIME, family
from rf_outputs import outputs, said
from rf_posed import CODE, LOGIC, NUMBER, TABLE, WORDS, item
from tiny_models import tiny

from faithscope import interp
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.planted.data import ANSWER_CUE
from faithscope.experiments.studies.rfeval.config_sections import InsideConfig
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.scored_stances import scored_stances
from faithscope.experiments.studies.rfeval.subjects.inside import (
    asking_of,
    look_inside,
    output_chain,
)
from faithscope.experiments.studies.rfeval.subjects.subjects import forced
from faithscope.interp.control import encode_marks
from faithscope.interp.model import Model
from faithscope.probes.chain_parts import ChainText
from faithscope.probes.prefilled_reasoning import option_signals, shares_along
from faithscope.probes.record import ARRAYS

SMALL = InsideConfig(points=4)
PAIR = item(options=("no", "yes"))


def text_of(model: Model, start: Any, generated: Any) -> ChainText:
    asking = asking_of(model, PAIR, "", "letters")
    return ChainText.of(model, output_chain(model, PAIR, start, generated), asking)


@cache
def looked(task: Item = TABLE, **settings: Any) -> dict[str, dict[str, Any]]:
    model = tiny("llama")
    config = InsideConfig(**settings) if settings else SMALL
    return {r["variant"]: r for r in look_inside(model, task, outputs(model), config)}


@pytest.mark.parametrize("name", MARKED)
@pytest.mark.in_time(5)
def test_each_part_ends_where_it_ends_and_every_cut_keeps_every_token_before_it(name: str) -> None:
    model = family(name)
    start = forced(model, "What is 2 + 3?", R_PRIME)
    written = said(model)
    text = text_of(model, start, written)
    parts = {p: model.decode(text.written[a:b]) for p, (a, b) in text.spans.items()}
    reasoning, explanation = "No, it is 5. It is.", "\n\nSo five.\n\n**Answer:** "
    assert parts == {"r_prime": R_PRIME, "r": reasoning, "e": explanation}
    whole, n = (*start.ids, *written), len(start.prompt.ids)
    closer = encode_marks(model.tokenizer, model.format.closer)
    cuts = text.cuts(1000)
    assert text.resumed - text.reasoned == len(closer)
    assert cuts == [c for c in range(text.end + 1) if not text.reasoned < c <= text.resumed]
    for cut in cuts:
        ids = text.prefix(cut)
        assert ids[: n + cut] == whole[: n + cut]
        assert ids[n + cut :] == (tuple(closer) if cut <= text.reasoned else ())


def test_parts_that_are_not_there() -> None:
    model = family("qwen3")
    start = forced(model, "What is 2 + 3?", R_PRIME)
    assert list(text_of(model, forced(model, "What is 2 + 3?"), said(model)).spans) == ["r", "e"]
    cut_off = text_of(model, start, said(model, closed=False))
    assert list(cut_off.spans) == ["r_prime", "r"]
    assert text_of(model, start, ()).cuts(4)[-1] == len(start.r_prime_ids)
    closer = encode_marks(model.tokenizer, model.format.closer)
    at_once = (*model.encode("It is 5."), *closer, *model.encode("B"))
    # the answer cannot be told from an explanation: all of it is one
    text = text_of(model, start, at_once)
    assert text.end == len(text.written)


def test_without_marks_all_before_the_answer_is_reasoning() -> None:
    model = tiny("llama")
    start = forced(model, "What?", "So it is 4.")
    text = text_of(model, start, model.encode(" Wait, no.\nAnswer: 5"))
    assert model.decode(text.written[slice(*text.spans["r"])]) == " Wait, no.\nAnswer: "
    assert list(text.spans) == ["r_prime", "r"]
    assert text.prefix(text.reasoned) == (*start.prompt.ids, *text.written[: text.reasoned])


def test_the_question_is_all_that_was_asked_wherever_it_stands_in_the_prompt() -> None:
    model = tiny("llama")
    asked = item(question="Why?", context="Passage.", options=("x", "y"))
    start = forced(model, "Passage. Why? A: x\nB: y End")
    chain = output_chain(model, asked, start, model.encode(" It is.\nAnswer: A"))
    assert chain.question.text == "Passage. Why? A: x\nB: y"
    elsewhere = output_chain(model, asked, forced(model, "Hm"), model.encode("Answer: A"))
    assert elsewhere.question.text == ""


def test_ends_of_parts_are_the_scored_stances() -> None:
    model = tiny("llama")
    record = looked()["intervened"]
    p = dict(zip(record["cuts"], shares_along(record), strict=True))
    scored = {s["part"]: s for s in scored_stances(model, TABLE, *outputs(model)["intervened"])}
    ends = {"none": 0, "r_prime": record["n_r_prime"], "r": record["reasoned"]}
    # past its answer nothing is traced
    assert set(scored) == {*ends, "a"}
    for part, cut in ends.items():
        assert p[cut] == pytest.approx(scored[part]["probabilities"], abs=1e-4)


@pytest.mark.parametrize("name", ["qwen3", "gpt_oss"])
def test_a_text_with_marks_is_traced_through_its_explanation(name: str) -> None:
    model = family(name)
    start = forced(model, "Guilty?", R_PRIME)
    pair: Any = {"intervened": (start, said(model))}
    (record,) = look_inside(model, PAIR, pair, SMALL)
    text = text_of(model, start, said(model))
    assert record["cuts"] == text.cuts(4)
    assert record["cuts"][-1] == text.end > text.resumed > text.reasoned
    shares = record[ARRAYS]["asked_attention"].sum(-1)
    assert ((shares > 0) & (shares < 1)).all()
    assert record["asked_own"] > 0


QUESTION = "Compute 3 + 4 - 2 + 9 mod 10 . Hint : 4 ."
WRONG = " So 3 + 4 makes 7 . So 7 - 2 makes 5 . So 5 + 9 makes 6 ."
RIGHT = " So 3 + 4 makes 7 . So 7 - 2 makes 5 . So 5 + 9 makes 4 ."
PLANTED = InsideConfig(points=7, labels="words", cue=ANSWER_CUE, free_cue=ANSWER_CUE)


def test_a_model_that_follows_its_steps_is_seen_to_follow_r_prime_and_to_turn() -> None:
    options = item(question=QUESTION, options=tuple("0123456789"), answer="E", r_prime=WRONG)
    free = item("mathematical_reasoning", question=QUESTION, options=(), answer="4")
    seen = {}
    for name in ("faithful", "hint"):
        model, _ = planted(name)
        pair: Any = {"intervened": (forced(model, QUESTION, WRONG), model.encode(RIGHT))}
        (traced,) = look_inside(model, options, pair, PLANTED)
        (regained,) = look_inside(model, free, pair, PLANTED)
        # G is the option whose word is 6
        seen[name] = option_signals(traced, "G", "E") | {"gold": regained["gold_regained"]}
    assert seen["faithful"]["r_prime_effect"] > 0.99
    assert (seen["faithful"]["turn_part"], seen["hint"]["turn_part"]) == ("r", "never_led")
    assert abs(seen["hint"]["r_prime_effect"]) < 0.01
    assert seen["faithful"]["gold"] > 5
    assert abs(seen["hint"]["gold"]) < 0.1


def test_items_without_options() -> None:
    free = looked(NUMBER)
    # the gold answer, and what both outputs answer
    assert free["baseline"]["options"] == [NUMBER.answer, "B", "C"]
    assert free["intervened"][ARRAYS]["log_probs"].shape == (len(free["intervened"]["cuts"]), 3)
    assert free["baseline"]["gold_lost"] is None
    own = np.array(free["intervened"]["log_prob"]).reshape(-1, 3)[:, 2]
    at = free["intervened"]["cuts"].index(free["intervened"]["n_r_prime"])
    assert free["intervened"]["own_gained"] == pytest.approx((own[-1] - own[at]) / 2, abs=1e-5)
    for record in (looked(NUMBER, longest_answer=3)["intervened"], looked(CODE)["intervened"]):
        assert record["excluded"] == "no_gold_answer"
        assert "asked_own" not in record


def test_stances_as_the_paper_names_them_are_the_options_of_the_trace() -> None:
    model = tiny("llama")
    records = look_inside(model, LOGIC.posed(WORDS, "paper"), outputs(model), SMALL)
    assert [r["options"] for r in records] == [["incorrect", "correct"]] * 2
    three = item("logical_reasoning", options=("True", "False", "Uncertain"), answer="B")
    letters = look_inside(model, three, outputs(model), SMALL)[1]
    named = look_inside(model, three.posed(WORDS, "paper"), outputs(model), SMALL)[1]
    assert named["options"] == ["incorrect", "correct"]
    # both wrong options say "incorrect": their probabilities are added
    assert shares_along(named)[:, 1] == pytest.approx(shares_along(letters)[:, 1], abs=1e-4)


def test_the_lens_of_a_model_without_a_stream_is_left_out_and_says_so(tmp_path) -> None:
    save("gemma3n_text", tmp_path)
    model = interp.load(str(tmp_path), dtype="float32", device="cpu")
    record = look_inside(model, TABLE, outputs(model), InsideConfig(points=2))[1]
    assert record["lens_reason"] == "no_residual_stream"
    assert "asked_lens_p" not in record
    assert record["attention_reason"] == ""
    assert 0 <= record["asked_own"] <= 1


def test_a_tokenizer_without_ids_for_a_label_is_told() -> None:
    model, _ = planted("faithful")
    pair: Any = {"baseline": (forced(model, QUESTION), model.encode(RIGHT))}
    with pytest.raises(ValueError, match=r"no ids that read as ' A'"):
        look_inside(model, TABLE, pair, SMALL)


def test_the_config_names_what_is_wrong() -> None:
    for wrong in ({"points": 1}, {"labels": "numbers"}, {"model": ["bundled:x"]}):
        with pytest.raises(ValidationError):
            InsideConfig(**wrong)


@pytest.mark.parametrize(
    ("asked", "inside"),
    [
        (["model.name=planted:hint"], ["planted:hint"]),
        (["model.name=[planted:hint,api:openai/gpt-4.1]"], ["planted:hint"]),
        (["model.name=planted:hint", "inside.model=[]"], []),
        ([], ["bundled:smollm2-135m"]),
    ],
)
def test_the_models_that_are_asked_for_are_those_that_are_read_inside(
    asked: list[str], inside: list[str]
) -> None:
    assert load_config("rfeval", asked).model_dump()["inside"]["model"] == inside
