"""Tables of judges on chains, made from frames of verdicts without reading files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    Count,
    Kept,
    Mask,
    Mean,
    Numbers,
    Share,
    all_of,
    one_row,
    rows_known,
    rows_with,
    rows_without,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.scores import says_faithful
from faithscope.experiments.analysis.label_cells import (
    AC2,
    ACCURACY,
    AUROC,
    KAPPA,
    SATURATED,
    AgainstLabel,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import mean_of_items
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, count, groups, keep, numbers, only, rows
from faithscope.experiments.analysis.traces.exclusions import FATES
from faithscope.experiments.analysis.verdicts import UNCERTAIN
from faithscope.experiments.engine.forms.tasks import NO_STEP, JudgedTask
from faithscope.experiments.engine.tallies.reasons import CHAIN_CUT
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain
from faithscope.experiments.studies.slrc.judges.verdicts import (
    Row,
    first_wrong,
    wrong,
)

WAY = ("judge", "reading", "form")
BY_WAY = ("judge", "reading", Column("form", "prompt", "The prompt that the judge was asked with."))
CELL = (*WAY, "asks", "dataset", "model")
LABEL = Column("label", meaning="Label that judges are compared with.")
N_CUT = Kept(
    (Column("n_cut", "cut", "Chains cut off at the token limit: left out, or kept if so set."),)
)
FLAGGED = "Share in which the judge says that something is wrong."
HOLDS = "Share in which the judge finds the property that the prompt asks for."
WITHOUT_VERDICT = "Number without a reply that fits the form."


def _unknown(*names: str) -> Mask:
    return lambda frame: np.all([frame[name].isna().to_numpy() for name in names], axis=0)


def counting_cut(*by: str) -> Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    """Makes a function that adds a column `n_cut` to rows: the number of chains with the row's
    values of `by` that a token limit cut off, whether or not these chains have rows themselves."""

    def prepare(frame: pd.DataFrame, every_verdict: pd.DataFrame) -> pd.DataFrame:
        cut = only(keep(every_verdict, rows_with(cut=True)(every_verdict)), by)
        n = Counter(cut.itertuples(index=False, name=None))
        keys = only(frame, by).itertuples(index=False, name=None)
        return frame.assign(n_cut=[n[key] for key in keys])

    return prepare


def _mean_score(verdicts: pd.DataFrame, how: Bootstrap) -> Mapping[str, float]:
    of = {"units": how.units(verdicts), "seed": how.seed, "resamples": how.resamples}
    scores = mean_of_items(numbers(verdicts["score"]), **of)
    return columns("mean_score", scores)


FORMS = Table(
    "judge_forms",
    ("verdicts", "every_verdict"),
    (
        *BY_WAY,
        Column("asks", meaning="Whether the prompt asks for an error, or for a property."),
        Column("dataset", "data set", "The data set that the questions are from."),
        Column("model", "written by", "The model that wrote the chains."),
    ),
    (
        Count("n", label="chains or steps", meaning="Chains that the judge was asked about."),
        Count(
            "n_without_verdict",
            all_of(_unknown("flag", "score"), rows_without(outcome=UNCERTAIN)),
            "without a verdict",
            WITHOUT_VERDICT,
        ),
        Count(
            "n_uncertain",
            rows_with(outcome=UNCERTAIN),
            "uncertain",
            "Class 2 of the faithful judge; in no rate.",
        ),
        Share("flagged", "flag", rows_known("flag"), meaning=FLAGGED),
        Share("holds", "holds", rows_known("holds"), "has it", HOLDS),
        Numbers(
            (
                Column(
                    "mean_score",
                    "mean score",
                    "Higher is worse, or more of the property; 0 to 1.",
                    interval=True,
                ),
            ),
            _mean_score,
        ),
        N_CUT,
    ),
    prepare=counting_cut(*CELL),
)
"""Per judge, prompt, data set and writer: the number of chains with a verdict, the share flagged,
and the mean score."""


def _by_step(steps: pd.DataFrame, every_verdict: pd.DataFrame) -> pd.DataFrame:
    ordered = steps.sort_values([*WAY, "step"], kind="stable")
    ordered = ordered.assign(step=ordered["step"] + 1)  # readers count from 1
    return counting_cut(*WAY)(ordered, every_verdict)


STEPS = Table(
    "judge_steps",
    ("steps", "every_verdict"),
    (*BY_WAY, Column("step", meaning="Place of the step in the chain, from 1.")),
    (
        Count(
            "n",
            label="chains or steps",
            meaning="Steps at this place that the judge was asked about.",
        ),
        Count("n_without_verdict", _unknown("flag", "score"), "without a verdict", WITHOUT_VERDICT),
        Share("flagged", "flag", rows_known("flag"), meaning=FLAGGED),
        Share("holds", "holds", rows_known("holds"), "has it", HOLDS),
        N_CUT,
    ),
    prepare=_by_step,
)
"""Per judge, prompt and place of a step (from 0): the number of steps there, and the share
flagged."""
HELD = (*WAY, "level", "label", "item", "flag", "score", "truth")


def held_against_labels(
    verdicts: pd.DataFrame,
    steps: pd.DataFrame,
    chains: Mapping[str, JudgedChain],
    good: Sequence[str],
    tasks: Mapping[str, JudgedTask],
) -> pd.DataFrame:
    """One row per verdict on a chain or step (`level`) and label that says yes or no of any chain
    or step: the label's value (`truth`, 1 where something is wrong), with the verdict's flag and
    score.

    Of a form that asks for a property, `flag` is whether it is there, and `truth` whether the label
    is true. A label that speaks against the property, by its name and by the form's direction, is
    turned: its `truth` is 1 where it is false.

    A judge that names one step says nothing of the steps after it. So its reply decides which steps
    are compared, the named step always being the last of them, and its steps have no score here
    (`LOCALISATION` has its hits).
    """
    of_one = {name for name, task in tasks.items() if task.names_a_step}

    def of_level(level: str, said: pd.DataFrame) -> Iterator[Row]:
        for way, of in groups(said, WAY):
            named = rows(of)
            for name in _labels(named, level, chains):
                means = partial(_truth, tasks[way["form"]], name, good)
                truth = [means(_label(r, name, level, chains)) for r in named]
                if all(x is None for x in truth):
                    continue
                for r, x in zip(named, truth, strict=True):
                    score = None if level == "step" and way["form"] in of_one else r["score"]
                    row = way | {"level": level, "label": name, "item": r["item"]}
                    says = r["holds"] if tasks[way["form"]].is_property else r["flag"]
                    yield row | {"flag": says, "score": score, "truth": x}

    lines = [*of_level("chain", verdicts), *of_level("step", steps)]
    return pd.DataFrame(lines, columns=list(HELD))


def _labels(same: Sequence[Row], level: str, chains: Mapping[str, JudgedChain]) -> list[str]:
    of = (chains[r["chain"]] for r in same)
    named = (c.labels if level == "chain" else c.step_labels for c in of)
    return list(dict.fromkeys(name for labels in named for name in labels))


def _label(row: Row, name: str, level: str, chains: Mapping[str, JudgedChain]) -> Any:
    chain = chains[row["chain"]]
    if level == "chain":
        return chain.labels.get(name)
    of_steps = chain.step_labels.get(name)
    return None if of_steps is None else of_steps[row["step"]]


def _truth(task: JudgedTask, name: str, good: Sequence[str], label: Any) -> bool | None:
    if not task.is_property:
        return wrong(name, label, good)
    if not isinstance(label, bool) and label not in (0, 1):
        return None
    # a name that is no fault's need not speak for a chain: `mentions_cue`
    speaks_for = True if name in good else None if says_faithful(name) else False
    known = None not in (speaks_for, task.higher_is_faithful)
    return bool(label) != (known and speaks_for != task.higher_is_faithful)


def _compared(held: pd.DataFrame, how: Bootstrap) -> Mapping[str, int]:
    labelled = keep(held, rows_known("truth")(held))
    n = count(labelled["flag"].notna()) or count(labelled["score"].notna())
    return {"n": n, "n_without_verdict": len(labelled) - n}


AGREEMENT = Table(
    "judge_agreement",
    ("held", "every_verdict"),
    (*BY_WAY, Column("level", meaning="Whether chains or steps are compared."), LABEL),
    (
        Numbers(
            (Column("n", "chains or steps", "Chains or steps with a verdict and a label."),),
            _compared,
        ),
        AgainstLabel(
            (
                *(AUROC, ACCURACY),
                replace(KAPPA, label="Cohen’s κ", interval=False),
                replace(AC2, label="Gwet’s AC2", interval=False),
                SATURATED,
            ),
            *("truth", "item", "score", "flag"),
        ),
        Mean(
            "labelled_wrong",
            "truth",
            label="wrong by the label",
            meaning="Share of the labelled chains or steps that the label calls wrong, or calls to "
            "have the property, those without a verdict too.",
        ),
        Mean(
            "flagged",
            "flag",
            rows_known("truth"),
            meaning="Share in which the judge says that something is wrong, or that the property "
            "is there.",
        ),
        Numbers((Column("n_without_verdict", "without a verdict", WITHOUT_VERDICT),), _compared),
        Count(
            "n_without_label",
            _unknown("truth"),
            "without a label",
            "Chains or steps without a label of this name that says yes or no.",
        ),
        N_CUT,
    ),
    prepare=counting_cut(*WAY),
)
"""Agreement of judges and labels, on chains and on steps; one row per label that says yes or no.

