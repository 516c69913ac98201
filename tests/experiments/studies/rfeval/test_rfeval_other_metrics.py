"""Externality, steps, and how well evaluators agree."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from rf_frames import drawn, frame, judged
from sklearn.metrics import cohen_kappa_score

from faithscope.experiments.studies.rfeval.judging.stepwise import split_steps
from faithscope.experiments.studies.rfeval.tables.chains import scored
from faithscope.experiments.studies.rfeval.tables.frames import KEY, OVERALL, checked, readings
from faithscope.experiments.studies.rfeval.tables.people import (
    EVALUATOR,
    READERS,
)
from faithscope.experiments.studies.rfeval.tables.steps import PER_STEP, STEP_RANKS, per_step
from faithscope.experiments.studies.rfeval.tables.texts import (
    BY_EXTERNALITY,
    EXTERNALITY,
    content_words,
    externality,
    externality_of_items,
)


def test_content_words_as_the_paper_prepares_them() -> None:
    assert content_words("<think>The Cat's 2 cats, and I</think>") == {"cat", "s", "2", "cats"}


def test_deltas_by_hand_and_at_the_edges() -> None:
    q, r, nothing = frozenset("abcd"), frozenset("cdefgh"), frozenset()
    assert externality(q, r) == pytest.approx(1 - 2 / 8)
    assert externality(nothing, nothing) == externality(q, q) == 0
    assert externality(nothing, r) == externality(q, nothing) == 1


def test_the_context_adds_its_own_words() -> None:
    items = pd.DataFrame(
        {
            "task": "paper_review",
            "item": ["1", "2"],
            "question": "Accept?",
            "options": "A: positive\nB: negative",
            "context": ["graphs graphs parsing the common", "vision vision common"],
            "r_prime": ["graphs look common", "graphs look common"],
        }
    )
    deltas = externality_of_items(items, top=1)
    of = deltas.set_index(["item", "context"])["delta"]
    assert of["1", "none"] == of["2", "tfidf"] == 1
    # "graphs" is in both, of the five words of the question with it and the three of r′
    assert of["1", "tfidf"] == pytest.approx(1 - 1 / 7)
    table = EXTERNALITY.make(deltas).set_index("context")
    assert table.loc["tfidf", "mean"] == pytest.approx(1 - 1 / 14)
    assert table.loc["none", "small_vocabulary"] == 1
    bare = externality_of_items(items.assign(context=""))
    assert set(bare["context"]) == {"none"}


def test_rf_is_told_below_and_above_a_delta() -> None:
    rows = [judged(), judged(), judged("B B B", "A A B B"), judged(), judged("A A A", "A A A A")]
    scores = scored(frame(*rows))
    deltas = pd.DataFrame(
        {
            "task": "legal_decision",
            "item": [str(i) for i in range(5)],
            "context": "none",
            "delta": [0.1, 0.2, 0.3, 0.4, 0.3],
            "threshold": math.nan,
        }
    )
    strata = BY_EXTERNALITY.make(deltas, scores).set_index(["task", "stratum"])
    for task in ("legal_decision", OVERALL):
        low, high = strata.loc[(task, "low")], strata.loc[(task, "high")]
        # the median is of all items, also of one that is not in contrast
        assert (low["threshold"], low["n"], high["n"]) == (0.3, 3, 1)
        assert (low["rf"], high["rf"]) == (pytest.approx(2 / 3), 1)
        assert low["mean_delta"] == pytest.approx(0.2)
    low, high = (
        BY_EXTERNALITY.make(deltas.assign(threshold=0.5), scores).iloc[:2].to_dict("records")
    )
    assert (low["n"], low["rf"], high["n"]) == (4, 0.75, 0)
    assert math.isnan(high["rf"])


def test_reasoning_is_cut_at_blank_lines_and_at_the_points_of_lists() -> None:
    text = "First I look.\nIt is red.\n\nThen:\n1. one\n2) two\n- three\nStep 4: four\n\n\nDone."
    assert split_steps(text) == (
        "First I look.\nIt is red.",
        "Then:",
        "1. one",
        "2) two",
        "- three",
        "Step 4: four",
        "Done.",
    )
    assert split_steps("x is 3.14\n2.5 more") == ("x is 3.14\n2.5 more",)
    assert split_steps(" \n\n ") == ()


def test_with_one_step_a_block_the_variant_is_the_metric() -> None:
    pairs = scored(drawn(200))
    rows = []
    for row in pairs.to_dict("records"):
        for condition in ("baseline", "intervened"):
            if row[f"{condition}_judged"] != "parsed":
                continue
            parts = ["r_prime"] * (condition == "intervened") + ["r", "e", "a"]
            parts = [p for p in parts if row[f"{condition}_{p}"]]
            for i, part in enumerate(parts):
                link = f"{parts[i - 1]}{part}".replace("r_prime", "p") if i else ""
                flaw = bool(i) and row[f"{condition}_flaw_{link}"]
                step = {name: row[name] for name in KEY}
                step |= {"condition": condition, "place": i, "stance": row[f"{condition}_{part}"]}
                step |= {"part": "step" if part == "r" else part, "names_flaw": flaw}
                rows.append(step)
    by_step = per_step(pairs, pd.DataFrame(rows))
    assert by_step["rf"].nunique() == 2
    assert (by_step["rf_per_step"] == by_step["rf"]).all()
    ranks = STEP_RANKS.make(PER_STEP.make(by_step, pairs))
    assert ranks["spearman"].tolist() == pytest.approx([1] * 3)


HUMAN = [
    ("1", "r", "stance", "ann", "A"),
    ("1", "r", "stance", "bob", "A"),
    ("2", "r", "stance", "ann", "B"),
    ("2", "r", "stance", "bob", "A"),
    ("3", "r", "stance", "ann", "B"),
    ("3", "r", "stance", "bob", "B"),
    ("3", "r", "stance", "cal", "B"),
    ("1", "re", "flaw", "ann", "True"),
    ("4", "r", "stance", "ann", "A"),
]


def test_people_and_the_evaluator() -> None:
    people = pd.DataFrame(HUMAN, columns=["item", "component", "decision", "annotator", "label"])
    evaluator = pd.DataFrame(
        [("1", "r", "stance", "A"), ("2", "r", "stance", "B"), ("3", "r", "stance", "A")],
        columns=["item", "component", "decision", "label"],
    )
    table = EVALUATOR.make(people, evaluator).set_index(["decision", "statistic", "annotator"])
    stance = table.loc["stance"]
    assert stance.loc[("micro_f1", "ann"), "value"] == pytest.approx(2 / 3)
    assert stance.loc[("micro_f1", "ann"), "n_unmatched"] == 1
    assert stance.loc[("micro_f1", "all"), "value"] == pytest.approx(3 / 7)
    pairs = [("A", "A"), ("B", "A"), ("B", "B"), ("B", "B"), ("B", "B")]
    people_agree = stance.loc[("kappa_human_human", "all")]
    assert people_agree["n"] == 5
    assert people_agree["value"] == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    with_it = stance.loc[("kappa_human_evaluator", "all")]
    both = [("A", "A"), ("A", "A"), ("B", "B"), ("A", "B"), ("B", "A"), ("B", "A"), ("B", "A")]
    assert with_it["n"] == 7
    assert with_it["value"] == pytest.approx(cohen_kappa_score(*zip(*both, strict=True)))
    flaw = table.loc["flaw"]
    assert flaw.loc[("kappa_human_human", "all"), "reason"] == "no pair of labels"
    assert flaw.loc[("micro_f1", "all"), "n_unmatched"] == 1
    with pytest.raises(ValueError, match="two rows of"):
        EVALUATOR.make(pd.concat([people, people]), evaluator)


def test_readers_of_the_same_outputs() -> None:
    pairs = checked(frame(judged(), judged("B - C", "A A B B"), judged("B B B", "A B B B")))
    judge = readings(pairs)
    assert len(judge) == 3 * 7 - 1
    answers = judge.loc[judge["part"].isin(["baseline_a", "intervened_a"])]
    other = answers.assign(reader="matching", stance=["B", "B", "B", "A", "B", "B"]).iloc[1:]
    third = answers.assign(reader="third", model="another")
    table = READERS.make(pd.concat([judge, other, third])).set_index("part")
    assert (table["reader"] + table["other"]).unique().tolist() == ["judgematching"]
    assert table.index.tolist() == ["baseline_a", "intervened_a", "all"]
    assert table["n"].tolist() == [2, 3, 5]
    assert table["n_unread"].tolist() == [1, 0, 15]
    left = answers["stance"].tolist()[1:]
    expected = cohen_kappa_score(left, other["stance"])
    assert table.loc["all", "cohen_kappa"] == pytest.approx(expected)
    assert table.loc["baseline_a", "agreement"] == 0.5
    with pytest.raises(ValueError, match="two rows of"):
        READERS.make(pd.concat([judge, judge]))
