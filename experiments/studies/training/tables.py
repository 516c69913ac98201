"""The tables of a training run: what each method did to what a model's answer follows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    Boot,
    Count,
    Kept,
    Mean,
    Number,
    StudentMean,
    all_of,
    rows_known,
    rows_with,
)
from faithscope.experiments.analysis.columns import Column, described
from faithscope.experiments.analysis.tables import Table, declared
from faithscope.experiments.analysis.tidy import keep, numbers, only, rows, where
from faithscope.experiments.studies.training.config import START

METHOD = Column("method", meaning="What the model was trained for; `start` is before training.")
SEED = Column("seed", meaning="Seed of the training.")
MEASURED = described(
    accuracy="Share of fresh questions that the model answers rightly in its own greedy text.",
    same_words="Share of fresh questions on which it writes, word for word, the reasoning that it "
    "was planted to write.",
    without_steps=("right at once", "Share answered rightly without any reasoning."),
    necessity=("necessity by removal", "Share of steps whose removal changes the answer."),
    sufficiency="Share of steps that alone keep the answer.",
    slrc=("SLRC", "Necessity × (1 − sufficiency)."),
    frozen=("corrupted", "Share of steps whose corruption changes the answer, later text kept."),
    frozen_last=("last corrupted", "Share of last steps whose corruption changes the answer."),
    regenerated="Share of steps whose corruption changes the answer, later text written anew.",
    hint_changed="Share of questions in which another hint changes the answer, text kept.",
    claim="Mean probability of what a corrupted last step claims.",
    right_despite_hint="Share of the model's own answers that are right where the hint is wrong.",
)
STEP = described(
    reward="Mean reward of the rollouts that are rewarded.",
    accuracy=("right", "Share of rollouts with the right answer."),
    changed="Share of rollouts whose answer changes when one step, drawn at random, is dropped.",
    changed_before_last=(
        "changed, not by the last step",
        "The same where the dropped step is not the last one, which often states the answer.",
    ),
    changed_shuffled=("changed by order", "Share whose answer changes when steps are shuffled."),
    changed_by_asking=(
        "changed by asking",
        "Share whose own, sampled answer is another than the one asked for after all its steps: "
        "what a removal that does nothing would be paid.",
    ),
    followed="Share whose answer, after a corrupted step that the model writes onward from, is the "
    "one that the new text states.",
    mean_steps=("steps", "Mean number of steps of a rollout."),
    mean_tokens=("tokens", "Mean number of tokens of a rollout."),
    value=("V", "V(θ) after the step: mean total variation when a step is dropped."),
    least_value=("bound of V", "V(θ₀) − ε, below which V must not fall."),
    loss="The whole loss.",
    gradient_norm="Norm of the gradient before it is clipped.",
    seconds=("time", "Wall time of the step.", "s"),
)
COUNTED = described(
    n_rollouts=("rollouts", "Rollouts of the step."),
    n_rewarded=("rewarded", "Rollouts with a reward."),
    n_truncated=("cut off", "Rollouts that the limit of tokens cut off; they are not rewarded."),
    n_unanswered=("no answer", "Rollouts without a readable answer; they are not rewarded."),
    n_too_few_steps=("too few steps", "Rollouts that cannot be edited; they are not rewarded."),
    n_unparsed_after=(
        "unreadable after removal",
        "Rollouts whose answer cannot be read after a removal, which counts as no change.",
    ),
    n_equal_groups=(
        "equal groups",
        "Questions all of whose rollouts have one reward: nothing is learnt from them.",
    ),
    n_groups=("questions", "Questions of the step."),
    n_taught=("taught", "Rollouts with a loss beside the policy's; 0 for methods without one."),
)
BOUND = described(
    projections="Steps that were projected so that V keeps its bound, so far.",
    halvings="Times that a step was halved until V kept its bound, so far.",
    given_up="Steps that were not taken, since no part of them kept the bound, so far.",
    violations="Steps after which V was below its bound, so far.",
)


def at_the_end(steps: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last tenth of the steps of each training, at least of one step."""
    last = numbers(steps.groupby(["model", "method", "seed"])["step"].transform("max"))
    return keep(steps, steps["step"] > last - np.maximum(1, (last + 1) // 10))


AT_THE_END = "The last tenth of the steps of all seeds."
HISTORY = Table(
    "training_history",
    "training",
    ("model", METHOD, SEED, Column("step", meaning="Number of the step, from 0.")),
    (Kept((*STEP, *COUNTED, *BOUND)),),
)
"""Every step of every training."""


def _sum(name: str, label: str, meaning: str) -> Number:
    return Number(name, lambda of: int(of[name].sum()), label, meaning)


def _ends(name: str, label: str, meaning: str) -> Number:
    """The sum over seeds of what a running count ends with."""
    return Number(name, lambda of: int(of.groupby("seed")[name].max().sum()), label, meaning)


TRAININGS = Table(
    "training",
    "training",
    ("model", METHOD),
    (
        Number("n_seeds", lambda of: of["seed"].nunique(), "seeds", "Trainings, one per seed."),
        Number("n_steps", lambda of: of["step"].max() + 1, "steps", "Steps of each training."),
        *(
            StudentMean(c.name, c.name, "seed", label=c.label, meaning=f"{c.meaning} {AT_THE_END}")
            for c in STEP
            if c.name not in ("loss", "gradient_norm", "least_value", "seconds")
        ),
        *(_sum(c.name, c.label, f"{c.meaning} {AT_THE_END}") for c in COUNTED),
        *(
            _ends(
                c.name, c.label, c.meaning.replace(", so far", ", over the whole of all trainings")
            )
            for c in BOUND
        ),
    ),
    prepare=at_the_end,
    caption="Rewards at the end of training, and checks for reward hacking.",
)
"""Rewards and guards at the end of training, by method."""


GAINS = {
    "necessity": "Necessity by removal",
    "regenerated": "Change by regeneration",
    "frozen_last": "Change by corruption of the last step",
    "right_despite_hint": "Right where the hint is wrong",
    "hint_changed": "Change by another hint",
}
"""Column of the battery -> what it is called where it is compared with the start."""


def beside_start(battery: pd.DataFrame) -> pd.DataFrame:
    """The battery's rows with the difference from the model before training."""
    before = {row["model"]: row for row in rows(where(battery, method=START))}
    gains = {
        f"{name}_gain": [
            row[name] - before.get(row["model"], {}).get(name, math.nan) for row in rows(battery)
        ]
        for name in GAINS
    }
    return battery.assign(**gains)


def _gain(name: str, of: str) -> StudentMean:
    meaning = f"{of} after training less that before it."
    return StudentMean(f"{name}_gain", f"{name}_gain", "seed", label=f"{of}, gain", meaning=meaning)


PLANTED = Table(
    "training_planted",
    "battery",
    ("model", METHOD),
    (
        Count("n_seeds", label="seeds", meaning="Trainings, one per seed."),
        *(StudentMean(c.name, c.name, "seed", label=c.label, meaning=c.meaning) for c in MEASURED),
        *(_gain(name, of) for name, of in GAINS.items()),
    ),
    prepare=beside_start,
    caption="What the answer follows after training, by an exact battery of edits.",
)
"""What planted models' answers follow after training."""
SEEDS = Table(
    "training_seeds",
    "battery",
    ("model", METHOD, SEED),
    (Kept(MEASURED),),
)
"""What planted models' answers follow after training, a row for each seed."""
BESIDE = ("accuracy", "mean_steps", "mean_tokens")
"""Names of what is known of every chain, which stands beside every measure of it."""


def _with_before(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows of adapters, each with the values of the model before training on the question."""
    key = ["model", "task", "item", "measure"]
    before = only(where(measured, method=START), [*key, "value", *BESIDE])
    adapters = keep(measured, measured["method"] != START)
    return adapters.merge(before, on=key, how="left", suffixes=("", "_before"))


HELD_OUT = rows_with(trained_on=False)
PAIRS = all_of(HELD_OUT, rows_known("value", "value_before"))


MEASURED_BY_RUN = Table(
    "training_measured",
    "measured",
    ("model", "task", METHOD, "measure"),
    (
        Kept((Column("family", meaning="What the measure is read off; trace: the chains."),)),
        Number("n_seeds", lambda of: of["seed"].nunique(), "seeds", "Trainings, one per seed."),
        Count(
            "n_trained_on",
            rows_with(trained_on=True),
            "trained on",
            "Chains on questions that the model is trained on, which are left out of all else.",
        ),
        Count("n_chains", HELD_OUT, "chains", "Chains after training, on other questions."),
        Count("n", PAIRS, "pairs", "Those that have a value before and after training."),
        Mean("lost_before", lambda of: of["value_before"].isna().to_numpy(float), HELD_OUT,
             "no value before", "Share of the questions without a value before training."),
        Mean("lost_after", lambda of: of["value"].isna().to_numpy(float), HELD_OUT,
             "no value after", "Share of the chains without a value after training."),
        Mean("before", "value_before", PAIRS, meaning="Mean over the pairs before training."),
        Mean("after", "value", PAIRS, meaning="Mean over the pairs after training."),
        Boot(
            "difference",
            lambda of: numbers(of["value"]) - numbers(of["value_before"]),
            "item",
            PAIRS,
            meaning="After less before, of the same questions; the interval draws questions, each "
            "with all seeds.",
        ),
        *(
            Mean(f"{name}_{when}", f"{name}{column}", PAIRS, f"{name.replace('_', ' ')} {when}",
                 f"{words} of the pairs' chains {when} training.")
            for name, words in zip(BESIDE, ("Accuracy", "Steps", "Tokens"), strict=True)
            for when, column in (("before", "_before"), ("after", ""))
        ),
    ),
    prepare=_with_before,
    caption="Every measure before and after training, on questions that were not trained on.",
)  # fmt: skip
"""Measures of each model before training and of its adapters, by the run that `measure` names."""


def _cosr_reward(steps: pd.DataFrame) -> float:
    """CoSR's reward, by which the paper's table scores all five methods: 1 for a changed answer and
    −1 for one that stayed, a mean over the last tenth of steps."""
    return 2 * float(numbers(at_the_end(steps)["changed"]).mean()) - 1


METHODS = Table(
    "training_methods",
    "training",
    ("model", METHOD),
    (
        Number(
            "reward",
            _cosr_reward,
            meaning="CoSR's reward of the last tenth of steps: 1 for a changed answer, −1 else.",
        ),
        Number(
            "hours",
            lambda of: of.groupby("seed")["seconds"].sum().mean() / 3600,
            "time",
            "Wall time of one training.",
            "h",
        ),
        _ends("projections", "", "Steps that were projected so that V keeps its bound."),
    ),
)
"""The numbers of SLRC's Table 6: the reward can only be CoSR's own for all five methods (see
`faithscope docs papers/training`)."""
TABLES = (TRAININGS, PLANTED, SEEDS, MEASURED_BY_RUN, HISTORY, METHODS)
COLUMNS, OF_TABLES = declared(TABLES)
