"""Tables of disagreements between judges, behaviour and insides find planted disagreements."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthetic_comparison import HOW, NOTHING, joined_of

from faithscope.experiments.analysis.comparison.conclusions import answers
from faithscope.experiments.analysis.comparison.disagreements import disagreement_tables
from faithscope.experiments.analysis.tidy import rows, where


def test_items_that_a_judge_lies_on_and_insides_are_shuffled_on_head_the_lists() -> None:
    n, rng = 200, np.random.default_rng(6)
    truth = np.linspace(0, 1, n)
    order = rng.permutation(n)
    unused, lies = order[order < 80][:20], order[order >= 120][:20]
    judge = (truth > 0.5).astype(float)
    judge[unused] = 1.0  # the judge calls faithful what is not used
    inside = truth.copy()
    inside[lies] = rng.permutation(truth[order[order < 80][20:40]])  # insides lose what is used
    joined = joined_of({"judge": ("judged", judge), "inside": ("internal", inside)})
    tables = disagreement_tables(joined, HOW, 40)
    count = {r["kind"]: r["n"] for r in rows(tables["disagreements"])}
    assert count["judged_faithful_unused_inside"] >= 38
    listed = where(tables["disagreements_items"], kind="judged_faithful_unused_inside")
    planted = {f"i{i}" for i in (*unused, *lies)}
    assert len(planted & set(listed["item"])) >= 38
    silent = where(tables["disagreements"], kind="answer_moves_unused_inside")
    assert silent["reason"].tolist() == ["no measure of behaviour varies within a model and task"]


def test_sides_that_tell_models_apart_do_not_part_on_traces() -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(3, 40))
    # judges find the first model faithful and the insides the last, and of each they say the same
    offset = 10 * np.arange(3)[:, None]
    values = {"judge": ("judged", truth - offset), "inside": ("internal", truth + offset)}
    flat = {name: (family, of.ravel()) for name, (family, of) in values.items()}
    table = disagreement_tables(joined_of(flat, models=("a", "b", "c")), HOW, 5)["disagreements"]
    assert table["n"].tolist()[:2] == [0, 0]
    assert table["expected"].tolist()[:2] == [30, 30]
    assert table["beyond_high"].to_numpy()[:2].max() < 0
    # a model of which a side has said nothing of all but one trace has no upper half
    flat["judge"][1][1:40] = math.nan
    table = disagreement_tables(joined_of(flat, models=("a", "b", "c")), HOW, 5)["disagreements"]
    assert table["n_items"].tolist()[:2] == [80, 80]


@pytest.mark.slow
def test_sides_that_know_nothing_of_each_other_part_no_more_than_by_chance() -> None:
    said = 0
    for seed in range(30):
        values = np.random.default_rng(seed).normal(size=(3, 60))
        families = zip(("judged", "internal", "logit"), values, strict=True)
        joined = joined_of({f: (f, v) for f, v in families})
        table = disagreement_tables(joined, HOW, 1)["disagreements"]
        assert table["beyond"].to_numpy() == pytest.approx(table["n"] - table["expected"])
        said += bool((table["beyond_low"] > 0).any())
        words = answers({"disagreements": table, **NOTHING}, joined)[-1].words
        assert ("the most beyond chance" in words) == bool(table["beyond_low"].max() > 0)
    assert said <= 5
    opposite = joined_of({"judge": ("judged", values[0]), "in": ("internal", -values[0])})
    table = disagreement_tables(opposite, HOW, 1)["disagreements"]
    assert np.nanmax(table["beyond_low"].to_numpy()) > 0
