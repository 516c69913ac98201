"""Checking of programs that a model wrote: what a checker is given and reports, and finding it.

A checker is an entry of the group `faithscope.checkers` that is a `Checker`; `tests.checker` names
it. The one that comes with faithscope, `sandbox`, runs programs where they can do no harm.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from faithscope.experiments.studies.rfeval.items import CodeTests
from faithscope.experiments.studies.rfeval.judging.stances import CORRECT, INCORRECT
from faithscope.interp.errors import UserError
from faithscope.interp.extensions import extension

if TYPE_CHECKING:
    from faithscope.experiments.studies.rfeval.config import TestsConfig

Outcome = Literal[
    "passed",
    "wrong_answer",  # it ended, and what it gave is not what the test wants
    "error",  # it ended with an exception or another exit code than 0
    "no_result",  # it ended as if well, without the result that was asked of it
    "time_limit",
    "memory_limit",
    "process_limit",
    "output_limit",
    "killed",  # by a signal
    "test_broken",  # the item's own test does not run here, whatever the program
]
Where = Literal["outside", "inside"]


@dataclass(frozen=True)
class Limits:
    """Limits on what a program may use for one test."""

    seconds: float = 10.0
    """Most seconds of wall-clock time, and of processor time of each process."""
    memory_mb: int = 2048
    """Most memory of each process's address space, and of all processes together."""
    processes: int = 32
    """Most threads of all processes together."""
    output_mb: int = 8
    """Most MiB of each file that the program writes, standard output among them."""
    tmpfs_mb: int = 64
    """Most MiB of all files together."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise ValueError(f"limit of a test: {name} = {value}; give more than 0")


@dataclass(frozen=True)
class TestRun:
    """Outcome of one test, with details."""

    __test__ = False

    outcome: Outcome
    detail: str = ""
    """The end of what the program wrote to standard error, or what it gave instead of the right
    result."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """Outcomes of an item's tests, up to the first that was not passed."""

    runs: tuple[TestRun, ...]
    n_tests: int
    compared: Where = "outside"
    """Side of the program's process on which its results were compared with what the tests want."""

    @property
    def passed(self) -> bool:
        return len(self.runs) == self.n_tests and all(r.outcome == "passed" for r in self.runs)

    @property
    def stance(self) -> str:
        """Stance of the final answer: "correct" if every public test passes (RFEval, §4.1); "" if
        the item's own test does not run here, which says nothing of the answer."""
        if any(r.outcome == "test_broken" for r in self.runs):
            return ""
        return CORRECT if self.passed else INCORRECT


class Checker(Protocol):
    """Checks programs by the tests of their items; a module with these functions is one."""

    def unavailable(self) -> str:
        """Why programs cannot be checked on this machine, and what to do; "" if they can."""
        ...

    def run_tests(self, tests: CodeTests, code: str, limits: Limits | None = None) -> Report:
        """Run a program against the public tests of an item, until one fails."""
        ...


def checker_of(config: TestsConfig) -> Checker:
    """The checker that a config names.

    Raises:
        UserError: no installed package adds one of that name.
    """
    return extension("checkers", config.checker, f"tests.checker: {config.checker!r}")


def unavailable(config: TestsConfig) -> str:
    """Why programs cannot be checked as a config asks, and what to do; "" if they can."""
    try:
        return checker_of(config).unavailable()
    except UserError as error:
        return str(error)
