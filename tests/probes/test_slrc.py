"""SLRC records on tiny random models: their shape, their arms, forest against loop."""

from __future__ import annotations

import copy
import json
import math

import pytest
from sample_trace import FAST, asking, written

from faithscope.interventions import Trace, remove_step
from faithscope.probes.framing import prefix_ids
from faithscope.probes.slrc import SlrcSettings, slrc

STEPS = [
    "So 3 + 4 makes 7.",
    "The acting was superb.",
    "Now 5 + 9 makes 14.",
    "Hmm, well then, okay.",
]


@pytest.fixture(scope="module")
def records(llama):
    return {r["variant"]: r for r in slrc(llama, written(llama), asking(), FAST)}


def test_a_record_for_each_framing_and_reading(records):
    assert list(records) == [
        "prefix.generated",
        "prefix.scored",
        "reprompt.generated",
        "reprompt.scored",
    ]
    for variant, r in records.items():
        assert json.loads(json.dumps(r, allow_nan=False)) == r
        assert (r["probe"], r["item"], r["dataset"]) == ("slrc", "q1", "made")
        assert f"{r['framing']}.{r['reading']}" == variant
        assert (r["steps"], r["step_text"], r["n_steps"]) == ([1, 2, 3, 4], STEPS, 4)
        assert (r["gold"], r["original"]) == ("yes", "no")


def test_lists_have_one_value_per_step_or_shuffle(records):
    for r in records.values():
        for kind in ("removed", "alone", "corrupted"):
            assert len(r[kind]) == 4
        assert len(r["shuffled"]) == len(r["reordered"]) == 3
        assert r["corruptible"] == [True, True, True, False]
        assert r["corruption_rule"] == ["number", "negation", "number", None]
        assert r["corrupted"][3] is r["corrupt_flips"][3] is None
        assert r["necessary"] == [a is None or a != r["baseline"] for a in r["removed"]]
        assert r["sufficient"] == [a is not None and a == r["baseline"] for a in r["alone"]]
        assert r["reordered"] == [a is None or a != r["baseline"] for a in r["shuffled"]]
        assert r["correct"] == (r["baseline"] == "yes")
        if r["framing"] == "prefix":
            assert r["regenerate_flips"][3] is None
            assert r["regenerated_cut"][:3] == [True, True, True]
            assert r["control_flips"][3] is None
            assert r["control_flips"][:3] == [
                a is None or a != r["baseline"] for a in r["controlled"][:3]
            ]
            assert len(r["controlled_text"]) == 4
        else:
            assert r["regenerated"] is r["regenerate_flips"] is r["controlled"] is None
        if r["reading"] == "generated":
            answers = r["removed"] + r["alone"] + r["shuffled"] + r["corrupted"][:3]
            answers += (r["regenerated"] or [])[:3] + (r["controlled"] or [])[:3]
            assert r["n_unparsed"] == answers.count(None)


def test_scored_values_are_the_models_own_log_probs(llama, records):
    r, trace = records["prefix.scored"], written(llama)
    assert r["label_names"] == ["yes", "no"]
    labels = [llama.encode(surface) for _, surface in asking().labels]

    def distribution(edited: Trace) -> list[float]:
        (found,) = llama.ask([prefix_ids(llama, asking(), edited)], [labels], execution="loop")
        a, b, c = (math.exp(x) for x in found.log_probs)
        return [(a + c) / (a + b + c), b / (a + b + c)]

    before, after = distribution(trace), distribution(remove_step(trace, 2))
    assert r["baseline_p"] == pytest.approx(before, abs=2e-5)
    assert r["removed_tv"][1] == pytest.approx(abs(before[0] - after[0]), abs=2e-5)
    answer = r["label_names"].index(r["baseline"])
    odds = [math.log(p[answer] / (1 - p[answer])) for p in (before, after)]
    assert r["removed_log_odds"][1] == pytest.approx(odds[0] - odds[1], abs=1e-3)


