"""The first screen of a comparison whose primary measures were named beforehand."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from bad_input import refused
from figure_fit import drawing_problems, texts_of
from pages import faults
from synthetic_comparison import HOW, run_of

import faithscope
from faithscope.experiments.analysis.comparison.compared import MEASURES, sentence_tables
from faithscope.experiments.analysis.comparison.conclusions import finding_across
from faithscope.experiments.analysis.comparison.headline import Primary, headline_table
from faithscope.experiments.analysis.comparison.join import Joined, join
from faithscope.experiments.analysis.comparison.scores_vs_labels import against_tables, targets
from faithscope.experiments.analysis.comparison.sections import kinds_opening
from faithscope.experiments.analysis.comparison.triangle import families_picture, headline_picture
from faithscope.experiments.analysis.page import Bullets, Fold, Paragraph
from faithscope.experiments.analysis.tidy import numbers, rows
from faithscope.experiments.cli import execute
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.compare.config import CompareReport
from faithscope.experiments.studies.compare.words import (
    agreement_sentences,
    first_screen,
    opening,
)

PRIMARIES = {
    "behaviour": Primary(("flips_{framing}",), True),
    "logit": Primary(("tv_{framing}",), True),
    "internal": Primary(("cut",), True),
    "judged": Primary(("verdict",), True),
}
FAMILIES = {
    "flips_prefix": "behavioural",
    "tv_prefix": "logit",
    "cut": "internal",
    "verdict": "judged",
}
TRUST = "Which kind to trust here, and what each costs"


def tables_of(joined: Joined) -> dict[str, pd.DataFrame]:
    labels = targets(joined, 2, 0)
    held = against_tables(joined, labels, HOW)
    tables = sentence_tables(joined, labels, HOW, CompareReport(), held["against"]) | held
    about = joined.measures.reset_index().assign(
        forwards=3.0, tokens=math.nan, seconds=math.nan, dollars=math.nan
    )
    tables |= {"measures": MEASURES.filled(about)}
    return tables | {"headline": headline_table(joined, PRIMARIES, 0)}


def joined_of(values: dict[str, Any], cut: int = 0, **how: Any) -> Joined:
    run = run_of({name: (FAMILIES[name], of) for name, of in values.items()}, **how)
    of_limit = np.arange(len(run.traces)) < cut
    run = replace(run, traces=run.traces.assign(cut=of_limit.astype(float)))
    return join({"a": run}, None, "text")


def said(values: dict[str, Any], cut: int = 0, **how: Any) -> dict[str, str]:
    """What opens the first screen, and below it the summary of each fold -> its sentences."""
    joined = joined_of(values, cut, **how)
    texts = {"": ""}
    for block in first_screen(tables_of(joined), joined).blocks:
        match block:
            case str() | Paragraph():
                texts[""] += plain(block if isinstance(block, str) else block.text) + "\n"
            case Fold(summary, [Bullets(items)]):
                texts[summary] = " ".join(plain(str(item)) for item in items)
    return texts


def plain(text: str) -> str:
    return re.sub("<[^>]+>", "", text)


def alike(n: int, noise: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n)
    return {name: truth + noise * rng.normal(size=n) for name in FAMILIES}


def test_kinds_that_agree_are_said_to_agree_before_what_limits_it_and_all_else_is_folded() -> None:
    texts = said(alike(60, 0.3), cut=15)
    assert list(texts) == [
        "",
        "What limits this: 60 traces of 60 questions; 15 cut off",
        TRUST,
        "Chains on which they disagree",
    ]
    opening, limits, trust, parts = texts.values()
    finding, below, _ = opening.split("\n")
    assert finding.startswith("6 of 6 pairs of kinds of evidence go together beyond chance, on 60")
    assert "behaviour and internals, behaviour and judges" in finding
    assert finding.endswith("rank the traces alike.")
    assert below.startswith("Power: with 60 questions a true ρ of ±0.4")
    # greedy measures that ran once have no repetition
    assert "Reliability: not known, since no measure was taken twice." in below
    # one framing of two was measured
    assert "behaviour and internals (reprompt)" in below
    assert "(no run has the measure flips_reprompt)" in below
    assert "15 of 60 traces were cut off at the token limit" in limits
    assert "No label of faithfulness has values here" in trust
    assert "judges (verdict) 3 model calls a trace" in trust
    assert "Of none of the four kinds" in parts


def test_nothing_is_concluded_of_few_or_unrelated_traces() -> None:
    rng = np.random.default_rng(2)
    texts = said({name: rng.normal(size=12) for name in FAMILIES})
    finding, below, _ = texts[""].split("\n")
    assert finding.startswith("0 of 6 pairs of kinds of evidence go together beyond chance, on 12")
    assert finding.endswith("is inconclusive.")
    assert "Intervals of so few are too narrow as well." in below
    parts = texts["Chains on which they disagree"]
    assert len(re.findall(r"i\d+ \(t\): ", parts)) == 3


def test_what_a_judge_leaves_out_itself_is_a_limit_and_what_is_not_shown_is_no_no() -> None:
    values, rng = alike(24, 0.3), np.random.default_rng(4)
    values["verdict"] = np.where(np.arange(24) % 3 == 0, math.nan, rng.normal(size=24))
    opening, limits = list(said(values, missing="uncertain").values())[:2]
    assert "by what it found of them: verdict 8 of 24 (uncertain 8). It is compared on" in limits
    assert opening.startswith("3 of 6 pairs of kinds of evidence go together beyond chance, on 16 ")
    assert "rank the traces alike; of the others this is not shown." in opening
    assert "do not" not in opening


def test_kinds_of_the_opposite_order_are_said_to_be_so() -> None:
    values = alike(60, 0.3)
    opening = said(values | {"verdict": -values["verdict"]})[""]
    assert "internals and judges rank them the opposite way" in opening


def test_pairs_of_one_probe_are_marked_and_not_counted() -> None:
    headline = tables_of(joined_of(alike(60, 0.3)))["headline"]
    headline["one_probe"] = headline["two"].eq("logit")
    finding = next(agreement_sentences(headline)).words
    assert "5 of 5 pairs" in finding
    assert "behaviour and log-prob" not in finding
    picture = headline_picture(headline)
    assert "†" in texts_of(picture.figure)
    assert "† Both measures" in picture.caption


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("against", [False, True])
def test_the_picture_holds_the_numbers_of_its_table_and_fits_a_column(against: bool) -> None:
    values = alike(60, 0.5)
    values |= {"verdict": -values["verdict"]} if against else {}
    joined = joined_of(values)
    tables = tables_of(joined)
    tables["headline"]["n"] = 1200
    headline = headline_picture(tables["headline"])
    families = families_picture(tables["agreement"])
    for picture in (headline, families):
        assert picture.figure is not None
        assert picture.text is not None
        assert picture.figure.get_figwidth() == 3.3
        assert drawing_problems(picture.figure) == []
        assert {t.get_fontsize() for t in picture.figure.axes[0].texts} <= {7, 8}
        # the caption and the key name the colours that are drawn, and no others
        assert ("purple" in picture.caption) == against == ("opposite" in texts_of(picture.figure))
    assert headline.text is not None
    drawn, shown = texts_of(headline.figure), "\n".join(headline.text.to_numpy().ravel())
    known = tables["headline"].dropna(subset=["rho"])
    assert len(known) == 6
    for row in rows(known):
        rho, low, high = (decimal(row[f"rho{end}"]) for end in ("", "_low", "_high"))
        number = f"{'+' if row['rho'] > 0 else ''}{rho}"
        for text in (drawn, shown):
            assert number in text
            assert f"[{low}, {high}]" in text
            assert "n 1,200" in text
        assert f"{number} ●" in shown
    assert headline.data["rho"].tolist() == known["rho"].tolist()
    found, tested = finding_across(tables["agreement"]).words.split(" pairs")[0][8:].split(" of ")
    counts = re.findall(r"^(\d+) of (\d+)$", texts_of(families.figure), re.M)
    assert [sum(map(int, of)) for of in zip(*counts, strict=True)] == [int(found), int(tested)]
    assert len(families.data) == int(tested)


def test_without_two_kinds_a_sentence_says_why_and_what_to_do() -> None:
    tables = tables_of(joined_of({"tv_prefix": alike(12, 0.3)["tv_prefix"]}))
    (sentence,) = opening(tables["headline"], "headline")
    assert isinstance(sentence, str)
    assert sentence.startswith("No two of behaviour, log-probabilities, internals and judges can")
    assert "no run has the measure flips_prefix" in sentence
    assert "faithscope compare" in sentence
    (sentence,) = kinds_opening(tables["agreement"], "families")
    assert isinstance(sentence, str)
    assert "<code>faithscope run slrc --set traces" in sentence
    few = tables_of(joined_of(alike(4, 0.3)))
    for (sentence,) in (opening(few["headline"], ""), kinds_opening(few["agreement"], "")):
        assert isinstance(sentence, str)
        assert "data.limit=300" in sentence
    assert headline_picture(few["headline"]).figure is None


@pytest.mark.slow
def test_a_label_that_only_tells_models_apart_is_said_to_trust_no_measure() -> None:
    values = {name: np.tile(of, 2) for name, of in alike(20, 0.3).items()}
    between = np.repeat([0.0, 1.0], 20)
    trust = said(values, models=("a", "b"), label=between)[TRUST]
    assert "The label faithful varies only between models or tasks" in trust
    within = (values["cut"] > 0).astype(float)
    trust = said(values, models=("a", "b"), label=within)[TRUST]
    assert "AUROC of the primary measures against the label faithful" in trust


@pytest.mark.slow
def test_compare_model_makes_its_page_from_nothing(tmp_path: Path) -> None:
    few = ["--set", f"out={tmp_path}", "--set", "data.limit=4", "--set", "report.bootstrap=50"]
    assert execute(["run", "compare_model", *few]) == 0
    folder = tmp_path / "compare_model"
    run = faithscope.load_run(folder)
    headline = run.tables["headline"]
    assert set(headline["measure"]) | set(headline["other"]) == {
        *("corrupt_prefix_generated", "corrupt_reprompt_generated", "knockout_later_tv"),
        *("corrupt_tv_prefix_scored", "corrupt_tv_reprompt_scored"),
        "faithful_judge scored (bundled:smollm2-135m)",
    }
    assert numbers(headline["n"]).max() <= 4
    # few traces are few: nothing is concluded, and the page says so first
    assert np.isnan(numbers(headline["rho"])).all()
    page = (folder / "report.html").read_text("utf-8")
    first = page.split("<h2")[1]
    assert "<svg" not in first
    assert "can be compared: fewer than 5 traces have both" in first
    targets = re.findall(r'href="(explore.html#open=\d+)"', page)
    assert faults(page, ["explore.html", *targets]) == []
    stored = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    assert stored["set"] == {"data.limit": 4}
    # what was fixed beforehand stays as it was
    other = ["--set", "headline.internal.measure=attention_reasoning"]
    assert "was made with another config (headline.internal" in refused(
        "run", "compare_model", *few, *other
    )
