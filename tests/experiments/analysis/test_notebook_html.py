"""Results in notebooks: traces, records, runs and tables draw themselves, with all text escaped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bad_input import write
from planted_traces import planted

import faithscope
from faithscope import interventions
from faithscope.experiments.cli import execute
from faithscope.interp.errors import UserError

EVIL = "<script>alert(1)</script>"


def steps(html: str) -> list[tuple[str, str]]:
    """(level, text) of every step that is shown."""
    body = html.partition("</style>")[2]
    shown = r'class="(?:plain )?level-(\w+)".*?<span class="text">(.*?)</span>'
    return re.findall(shown, body, re.S)


def test_a_trace_shows_its_steps_and_edits() -> None:
    _, (trace, *_) = planted("faithful")
    html = trace._repr_html_()
    assert html is not None
    assert [text for _, text in steps(html)] == [step.text.strip() for step in trace.steps]
    assert {level for level, _ in steps(html)} == {"unknown"}
    shorter = interventions.remove_step(trace, 1)._repr_html_()
    assert "edited: remove of step 2" in str(shorter)


def test_labels_colour_the_steps_of_a_given_trace_and_text_is_escaped() -> None:
    model, _ = planted("faithful")
    row = {
        "question": "Compute 3 + 4 - 2 + 9 mod 10 . Hint : 4 .",
        "reasoning": "So 3 + 4 makes 7 . So 7 - 2 makes 9 .",
        "steps": [
            {"text": "So 3 + 4 makes 7 .", "label_correct": True},
            {"text": "So 7 - 2 makes 9 .", "label_correct": False},
        ],
        "id": EVIL,
        "label_note": EVIL,
    }
    (trace,) = faithscope.given_traces(model, [row])
    html = str(trace._repr_html_())
    assert [level for level, _ in steps(html)] == ["none", "all"]
    assert "&lt;script&gt;" in html
    assert EVIL not in html


def test_records_colour_the_steps_by_what_was_measured() -> None:
    model, (trace, *_) = planted("faithful")
    cut = faithscope.measure(model, trace, "knockout", task="planted")
    html = str(cut._repr_html_())
    # the answer is read from the last step
    assert [level for level, _ in steps(html)][-1] == "all"
    assert "Coloured by" in html
    assert f'<p class="quiet">{cut.head}</p>' in html
    of_slrc = str(faithscope.measure(model, trace, "slrc", task="planted")._repr_html_())
    assert "Marked by what the answer does" in of_slrc
    assert faithscope.measure(model, trace, "rigidity", task="planted")._repr_html_()


@pytest.mark.slow
def test_a_run_and_its_tables_draw_themselves(tmp_path: Path) -> None:
    config = write(tmp_path, **{"model": {"name": ["planted:faithful"]}})
    assert execute(["run", config]) == 0
    run = faithscope.load_run(tmp_path / "t")
    html = run._repr_html_()
    assert "3 of 3 items measured" in html
    assert all(f".{frame}" in html for frame in run.frames)
    assert html.count("<details") == 1 + len(run.tables)
    table = run.table("slrc")
    assert "SLRC" in table._repr_html_()
    assert table.frame is run.tables["slrc"]
    with pytest.raises(UserError, match="has no table 'slcr'; did you mean 'slrc'"):
        run.table("slcr")
    # the page's style applies within the output alone
    style = html.partition("</style>")[0]
    assert not re.search(r"^(?::root|html|body) \{", style, re.M)