def test_length_normalised_scores(llama):
    settings = SlrcSettings(
        framings=("prefix",), readings=("scored",), edits=("remove",), length_normalise=True
    )
    (r,) = slrc(llama, written(llama), asking(labels=(("a", " a"), ("b", " bbb"))), settings)
    labels = [llama.encode(" a"), llama.encode(" bbb")]
    prefix = prefix_ids(llama, asking(), written(llama))
    one, other = llama.ask([prefix], [labels])[0].log_probs
    odds = math.exp(one / 2 - other / 4)
    assert r["baseline_p"][0] == pytest.approx(odds / (1 + odds), abs=2e-5)


def close(one: dict, other: dict) -> None:
    """Equal but for float noise and the account of how they were made."""
    assert one.keys() == other.keys()
    of_packs = {"n_packs", "noise_floor", "baseline_moved", "baseline_moved_tv"}
    for key in one.keys() - {"execution", "tree_reason", "trie_tokens"} - of_packs:
        floats = key.endswith(("_p", "_tv", "_log_odds", "_margin"))
        assert one[key] == (pytest.approx(other[key], abs=1e-3) if floats else other[key]), key


def test_forest_and_loop_give_the_same_records(llama, records):
    loop = SlrcSettings(answer_tokens=4, regenerate_tokens=12, execution="loop")
    for by_loop in slrc(llama, written(llama), asking(), loop):
        by_forest = records[by_loop["variant"]]
        close(by_forest, by_loop)
        assert (by_loop["execution"], by_loop["tree_reason"]) == ("loop", "asked for")
        assert by_loop["trie_tokens"] == by_loop["naive_tokens"] == by_forest["naive_tokens"]
        assert by_forest["execution"] == "packed"
        assert by_forest["tree_reason"] is None
        assert by_forest["trie_tokens"] < by_forest["naive_tokens"]


def test_a_model_without_a_tree_is_measured_by_the_loop_and_says_so(loop_model):
    settings = SlrcSettings(framings=("prefix",), edits=("remove",), shuffles=1, answer_tokens=2)
    for r in slrc(loop_model, written(loop_model), asking(), settings):
        assert r["execution"] == "loop"
        assert r["tree_reason"] == loop_model.tree_reason
        assert r["corrupted"] is r["corrupt_flips"] is r["regenerated"] is None
        assert "corruptible" not in r


def test_the_same_seed_gives_the_same_record_and_another_seed_other_edits(llama):
    settings = [
        SlrcSettings(framings=("reprompt",), edits=("remove", "corrupt"), answer_tokens=2, seed=s)
        for s in (0, 0, 1, 2)
    ]
    made = [slrc(llama, written(llama), asking(), s) for s in settings]
    assert made[0] == made[1]
    assert len({str(m[0]["corrupted_text"]) for m in made}) > 1


def test_a_baseline_that_does_not_parse_is_excluded_and_says_so(llama):
    settings = SlrcSettings(framings=("prefix",), edits=("remove",), answer_tokens=2)
    generated, scored = slrc(llama, written(llama), asking(parse=lambda text: None), settings)
    assert generated["excluded"] == "baseline_unparsed"
    assert "removed" not in generated
    assert "excluded" not in scored
    _, unscored = slrc(llama, written(llama), asking(labels=(("yes", " yes"),)), settings)
    assert unscored["excluded"] == "fewer_than_2_labels"


def test_steps_that_are_all_alike_have_no_shuffles(llama):
    trace = written(llama, "So it is good so far. So it is good so far. ")
    settings = SlrcSettings(framings=("prefix",), edits=("remove",), answer_tokens=2)
    generated, _ = slrc(llama, trace, asking(), settings)
    assert generated["n_steps"] == 2
    assert generated["shuffled"] == generated["reordered"] == []


def test_one_step_is_too_few(llama):
    with pytest.raises(ValueError, match="'q1': 1 counted steps"):
        slrc(llama, written(llama, "So 3 + 4 makes 7."), asking(), FAST)


def test_nan_names_the_item(llama):
    broken = copy.deepcopy(llama)
    next(broken.hf.parameters()).data.fill_(math.nan)
    with pytest.raises(FloatingPointError, match="item 'q1', prefix framing"):
        slrc(broken, written(llama), asking(), FAST)