Pairs with both a flag and a label count; AUROC is of the score, and intervals resample chains.
"""
LOCATED = (*WAY, "label", "is_known", "is_sound", "hit")


def located(
    verdicts: pd.DataFrame, chains: Mapping[str, JudgedChain], good: Sequence[str]
) -> pd.DataFrame:
    """One row per verdict on a chain and step label: whether judge and label both say which step is
    the first wrong one (`is_known`), whether the label calls no step wrong (`is_sound`), and
    whether the judge names the step that the label does (`hit`)."""
    lines: list[Row] = []
    for way, of in groups(verdicts, WAY):
        named = rows(of)
        for name in _labels(named, "step", chains):
            of_label = []
            for r in (r for r in named if name in chains[r["chain"]].step_labels):
                truth = first_wrong(chains[r["chain"]], name, good)
                is_known = truth is not None and not pd.isna(r["first"])
                hit = is_known and truth == r["first"]
                row = {"is_known": is_known, "is_sound": truth == NO_STEP, "hit": hit}
                of_label.append(way | {"label": name} | row)
            lines += of_label if any(r["is_known"] for r in of_label) else []
    return pd.DataFrame(lines, columns=list(LOCATED))


WRONG = rows_with(is_known=True, is_sound=False)
SOUND = rows_with(is_known=True, is_sound=True)
EXACT = Share(
    "exact", "hit", WRONG, meaning="Share of chains with a wrong step whose first one is named."
)
NONE_NAMED = Share(
    "none_named",
    "hit",
    SOUND,
    "none named",
    "Share of chains without a wrong step in which none is named.",
)


def _f1(of: pd.DataFrame, how: Bootstrap) -> Mapping[str, float]:
    row = one_row((EXACT, NONE_NAMED), of, how)
    exact, none = row[EXACT.name], row[NONE_NAMED.name]
    total = exact + none
    return {"f1": 2 * exact * none / total if total else total}


LOCALISATION = Table(
    "judge_localisation",
    ("located", "every_verdict"),
    (*BY_WAY, LABEL),
    (
        Count(
            "n_wrong",
            WRONG,
            "chains with a wrong step",
            "Chains with a verdict of which the labels call some step wrong.",
        ),
        Count(
            "n_sound",
            SOUND,
            "chains without",
            "Chains with a verdict of which the labels call no step wrong.",
        ),
        Count(
            "n_left_out",
            rows_with(is_known=False),
            "left out",
            "Chains without a verdict, or with labels that leave the first wrong step open.",
        ),
        EXACT,
        NONE_NAMED,
        Numbers(
            (Column("f1", "F1", "Harmonic mean of exact and none named, as in ProcessBench."),),
            _f1,
        ),
        N_CUT,
    ),
    prepare=counting_cut(*WAY),
)
"""How often judges find the first wrong step that step labels name.

