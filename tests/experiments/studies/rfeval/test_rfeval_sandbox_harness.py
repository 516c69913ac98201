"""Functions in the sandbox: which one is called, and what it gives."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hostile_programs import FAST, FUNCTION, FUNCTIONS

from faithscope.experiments.studies.rfeval.items import CodeTests
from faithscope.experiments.studies.rfeval.programs.sandbox import run_tests

ALLOWED = sys.platform == "linux" and not subprocess.call(
    ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "true"]
)
pytestmark = pytest.mark.skipif(not ALLOWED, reason="this machine allows no user namespaces")


def outcome(code: str, tests: CodeTests) -> str:
    return run_tests(tests, code, FAST).runs[-1].outcome


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "class Solution:\n  def f(self, xs: List[int], k: int): return [xs[0] / k, [True]]",
            "passed",
        ),
        (
            "def h(x): return x\ndef f(xs, k):\n  print('hm')\n  return (h(1.5), (True,))",
            "passed",
        ),
        # equal, by the benchmark's rule
        ("class Solution:\n  def f(self, xs, k): return [1.5, [1]]", "passed"),
        ("class Solution:\n  def f(self, xs): return [1.5, [True]]", "error"),
        # helpers below what they help, and one that is tried out
        ("def f(xs, k): return h([1.5, [True]], k)\ndef h(x, k): return x", "passed"),
        (
            "class Solution:\n  def f(self, xs, k): return self.h([1.5, [True]], k)\n"
            "  def h(self, x, k): return x",
            "passed",
        ),
        (
            "def h(x, k): return x\ndef f(xs, k): return h([1.5, [True]], k)\nf([1], 2)\n"
            "seen = h(1, 2)",
            "passed",
        ),
        ("def f(x, k): return f(x, k - 1) if k else [1.5, [True]]", "passed"),
        *FUNCTIONS,
    ],
)
def test_functions(code: str, expected: str) -> None:
    assert outcome(code, FUNCTION) == expected
