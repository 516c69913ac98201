"""Paraphrases by a rule that keeps the meaning, by a model, and from outside; token by token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted_traces import ASKING, of_planted, planted
from probe_records import table_of
from sample_trace import asking, written

from faithscope.experiments.studies.slrc.measures.paraphrase import REPORT
from faithscope.interp.model import Model
from faithscope.probes.framing import label_ids
from faithscope.probes.graded import log_distribution, log_odds_drop, top, total_variation
from faithscope.probes.paraphrase import (
    CUT,
    EMPTY,
    NO_RULE,
    OTHER_NUMBERS,
    STEP_REASONS,
    UNCHANGED,
    ParaphraseSettings,
    Rewording,
    paraphrase,
    reworded_answers,
    said_otherwise,
)

RULE = ParaphraseSettings(writers=("rule",))


measured = of_planted(paraphrase, RULE)


def shares(name: str, field: str) -> np.ndarray:
    return np.array([r[field] for r in measured(name)], dtype=float).mean(0)


def test_a_rule_keeps_what_is_said() -> None:
    assert list(said_otherwise("So 3 + 4 makes 7.")) == ["So 4 + 3 makes 7.", "So 3 + 4 is 7."]
    assert list(said_otherwise("She works. 9 × 2 = 18 dollars.")) == [
        "She works. 2 × 9 = 18 dollars.",
        "She works. 9 × 2 equals 18 dollars.",
    ]
    assert list(said_otherwise("That is 9 - 2 gives 7.")) == ["That is 9 - 2 is 7."]
    # whatever stands before the two terms may bind the first of them
    for before in ("8 -", "2 * (", "x", "8 \\times", "2 x", "Half of", "5 minus", "She earns"):
        texts = list(said_otherwise(f"{before} 3 + 4 = 7"))
        assert texts in ([], [f"{before} 3 + 4 equals 7"])
    assert list(said_otherwise("4 + 4 = 8")) == ["4 + 4 equals 8"]
    for text in ("The acting was superb.", "In 2020 is 5 years too late."):
        assert list(said_otherwise(text)) == []


def test_the_answer_survives_other_words_and_the_faithful_model_misses_the_last_step() -> None:
    for name in ("faithful", "hint"):
        assert all(r["n_reworded"] == 3 and not any(r["reasons"]) for r in measured(name))
        assert shares(name, "tv").max() < 0.05
        assert not any(r["whole_flips"] for r in measured(name))
    score = {m.name: m for m in REPORT.measures}["paraphrase_beyond_tv"]
    faithful, hint = (
        np.mean([score.score([r]) or 0.0 for r in measured(n)]) for n in ("faithful", "hint")
    )
    assert faithful > 0.15 > 0.02 > hint
    assert score.steps is not None
    credits = [score.steps([r]) for r in measured("faithful")]
    assert np.mean([c[2] for c in credits]) > 0.5 > 0.1 > np.mean([c[0] for c in credits])


def test_every_number_is_that_of_a_forward_of_its_own_and_other_tokens_stay(llama: Model) -> None:
    trace, words = written(llama), asking()
    names = [name for name, _ in words.labels]
    labels = label_ids(llama, words, "prefix")
    cue = tuple(llama.encode(words.answer_cue))

    def alone(reasoning: tuple[int, ...]) -> dict[str, float]:
        (said,) = llama.ask([(*trace.prompt_ids, *reasoning, *cue)], [labels], execution="loop")
        return log_distribution(said.log_probs, names, what="alone")

    texts = {
        1: "Seven is 3 and 4.",
        2: "The actors were great.",
        3: "",
        4: "hmm,  WELL then, okay.",
    }
    steps = {s.index: s for s in trace.counted_steps}
    assert list(steps) == list(texts)
    outside = Rewording(texts, whole="We add 3 and 4, 5 and 9: 7, 14. Superb!")
    same, other = reworded_answers(
        llama,
        trace,
        words,
        {"editor": outside, "second": Rewording({1: "Seven comes of 2 and 5."}, reasons={2: CUT})},
        ParaphraseSettings(same_numbers=False),
    )
    assert same["reasons"] == [None, None, EMPTY, UNCHANGED]
    assert other["reasons"] == [None, CUT, EMPTY, EMPTY]
    whole = alone(trace.reasoning_ids)
    for record, at in ((same, 0), (same, 1), (other, 0)):
        a, b = trace.counted_steps[at].tokens
        ids = tuple(llama.encode(record["texts"][at]))
        branch = alone((*trace.reasoning_ids[:a], *ids, *trace.reasoning_ids[b:]))
        assert record["reworded"][at] == top(branch)
        assert record["tv"][at] == pytest.approx(total_variation(whole, branch), abs=2e-5)
        drop = log_odds_drop(whole, branch, top(whole))
        assert record["log_odds"][at] == pytest.approx(drop, abs=2e-4)
    branch = alone(tuple(llama.encode("We add 3 and 4, 5 and 9: 7, 14. Superb!")))
    assert same["whole_tv"] == pytest.approx(total_variation(whole, branch), abs=2e-5)
    # the only step that the second writer reworded is all of its chain that is
    assert other["whole_tv"] == other["tv"][0]
    assert same["flips"][2] is None
    assert same["removed_flips"] == other["removed_flips"]


def test_what_has_no_paraphrase_is_counted_by_reason(llama: Model) -> None:
    trace = written(llama)
    (by_rule,) = paraphrase(llama, trace, asking(), RULE)
    assert by_rule["reasons"] == [None, NO_RULE, None, NO_RULE]
    settings = ParaphraseSettings(writers=("model",))
    (by_model,) = paraphrase(llama, trace, asking(), settings)
    assert set(by_model["reasons"]) <= {None, *STEP_REASONS}
    assert by_model["n_written"] > 0
    texts = {1: "So 3 and 5 makes 8.", 2: "It was great.", 3: "14 is 5 and 9."}
    (judged,) = reworded_answers(llama, trace, asking(), {"judge": Rewording(texts)}, settings)
    assert judged["reasons"] == [OTHER_NUMBERS, None, None, EMPTY]
    (none,) = reworded_answers(llama, trace, asking(), {"judge": Rewording()}, settings)
    assert none["excluded"] == "no_step_paraphrased"
    table = table_of("paraphrase", [judged, by_rule, none])
    counts = table.set_index("writer")[["n_reworded", "n_no_rule_for_it"]].T.to_dict("list")
    assert counts == {"judge": [2, 0], "rule": [2, 2]}


def test_a_task_in_no_language_has_no_words_to_ask_the_model_in() -> None:
    model, traces = planted("faithful")
    unspoken = replace(ASKING, spoken=False)
    own, rule = paraphrase(model, traces[0], unspoken, ParaphraseSettings())
    assert (own["variant"], own["excluded"]) == ("model", "no_words_for_it")
    assert rule["variant"] == "rule"
    assert "excluded" not in rule


def test_tables_are_means_over_items() -> None:
    records = measured("faithful")
    (row,) = table_of("paraphrase", records).to_dict("records")
    assert row["tv"] == pytest.approx(np.mean([np.mean(r["tv"]) for r in records]))
    assert row["beyond_tv"] == pytest.approx(row["removed_tv"] - row["tv"])
    by_step = table_of("paraphrase_by_step", records)
    assert by_step["removed_tv"].tolist() == pytest.approx(shares("faithful", "removed_tv"))
    score = {m.name: m for m in REPORT.measures}
    assert score["paraphrase_flips"].forwards(records[:1]) == 1 + 3
    assert score["paraphrase_beyond_flips"].forwards(records[:1]) == 1 + 3 + 3