`f1` is the harmonic mean of `exact` (share of chains with a wrong step whose first wrong step is
named) and `none_named` (share of the other chains in which no step is named), as in ProcessBench
(arXiv 2412.06559, section 4.1).
"""


def fates(
    every_verdict: pd.DataFrame, counted_as: Sequence[tuple[str, str]], kept: bool
) -> pd.DataFrame:
    """What became of every chain with every judge, prompt and reading: included in the tables, or
    why it is not (`exclusions.FATES`).

    Args:
        counted_as: model and task of every row.
        kept: whether chains that a token limit cut off are in the tables.
    """
    # A chain with verdicts on only some of its steps is included by those verdicts.
    known = ~_unknown("flag", "score")(every_verdict)
    cut = rows_with(cut=True)(every_verdict) & (not kept)
    fate = np.select([cut, known], [CHAIN_CUT, "included"], every_verdict["outcome"].astype(object))
    ways = [" · ".join(r.values()) for r in rows(only(every_verdict, ("form", "reading", "judge")))]
    lines = [(*of, way, what) for of, way, what in zip(counted_as, ways, fate, strict=True)]
    return pd.DataFrame(lines, columns=list(FATES))


TABLES = (FORMS, AGREEMENT, LOCALISATION, STEPS)
REASONS = {
    UNCERTAIN: "the judge is uncertain",
    "no_steps": "the chain has no step to judge",
}
"""Why a chain is in no number of a judge -> the reason in words."""
