"""Durations by processor time, and how much of it a fast test may take.

Seconds on the clock say how busy a machine is; processor time says what a test costs, on a loaded
machine up to about twice as much. Counted are a test's own fixtures, its call, and the processes
that it waits for. Fixtures of a wider scope count for themselves, since whichever test asks first
would pay for all.
"""

from __future__ import annotations

import resource
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import pytest

SECONDS = 1.0
"""A fast test that takes longer is marked `takes(reason)`, or is slow."""
FAILS_FROM = 8 * SECONDS
"""What fails a fast test: a slow and loaded machine does not take eight times as long."""
REASONED = 40.0
"""What fails a test that has a reason."""
IMPORTS = 20
"""A test during which more modules were imported is not judged: whichever test comes first pays for
the imports of all."""
SHOWN = 15
CLOCK = pytest.StashKey["Clock"]()
SECONDS_TAKEN, SHARED_TAKEN = "processor_seconds", "shared_processor_seconds"

SHARED = pytest.StashKey[dict[str, float]]()
"""Shared fixture -> its processor seconds, since the last test ended."""


def processor_seconds() -> float:
    """Processor time of this process and of those it has waited for."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


Fixture = TypeVar("Fixture", bound=Callable[..., Any])


def dear(fixture: Fixture) -> Fixture:
    """A shared fixture, below `@pytest.fixture`, whose tests are all slow."""
    fixture.__dict__["dear"] = True
    return fixture


def uses_dear(item: pytest.Item) -> bool:
    """Whether a test asks for a fixture that is `dear`, itself or through others."""
    known = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    return any(getattr(of.func, "dear", False) for all_of in known for of in all_of)


class Clock:
    """Processor time since now, without that of the shared fixtures set up meanwhile."""

    running: ClassVar[list[Clock]] = []
    """Clocks of a test and of the fixtures that are being set up for it, innermost last."""

    def __init__(self) -> None:
        self.began, self.shared = processor_seconds(), 0.0
        self.modules = len(sys.modules)
        self.running.append(self)

    def stop(self) -> float:
        """Seconds of its own."""
        self.running.pop()
        whole = processor_seconds() - self.began
        if self.running:
            self.running[-1].shared += whole
        return whole - self.shared


@contextmanager
def charged(config: pytest.Config, name: str) -> Iterator[None]:
    """Counts a block as a shared fixture of that name: for what is made at the first use."""
    clock = Clock()
    try:
        yield
    finally:
        config.stash[SHARED][name] += clock.stop()


def judged(item: pytest.Item, seconds: float, imported: int) -> str:
    """What is wrong with how long a test took; "" if nothing is."""
    if item.get_closest_marker("slow") or imported > IMPORTS:
        return ""
    reason = item.get_closest_marker("takes")
    if reason is None and seconds > FAILS_FROM:
        return (
            f"took {seconds:.1f} s of processor time, where a fast test takes {SECONDS:.0f} at "
            "most: make it quicker, mark it slow, or say what takes so long with "
            "@pytest.mark.takes('reason')"
        )
    if seconds > REASONED:
        return f"took {seconds:.1f} s of processor time, and is to be marked slow"
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if uses_dear(item):
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SHARED] = defaultdict(float)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    if fixturedef.scope == "function":
        return (yield)
    with charged(request.config, f"{fixturedef.baseid}::{fixturedef.argname}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    item.stash[CLOCK] = Clock()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    try:
        yield
    finally:
        clock, shared = item.stash[CLOCK], item.config.stash[SHARED]
        seconds, imported = clock.stop(), len(sys.modules) - clock.modules
        item.user_properties.append((SECONDS_TAKEN, round(seconds, 3)))
        item.user_properties.append((SHARED_TAKEN, dict(shared)))
        shared.clear()
    if wrong := judged(item, seconds, imported):
        pytest.fail(wrong, pytrace=False)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The tests and shared fixtures that took most, and what all took."""
    tests: dict[str, float] = {}
    shared: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "teardown":
                continue
            told = dict(report.user_properties)
            tests[report.nodeid] = told.get(SECONDS_TAKEN, 0.0)
            for name, seconds in told.get(SHARED_TAKEN, {}).items():
                shared[name] += seconds
    if sum(tests.values()) + sum(shared.values()) < SHOWN:
        return
    terminalreporter.section("processor time")
    every = [*tests.items(), *((f"fixture {name}", s) for name, s in shared.items())]
    for name, seconds in sorted(every, key=lambda row: -row[1])[:SHOWN]:
        terminalreporter.line(f"{seconds:7.1f} s  {name}")
    terminalreporter.line(
        f"{sum(tests.values()):7.0f} s  in {len(tests):,} tests, "
        f"{sum(shared.values()):.0f} s in the fixtures that they share"
    )
