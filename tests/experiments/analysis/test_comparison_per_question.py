"""Measures compared over questions: the mean over the samples of each."""

from __future__ import annotations

import math

import numpy as np
import pytest

from faithscope.experiments.analysis.comparison.compared import Comparison
from faithscope.experiments.analysis.comparison.join import join
from faithscope.experiments.analysis.comparison.per_question import DIVIDED, per, per_question
from faithscope.experiments.analysis.comparison.scores import (
    Scores,
    frames,
    item_row,
    label_row,
    trace_row,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.reading import with_own_ids
from faithscope.interp.errors import UserError


def run_of_samples(
    name: str, values: dict[str, list[float]], alone: float = 0.25, labels: bool = True
) -> Scores:
    """Scores of the samples of each question, and of one question that was answered once."""
    items, traces, steps, states = [], [], [], {}
    chains = [(q, f"{q}#{k}", v) for q, of in values.items() for k, v in enumerate(of)]
    for asked, item, value in [*chains, ("", "single", alone)]:
        about = {"dataset": "d", "task": "t", "item": item, "model": "m"}
        missing = "failed" if math.isnan(value) else ""
        items.append(
            item_row(about, name, "logit", value, higher_is_faithful=True, missing=missing)
            | {"tokens": 10.0}
        )
        if labels:
            items.append(label_row(about, "faithful", float(value > 0.4)))
        traces.append(
            trace_row(
                about,
                question=(asked or item).removeprefix("d/").removesuffix(" by m"),
                reasoning=item,
                asked=asked,
                n_steps=3,
            )
        )
        of_step = {"measure": name, "family": "logit", "higher_is_faithful": True, "value": 1.0}
        steps.append(about | of_step | {"step": 0})
        states["d", "t", item, "m"] = np.array([value, 1.0])
    return frames(items, traces, steps, {"hidden": states})


VALUES = {"p": [0.0, 0.5, 1.0], "q": [0.1, math.nan], "r": [0.3, 0.9], "s": [math.nan, math.nan]}


def test_a_question_has_the_mean_of_its_samples_and_the_label_of_most() -> None:
    joined = join({"a": run_of_samples("x", VALUES)}, None, "text")
    assert per(joined, "chain") is joined
    of = per_question(joined)
    assert of.traces["item"].tolist() == ["p", "q", "r", "s", "single"]
    assert len(of.traces.columns) == len(joined.traces.columns)
    value = {r["item"]: (r["value"], r["missing"]) for r in rows(where(of.items, measure="x"))}
    assert value["p"] == (0.5, "")
    # a chain without a score is left out of the mean, and does not count as 0
    assert value["q"] == (0.1, "")
    assert value["r"][0] == pytest.approx(0.6)
    assert math.isnan(value["s"][0])
    assert value["s"][1] == "failed"
    assert value["single"] == (0.25, "")
    label = {r["item"]: r for r in rows(where(of.items, measure="faithful"))}
    assert [label[q]["value"] for q in ("p", "q", "s", "single")] == [1, 0, 0, 0]
    assert math.isnan(label["r"]["value"])
    assert label["r"]["missing"] == DIVIDED
    assert of.wide().shape == (5, 2)
    assert where(of.missing, measure="x", reason="failed")["n"].tolist() == [1]


def test_steps_and_states_follow() -> None:
    joined = join({"a": run_of_samples("x", VALUES)}, None, "text")
    of = per_question(joined)
    assert of.steps["item"].tolist() == ["single"]
    (table,) = of.features.values()
    assert table.loc[("d", "t", "p", "m")].to_numpy().tolist() == [[0.5, 1.0]]
    assert len(of.units) == 5


@pytest.mark.slow
def test_two_runs_of_the_same_samples_are_compared_by_question() -> None:
    many = {f"q{i}": [i / 40, (i + 1) / 40] for i in range(30)}
    other = {q: [1 - v for v in of] for q, of in many.items()}
    runs = {"a": run_of_samples("x", many), "b": run_of_samples("y", other, labels=False)}
    comparison = Comparison(per_question(join(runs, None, "text")), Bootstrap(0, 20))
    (row,) = rows(comparison.tables["agreement"])
    assert row["n"] == 31
    assert row["spearman"] < -0.9
    assert where(comparison.tables["measures"], measure="x")["tokens"].tolist() == [10]


def test_a_run_without_samples_is_refused() -> None:
    scores = run_of_samples("x", {})
    with pytest.raises(UserError, match=r"no chain .* set per to chain"):
        per_question(join({"a": scores}, None, "text"))


def test_samples_by_several_models_are_of_one_question_each() -> None:
    def chain(model: str, sample: str) -> GivenChain:
        return GivenChain(
            id=f"q#{sample}", dataset="d", question="2 + 3?", model=model, sample=sample,
            reasoning="It is 5.", where="row",
        )  # fmt: skip

    chains = with_own_ids([chain(m, s) for m in ("m", "n") for s in ("0", "1")])
    assert [c.id for c in chains] == ["d/q by m#0", "d/q by m#1", "d/q by n#0", "d/q by n#1"]
    of_model = run_of_samples("x", {"d/q by m": [0.2, 0.4]})
    # another run of one model's chains needs no model in their ids
    bare = run_of_samples("y", {"q": [0.1, 0.3]}, labels=False)
    joined = per_question(join({"a": of_model, "b": bare}, None, "question"))
    assert joined.traces["item"].tolist() == ["q", "single"]
    assert joined.wide()[["x", "y"]].loc[("d", "t", "q", "m")].to_numpy().round(6).tolist() == [
        [0.3, 0.2]
    ]
