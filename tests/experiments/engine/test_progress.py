"""Progress: silent enough in a log, and its estimate follows what was measured."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from faithscope.experiments.engine.progress import Meter, duration

TRACE, PROBE = 2.5, 18.0
"""Guessed seconds of a trace and of a probe."""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_per_tenth_at_most() -> None:
    stream, clock = io.StringIO(), Clock()
    meter = Meter(stream, clock)
    handle = meter.expect("m · traces", 1000, TRACE, tiny=False)
    with meter:
        meter.begin(handle)
        for _ in range(1000):
            clock.now += 0.01
            meter.advance()
    lines = stream.getvalue().splitlines()
    assert 10 <= len(lines) <= 12
    assert "m · traces" in lines[0]
    assert lines[-1].startswith("100%")
    assert "1000/1000" in lines[-1]


def test_a_slow_run_still_gives_a_sign_of_life() -> None:
    stream, clock = io.StringIO(), Clock()
    meter = Meter(stream, clock)
    handle = meter.expect("m · traces", 1000, TRACE, tiny=False)
    with meter:
        meter.begin(handle)
        for _ in range(10):
            clock.now += 31
            meter.advance()
    assert len(stream.getvalue().splitlines()) == 11


def test_time_left_counts_kinds_that_have_not_begun() -> None:
    clock = Clock()
    meter = Meter(io.StringIO(), clock)
    traces = meter.expect("m · traces", 10, TRACE, tiny=False)
    meter.expect("m · slrc", 10, PROBE, tiny=False)
    guessed = meter.left
    with meter:
        meter.begin(traces)
        clock.now += 500
        meter.advance(10)
        assert meter.left > guessed, "a machine slower than guessed is slow at probes too"
        assert 0 < meter.fraction < 1


def test_a_guess_is_not_told_as_the_time_that_is_left() -> None:
    stream, clock = io.StringIO(), Clock()
    meter = Meter(stream, clock)
    traces = meter.expect("m · traces", 4, TRACE, tiny=False)
    probes = [meter.expect(f"m · {name}", 4, PROBE, tiny=False) for name in ("slrc", "attention")]
    with meter:
        meter.begin(traces)
        clock.now += 40
        meter.advance(4)
        for probe in probes:
            meter.begin(probe)
        assert "left" not in stream.getvalue(), "probes were only guessed at"
        for handle, seconds in zip(probes, (20, 1), strict=True):
            meter.begin(handle)
            clock.now += seconds
            meter.advance()
        clock.now += 30
        meter.tick()
        assert "about 63 s left" in stream.getvalue().splitlines()[-1]


def test_nothing_to_do_is_all_done() -> None:
    assert Meter(io.StringIO()).fraction == 1


def test_durations_read_naturally() -> None:
    assert [duration(s) for s in (0.2, 40, 180, 7800)] == ["1 s", "40 s", "3 min", "2 h 10 min"]


def test_what_was_shown_is_never_taken_back() -> None:
    """Units that turn out a hundred times slower than guessed are more of the work than thought."""
    stream, clock = io.StringIO(), Clock()
    meter = Meter(stream, clock)
    traces = meter.expect("m · traces", 100, TRACE, tiny=False)
    probes = meter.expect("m · slrc", 100, PROBE, tiny=True)
    with meter:
        for handle, seconds in ((traces, 0.1), (probes, 50.0)):
            meter.begin(handle)
            for _ in range(100):
                clock.now += seconds
                meter.advance()
    lines = stream.getvalue().splitlines()
    shown = [int(line.split("%")[0]) for line in lines]
    assert shown == sorted(shown)
    assert shown[-1] == 100
    assert "left" not in lines[-1]


def test_in_a_notebook_one_line_changes_and_nothing_is_red(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def display(data: dict[str, str], **how: bool) -> SimpleNamespace:
        assert how == {"raw": True, "display_id": True}
        return SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

    kernel = SimpleNamespace(kernel=object())
    fake = SimpleNamespace(get_ipython=lambda: kernel, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    meter = Meter(clock=Clock())
    handle = meter.expect("m · traces", 20, TRACE, tiny=False)
    with meter:
        meter.begin(handle)
        for _ in range(20):
            meter.advance()
        meter.say("loading m")
    assert "20/20 units" in shown[-1]
    assert capsys.readouterr() == ("loading m\n", "")
