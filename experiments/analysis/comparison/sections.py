"""Sections of a page on how measures compare: with each other, with labels, and trace by trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from faithscope.experiments.analysis.comparison.compared import Comparison
from faithscope.experiments.analysis.comparison.conclusions import (
    answers,
    finding_across,
    nothing_across,
)
from faithscope.experiments.analysis.comparison.disagreements import KINDS
from faithscope.experiments.analysis.comparison.prose import (
    best_rows,
    cautions,
    label_directions,
    of_all,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import MONITOR
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import (
    Block,
    Box,
    Bullets,
    Drawing,
    Fold,
    Grid,
    Heading,
    Paragraph,
    Section,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import only, where

Named = Callable[[str], str]
"""Maps the name of a table, a figure or a section to its name on the page."""


def sections(c: Comparison, is_drawn: bool, named: Named = str) -> list[Section]:
    """The sections that follow: kinds of evidence, agreement, labels, monitors, all measures
    together, disagreements and steps.

    Args:
        is_drawn: whether there is a figure of measures against labels.
    """
    return [
        _kinds(c.tables, named),
        _agreement(named),
        _against(c, is_drawn, named),
        _monitors(c.tables, named),
        _together(named),
        _parting(c.tables, named),
        _steps(named),
    ]


def answer_section(c: Comparison, named: Named = str) -> Section:
    """The section that says which measure to trust here, and what not to conclude."""
    tables, joined = c.tables, c.joined
    said = answers(tables, joined, c.settings.as_good)
    blocks: list[Block] = [Bullets([sentence.words for sentence in said])]
    for label in dict.fromkeys(tables["trust"]["label"]):
        best = best_rows(tables, label)
        blocks.append(Grid(named("trust"), f"The first measures by {label}", rows=best))
    warned = Bullets(cautions(tables, joined, c.targets))
    return Section(
        named("answer"),
        "Which measure to trust here",
        blocks=[*blocks, Box([Heading("What not to conclude"), warned], "card")],
        always=True,
    )


def _kinds(tables: Mapping[str, pd.DataFrame], named: Named) -> Section:
    numbers = Grid(named("families"), "Kinds of evidence")
    return Section(
        named("kinds"),
        "Do all measures of behaviour, log-probabilities, internals and judges agree?",
        short="Kinds of evidence",
        blocks=[
            *kinds_opening(tables["agreement"], named("families")),
            *(
                [Fold("All pairs, those of one probe and of one test included", [numbers])]
                if len(tables["families"])
                else []
            ),
        ],
        always=True,
    )


def kinds_opening(agreement: pd.DataFrame, picture: str | Picture) -> list[Block]:
    """The finding on all measures of the kinds of evidence, and its picture.

    Where there is nothing to show this is one sentence: why, and the command that would fill it.

    Args:
        picture: `triangle.families_picture` of the table, or its name on the page.
    """
    if (why := nothing_across(agreement)) is not None:
        return [why]
    return [finding_across(agreement).words, Drawing(picture)]


def _agreement(named: Named) -> Section:
    return Section(
        named("agreement"),
        "Where measures agree",
        "Every measure is turned so that more of it says more faithful. Intervals come from "
        "drawing questions, all models' traces of a question together; those of rho within come "
        "from exchanging questions, as its p-values do. A pair of measures is "
        "beyond chance where they rank the traces of the same model and task alike, or contrary, "
        "more than measures would that are independent of each other there; p-values "
        "are corrected for the number of pairs by Benjamini and "
        "Hochberg. That two measures tell models apart alike is in rho over all traces, and is not "
        "tested: a few models are too few. κ, AC2 and φ are of verdicts: each measure "
        "is cut at its own rule, else at its median, before any label is seen.",
        "Agreement",
        figures=(named("agreement"), named("within")),
        tables=(named("agreement"),),
    )


def _against(c: Comparison, is_drawn: bool, named: Named) -> Section:
    tables = c.tables
    whole = only(
        of_all(tables["against"]),
        [c for c in tables["against"].columns if c not in ("by", "setting")],
    )
    reasons = [r for r in dict.fromkeys(whole["reason"].dropna()) if r]
    blocks: list[Block] = []
    if directions := label_directions(c.joined):
        blocks.append(Bullets(directions))
    if reasons:
        blocks.append(Paragraph(f"Left out: {'; '.join(reasons)}.", "quiet"))
    blocks.append(Fold("All measures", [Grid(named("against"), "Against labels", rows=whole)]))
    return Section(
        named("against"),
        "Against labels",
        "The kind that is looked for is the trace that the label speaks against. AUROC compares "
        "traces of one model and task; what it would be over all traces together, where telling "
        "models apart counts too, stands beside it as pooled. Thresholds (for the squared g-mean, "
        "the audit that keeps a precision of 0.9, and the screening that keeps a recall of 0.9) "
        "and calibration curves are fitted on other questions; the same folds serve all measures. "
        "By model and task, and by length: tables/against.csv.",
        "Against labels",
        blocks
        if len(whole)
        else [
            "No label of these runs has two values; add labels: "
            "faithscope compare RUN… --labels FILE."
        ],
        (named("auroc"), named("front")) if is_drawn else (),
        tuple(named(name) for name in ("step_against", "step_hits") if len(tables[name])),
        always=True,
    )


def _monitors(tables: Mapping[str, pd.DataFrame], named: Named) -> Section:
    whole = of_all(tables["against"])
    chosen = where(whole, family={MONITOR, "judged"})
    names = ["label", "measure", "family", "n", "n_unfaithful", "auroc", "auroc_low", "auroc_high"]
    names += ["pooled", "average_precision", "g_mean_squared", "brier", "bias"]
    some = bool(len(where(whole, family=MONITOR)))
    text = (
        "Classifiers of the label on what is read inside the model, tested on other questions, "
        "beside judges: the same metric, the same folds. A monitor needs labels to be trained on; "
        "a judge needs none."
    )
    absent = (
        "No run of these kept what a monitor could be trained on, or too few traces have a label."
    )
    return Section(
        named("monitors"),
        "Monitors inside the model, beside judges",
        text,
        "Monitors",
        [Grid(named("against"), "Monitors and judges", rows=only(chosen, names))]
        if some
        else [absent],
        always=True,
    )


def _together(named: Named) -> Section:
    return Section(
        named("together"),
        "Together",
        "What a classifier over all measures adds to the best single one, which is chosen on the "
        "same rows; and what each family of measures adds to the others. “none”: the interval of "
        "the gain holds 0.",
        blocks=[
            Grid(named("combined"), "All measures together, and the best single one"),
            Grid(named("ablation"), "What a family adds to others", "Family by family"),
        ],
    )


def _parting(tables: Mapping[str, pd.DataFrame], named: Named) -> Section:
    words = [markup("<code>{}</code>: {}.", kind.name, kind.words) for kind in KINDS]
    lists: list[Block] = [
        Fold(
            f"{kind.name}: the largest gaps",
            [Grid(named("disagreements_items"), kind.name, rows=of)],
        )
        for kind in KINDS
        if len(of := where(tables["disagreements_items"], kind=kind.name).drop(columns="kind"))
    ]
    return Section(
        named("disagreements"),
        "Where they disagree",
        "A side's say on a trace is the mean rank of the trace by the side's measures, ranked "
        "again; two sides disagree where one has the trace in its upper half and the other in its "
        "lower. Traces are ranked among those of the same model and task: a side that finds one "
        "model more faithful than another does not disagree with the others for that. "
        "“by chance” is how many would disagree if the two sides knew nothing of each other; a "
        "kind is more frequent than by chance where the interval of the difference, from drawing "
        "questions and for four kinds at once, lies above 0.",
        blocks=[
            *(Bullets(words), Grid(named("disagreements"), "Four kinds of disagreement"), *lists),
            Grid(
                named("disagreements_traits"), "Beside all other traces", "What they have in common"
            ),
        ],
    )


def _steps(named: Named) -> Section:
    return Section(
        named("steps"),
        "Step by step",
        "Do two measures rank the steps of a trace alike, and do they put the same step on top?",
        blocks=[Fold("Every two measures", [Grid(named("step_agreement"), "Agreement on steps")])],
    )
