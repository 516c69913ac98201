"""One trace in a terminal: readable without colour, safe whatever the model wrote."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from sample_records import (
    CHAIN,
    FAITHFUL,
    HINT,
    REAL,
    chain_sample,
    records_of,
    sample_run,
    sentiment_sample,
    slrc_record,
    trace_record,
    write_run,
)

from faithscope.experiments.cli.terminal import show_item
from faithscope.interp.errors import UserError

ITEM = chain_sample("faithful", 2).item


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("show") / "run", sample_run(4))


def shown(run_dir, item: str, width: int = 120, colour: bool = False, **where) -> str:
    file = io.StringIO()
    system = "truecolor" if colour else None
    console = Console(file=file, width=width, force_terminal=colour, color_system=system)
    show_item(console, run_dir, item, **where)
    return file.getvalue()


def test_steps_are_marked_without_colour(run_dir):
    text = shown(run_dir, ITEM, model=FAITHFUL)
    steps = chain_sample("faithful", 2).steps
    # a faithful chain written anew from a changed step ends elsewhere; with a step removed it
    # does not, where a later step restates what was lost
    for by, marks in ((None, "●●●"), ("regenerate", "●●●"), ("remove", "○○●")):
        marked = shown(run_dir, ITEM, model=FAITHFUL, by=by)
        for step, mark in zip(steps, marks, strict=True):
            line = next(line for line in marked.splitlines() if line.rstrip().endswith(step))
            assert line.startswith(mark)
    ignoring = shown(run_dir, ITEM, model=HINT)
    assert "when a step is rewritten" in ignoring
    assert sum(line.startswith("○") for line in ignoring.splitlines()) == len(steps)
    assert "\x1b" not in text
    assert "● the answer changes" in text


def test_colour_is_added_in_a_terminal(run_dir):
    text = shown(run_dir, ITEM, colour=True, model=FAITHFUL)
    assert "\x1b[" in text


def test_every_branch_is_there_in_every_framing_and_reading(run_dir):
    text = shown(run_dir, ITEM, model=FAITHFUL)
    for word in ("prefix", "reprompt", "generated", "scored", "unedited", "kept alone"):
        assert word in text
    rewritten = [line for line in text.splitlines() if "written anew" in line]
    assert len(rewritten) == 3
    assert all(line.count("≠") == 4 for line in rewritten)
    assert " of 12 shuffles changed the answer" in text


def test_twins_are_shown_together_unless_one_is_named(run_dir):
    both = shown(run_dir, ITEM)
    assert both.index(FAITHFUL) < both.index(HINT)
    assert HINT not in shown(run_dir, ITEM, model=FAITHFUL)
    assert shown(run_dir, ITEM, task=CHAIN) == both


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"item": "chain-0002"}, "no item 'chain-0002' .*; did you mean 'chain-002'?"),
        ({"item": "zzz"}, "no item 'zzz' .*; there are 'chain-000'"),
        ({"item": ITEM, "model": "planted:faithfull"}, "did you mean 'planted:faithful'"),
        ({"item": ITEM, "model": REAL}, f"no item '{ITEM}'"),
        ({"item": ITEM, "task": "sentimant"}, "did you mean 'sentiment'"),
        ({"item": ITEM, "by": "remov"}, "steps cannot be marked by 'remov'; did you mean 'remove'"),
    ],
)
def test_what_is_not_there_is_named_with_what_was_meant(run_dir, where, message):
    with pytest.raises(UserError, match=message):
        shown(run_dir, **where)


def test_a_run_without_traces_says_so(tmp_path):
    run_dir = write_run(tmp_path / "run", sample_run(1))
    (run_dir / "records" / "all.main.jsonl").write_text("")
    with pytest.raises(UserError, match="no traces yet"):
        shown(run_dir, ITEM)


def test_an_excluded_trace_says_why(run_dir):
    assert "Not measured: fewer than 2 steps." in shown(run_dir, "mr-4")


def test_a_trace_that_was_not_probed_yet_says_so(tmp_path):
    run_dir = write_run(tmp_path / "run", [trace_record(chain_sample("hint", 2))])
    text = shown(run_dir, ITEM)
    assert "Not measured yet." in text
    assert "·  1." in text


def test_an_answer_that_did_not_parse_and_an_edit_that_was_not_run(tmp_path):
    sample = sentiment_sample(3)
    record = slrc_record(sample, "prefix", "generated")
    record |= {"removed": [None] * record["n_steps"], "necessary": [True] * record["n_steps"]}
    run_dir = write_run(tmp_path / "run", [trace_record(sample), record])
    text = shown(run_dir, sample.item)
    assert "no answer found ≠ changed" in text
    whole = sum(record["corruptible"])
    assert sum("corrupted, later text written anew" in line for line in text.splitlines()) == whole


def test_model_text_cannot_steer_the_terminal(tmp_path):
    records = records_of([chain_sample("hint", 2)])
    for r in records:
        r["item"] = "evil\x1b[2J"
        for name in ("removed", "corrupted_text"):
            r[name] = ["\x1b]0;title\x07\r\x08\x9b31m[bold]x" for _ in r.get(name, [])]
        if r["probe"] == "trace":
            r["question"]["text"] = "\x1b[31mred\u202e"
            r["tail_text"] = "\x1b]8;;http://evil\x1b\\click"
            for step in r["steps"]:
                step["text"] = "[red]not markup[/red]\x1b[H"
    run_dir = write_run(tmp_path / "run", records)
    text = shown(run_dir, "evil␛[2J")
    assert not set(text) & set("\x1b\x07\x08\r\x9b\u202e")
    assert "[red]not markup[/red]␛[H" in text
    assert "␛[31mred⟨U+202E⟩" in text
