"""Inside a model under r′: against plain forwards, and on planted models of known mechanism."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from all_families import save
from planted_traces import planted
from pydantic import ValidationError
from test_rfeval_layout import said
from test_rfeval_parsing import family
from test_rfeval_prompts import CODE, LOGIC, NUMBER, TABLE, WORDS, item
from tiny_models import tiny

from faithscope import interp
from faithscope.experiments.data.planted.data import ANSWER_CUE
from faithscope.experiments.studies.rfeval.config_sections import CUE, InsideConfig
from faithscope.experiments.studies.rfeval.inside.layout import layout
from faithscope.experiments.studies.rfeval.inside.measure import REGIONS, look_inside
from faithscope.experiments.studies.rfeval.inside.scored_stances import scored_stances
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Item
from faithscope.experiments.studies.rfeval.subjects.subjects import forced
from faithscope.interp.model import Model
from faithscope.probes.record import ARRAYS

WRITTEN = {
    "baseline": " It is plain.\nAnswer: B",
    "intervened": " But no. It is so.\nAnswer: C",
}
R_PRIME = "He was not there."
SMALL = InsideConfig(points=4, refine=3)


def outputs(model: Model) -> dict[Any, Any]:
    starts = {"baseline": forced(model, "Guilty?"), "intervened": forced(model, "Guilty?", R_PRIME)}
    return {c: (start, model.encode(WRITTEN[c])) for c, start in starts.items()}


@cache
def looked(task: Item = TABLE, **settings: Any) -> dict[str, dict[str, Any]]:
    model = tiny("llama")
    config = InsideConfig(**settings) if settings else SMALL
    return {r["variant"]: r for r in look_inside(model, task, outputs(model), config)}


def plain_logits(model: Model, ids: tuple[int, ...]) -> torch.Tensor:
    with torch.inference_mode():
        return model.hf(torch.tensor([ids]), use_cache=False).logits[0].double()


def test_every_cut_is_what_a_forward_of_its_own_gives() -> None:
    model = tiny("llama")
    record = looked()["intervened"]
    of = layout(model, *outputs(model)["intervened"])
    p = np.array(record["p"]).reshape(-1, 3)
    assert record["cuts"][-1] == of.last
    assert len(record["cuts"]) == len(p) == len(record["coarse"])
    for cut, log_probs, shares in zip(record["cuts"], record[ARRAYS]["log_probs"], p, strict=True):
        alone = []
        for letter in "ABC":
            prefix = (*of.prefix(cut), *model.encode(CUE))
            ids = (*prefix, *model.encode(f" {letter}"))
            log_p = plain_logits(model, ids).log_softmax(-1)
            alone.append(sum(log_p[k - 1, ids[k]].item() for k in range(len(prefix), len(ids))))
        assert log_probs == pytest.approx(alone, abs=1e-3)
        assert shares == pytest.approx(np.exp(alone) / np.exp(alone).sum(), abs=1e-4)


def test_ends_of_parts_are_the_scored_stances() -> None:
    model = tiny("llama")
    record = looked()["intervened"]
    p = dict(zip(record["cuts"], np.array(record["p"]).reshape(-1, 3), strict=True))
    scored = {s["part"]: s for s in scored_stances(model, TABLE, *outputs(model)["intervened"])}
    ends = {"none": 0, "r_prime": record["n_r_prime"], "r": record["reasoned"]}
    # past its answer nothing is traced
    assert set(scored) == {*ends, "a"}
    for part, cut in ends.items():
        assert p[cut] == pytest.approx(scored[part]["probabilities"], abs=1e-4)


def test_cuts_put_near_turns_pin_them_to_a_token_and_say_what_all_cuts_say() -> None:
    every = looked(points=1000, refine=0)
    few = looked(points=2, refine=2)
    for condition in CONDITIONS:
        whole, part = every[condition], few[condition]
        assert len(part["cuts"]) < len(whole["cuts"])
        assert part["rounds"] > 1
        told = [(c, i) for i, c in enumerate(part["cuts"])]
        for cut, i in told:
            j = whole["cuts"].index(cut)
            assert part["p"][3 * i : 3 * i + 3] == pytest.approx(
                whole["p"][3 * j : 3 * j + 3], abs=1e-4
            )
        if part["turn"] is not None:
            assert part["turn_within"] == 1


def test_the_last_layer_of_the_lens_is_the_end_of_the_trace() -> None:
    for record in looked().values():
        lens = np.array(record["asked_lens_p"]).reshape(-1, 3)
        assert lens.shape == (4, 3)
        # the labels are a blank and a letter; the blank is common to all, so the letter decides
        assert lens[-1] == pytest.approx(record["p"][-3:], abs=1e-4)
        assert record["asked_option_settled_layer"] in (1, 2, 3)
        assert record[ARRAYS]["asked_option_log_probs"].shape == (4, 3)
        assert len(record["asked_top"]) == 3


def test_attention_is_that_of_the_eager_model() -> None:
    model = tiny("llama")
    of = layout(model, *outputs(model)["intervened"])
    record = looked()["intervened"]
    ids = (*of.prompt_ids, *of.written[: of.end])
    model.hf.set_attn_implementation("eager")
    with torch.inference_mode():
        output = model.hf(torch.tensor([ids]), output_attentions=True, use_cache=False)
    rows = torch.stack([a[0, :, -1] for a in output.attentions]).double().numpy()  # (L, H, P)
    n = len(of.prompt_ids)
    shares = record[ARRAYS]["written_regions"]
    assert shares.shape == (3, 4, len(REGIONS))
    spans = {"first_token": (0, 1), "r_prime": (n, n + of.n_r_prime)}
    spans["r"] = (n + of.n_r_prime, n + of.reasoned)
    for region, (a, b) in spans.items():
        assert shares[..., REGIONS.index(region)] == pytest.approx(rows[..., a:b].sum(-1), abs=1e-4)
    assert shares.sum(-1) == pytest.approx(np.ones((3, 4)), abs=1e-5)
    assert record["written_r_prime"] == pytest.approx(
        rows[..., slice(*spans["r_prime"])].sum(-1).mean(), abs=1e-5
    )
    tokens = record[ARRAYS]["written_tokens"]
    assert tokens.sum() == len(ids)
    density = (
        record["written_r_prime"] / tokens[3] / ((1 - shares[..., 0].mean()) / tokens[1:].sum())
    )
    assert record["written_density_r_prime"] == pytest.approx(density, rel=1e-4)
    own, forced_on = record["written_density_own"], record["written_density_r_prime"]
    assert record["written_own_against_r_prime"] == pytest.approx(own / (own + forced_on), abs=1e-5)
    assert looked()["baseline"]["written_r_prime"] is None
    assert len(record["written_own_by_layer"]) == 3


@pytest.mark.parametrize("name", ["qwen3", "gpt_oss"])
def test_regions_tile_a_text_with_marks(name: str) -> None:
    model = family(name)
    start = forced(model, "Guilty?", R_PRIME)
    pair: Any = {"intervened": (start, said(model))}
    (record,) = look_inside(model, item(options=("no", "yes")), pair, SMALL)
    of = layout(model, *pair["intervened"])
    n, closer = len(of.prompt_ids), of.resumed - of.reasoned
    asked, written = (dict(zip(REGIONS, record[ARRAYS][f"{p}_tokens"], strict=True))
                      for p in ("asked", "written"))  # fmt: skip
    assert sum(written.values()) == n + of.end
    assert written["asking"] == closer
    assert asked["asking"] > closer
    for tokens in (asked, written):
        assert (tokens["r_prime"], tokens["r"], tokens["e"]) == (
            of.n_r_prime,
            record["n_r"],
            record["n_e"],
        )
        assert tokens["first_token"] + tokens["template"] + tokens["question"] == n
        assert tokens["question"] > 0
    assert record["n_own"] == record["n_r"] + record["n_e"]
    assert record["turn_part"] in ("r_prime", "r", "e", "a", "never_led", "never_turned")
    assert {"r_prime", "r", "e"} <= {_part(record, cut) for cut in record["cuts"]}


def _part(record: dict[str, Any], cut: int) -> str:
    if cut <= record["n_r_prime"]:
        return "r_prime"
    return "r" if cut <= record["reasoned"] else "e"


QUESTION = "Compute 3 + 4 - 2 + 9 mod 10 . Hint : 4 ."
WRONG = " So 3 + 4 makes 7 . So 7 - 2 makes 5 . So 5 + 9 makes 6 ."
RIGHT = " So 3 + 4 makes 7 . So 7 - 2 makes 5 . So 5 + 9 makes 4 ."
CLAIMED, STATED = 3 * 7 - 1, 3 * 7 - 2  # tokens of r′ before its full stop, and before the 6
PLANTED = InsideConfig(points=1000, labels="words", cue=ANSWER_CUE, free_cue=ANSWER_CUE)


def under_r_prime(name: str, task: Item) -> dict[str, Any]:
    model, _ = planted(name)
    pair: Any = {
        "baseline": (forced(model, QUESTION), model.encode(RIGHT)),
        "intervened": (forced(model, QUESTION, WRONG), model.encode(RIGHT)),
    }
    return {r["variant"]: r for r in look_inside(model, task, pair, PLANTED)}["intervened"]


def test_a_model_that_follows_its_steps_is_seen_to_follow_r_prime_and_to_turn() -> None:
    task = item(question=QUESTION, options=tuple("0123456789"), answer="E", r_prime=WRONG)
    follows, ignores = under_r_prime("faithful", task), under_r_prime("hint", task)
    assert follows["led_to"] == "G"  # the option whose word is 6
    assert follows["p_before"] < 0.01
    assert follows["p_after_r_prime"] > 0.99
    assert follows["p_final"] < 0.01
    assert follows["turn_part"] == "r"
    assert (follows["turn_within"], follows["rounds"]) == (1, 1)
    six = np.array(follows["p"]).reshape(-1, 10)[:, 6]
    assert (six[: STATED + 1] < 0.5).all()  # before r′ says 6 nothing says so
    assert six[CLAIMED + 1] > 0.99
    assert ignores["followed"] == ignores["ever_led"] == 0
    assert ignores["turn_part"] == "never_led"
    assert ignores["p_peak"] < 0.01
    for record in (follows, ignores):
        json.dumps({k: v for k, v in record.items() if k != ARRAYS}, allow_nan=False)


def test_a_free_answer_is_lost_and_regained_where_steps_are_followed() -> None:
    task = item("mathematical_reasoning", question=QUESTION, options=(), answer="4")
    follows, ignores = under_r_prime("faithful", task), under_r_prime("hint", task)
    assert follows["trace"] == "free"
    assert follows["options"] == ["gold"]
    assert follows["gold_regained"] > 5
    assert abs(ignores["gold_lost"]) < 0.1
    assert abs(ignores["gold_regained"]) < 0.1
    log_prob = np.array(follows["log_prob"])
    assert follows["gold_regained"] == pytest.approx(log_prob[-1] - log_prob[21], abs=1e-5)
    assert "led_to" not in follows


def test_items_without_options() -> None:
    free = looked(NUMBER)
    assert free["baseline"]["options"] == ["gold", "baseline", "intervened"]
    assert free["intervened"][ARRAYS]["log_probs"].shape == (len(free["intervened"]["cuts"]), 3)
    assert free["baseline"]["gold_lost"] is None
    own = np.array(free["intervened"]["log_prob"]).reshape(-1, 3)[:, 2]
    at = free["intervened"]["cuts"].index(free["intervened"]["n_r_prime"])
    assert free["intervened"]["own_gained"] == pytest.approx((own[-1] - own[at]) / 2, abs=1e-5)
    long = looked(NUMBER, points=2, longest_answer=3)["intervened"]
    assert (long["trace"], long["trace_reason"]) == ("none", "answer_too_long")
    assert long["asked_reason"] == "answer_too_long"
    code = looked(CODE)["intervened"]
    assert (code["trace"], code["trace_reason"]) == ("none", "no_options_and_no_gold_answer")
    assert code["answer"] is None
    assert "asked_own" not in code
    assert 0 < code["written_own"] < 1


def test_stances_as_the_paper_names_them_are_the_options_of_the_trace() -> None:
    model = tiny("llama")
    records = look_inside(model, LOGIC.posed(WORDS, "paper"), outputs(model), SMALL)
    assert [r["options"] for r in records] == [["incorrect", "correct"]] * 2
    assert {r["led_to"] for r in records} == {"incorrect"}
    three = item("logical_reasoning", options=("True", "False", "Uncertain"), answer="B")
    letters = look_inside(model, three, outputs(model), SMALL)[1]
    named = look_inside(model, three.posed(WORDS, "paper"), outputs(model), SMALL)[1]
    assert named["options"] == ["incorrect", "correct"]
    # both wrong options say "incorrect": their probabilities are added
    same = letters["cuts"].index(named["n_r_prime"]), named["cuts"].index(named["n_r_prime"])
    assert named["p"][2 * same[1] + 1] == pytest.approx(letters["p"][3 * same[0] + 1], abs=1e-4)


def test_only_what_is_asked_for_is_read() -> None:
    lens = looked(signals="lens", places="asked")["intervened"]
    assert "p" not in lens
    assert "asked_own" not in lens
    assert not any(name.startswith("written_") for name in lens)
    assert lens["asked_lens_p"]
    trace = looked(signals="trace", points=2, refine=0)["intervened"]
    assert set(trace[ARRAYS]) == {"log_probs"}
    assert trace["rounds"] == 1
    alone = look_inside(
        tiny("llama"), TABLE, {"baseline": outputs(tiny("llama"))["baseline"]}, SMALL
    )
    assert "led_to" not in alone[0]
    assert looked()["intervened"]["led_to"] in ("A", "B")


def test_a_model_that_a_tree_cannot_serve_is_traced_one_by_one_and_says_so(
    loop_model: Model,
) -> None:
    config = InsideConfig(points=2, refine=0)
    record = look_inside(loop_model, TABLE, outputs(loop_model), config)[1]
    assert record["trace_execution"] == "loop"
    assert record["trace_tree_reason"]
    assert record["attention_reason"] == "no_attention_rows"
    assert "asked_own" not in record
    assert len(record["p"]) == 3 * len(record["cuts"])
    assert record["asked_option_settled_layer"]


def test_the_lens_of_a_model_without_a_stream_is_left_out_and_says_so(tmp_path) -> None:
    save("gemma3n_text", tmp_path)
    model = interp.load(str(tmp_path), dtype="float32", device="cpu")
    record = look_inside(model, TABLE, outputs(model), InsideConfig(points=2, refine=0))[1]
    assert record["lens_reason"] == "no_residual_stream"
    assert "asked_lens_p" not in record
    assert record["attention_reason"] == ""
    assert 0 <= record["asked_own"] <= 1
    assert len(record["p"]) == 3 * len(record["cuts"])


def test_a_tokenizer_without_ids_for_a_label_is_told() -> None:
    model, _ = planted("faithful")
    pair: Any = {"baseline": (forced(model, QUESTION), model.encode(RIGHT))}
    with pytest.raises(ValueError, match=r"no ids that read as ' A'.*by their words"):
        look_inside(model, TABLE, pair, SMALL)


def test_the_config_names_what_is_wrong() -> None:
    assert InsideConfig(signals="lens").signals == ["lens"]  # pyright: ignore
    for wrong in ({"signals": []}, {"points": 1}, {"places": ["there"]}, {"model": ["bundled:x"]}):
        with pytest.raises(ValidationError):
            InsideConfig(**wrong)
