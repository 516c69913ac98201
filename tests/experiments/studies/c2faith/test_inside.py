"""Items of the benchmark read from inside, as far as the frames that the tables are made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from c2_runs import config, prompts, unshown
from prm800k_rows import completion, row, solved, step
from run_files import write_rows
from tiny_models import tiny

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.store import Store
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem
from faithscope.experiments.studies.c2faith.inside import (
    broken_chain,
    inside_rows,
    not_inside,
    stated_answer,
)
from faithscope.experiments.studies.c2faith.plan import C2Plan, plan
from faithscope.experiments.studies.c2faith.results import results
from faithscope.experiments.studies.c2faith.tables.frames import Frames
from faithscope.interventions import middle_region
from faithscope.probes.broken_step import SIGNALS, broken_step

ITEM = CausalItem(
    id="c.causal",
    chain="c",
    problem="What is 2 + 3 - 1?",
    steps=("Add 2 and 3.", "That is 5.", "Take 2 off.", "So 4.", "Right.\n\n# Answer\n\n4"),
    target=2,
    original="Take 1 off.",
    replacement="Take 2 off.",
    method="rule:numeric",
)


def test_both_chains_are_those_of_the_item() -> None:
    chain = broken_chain(ITEM)
    assert chain.told("perturbed") == ITEM.steps
    assert chain.told("control") == ITEM.original_steps
    assert (chain.item, chain.chain, chain.target, chain.answer) == ("c.causal", "c", 2, "4")
    assert chain.prompt == ITEM.problem


@pytest.mark.parametrize(
    ("steps", "target", "reason"),
    [
        (("One.", "Two."), 0, "too_few_steps"),
        (("One.", "Two."), 1, "too_few_steps"),
        (("One.", "Two.", "Three."), 2, "last_step_replaced"),
        (("One.", "Two.", "Three."), 1, None),
        (("One.", "Two.", "Three."), 0, None),
    ],
)
def test_only_items_that_cannot_be_read_have_a_reason(
    steps: tuple[str, ...], target: int, reason: str | None
) -> None:
    item = replace(ITEM, steps=steps, target=target)
    assert not_inside(item) == reason
    if reason is None:
        assert broken_chain(item).target == target
    else:
        with pytest.raises(ValueError, match="give"):
            broken_chain(item)


def test_items_that_cannot_be_read_are_judged_and_accounted_for(tmp_path: Path) -> None:
    data = write_rows(
        tmp_path / "data" / "phase1_train.jsonl",
        *(solved(f"Find x, number {n}.", n_steps, 20 + 40 * n) for n, n_steps in enumerate((2, 4))),
    )
    prompts(tmp_path)
    judge = {"model": "planted:faithful", "readings": ["scored"]}
    perturb = {"low": 1.0, "high": 1.0, "levels": [0.5]}
    path = config(
        tmp_path,
        judge,
        data={"path": str(data), "splits": "phase1_train", "least": 2},
        perturb=perturb,
        internals={"model": "planted:faithful"},
    )
    made = plan(load_config(path))
    assert isinstance(made, C2Plan)
    assert len(made.benchmark.causal) == 2
    assert {i.task for i in made.items} == {"c2_detection", "c2_localisation", "c2_coverage"}
    with Store(made.config, {}, "w", made.stored()) as store:
        made.write_inputs(store)
    exclusions = results(load_run(made.config.run_dir)).tables["exclusions"]
    of_model = exclusions[exclusions["model"] == "planted:faithful"].set_index("reason")
    assert set(of_model["stage"]) == {"c2_internals"}
    assert of_model["n"].to_dict() == {"last_step_replaced": 1, "too_few_steps": 1}


@pytest.mark.slow
def test_chains_that_state_no_answer_are_accounted_for(tmp_path: Path, model: str) -> None:
    open_ended = [step(completion(f"Step on, we get $y = {40 + 3 * i}$.")) for i in range(6)]
    rows = [solved("Find x.", 6), *(row(f"Find y, number {n}.", *open_ended) for n in range(2))]
    write_rows(tmp_path / "data/phase1_train.jsonl", *rows)
    prompts(tmp_path)
    path = config(
        tmp_path,
        {"model": "planted:faithful", "readings": ["scored"]},
        forms="c2_coverage",
        internals={"model": model, "signals": ["surprisal", "answer_tracing", "necessity"]},
    )
    found = results(load_run(unshown(path, parts=2).run_dir))
    counted = found.tables["exclusions"].set_index("stage")
    assert counted["reason"].to_dict() == {
        "c2_internals.answer_tracing": "no_stated_answer",
        "c2_internals.necessity": "no_stated_answer",
    }
    assert counted["n"].tolist() == [2, 2]
    assert set(counted["model"]) == {model}
    rows_of = found.frames.internals.groupby("signal")["item"].nunique()
    assert rows_of.to_dict() == {"surprisal": 3, "answer_tracing": 1, "necessity": 1}
    unwanted = config(
        tmp_path,
        {"model": "planted:faithful", "readings": ["scored"]},
        name="unwanted",
        forms="c2_coverage",
        internals={"model": model, "signals": ["surprisal", "necessity"]},
    )
    counted = results(load_run(unshown(unwanted, parts=2).run_dir)).tables["exclusions"]
    assert counted["stage"].tolist() == ["c2_internals.necessity"]


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        ("# Answer\n\n\\frac{1}{9}", "\\frac{1}{9}"),
        ("So x=2.\n\n# Answer\n\n(2, 3)\n", "(2, 3)"),
        ("So the answer is 4.", None),
        ("# Answer\n\n", None),
    ],
)
def test_the_answer_is_what_the_last_step_states(last: str, answer: str | None) -> None:
    assert stated_answer(last) == answer


def test_rows_are_what_the_tables_take() -> None:
    scores, places = inside_rows(broken_step(tiny("llama"), broken_chain(ITEM)), middle_region)
    frames = Frames(internals=pd.DataFrame(scores), internals_localisation=pd.DataFrame(places))
    assert len(frames.internals) == len(frames.internals_localisation) == 2 * len(SIGNALS)
    assert set(frames.internals["condition"]) == {"perturbed", "control"}
    placed = frames.internals_localisation.set_index("signal")
    assert placed["target"].eq(2).all()
    # the last step states the answer, and what asks for the answer has no number for it
    of_answer = ["answer_tracing", "necessity", "information_flow"]
    assert placed.loc[of_answer, "n_candidates"].eq(4).all()
    assert placed.drop(of_answer)["n_candidates"].eq(5).all()
    assert placed["n_middle"].eq(len(middle_region(5))).all()
