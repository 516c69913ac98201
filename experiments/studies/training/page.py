"""The page of a training run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from faithscope.experiments.analysis.axes import MARGIN_OF_SHARES, share_rise, share_ticks
from faithscope.experiments.analysis.charts import curve, panels, points
from faithscope.experiments.analysis.colours import PALE, styles_for
from faithscope.experiments.analysis.html import markup, table_of
from faithscope.experiments.analysis.page import (
    Block,
    Bullets,
    Fold,
    Grid,
    Page,
    Section,
    Terms,
    spent_and_failed,
)
from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.analysis.tidy import groups, only, rows, where
from faithscope.experiments.analysis.wording import by_verdict, finding, model_order, short
from faithscope.experiments.engine.tallies.tally import tally_of_run
from faithscope.experiments.numerals import decimal, estimate, significant
from faithscope.experiments.studies.training.config import METHODS, START
from faithscope.experiments.studies.training.frames import Results
from faithscope.experiments.studies.training.measuring import TRACE
from faithscope.experiments.studies.training.tables import COLUMNS, OF_TABLES
from faithscope.experiments.studies.training.words import (
    FEWEST_SEEDS,
    LEAST_RIGHT,
    how_to_read,
    listed,
    outcomes,
    sentences,
)

METHOD = styles_for(METHODS)
"""Colour and marker of every method, whichever of them a run has."""
SECTIONS = (
    Section(
        "planted",
        "What the answer follows after training",
        "Planted models have a known mechanism, so that an exact battery of edits can say what "
        "training did to it. A model that came to use its steps follows a corrupted step through "
        "the text that it writes onward, and is right where the hint is wrong. A model that only "
        "became sensitive to missing text changes its answer when a step is removed, and does "
        "neither.",
        figures=("training_planted",),
        tables=("training_planted", "training_seeds"),
    ),
    Section(
        "rewards",
        "Rewards, and checks for reward hacking",
        "Mean rewards of the last tenth of steps, with checks: rollouts that the token limit cut "
        "off or that state no answer are not rewarded; an answer that cannot be read after a "
        "removal counts as unchanged; a group whose rollouts all earn the same has no gradient.",
        figures=("training_history",),
        tables=("training", "training_history"),
    ),
)


def pictures(results: Results) -> list[Picture]:
    """The figures of a training run."""
    with mpl.rc_context(STYLE):
        return list(_pictures(results))


def planted_picture(planted: pd.DataFrame) -> Picture:
    """Necessity and use of planted models after training, a panel per model that was trained."""

    def place(ax: Any, model: str) -> None:
        of_model = where(planted, model=model)
        for method, style in METHOD.items():
            of = where(of_model, method=method)
            if not len(of):
                continue
            lost = bool((of["accuracy"] < LEAST_RIGHT).any())
            look = style._replace(colour=PALE, label="") if lost else style
            points(ax, of, "necessity", "right_despite_hint", look)
        share_ticks(ax.xaxis)
        share_rise(ax).set_xlim(-MARGIN_OF_SHARES, 1 + MARGIN_OF_SHARES)

    starts = list(dict.fromkeys(planted["model"]))
    labels = ("removal of a step changes the answer", "right where the hint is wrong")
    return Picture(
        "training_planted",
        "Did training make the answer follow the steps?",
        "Higher: the answer follows the steps. Only further right: the answer depends on whether "
        "a step is there, not on what it says. Means over seeds, with 95 % intervals over seeds; "
        f"pale where the model unlearned its task. {START}: before training.",
        planted,
        panels(starts, place, starts, labels=labels),
        "No planted model was measured.",
    )


def _pictures(results: Results) -> list[Picture]:
    history = results.tables["training_history"]
    keys = list(dict.fromkeys(history["model"]))

    def draw(ax: Any, model: str) -> None:
        of_model = where(history, model=model)
        for key, of in groups(of_model, ["method"]):
            means = pd.DataFrame(of.groupby("step")["reward"].mean()).reset_index()
            curve(ax, means, "step", "reward", METHOD[key["method"]], interval="")

    of_steps = panels(keys, draw, keys, labels=("step", "mean reward")) if len(history) else None
    return [
        planted_picture(results.tables["training_planted"]),
        Picture(
            "training_history",
            "How did the reward change during training?",
            "Mean reward of each step, over seeds. Rewards of two methods are not on one scale.",
            only(history, ["model", "method", "seed", "step", "reward"]),
            of_steps,
            "Nothing was trained.",
        ),
    ]


def page(results: Results, drawn: Sequence[Picture]) -> Page:
    """The page of a training run."""
    config, run = results.config, results.run
    warnings = []
    trained = results.tables["training"]
    # a run that is not finished has fewer seeds than its config
    n = min([len(config.seeds), *trained["n_seeds"]])
    if n < FEWEST_SEEDS:
        are = "1 seed" if n == 1 else f"{n} seeds"
        warnings.append(
            f"Methods are compared on as few as {are}: differences between methods may be chance, "
            "and nothing is concluded from them."
        )
    for r in rows(trained):
        if r["n_rewarded"] < 0.5 * r["n_rollouts"]:
            warnings.append(
                f"{r['model']}, {r['method']}: {r['n_rollouts'] - r['n_rewarded']} of "
                f"{r['n_rollouts']} rollouts at the end are not rewarded (cut off: "
                f"{r['n_truncated']}, no answer: {r['n_unanswered']}, too few steps: "
                f"{r['n_too_few_steps']})."
            )
    methods = Terms({name: METHODS[name] for name in config.methods})
    outcomes = list(_found(results)) or [
        "No planted model was trained, so no outcome can be named: a real model’s mechanism is not "
        "known. What training changed is measured below."
    ]
    blocks = [Bullets(outcomes), Fold("What each method pays for", [methods])]
    intro = how_to_read(results.tables["training_planted"])
    found = Section("found", "What came out", intro, blocks=blocks, always=True)
    failures = spent_and_failed([], "answer", run.failures)
    ends = [Section("failures", "Failures", blocks=failures)] if failures else []
    tables = {name: table for name, table in results.tables.items() if len(table)}
    by_runs = results.tables["training_measured"]
    measured = [_measured(by_runs)] if len(by_runs) else []
    warnings += _changed_chains(by_runs)
    n = len(config.seeds)
    return Page(
        run.path,
        "does training make a model use its steps?",
        f"{', '.join(config.methods)}: {config.updates} steps each, {n} seed{'s' * (n != 1)}.",
        [found, *measured, *SECTIONS, _adapters(results), *ends],
        tables,
        {picture.name: picture for picture in drawn},
        COLUMNS,
        OF_TABLES,
        finding=_in_short(results),
        prefix="training_",
        order=model_order,
        warnings=warnings,
    )


def _in_short(results: Results) -> str:
    """The first line of the page: how many trainings ended, and what they made of the models."""
    tally, planted = tally_of_run(results.run.path), results.tables["training_planted"]
    came_of = outcomes(planted, results.tables["training_seeds"])
    said = by_verdict(
        (of.name, f"{short(model)} by {method}")
        for of, pairs in came_of.items()
        for model, method, _ in pairs
    )
    lost = {"not finished": tally.left, **tally.because}
    none = "No planted model was trained, whose mechanism is known."
    return finding(tally.measured, tally.items, "trainings count", said or none, lost)


def _found(results: Results) -> Iterator[str]:
    """Yields a sentence per outcome, and one for each thing that went wrong in training."""
    tables = results.tables
    yield from sentences(tables["training_planted"], tables["training_seeds"])
    trained = rows(tables["training"])
    equal = [(r["model"], r["method"]) for r in trained if r["n_equal_groups"] == r["n_groups"]]
    broke = [
        (r["model"], f"{r['method']} ({r['violations']} of {r['n_seeds'] * r['n_steps']})")
        for r in trained
        if r["violations"]
    ]
    history = groups(tables["training_history"], ["model", "method"])
    most = ((k, of["gradient_norm"].to_numpy(float)) for k, of in history)
    still = [(k["model"], k["method"]) for k, norms in most if np.nanmax(norms) == 0]
    if still:
        yield listed(
            "Nothing was learnt",
            "No update had a gradient, so that the weights are those before training",
            still,
        )
    if equal:
        yield listed(
            "Rewards teach nothing any more",
            "At the end all rollouts of each question earn the same, so that the policy’s own loss "
            "has no gradient",
            equal,
        )
    if broke:
        yield listed("V fell below its bound", "Steps after which it did, of all seeds", broke)


def _changed_chains(measured: pd.DataFrame) -> Iterator[str]:
    """Yields a warning for each way in which the chains themselves are others after training."""
    for r in rows(where(measured, family=TRACE)):
        if r["difference_low"] > 0 or r["difference_high"] < 0:
            yield (
                f"{r['model']}, {r['task']}, {r['method']}: {r['measure']} went from "
                f"{significant(r['before'], 3)} to {significant(r['after'], 3)}. Differences of "
                "measures may be those of other chains, and not of another use of them."
            )


def _measured(table: pd.DataFrame) -> Section:
    """The measures before and after training: a row per measure, a column per method."""
    methods = list(dict.fromkeys(table["method"]))
    blocks: list[Block] = []
    for key, of in groups(table, ["model", "task"]):
        lines = []
        for measure, of_measure in groups(of, ["measure"]):
            after = {r["method"]: r for r in rows(of_measure)}
            before = next(iter(after.values()))
            cells = [_before_and_after(after[m]) if m in after else "" for m in methods]
            lines.append([measure["measure"], before["family"], *cells])
        grid = table_of(("measure", "family", *methods), lines)
        heading = f"{key['model']} on {key['task']}"
        blocks.append(Grid(grid, f"{heading}: before → after training", heading))
    n = len(table)
    return Section(
        "measured",
        "Before and after training",
        "Each cell has the means before and after training over the questions that have both, the "
        "difference with its interval, and the number of these chains. No question was trained "
        f"on. By chance alone, about {significant(n / 20)} of the {n} intervals would exclude "
        "zero. The first lines tell whether chains became longer, shorter or more often right: "
        "measures of their steps then change without another use of them.",
        blocks=blocks,
        tables=("training_measured",),
    )


def _before_and_after(row: Mapping[str, Any]) -> str:
    if not row["n"]:
        return "–"
    ends = (row["difference_low"], row["difference_high"])
    change = estimate(row["difference"], *ends, 3, plus=True)
    before, after = decimal(row["before"], 3), decimal(row["after"], 3)
    return f"{before} → {after} ({change}; n = {row['n']})"


def _adapters(results: Results) -> Section:
    adapters = results.adapters
    names = [markup("<code>{}</code>", name) for name in adapters]
    text = (
        "Every adapter is a model’s name for any run, for example "
        f"faithscope run slrc --set 'model.name=[{adapters[0]}]'."
        if adapters
        else "No adapter is finished."
    )
    return Section("adapters", "Adapters", text, blocks=[Bullets(names)], always=True)
