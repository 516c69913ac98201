"""The report says what the tables say, stands alone, and is safe to open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pytest
from browser import Browser, browser
from pages import HOSTILE, Page, faults
from probe_records import asked_in_every_way, base
from sample_records import (
    CHAIN,
    FAITHFUL,
    HINT,
    REAL,
    chain_sample,
    records_of,
    sample_run,
    sentiment_sample,
    trace_record,
    write_run,
)

from faithscope.experiments.analysis.page import Page as PageData
from faithscope.experiments.analysis.page import Paragraph, Step
from faithscope.experiments.analysis.page import render as rendered
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.stored_records import place_of
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.analysis.traces.exclusions import exclusions_table
from faithscope.experiments.analysis.write import write_page
from faithscope.experiments.engine.run import write_outputs
from faithscope.experiments.studies.slrc.figures.figures import pictures
from faithscope.experiments.studies.slrc.frames import Results
from faithscope.experiments.studies.slrc.item_views import typical, view
from faithscope.experiments.studies.slrc.page import page as page_of
from faithscope.experiments.studies.slrc.page import waterfalls
from faithscope.experiments.studies.slrc.words import WORDS

RUN = sample_run(8)


def drawn_page(run_dir: Path) -> PageData:
    results = Results(load_run(run_dir))
    return page_of(results, pictures(results.tables))


def render(run_dir: Path) -> str:
    return rendered(drawn_page(run_dir))


def write_report(run_dir: Path) -> Path:
    return write_page(drawn_page(run_dir))


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "twins"
    return write_run(folder, RUN, failed=[("trace", REAL, "sentiment", "mr-99")])


@pytest.fixture(scope="module")
def page(run_dir) -> Page:
    return Page(write_report(run_dir).read_text("utf-8"))


@pytest.fixture(scope="module")
def hostile_dir(tmp_path_factory) -> Path:
    """A run whose model, items, questions, steps and answers all try to break out."""
    records = records_of([sentiment_sample(i) for i in range(3)])
    for r in records:
        r["model"] = f"org/{HOSTILE}"
        r["item"] = f"{r['item']}</script>{HOSTILE}"
        for name in ("removed", "alone", "corrupted_text"):
            r[name] = [f"{HOSTILE}\x1b]0;taken\x07" for _ in r.get(name, [])]
        if r["probe"] == "trace":
            r["question"]["text"] = f"\u202e{HOSTILE}{{{{ 7 * 7 }}}}"
            r["tail_text"] = f"</pre></main>{HOSTILE}\x9b31m"
            for step in r["steps"]:
                step["text"] = f" --> ]]> {HOSTILE}\x1b[2J"
    return write_run(tmp_path_factory.mktemp("hostile") / "run", records)


@pytest.mark.takes("a run with its outputs")
def test_it_has_no_faults_and_is_named_after_the_run(page, run_dir, page_path):
    for path in (write_report(run_dir), page_path):
        assert faults(path.read_text("utf-8")) == []
    assert "twins: does the model use" in page.text


def test_the_verdict_is_in_plain_words(page):
    assert "Instrument check: passes" in page.text
    assert "can tell a model that uses its steps" in page.text
    after = page.text.split("what the edits say")[1]
    faithful, _, rest = after.partition(HINT)
    assert WORDS["uses"].text in faithful
    assert WORDS["ignores"].text in rest
    assert "built to ignore its steps" in rest


@pytest.mark.slow
def test_other_probes_have_sections_where_they_were_asked(tmp_path, page):
    samples = [sentiment_sample(i) for i in range(4)]
    records = records_of(samples)
    variant = [r | {"task": f"{r['task']}:alternative"} for r in records]
    asked = asked_in_every_way(REAL, samples[0].dataset, [s.item for s in samples])
    text = render(write_run(tmp_path / "run", records + variant + asked))
    assert faults(text) == []
    whole = Page(text)
    targets = {a["href"] for tag, a in whole.tags if tag == "a"}
    assert {"#taxonomy", "#integrity", "#models", "#prompts"} <= targets
    assert "1 model has both SLRC and what it is held against" in whole.text
    for words in ("Scaffolding", "RIS", "1 model: too few to correlate", "beyond threshold"):
        assert words in whole.text
    assert "said neither yes nor no (sycophancy, generated)" in whole.text
    for absent in ("With and without reasoning", "Integrity", "Models compared", "Other words"):
        assert absent not in page.text


@pytest.mark.slow
def test_a_failing_instrument_says_so(tmp_path):
    records = records_of([chain_sample("hint", i) for i in range(6)])
    for r in records:
        r["model"] = FAITHFUL
    page = Page(render(write_run(tmp_path / "run", records)))
    assert "Instrument check: fails" in page.text
    assert "Do not trust" in page.text


@pytest.mark.slow
def test_one_planted_model_is_no_claim_about_two_kinds(tmp_path):
    page = Page(render(write_run(tmp_path / "run", records_of([chain_sample("hint", 0)]))))
    assert "Instrument check: passes" in page.text
    assert "come out as planted" in page.text
    assert "can tell a model that uses its steps" not in page.text


@pytest.mark.slow
def test_a_planted_model_without_the_edits_that_tell_is_not_called_absent(tmp_path):
    records = records_of([chain_sample("faithful", i) for i in range(3)])
    for r in records:
        if r["probe"] == "slrc":
            r |= {name: [] for name in r if name.startswith(("corrupt", "regenerate"))}
    page = Page(render(write_run(tmp_path / "run", records)))
    assert "Instrument check: not made" in page.text
    assert "Nothing that was asked here tells" in page.text
    assert "no model whose truth is known" not in page.text


def test_no_planted_model_no_claim(tmp_path):
    records = records_of([sentiment_sample(i) for i in range(3)], ["prefix"], ["generated"])
    page = Page(render(write_run(tmp_path / "run", records)))
    assert "Instrument check: not made" in page.text
    assert "no model whose truth is known" in page.text
    assert "only one framing and one reading" in page.text.lower()


def test_a_run_without_a_measurement_still_has_a_report(tmp_path):
    records = [trace_record(sentiment_sample(0), "fewer_than_2_steps")]
    text = render(write_run(tmp_path / "run", records))
    assert faults(text) == []
    page = Page(text)
    assert "Nothing was measured" in page.text
    assert "fewer than 2 steps" in page.text


@pytest.mark.slow
def test_an_unfinished_run_says_so(tmp_path, page):
    assert "unfinished" not in page.text
    waiting = [trace_record(sentiment_sample(i)) for i in (20, 21)]
    unfinished = Page(render(write_run(tmp_path / "run", RUN + waiting)))
    assert "This run is unfinished: 2 traces are not measured yet" in unfinished.text


@pytest.mark.slow
def test_a_run_that_leaves_most_items_out_says_so_first(tmp_path, page, capsys):
    assert "left out before anything is measured" not in page.text
    cut = [trace_record(sentiment_sample(i), "reasoning_unclosed") for i in range(20, 90)]
    run_dir = write_run(tmp_path / "run", RUN + cut)
    text = Page(write_report(run_dir).read_text("utf-8")).text
    err = capsys.readouterr().err.splitlines()
    warning, glance = (line for line in err if line.startswith("warning: "))
    assert "a glance, not a reading" in glance
    said = warning.removeprefix("warning: ")
    assert "traces are left out before anything is measured (70: reasoning never ended)" in said
    assert "It needs more tokens: generation.max_new_tokens." in said
    assert text.index(said) < text.index("Instrument check")
    assert re.search(r"use the reasoning they write\? \d+ of \d+ traces", text)


def test_tables_sort_by_full_numbers_and_work_as_plain_tables(page):
    cells = [a for tag, a in page.tags if tag == "td" and "data-sort" in a]
    assert any(re.fullmatch(r"0\.\d{6,}", a["data-sort"] or "") for a in cells)
    assert any(tag == "table" and a.get("class") == "sortable" for tag, a in page.tags)
    headings = [a for tag, a in page.tags if tag == "th"]
    assert all(a.get("scope") in ("col", "row") for a in headings)


def test_figures_are_inside_and_named(page):
    drawings = [a for tag, a in page.tags if tag == "svg"]
    assert len(drawings) == 6
    ids = {a.get("id") for _, a in page.tags}
    assert all(a["role"] == "img" and a["aria-labelledby"] in ids for a in drawings)


def test_the_waterfall_adds_up_in_what_is_shown():
    falls = waterfalls(exclusions_table(RUN))
    assert len(falls) == len({place_of(r)[:2] for r in RUN})
    for total, *lines in falls.values():
        left = [line.n for line in lines if line.share is not None]
        assert len(left) > 1
        lost, stages = 0, iter((total.n, *left[:1] * len(left)))
        for line in lines:
            lost += line.n
            if line.share is not None:
                assert lost == next(stages)
                lost = 0


def test_failed_items_are_listed_with_the_reason(page):
    assert "failed with an error" in page.text
    assert "mr-99 trace out of memory" in page.text


def test_environment_and_config_are_there(page):
    assert "sessions 1.packages.torch 2.13.0" in page.text
    assert f'"{CHAIN}"' in page.text


def test_traces_show_what_every_branch_answered(page):
    assert "corrupted, later text written anew" in page.text
    assert "≠ changed" in page.text
    assert "Therefore the answer is" in page.text


def test_traces_are_spread_over_models_and_show_twins_on_one_question():
    places = typical(RUN, 4)
    assert [model for model, _, _ in places] == [FAITHFUL, FAITHFUL, HINT, REAL]
    assert places[2][1:] in {place[1:] for place in places[:2]}
    assert typical(RUN, 0) == []
    assert len(typical(RUN, 1000)) == 24


def test_an_item_whose_trace_is_gone_is_not_shown():
    (place,) = typical(RUN, 1)
    left = [r for r in RUN if r["probe"] != "trace" or place_of(r) != place]
    assert place not in typical(left, 1000)


def steps_of(records: list[dict]) -> Sequence[Step]:
    return view(records).steps


def test_a_step_is_marked_by_the_readings_in_which_it_is_necessary():
    records = records_of([chain_sample("hint", 1)])
    for r in records[1:]:
        for kind in ("corrupt", "regenerate", "control"):
            r[f"{kind}_flips"] = None
    assert [s.level for s in steps_of(records)] == ["none"] * 3
    records[1]["necessary"] = [True, False, False]
    assert [s.level for s in steps_of(records)] == ["some", "none", "none"]
    for r in records[1:]:
        r["necessary"] = [True, False, False]
    step = steps_of(records)[0]
    assert (step.mark, step.meaning) == ("●", "the answer changes")
    assert steps_of(records[:1])[0].level == "unknown"


def test_short_stretches_are_shown_and_are_no_steps():
    records = records_of([chain_sample("hint", 1)])
    records[0]["steps"][0]["counted"] = False
    for r in records[1:]:
        r |= {"steps": [1, 2], "n_steps": 2}
        for name, values in r.items():
            if isinstance(values, list) and not name.startswith(("shuffled", "reordered")):
                r[name] = values[-2:]
    steps = steps_of(records)
    assert [s.number for s in steps] == [None, 1, 2]
    assert [bool(s.blocks) for s in steps] == [False, True, True]


@pytest.mark.takes("a run with its outputs")
def test_hostile_text_stays_text(hostile_dir):
    text = write_report(hostile_dir).read_text("utf-8")
    page = Page(text)
    assert faults(text) == []
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not any(tag == "img" for tag, _ in page.tags)
    assert not set(text) & set("\x1b\u202e\x9b")
    assert "{{ 7 * 7 }}" in page.text
    assert "document.title='taken'" in page.text
    verdict = [a for tag, a in page.tags if tag == "td" and a.get("data-label") == "items"]
    assert len(verdict) == 1


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes(tmp_path):
    records = records_of([chain_sample("faithful", i) for i in range(3)])
    run_dir = write_run(tmp_path / "run", records, failed=[("trace", HINT, CHAIN, "chain-999")])
    page = write_outputs(run_dir).page
    assert page == run_dir / "report.html"
    written = {kind: sorted((run_dir / kind).iterdir()) for kind in ("tables", "figures")}
    files = [page, *written["tables"], *written["figures"]]
    before = {path: path.read_bytes() for path in files}
    found = Results(load_run(run_dir))
    drawn = {p.name for p in pictures(found.tables) if p.figure is not None}
    assert {f.stem for f in written["tables"] if not f.stem.startswith("paper_")} == {*found.tables}
    assert {f.suffix for f in written["tables"]} == {".csv", ".md", ".tex"}
    assert {f.name for f in written["figures"]} == {
        f"{name}.{suffix}" for name in drawn for suffix in ("png", "pdf", "csv")
    }
    write_outputs(run_dir)
    assert {path: path.read_bytes() for path in files} == before
    read = pd.read_csv(run_dir / "tables" / "slrc.csv")
    assert list(read.columns) == list(found.tables["slrc"].columns)
    lost = where(found.tables["exclusions"], model=HINT, stage="trace", reason="failed")
    assert list(lost["n"]) == [1]


@pytest.fixture(scope="module")
def page_path(tmp_path_factory) -> Path:
    """A page with a heat map, which is an image in a drawing, of one model with a long name."""
    record = base("patching", REAL, "sentiment", "mr-0", "step.residual.denoise") | {
        **{"place": "step", "site": "residual", "direction": "denoise"},
        **{"layers": [2, 4], "n_layers": 4, "n_steps": 2, "n_patched": 2, "steps": [0, 1]},
        **{"answer": "a", "difference": [1.0, 2.0], "not_patched": [None, None]},
        "moved": [0.5, 1.0, 0.0, -1.0],
    }
    records = [*records_of([sentiment_sample(i) for i in range(3)]), record]
    named = [r | {"model": "org/a-model-of-long-name-Instruct-2512-bf16"} for r in records]
    path = write_report(write_run(tmp_path_factory.mktemp("heat") / "run", named))
    assert path.read_text("utf-8").count("<image") > 0
    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


def test_a_browser_draws_every_image_and_cuts_nothing_off(chromium, page_path):
    chromium.open(page_path)
    assert chromium.problems() == []


def test_a_reader_may_mark_steps_by_another_edit(chromium, page_path):
    """The steps of one trace take level and sign of the mark beside them that is chosen."""
    chromium.open(page_path)
    script = """(word) => {
        const choice = document.querySelector(".marked-by select");
        choice.value = word;
        choice.dispatchEvent(new Event("change"));
        return [...choice.closest(".trace").querySelectorAll(".steps details")].map((step) => [
            step.className, step.querySelector(".sign").textContent,
            step.querySelector(`[data-word="${word}"]`)?.dataset.level ?? "unknown"]);
    }"""
    by_word = {w: chromium.evaluate(f"({script})('{w}')") for w in ("rewritten", "removed")}
    signs = {"all": "●", "some": "◐", "none": "○", "unknown": "·"}
    for steps in by_word.values():
        assert steps
        assert [(css, sign) for css, sign, _ in steps] == [
            (f"level-{level}", signs[level]) for _, _, level in steps
        ]
    assert by_word["rewritten"] != by_word["removed"]
    assert chromium.console == []


def test_the_browser_sees_what_is_wrong(chromium, page_path, tmp_path):
    """The checks of a page find faults that are put into it."""
    text = page_path.read_text("utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("img-src data:; ", ""))
    chromium.open(broken)
    found = "\n".join(chromium.problems())
    assert "no natural width: image patching-image" in found
    assert "violates the following Content Security Policy directive" in found
    broken.write_text(text.replace("<main", '<img src="https://example.org/x.png"><main', 1))
    chromium.open(broken)
    assert any("example.org" in problem for problem in chromium.problems())
    broken.write_text(re.sub(r'viewBox="0 0 \S+ ', 'viewBox="0 0 90 ', text))
    chromium.open(broken)
    assert any(p.startswith("clipped: step corrupted") for p in chromium.problems())


@pytest.mark.slow
def test_a_narrow_window_scrolls_drawings_and_not_the_page(chromium, page_path):
    widths = "[innerWidth, document.documentElement.scrollWidth]"
    for width in (500, 420):
        chromium.open(page_path, width)
        assert chromium.evaluate(widths) == [width, width]
    # with every step of every trace unfolded, too
    chromium.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert chromium.evaluate(widths) == [420, 420]


@pytest.mark.slow
def test_a_browser_runs_nothing_that_a_model_wrote(chromium, hostile_dir):
    chromium.open(write_report(hostile_dir))
    assert chromium.problems() == []
    assert chromium.evaluate("document.title").startswith("run: does the model")


@pytest.mark.slow
def test_a_click_sorts_by_number_both_ways(chromium, run_dir):
    chromium.open(write_report(run_dir))
    script = """(() => {
      const table = document.querySelectorAll("#slrc table.sortable")[0];
      const headings = [...table.tHead.rows[0].cells];
      const place = headings.findIndex(c => c.innerText.includes("necessity"));
      const read = () => [...table.tBodies[0].rows].map(r => +r.cells[place].dataset.sort);
      const button = headings[place].querySelector("button");
      button.click(); const up = read(), said = button.parentNode.ariaSort;
      button.click(); const down = read();
      return {up, down, said};
    })()"""
    sorted_by = chromium.evaluate(script)
    assert len(sorted_by["up"]) == 12
    assert sorted_by["up"] == sorted(sorted_by["up"])
    assert sorted_by["down"] == sorted(sorted_by["down"], reverse=True)
    assert sorted_by["said"] == "ascending"


@pytest.mark.slow
def test_steps_are_marked_by_the_edit_that_the_verdict_rests_on():
    """A model that ignores its steps may trip over every hole in its text."""
    records = records_of([chain_sample("hint", 1)])
    for r in records[1:]:
        r["necessary"] = [True] * 3
    for step in steps_of(records):
        assert step.level == "none"
        assert ("all", "●", "removed") in step.marks
        assert ("none", "○", "rewritten") in step.marks
    for r in records[1:]:
        # what a remark changes as well is no sign that the step was read
        r["regenerate_flips"] = [True] * 3
        r["control_flips"] = [True, False, None]
        r["regenerated_text"] = ["So it is 4 .", "So it is 7 .", "So it is 9 ."]
    first, second, third = steps_of([r for r in records if r.get("framing") != "reprompt"])
    assert [s.level for s in (first, second, third)] == ["moot", "all", "all"]
    assert ("moot", "◌", "rewritten") in first.marks, "and the edit can be chosen again"
    said = [b.text for b in second.blocks if isinstance(b, Paragraph)]
    assert any("Written anew from there" in text and "So it is 7 ." in text for text in said)
