"""The tables of detectors: detectors against labels, and statistics of the labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import (
    Count,
    Kept,
    Mask,
    Mean,
    Numbers,
    all_of,
    every_row,
    one_row,
    rows_known,
    rows_with,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.label_cells import (
    AC2,
    ACCURACY,
    AUROC,
    AVERAGE_PRECISION,
    F1,
    KAPPA,
    SATURATED,
    AgainstLabel,
)
from faithscope.experiments.analysis.statistics.against_label import drawn_by_one
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import Table, make_tables, pooled
from faithscope.experiments.analysis.tidy import (
    columns,
    groups,
    keep,
    numbers,
    rows,
    with_interval,
)
from faithscope.experiments.analysis.traces.exclusions import FATES
from faithscope.experiments.data.principles import PRINCIPLES
from faithscope.experiments.engine.tallies.reasons import CHAIN_CUT
from faithscope.experiments.studies.slrc.detectors.metrics import (
    COUNTED,
    HELD,
    SCORED,
    association,
    by_rule,
    common_chains,
    share_by_question,
    there,
)
from faithscope.experiments.studies.slrc.detectors.results import FaithResults

DETECTOR = "detector."
"""Beginning of the stages of detectors in table `exclusions`."""
ALL = "all"
DATASET = Column("dataset", meaning="Where the question is from.")
MODEL = Column("model", meaning="The model that wrote the chains.")
READER = Column("reader", meaning="The model of the run that reads and answers them.")
JUDGE = Column("judge", meaning="The model that judged; none where nothing was judged.")
RULE = Column("rule", meaning="plain: fixed beforehand; fitted: a threshold other folds chose.")
RULE_BY = Column("rule_by", "whose rule", "paper: its text or released code; ours; none: no rule.")
N_CUT = Count(
    "n_cut",
    rows_with(cut=True),
    "cut",
    "Chains cut off at the token limit: left out, or kept if so set.",
)

N_FLAGGED = Count(
    "n",
    all_of(HELD, rows_known("flag")),
    meaning="Labelled chains that the row's agreement is of: those with a flag.",
)


def _by_question(
    name: str, values: str, among: Mask = every_row, label: str = "", meaning: str = ""
) -> Numbers:
    """Mean of a share per chain, with an interval that resamples questions
    (`share_by_question`); NaN where a mask selects no chain."""

    def compute(chains: pd.DataFrame, how: Bootstrap) -> Mapping[str, Any]:
        of = keep(chains, among(chains))
        if not len(of):
            return dict.fromkeys(with_interval(name), math.nan)
        return columns(name, share_by_question(of["question"].to_numpy(), numbers(of[values]), how))

    return Numbers((Column(name, label, meaning, interval=True),), compute)


F1_FAITHFUL = Column("f1_faithful", "F1, faithful", "F1 of the faithful class.", interval=True)
OF_LABEL: Any = {"label": "unfaithful", "cluster": "question", "score": "score", "among": HELD}
DETECTED = Table(
    "detectors",
    "readings",
    (
        DATASET,
        MODEL,
        READER,
        Column("detector", meaning="One of the paper's eleven detectors (appendix C.1)."),
        Column("variant", meaning="Which reading of the detector."),
        JUDGE,
        RULE,
    ),
    (
        Kept((RULE_BY, Column("main", meaning="Whether it is the reading in the paper's tables."))),
        Count("n_scored", SCORED, "scored", "Chains with a score, labelled or not."),
        N_CUT,
        Mean("score", "score", SCORED, meaning="Mean score; higher is less faithful."),
        Mean(
            "flag_rate",
            "flag",
            COUNTED,
            "flagged",
            "Share of chains that the rule calls unfaithful.",
        ),
        N_FLAGGED,
        Count("n_labelled", HELD, "labelled", "Chains with a score and a label."),
        Count(
            "n_unfaithful",
            all_of(HELD, rows_with(unfaithful=True)),
            "unfaithful",
            "Chains with a score that annotators call unfaithful.",
        ),
        AgainstLabel((AUROC,), **OF_LABEL),
        Kept(
            (
                Column(
                    "p_highest",
                    "p, highest of all",
                    "How often the highest of all main readings tells as much where labels are "
                    "exchanged.",
                ),
                Column(
                    "p_wrong_way",
                    "p, wrong way",
                    "How often it points as far the wrong way then; corrected for all readings "
                    "(Holm).",
                ),
            )
        ),
        AgainstLabel(
            (AVERAGE_PRECISION, KAPPA, AC2, ACCURACY, F1, F1_FAITHFUL, SATURATED),
            **OF_LABEL,
            flag="flag",
            named={"f1_faithful": "f1_of_rest"},
            totals=drawn_by_one,
        ),
        Kept((Column("undefined", meaning="Why the rule gives no flags."),)),
        Mean(
            "asked_again_differs",
            "asked_again_differs",
            COUNTED,
            "asked again, another answer",
            "Chains after which the model, asked again without an edit, gives another answer.",
        ),
        Mean(
            "forwards",
            "forwards",
            SCORED,
            meaning="Mean model calls of a chain for this detector alone.",
        ),
        Mean(
            "tokens",
            "tokens",
            SCORED,
            meaning="Mean tokens of a chain for the whole probe or judgement.",
        ),
        Mean(
            "calls",
            "calls",
            SCORED,
            meaning="Mean asks of a chain put to a judge or writer of edits.",
        ),
    ),
)
"""One row per data set, model, reading of a detector, judge and rule (`metrics.by_rule`)."""
COMMON = replace(DETECTED, name="detectors_common", of="common_readings")
"""The rows of `detectors` in each detector's main reading, of the chains that every detector of a
data set, model and reader can decide (`metrics.common_chains`)."""


LABELLED = rows_known("unfaithful")
KNOWN = all_of(COUNTED, rows_known("correct"))
QUADRANT_CELLS = {
    (right, unfaithful): Count(
        f"{answer}_{chain}",
        all_of(COUNTED, rows_with(correct=right, unfaithful=unfaithful)),
        meaning=f"{answers} answers with {article} {chain} chain.",
    )
    for right, answer, answers in ((True, "correct", "Right"), (False, "wrong", "Wrong"))
    for unfaithful, chain, article in ((False, "faithful", "a"), (True, "unfaithful", "an"))
}


def _associated(chains: pd.DataFrame, how: Bootstrap) -> Mapping[str, float]:
    counts = one_row(QUADRANT_CELLS.values(), chains, how)
    return association(*(int(n) for n in counts.values()))


UNFAITHFUL = _by_question(
    "unfaithful",
    "unfaithful",
    meaning="Share of labelled chains that annotators call unfaithful.",
)
QUADRANTS = Table(
    "faithcot_quadrants",
    "chains",
    (DATASET, MODEL),
    (
        Count("n", KNOWN, meaning="Labelled chains whose answer is known right or wrong."),
        Count(
            "n_unknown",
            all_of(COUNTED, lambda chains: chains["correct"].isna().to_numpy()),
            "unknown",
            "Labelled chains whose answer is not known right or wrong.",
        ),
        N_CUT,
        *QUADRANT_CELLS.values(),
        Numbers(
            (
                Column("phi", "φ", "Correlation of correctness and faithfulness."),
                Column(
                    "mutual_information",
                    "I",
                    "Mutual information of correctness and faithfulness.",
                    "bits",
                ),
            ),
            _associated,
        ),
    ),
    prepare=lambda chains: pooled(chains, "model", "dataset", under=ALL),
    among=LABELLED,
)
"""Correct and wrong answers with faithful and unfaithful chains, one row per data set and model,
per data set, per model, and for all: the paper's Figures 6a, 10 and 11, and B.1."""
ACCURACIES = Table(
    "faithcot_accuracy",
    "chains",
    (DATASET, MODEL),
    (
        Count("n", meaning="Labelled chains whose answer is known right or wrong."),
        _by_question("accuracy", "correct", meaning="Share of right answers."),
        UNFAITHFUL,
    ),
    prepare=lambda chains: pooled(chains, "model", "dataset", under=ALL),
    among=all_of(LABELLED, KNOWN),
)
"""Accuracy beside the share of unfaithful chains, one row per data set and model, per data set, per
model, and for all (Figure 9), with intervals from resampling questions."""


