"""RFEval's page and terminal view: they say what the tables say, and model text is only text."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import browser
from pages import HOSTILE, Page, faults
from processor_time import dear
from rf_frames import frame, judged, tables_of
from rf_made_up import CELLS, NAMES, FoundRun, example, found_run, made_up
from rich.console import Console

from faithscope.experiments.analysis.page import render
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.write import write_page
from faithscope.experiments.cli.terminal import print_card, print_items
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.studies.rfeval.columns import COLUMNS
from faithscope.experiments.studies.rfeval.figures.pictures import pictures
from faithscope.experiments.studies.rfeval.item_views import ITEMS, WORDS, pair_view, pairs_of
from faithscope.experiments.studies.rfeval.page import page as page_of
from faithscope.experiments.studies.rfeval.pairs import stratified_examples
from faithscope.experiments.studies.rfeval.sections import SECTIONS
from faithscope.experiments.studies.rfeval.tables.chains import EXCLUSIONS, scored
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL
from faithscope.experiments.studies.rfeval.words import (
    headline,
    verdicts,
    waterfall_sentences,
)
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import Call

STEERING = "\x1b[31m\u202e"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundRun:
    folder = tmp_path_factory.mktemp("page") / "forced"
    made = found_run(folder, made_up(NAMES[8:10], n=5, readers=("api:o3", "small")), pairs=14)
    call = Call("o3", "x", "parsed", Usage(1, 900, 100, 50, 0), 0.25)
    made.calls = [call]
    made.tables["spend"] = spend_table(made.calls)
    made.failures = [Unit("u", "rf_judged", "api:o3", "t", "legal_decision/3", 1, failed="<b>no")]
    made.text = f"{HOSTILE}{STEERING}{{{{ 7 * 7 }}}}</pre></main>"
    return made


@pytest.fixture(scope="module")
def drawn(found: FoundRun) -> list[Picture]:
    return pictures(found.tables)


@pytest.fixture(scope="module")
@dear
def written(found: FoundRun, drawn: list[Picture]) -> str:
    return write_page(page_of(found, drawn)).read_text("utf-8")


@pytest.fixture(scope="module")
def page(written: str) -> Page:
    return Page(written)


def test_it_has_every_section(drawn: list[Picture], page: Page) -> None:
    assert {section.name for section in SECTIONS} <= {a.get("id") for _, a in page.tags}
    n = sum(picture.figure is not None for picture in drawn)
    assert sum(tag == "svg" for tag, _ in page.tags) == n > 14
    assert "RFEval, arXiv 2602.17053" in page.text
    assert "$0.25" in page.text
    assert "api:o3 t legal_decision/3 rf_judged <b>no" in page.text


def test_what_models_write_is_only_text(written: str, page: Page) -> None:
    assert faults(written) == []
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not any(tag == "img" for tag, _ in page.tags)
    assert "document.title='taken'" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not any(c in written for c in STEERING if c not in "[31m")


def test_the_headline_is_what_the_tables_say(found: FoundRun, page: Page) -> None:
    [row] = rows(where(found.tables["rfeval"], reader="api:o3", model=OVERALL, task=OVERALL))
    said = " ".join(headline(found.tables, "api:o3"))
    assert f"Of these {100 * row['rf']:.0f} % are faithful" in said
    assert f"{row['n_included']} pairs count" in said
    assert "By other readers of the same outputs RF is: small" in said
    for sentence in headline(found.tables, "api:o3"):
        assert sentence in page.text
    made = verdicts(found.tables, "api:o3")
    assert [v["name"] for v in made] == [*NAMES[8:10], "all models"]
    assert made[-1]["n_included"] == row["n_included"]
    assert all(f"{v['n_included']} of {v['n_total']}" in page.text for v in made)


def test_the_waterfall_is_told_so_that_it_adds_up(found: FoundRun, page: Page) -> None:
    first, *parts = waterfall_sentences(found.tables, "api:o3")
    assert first == "Of 70 pairs:"
    assert sum(int(part.split()[0]) for part in parts) == 70
    assert all(part in page.text for part in parts)
    whole = tables_of(frame(judged()))
    assert waterfall_sentences(whole, "judge") == ["All pairs count: 1."]


def test_cautions() -> None:
    few = [judged(), judged("A A A", "A A A A"), judged("A A A", "A A A A")]
    cut = judged(intervened_outcome="truncated", intervened_judged="")
    cut |= dict.fromkeys(("intervened_r_prime", "intervened_r", "intervened_a"), "")
    made = tables_of(frame(*few, cut))
    [verdict] = verdicts(made, "judge")
    assert verdict["caution"] == (
        "Only 1 pair counts. Most pairs are not in contrast; RF is of the others. "
        "25 % of all pairs are unfinished."
    )
    assert verdict["mostly"] == "follows r′ all the way (100 %)"
    [none] = verdicts(tables_of(frame(cut)), "judge")
    assert none["caution"].startswith("No pair counts")
    assert math.isnan(none["rf"])


@pytest.mark.slow
def test_a_run_of_nothing_has_a_page(tmp_path: Path) -> None:
    empty = found_run(tmp_path / "empty", {})
    text = Page(render(page_of(empty, pictures(empty.tables)))).text
    assert "No pair of outputs was judged, and there is nothing to tell yet." in text
    assert "There is no pair of outputs to show yet." in text
    assert "Nothing failed." in text
    assert "No lengths of outputs are known." in text
    silent = found_run(tmp_path / "none", {"judged": frame(judged())}, pairs=0)
    assert "report.pairs is 0" in Page(render(page_of(silent, pictures(silent.tables)))).text


def test_a_long_table_is_folded_away_and_a_very_long_one_begins(found: FoundRun) -> None:
    n = len(found.tables["rf_readers"])
    short = replace(page_of(found, []), most_rows=20)
    page = Page(render(short))
    assert f"The first 20 of {n} rows; all are in tables/rf_readers.csv." in page.text
    assert "tables/rf_accuracy_association.csv, .md, .tex" in page.text
    assert page.broken == []


def test_tables_are_shown_under_headings_that_there_are(found: FoundRun) -> None:
    columns = {c for table in found.tables.values() for c in table.columns}
    assert set(COLUMNS) <= columns
    for section in SECTIONS:
        assert set(section.tables) <= set(found.tables)


def text_of(row: dict[str, Any], **without: str) -> str:
    """A pair as the terminal shows it, `without` one condition of its `outputs` or `judged`."""
    given = example(row)
    for what, condition in without.items():
        del given[what][condition]
    console = Console(file=io.StringIO(), width=200)
    print_card(console, pair_view(given).card())
    return console.file.getvalue()


@pytest.mark.parametrize("kind", CELLS)
def test_every_kind_is_told_as_what_it_is(kind: str) -> None:
    text = text_of(rows(scored(frame(judged(*CELLS[kind]))))[0])
    faithful = kind in ("misled", "self_correcting")
    assert WORDS[kind] in text
    assert ("unfaithful" in text) != faithful
    assert f"RF = {int(faithful)}" in text
    broken = kind in ("silently_correcting", "incoherent", "ornamental")
    assert ("✗" in text) == broken
    assert ("flaw is" in text) == (kind in ("self_correcting", "inert") or broken)


def test_a_transition_is_told_by_the_definition() -> None:
    text = text_of(rows(scored(frame(judged("B - C", "A B B B", "intervened_pr"))))[0])
    assert "- answer a: C ✗ r→a: another stance, and no flaw is named: the chain breaks\n" in text
    assert text.count("- explanation e:") == 1
    assert "not consistent in stance: χ = 0, breaks at r→a" in text
    assert "- reasoning r: B ✓ r′→r: a flaw is named in so many words\n" in text
    assert "; consistent in stance: χ = 1" in text


def test_what_is_not_there_is_said() -> None:
    row = judged(baseline_outcome="truncated", baseline_judged="", intervened_judged="unparsed")
    row |= {k: "" for k in row if k.endswith(("_r", "_e", "_a", "_r_prime"))}
    [of] = rows(scored(frame(row)))
    text = text_of(of, judged="intervened", outputs="intervened")
    for expected in (
        "As written\n  <think>cut off",
        "\ntruncated; not judged\n",
        "\nnot generated; not judged: unparsed\n",
        "It does not count: an output is unfinished. χ(o) = – χ(o′) = – κ = – RF = –",
    ):
        assert expected in re.sub(" +\n", "\n", text), expected
    [left] = rows(scored(frame(judged(excluded="no r′"))))
    assert "left out beforehand (no r′)." in text_of(left)


def test_pairs_shown_are_of_all_kinds(found: FoundRun) -> None:
    pairs = found.tables["rf_pairs"].to_dict("records")
    kinds = {row["behaviour"] or row["exclusion"] for row in pairs}
    shown = stratified_examples(pairs, len(kinds))
    assert {pairs[i]["behaviour"] or pairs[i]["exclusion"] for i in shown} == kinds
    counted = [pairs[i]["exclusion"] == "" for i in shown]
    assert counted == sorted(counted, reverse=True)
    assert len(set(stratified_examples(pairs, 10**6))) == len(pairs)
    assert stratified_examples([], 3) == []
    assert kinds & set(EXCLUSIONS)


def shown(run: FoundRun, *names: str | None) -> str:
    model, task, *_ = (*names[1:], None, None)
    console = Console(file=io.StringIO(), width=200)
    print_items(console, ITEMS, pairs_of(run), str(names[0]), model, task)
    return console.file.getvalue()


def test_the_terminal_shows_a_pair_and_is_not_steered(found: FoundRun) -> None:
    pairs = rows(found.tables["rf_pairs"])
    row = next(r for r in pairs if r["behaviour"] == "misled")
    text = shown(found, row["item"], row["model"])
    assert not set(text) & {"\x1b", "\u202e", "\r", "\x07"}
    assert f"{row['item']} · {row['model']}: misled (read by {row['reader']})" in text
    for expected in (
        *("Is it so?", "r′, the injected reasoning", "Its output with r′ put before it (o′)"),
        *("✓ r′→r: the same stance", "What the judge thought", "What the judge replied", "RF = 1"),
        *(WORDS["misled"], '{"stance_analysis": "intervened"}'),
    ):
        assert expected in text, expected


def test_pairs_are_found_by_item_model_and_task(found: FoundRun) -> None:
    one = shown(found, "legal_decision/3", NAMES[8])
    assert one.count("(read by") == one.count(f"legal_decision/3 · {NAMES[8]}") == 2  # both readers
    assert shown(found, "legal_decision/3").count("(read by") == 4
    assert shown(found, "3", None, "paper_review").count("paper_review/3 · ") == 4
    with pytest.raises(UserError, match=r"no item 'legal_decison/3'.*'legal_decision/3'"):
        shown(found, "legal_decison/3")
    with pytest.raises(UserError, match="no model 'x' among the pairs of this run"):
        shown(found, "3", "x")
    found_none = replace(found, tables={"rf_pairs": found.tables["rf_pairs"].iloc[:0]})
    with pytest.raises(UserError, match="holds no pairs yet"):
        shown(found_none, "3")


@pytest.mark.slow
def test_a_browser_runs_nothing_that_a_model_wrote(found: FoundRun, written: str) -> None:
    with browser(found.run_dir / "profile") as chromium:
        chromium.open(found.run_dir / "report.html")
        assert chromium.problems() == []
        assert chromium.evaluate("document.title").startswith("forced: does the model follow")
