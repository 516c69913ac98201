"""The first screen of a comparison whose primary measures were named beforehand."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from bad_input import refused
from pages import faults
from synthetic_comparison import HOW, run_of

import faithscope
from faithscope.experiments.analysis.comparison.compared import MEASURES, sentence_tables
from faithscope.experiments.analysis.comparison.headline import Primary, headline_table
from faithscope.experiments.analysis.comparison.join import Joined, join
from faithscope.experiments.analysis.comparison.scores_vs_labels import against_tables, targets
from faithscope.experiments.analysis.page import Bullets, Heading
from faithscope.experiments.analysis.tidy import numbers
from faithscope.experiments.cli import execute
from faithscope.experiments.studies.compare.config import CompareReport
from faithscope.experiments.studies.compare.words import first_screen

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


def said(values: dict[str, Any], cut: int = 0, **how: Any) -> dict[str, str]:
    """Heading -> the sentences below it, of a comparison of the given values."""
    run = run_of({name: (FAMILIES[name], of) for name, of in values.items()}, **how)
    of_limit = np.arange(len(run.traces)) < cut
    run = replace(run, traces=run.traces.assign(cut=of_limit.astype(float)))
    return screen(join({"a": run}, None, "text"))


def screen(joined: Joined) -> dict[str, str]:
    labels = targets(joined, 2, 0)
    held = against_tables(joined, labels, HOW)
    tables = sentence_tables(joined, labels, HOW, CompareReport(), held["against"]) | held
    about = joined.measures.reset_index().assign(
        forwards=3.0, tokens=math.nan, seconds=math.nan, dollars=math.nan
    )
    tables |= {"measures": MEASURES.filled(about)}
    tables |= {"headline": headline_table(joined, PRIMARIES, 0)}
    blocks = list(first_screen(tables, joined).blocks)
    texts, at = {}, ""
    for block in blocks:
        if isinstance(block, Heading):
            at = block.text
        elif isinstance(block, Bullets):
            texts[at] = " ".join(re.sub("<[^>]+>", "", str(item)) for item in block.items)
    return texts


def alike(n: int, noise: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n)
    return {name: truth + noise * rng.normal(size=n) for name in FAMILIES}


def test_kinds_that_agree_are_said_to_agree_after_what_limits_it() -> None:
    texts = said(alike(60, 0.3), cut=15)
    assert list(texts) == [
        "Before any conclusion",
        "Do behaviour, insides and judges agree?",
        "Which would you trust here, and at what cost?",
        "Where do they disagree?",
    ]
    limits, agree, trust, parts = texts.values()
    assert "15 of 60 traces were cut off at the token limit" in limits
    assert "Power: so many questions show a correlation, of either sign, of 0.4" in limits
    # greedy measures that ran once have no repetition, and nothing is said of it
    assert "repetition" not in limits
    # one framing of two was measured: not all pairs are known
    assert agree.startswith("In part:")
    assert "Behaviour and insides: prefix: ρ +0." in agree
    assert "reprompt: not known (no run has the measure flips_reprompt)" in agree
    assert "No label of faithfulness has values here" in trust
    assert "judges (verdict) 3 model calls a trace" in trust
    assert "Of none of the four kinds" in parts


def test_nothing_is_concluded_of_few_or_unrelated_traces() -> None:
    rng = np.random.default_rng(2)
    texts = said({name: rng.normal(size=12) for name in FAMILIES})
    assert "With fewer than 30 questions" in texts["Before any conclusion"]
    agree = texts["Do behaviour, insides and judges agree?"]
    assert agree.startswith("Inconclusive: of no two of the three is it shown")
    assert "not shown after correction for 6 tests (p = 1.000; a true correlation of" in agree
    parts = texts["Where do they disagree?"]
    assert len(re.findall(r"i\d+ \(t\): ", parts)) == 3


def test_what_a_judge_leaves_out_itself_is_said_first_and_what_is_not_shown_is_no_no() -> None:
    values, rng = alike(24, 0.3), np.random.default_rng(4)
    values["verdict"] = np.where(np.arange(24) % 3 == 0, math.nan, rng.normal(size=24))
    texts = said(values, missing="uncertain")
    limits, agree = list(texts.values())[:2]
    assert "by what it found of them: verdict 8 of 24 (uncertain 8). It is compared on" in limits
    assert agree.startswith(
        "In part: beyond chance behaviour and insides rank the traces alike; of"
    )
    assert "do not" not in agree
    assert "Insides and judges: ρ " in agree
    assert "16 traces, not shown after correction for 6 tests (p = " in agree


def test_kinds_of_the_opposite_order_are_said_to_be_so() -> None:
    values = alike(60, 0.3)
    agree = said(values | {"verdict": -values["verdict"]})[
        "Do behaviour, insides and judges agree?"
    ]
    assert agree.startswith("No: beyond chance behaviour and judges, insides and judges rank")


@pytest.mark.slow
def test_a_label_that_only_tells_models_apart_is_said_to_trust_no_measure() -> None:
    values = {name: np.tile(of, 2) for name, of in alike(20, 0.3).items()}
    between = np.repeat([0.0, 1.0], 20)
    trust = said(values, models=("a", "b"), label=between)[
        "Which would you trust here, and at what cost?"
    ]
    assert "The label faithful varies only between models or tasks" in trust
    within = (values["cut"] > 0).astype(float)
    trust = said(values, models=("a", "b"), label=within)[
        "Which would you trust here, and at what cost?"
    ]
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
    assert first.index("Before any conclusion") < first.index("Inconclusive")
    targets = re.findall(r'href="(explore.html#open=\d+)"', page)
    assert faults(page, ["explore.html", *targets]) == []
    stored = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    assert stored["set"] == {"data.limit": 4}
    # what was fixed beforehand stays as it was
    other = ["--set", "headline.internal.measure=attention_reasoning"]
    assert "was made with another config (headline.internal" in refused(
        "run", "compare_model", *few, *other
    )