def by_trait(chains: pd.DataFrame) -> pd.DataFrame:
    """Labelled chains, each repeated for every trait that it has (`by`, `value`), both pooled over
    data sets and in its own data set."""
    labelled = keep(chains, COUNTED(chains) & LABELLED(chains))
    parts = [labelled.iloc[:0].assign(by="", value="")]
    for by in ("dataset", "model", "hardness", "distribution"):
        of = keep(labelled, labelled[by].notna())
        of = of.assign(by=by, value=of[by].astype(str)).sort_values("value", kind="stable")
        own = of.sort_values("dataset", kind="stable")
        parts += [own] if by == "dataset" else [of.assign(dataset=ALL), own]
    return pd.concat(parts)


RATES = Table(
    "faithcot_rates",
    "chains",
    (
        Column("by", meaning="Trait that the chains are grouped by."),
        Column("value", meaning="Value of the trait."),
        DATASET,
    ),
    (
        Count("n", meaning="Labelled chains."),
        UNFAITHFUL,
    ),
    prepare=by_trait,
)
"""Share of labelled chains that are unfaithful, one row per data set, model, hardness and
distribution (where labels have these), with intervals from resampling questions (Figures 4, 6b and
6c)."""


def by_principle(chains: pd.DataFrame) -> pd.DataFrame:
    """One row per principle and unfaithful chain with named principles: whether annotators name the
    principle, and whether they name any of its category."""
    unfaithful = keep(chains, COUNTED(chains) & rows_with(unfaithful=True)(chains))
    category = {p.id: p.category for p in PRINCIPLES}
    lines = [
        {"principle": p.id, "category": p.category, "name": p.name, "also": p.also}
        | {"question": chain["question"], "named": p.id in chain["principles"]}
        | {"of_category": p.category in {category[i] for i in chain["principles"]}}
        for p in PRINCIPLES
        for chain in rows(unfaithful)
        if chain["principles"]
    ]
    return pd.DataFrame(lines)


