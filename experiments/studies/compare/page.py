"""The page of a comparison, as data for `analysis.page`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from faithscope.experiments.analysis.comparison.disagreements import KINDS
from faithscope.experiments.analysis.comparison.scores_vs_labels import MONITOR
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import (
    Block,
    Box,
    Bullets,
    Fold,
    Grid,
    Heading,
    Page,
    Paragraph,
    Section,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import only, rows, where
from faithscope.experiments.studies.compare.columns import COLUMNS, OF_TABLES
from faithscope.experiments.studies.compare.results import Compared
from faithscope.experiments.studies.compare.words.conclusions import answers
from faithscope.experiments.studies.compare.words.first_screen import first_screen
from faithscope.experiments.studies.compare.words.prose import (
    best_rows,
    cautions,
    counted_words,
    label_directions,
    of_all,
    unfinished,
)

MOST_ROWS = 400


def page(compared: Compared, drawn: Sequence[Picture]) -> Page:
    """The page of a comparison: sentences, tables and figures."""
    tables = compared.tables
    figures = {picture.name: picture for picture in drawn}
    lead = counted_words(compared)
    fixed = [first_screen(tables, compared.joined)] if "headline" in tables else []
    return Page(
        compared.run.path,
        "which measure should I trust here, and what does it cost?",
        f"Which measure should I trust here, and what does it cost? {lead}",
        [
            *fixed,
            _answer(compared),
            _explore(),
            *(_agreement(), _against(compared, figures), _monitors(tables), _together()),
            *(_parting(tables), _steps(), _rows(tables, compared.config.notes)),
        ],
        tables,
        figures,
        COLUMNS,
        OF_TABLES,
        most_rows=MOST_ROWS,
        warnings=unfinished(tables),
    )


def _explore() -> Section:
    link = '<a href="explore.html">explore.html</a>'
    words = (
        f"{link} has every score of every trace: measures against measures, any two of them, and "
        "one trace or two side by side, with what each probe read and each judge wrote. It needs "
        "no network; it lies beside this page."
    )
    return Section("explore", "Trace by trace", markup(words), "Trace by trace", always=True)


def _answer(compared: Compared) -> Section:
    tables, joined = compared.tables, compared.joined
    said = answers(tables, joined, compared.config.report.as_good)
    blocks: list[Block] = [Bullets([sentence.words for sentence in said])]
    for label in dict.fromkeys(tables["trust"]["label"]):
        best = best_rows(tables, label)
        blocks.append(Grid("trust", f"The first measures by {label}", rows=best))
    warned = Bullets(cautions(tables, joined, compared.targets))
    return Section(
        "answer",
        "Which measure to trust here",
        blocks=[*blocks, Box([Heading("What not to conclude"), warned], "card")],
        always=True,
    )


def _agreement() -> Section:
    return Section(
        "agreement",
        "Where measures agree",
        "Every measure is turned so that more of it says more faithful. Intervals come from "
        "drawing questions, all models' traces of a question together. A pair of measures is "
        "beyond chance where they rank the traces of the same model and task alike, or contrary, "
        "more than measures would that are independent of each other there: p-values come from "
        "exchanging questions, and are corrected for the number of pairs by Benjamini and "
        "Hochberg. That two measures tell models apart alike is in rho over all traces, and is not "
        "tested: a few models are too few. κ, AC2 and φ are of verdicts: each measure "
        "is cut at its own rule, else at its median, before any label is seen.",
        "Agreement",
        [Grid("families", "Families of measures")],
        ("agreement", "within"),
        ("agreement",),
    )


def _against(compared: Compared, figures: Mapping[str, Picture]) -> Section:
    tables = compared.tables
    whole = only(
        of_all(tables["against"]),
        [c for c in tables["against"].columns if c not in ("by", "setting")],
    )
    reasons = [r for r in dict.fromkeys(whole["reason"].dropna()) if r]
    blocks: list[Block] = []
    if directions := label_directions(compared.joined):
        blocks.append(Bullets(directions))
    if reasons:
        blocks.append(Paragraph(f"Left out: {'; '.join(reasons)}.", "quiet"))
    blocks.append(Fold("All measures", [Grid("against", "Against labels", rows=whole)]))
    return Section(
        "against",
        "Against labels",
        "The kind that is looked for is the trace that the label speaks against. AUROC compares "
        "traces of one model and task; what it would be over all traces together, where telling "
        "models apart counts too, stands beside it as pooled. Thresholds (for the squared g-mean, "
        "the audit that keeps a precision of .9, and the screening that keeps a recall of .9) and "
        "calibration curves are fitted on other questions; the same folds serve all measures. By "
        "model and task, and by length: tables/against.csv.",
        "Against labels",
        blocks if len(whole) else ["No label of these runs has two values."],
        ("auroc", "front") if figures["auroc"].figure is not None else (),
        tuple(name for name in ("step_against", "step_hits") if len(tables[name])),
        always=True,
    )


def _monitors(tables: Mapping[str, pd.DataFrame]) -> Section:
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
        "monitors",
        "Monitors inside the model, beside judges",
        text,
        "Monitors",
        [Grid("against", "Monitors and judges", rows=only(chosen, names))] if some else [absent],
        always=True,
    )


def _together() -> Section:
    return Section(
        "together",
        "Together",
        "What a classifier over all measures adds to the best single one, which is chosen on the "
        "same rows; and what each family of measures adds to the others. “none”: the interval of "
        "the gain holds 0.",
        blocks=[
            Grid("combined", "All measures together, and the best single one"),
            Grid("ablation", "What a family adds to others", "Family by family"),
        ],
    )


def _parting(tables: Mapping[str, pd.DataFrame]) -> Section:
    words = [markup("<code>{}</code>: {}.", kind.name, kind.words) for kind in KINDS]
    lists: list[Block] = [
        Fold(f"{kind.name}: the largest gaps", [Grid("disagreements_items", kind.name, rows=of)])
        for kind in KINDS
        if len(of := where(tables["disagreements_items"], kind=kind.name).drop(columns="kind"))
    ]
    return Section(
        "disagreements",
        "Where they part",
        "A side's say on a trace is the mean rank of the trace by the side's measures, ranked "
        "again; two sides part where one has the trace in its upper half and the other in its "
        "lower. Traces are ranked among those of the same model and task: a side that finds one "
        "model more faithful than another does not part from the others for that. "
        "“by chance” is how many would part if the two sides knew nothing of each other; a kind is "
        "more frequent than by chance where the interval of the difference, from drawing questions "
        "and for four kinds at once, lies above 0.",
        blocks=[
            *(Bullets(words), Grid("disagreements", "Four kinds of disagreement"), *lists),
            Grid("disagreements_traits", "Beside all other traces", "What they have in common"),
        ],
    )


def _steps() -> Section:
    return Section(
        "steps",
        "Step by step",
        "Do two measures rank the steps of a trace alike, and do they put the same step on top?",
        blocks=[Fold("Every two measures", [Grid("step_agreement", "Agreement on steps")])],
    )


def _rows(tables: Mapping[str, pd.DataFrame], notes: Sequence[str]) -> Section:
    gone = tables["missing"].loc[tables["missing"]["reason"] != "measured"]
    n = sum(row["n"] for row in rows(gone))
    return Section(
        "rows",
        "Which traces are the same, and what is missing",
        "Traces of one name are held against each other: token ids, else text, else the question.",
        "Joins and gaps",
        [
            Grid("sources", "The runs"),
            Grid("joins", "Traces that two runs share", "Every two runs"),
            Fold("Measures, directions and cuts", [Grid("measures", "Measures")]),
            Fold(f"{n:,} cells without a score, by reason", [Grid("missing", "Missing")]),
            *([Bullets(notes)] if notes else []),
        ],
    )
