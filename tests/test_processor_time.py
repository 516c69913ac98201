"""A fast test that takes long fails, by processor time and not by the clock."""

from __future__ import annotations

import time

import pytest
from processor_time import FAILS_FROM, IMPORTS, REASONED, Clock, judged

SHORT, LONG, TOO_LONG = FAILS_FROM / 2, FAILS_FROM * 2, REASONED * 2


@pytest.fixture
def bare(request: pytest.FixtureRequest) -> pytest.Item:
    """A test without marks."""
    return pytest.Function.from_parent(request.node.parent, name="bare", callobj=lambda: None)


def test_long_tests_are_slow_or_say_why(bare: pytest.Item) -> None:
    assert judged(bare, SHORT, 0) == ""
    said = judged(bare, LONG, 0)
    assert f"took {LONG:.1f} s of processor time, where a fast test takes 1 at most" in said
    assert judged(bare, LONG, IMPORTS + 1) == ""
    bare.add_marker(pytest.mark.takes("a whole run"))
    assert judged(bare, LONG, 0) == ""
    assert "is to be marked slow" in judged(bare, TOO_LONG, 0)
    bare.add_marker(pytest.mark.slow)
    assert judged(bare, TOO_LONG, 0) == ""


def test_waiting_takes_nothing_and_shared_fixtures_count_for_themselves() -> None:
    test = Clock()
    time.sleep(0.3)
    fixture = Clock()
    busy_until = time.process_time() + 0.2
    while time.process_time() < busy_until:
        pass
    assert fixture.stop() >= 0.19
    assert test.stop() < 0.15