CATEGORY = Column("category", meaning="post-hoc reasoning, or spurious reasoning chain.")
PRINCIPLES_NAMED = Table(
    "faithcot_principles",
    "chains",
    (
        Column("principle", meaning="One of the eight signals (A.2), by its id."),
        CATEGORY,
        Column("name", meaning="Name of the principle in A.2.1 and A.2.2."),
        Column("also", "also called", "Name of the principle in A.2.3."),
    ),
    (
        Count(
            "n",
            rows_with(named=True),
            meaning="Unfaithful chains of which annotators name the principle.",
        ),
        _by_question(
            "share", "named", meaning="Share of unfaithful chains that name any principle."
        ),
        _by_question(
            "share_of_category",
            "named",
            rows_with(of_category=True),
            meaning="Share of the chains that name one of the same category.",
        ),
    ),
    prepare=by_principle,
)
"""How often annotators name each principle, one row per principle, with intervals from resampling
questions (Figures 5 and 8)."""
CATEGORIES = Table(
    "faithcot_categories",
    "chains",
    (CATEGORY,),
    (
        Count(
            "n",
            rows_with(of_category=True),
            meaning="Unfaithful chains of which annotators name a principle of the category.",
        ),
        _by_question(
            "share", "of_category", meaning="Share of unfaithful chains that name any principle."
        ),
    ),
    prepare=by_principle,
    # a chain has a row for every principle, and counts once in each category
    among=rows_with(principle=tuple({p.category: p.id for p in PRINCIPLES}.values())),
)
"""How often annotators name a principle of each of the two reasons of unfaithfulness (section
3.2), with intervals from resampling questions."""

_MEASURE = ("dataset", "model", "reader", "measure", "judge")


def most_suspicious(steps: pd.DataFrame) -> pd.DataFrame:
    """One row per chain and step measure: whether the most suspicious step is one that annotators
    name (`hit`; for ties the share of them that is), and the share of steps that they name
    (`blind`)."""
    lines = []
    for place, chain in groups(keep(steps, COUNTED(steps)), [*_MEASURE, "question", "item"]):
        score, labelled = numbers(chain["score"]), chain["labelled"].to_numpy(dtype=bool)
        hit = float(labelled[score == score.max()].mean())
        lines.append(place | {"hit": hit, "blind": float(labelled.mean())})
    return pd.DataFrame(lines)


STEPS = Table(
    "faithcot_steps",
    "suspicions",
    (
        DATASET,
        MODEL,
        READER,
        Column("measure", meaning="Probe, variant and list of its values per step."),
        JUDGE,
    ),
    (
        Count(
            "n", meaning="Chains whose unfaithful steps are annotated and that have the measure."
        ),
        _by_question(
            "hit_rate",
            "hit",
            meaning="Share of chains whose most suspicious step is one that annotators name.",
        ),
        Mean("chance", "blind", meaning="Hit rate of naming a step at random."),
    ),
    prepare=most_suspicious,
)
"""How often step measures find an unfaithful step: one row per data set, model, measure and
judge."""
OF_LABELS = (QUADRANTS, ACCURACIES, RATES, PRINCIPLES_NAMED, CATEGORIES)
TABLES = (DETECTED, COMMON, *OF_LABELS, STEPS)


def tables_of(results: FaithResults) -> dict[str, pd.DataFrame]:
    """All tables of a run's detectors, by file name."""
    c, scores, kept = results.config, results.scores, results.is_kept
    how, folds = results.run.bootstrap(c.seed, c.report.bootstrap), results.settings.folds
    frames = {
        "readings": by_rule(scores, folds, kept, c.seed),
        "common_readings": by_rule(common_chains(scores, kept), folds, kept, c.seed),
    }
    # a chain that several models read has its labels once
    chains = results.traces.drop_duplicates(["dataset", "model", "task", "item"])
    for name, frame in (("chains", chains), ("suspicions", results.step_scores)):
        frames[name] = frame.assign(counted=kept | ~frame["cut"].to_numpy(dtype=bool))
    return make_tables(TABLES, frames, how)


def fates(results: FaithResults) -> pd.DataFrame:
    """What became of every chain by its labels, and for each detector (`exclusions.FATES`)."""
    return pd.DataFrame([*_fates(results)], columns=list(FATES))


def _fates(results: FaithResults) -> Iterator[tuple[Any, ...]]:
    for r in rows(results.traces):
        yield r["reader"], r["task"], "label", r["unlabelled"] or "included"
        yield r["reader"], r["task"], "label.sources", "disagree" if r["disagree"] else "included"
    for r in rows(results.scores):
        stage = ".".join(filter(None, (f"{DETECTOR}{r['detector']}", r["variant"], r["judge"])))
        fate = "included" if there(r["score"]) else r["missing"]
        yield r["reader"], r["task"], stage, CHAIN_CUT if r["cut"] and not results.is_kept else fate
