"""Functions and DS-1000's snippets in the sandbox: what is called, and whose fault a failure is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from faithscope.experiments.studies.rfeval.items import CodeTests, TestCase
from faithscope.experiments.studies.rfeval.programs.sandbox import Limits, run_tests

ALLOWED = sys.platform == "linux" and not subprocess.call(
    ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "true"]
)
pytestmark = pytest.mark.skipif(not ALLOWED, reason="this machine allows no user namespaces")
FAST = Limits(seconds=20, memory_mb=256)
SHORT = Limits(seconds=1, memory_mb=256)


BROKEN = """
  import sys
  of = sys._getframe()
  while 'tell' not in of.f_locals: of = of.f_back
  of.f_locals['tell']('broken', 'so I say')
"""
FORGET = "for n in range(3, 9):\n  try: os.ftruncate(n, 0)\n  except OSError: pass"
"""Makes the harness's word that the test had begun go."""


def outcome(code: str, tests: CodeTests) -> str:
    return run_tests(tests, code, FAST).runs[-1].outcome


FUNCTION = CodeTests("functional", (TestCase("[3, 1]\n2", "[1.5, [true]]"),))


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
        # ways out of the score: each is an answer that is not right
        ("def f(xs, k): return 10**400", "wrong_answer"),
        ("def f(xs, k): return 10**5000", "error"),
        ("def f(xs, k):\n  for _ in range(900): xs = [xs]\n  return xs", "wrong_answer"),
        ("def f(xs, k):\n  for _ in range(90_000): xs = [xs]\n  return xs", "error"),
        ("def f(xs, k):\n  import os; os.remove('out'); os.mkdir('out')", "wrong_answer"),
        (f"def f(xs, k):\n{BROKEN}\n  raise SystemExit(0)", "no_result"),
        ("class Solution:\n  def f(self, xs): return [1.5, [True]]", "error"),
        ("print('[1.5, [true]]')", "error"),
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
        ("import os\ndef f(xs, k): os._exit(0)", "no_result"),
        ("import os\nos.write(1, b'[\"\", [1.5, [true]]]'); os._exit(0)", "no_result"),
        ("def f(xs, k): return object()", "error"),
    ],
)
def test_functions(code: str, expected: str) -> None:
    assert outcome(code, FUNCTION) == expected


CONTEXT = """
exec_context = "x = test_input\\n[insert]\\n"
def test_execution(solution):
    space = {"test_input": 20}
    exec(exec_context.replace("[insert]", solution), space)
    assert space["result"] == 21
def test_string(solution):
    assert "for" not in solution
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("result = x + 1", "passed"),
        ("result = x", "error"),
        ("for _ in 'a': result = x + 1", "error"),
        ("import os; os._exit(0)", "no_result"),
        ("print('[1, true]'); raise SystemExit(0)", "no_result"),
    ],
)
def test_snippets_that_are_tested_by_their_context(code: str, expected: str) -> None:
    assert outcome(code, CodeTests("ds1000", context=CONTEXT)) == expected


CASES = """
def generate_test_case(n):
    import {package}
    return 20, 21
exec_context = "import {head}\\nx = test_input\\n[insert]\\nimport {tail}\\nresult = result"
def test_execution(solution):
    for n in (1, 2):
        x, wanted = generate_test_case(n) if n == {made} else (20, 21)
        space = {{"test_input": x}}
        exec(exec_context.replace("[insert]", solution), space)
        import {last}
        assert space["result"] == wanted
"""
THERE = {"package": "math", "head": "math", "tail": "math", "last": "math", "made": "1"}


@pytest.mark.parametrize(
    ("context", "code", "expected"),
    [
        (CASES.format(**THERE), "result = x + 1", "passed"),
        (CASES.format(**THERE), "result = x", "error"),
        (CASES.format(**THERE), "import lacking", "error"),
        (CASES.format(**THERE), "y = x\nimport math, lacking", "error"),
        (CASES.format(**THERE), "y = x", "error"),
        (CASES.format(**THERE), "result = (", "error"),
        (CASES.format(**THERE), f"def f():\n{BROKEN}\nf()\nresult = x", "error"),
        (CASES.format(**THERE), f"import os\n{FORGET}\nresult = x", "error"),
        *(
            (CASES.format(**THERE | change), "y = 1\nresult = x + 1", "test_broken")
            for change in (
                {"package": "lacking"},
                {"package": "lacking", "made": "2"},
                {"head": "lacking"},
                {"head": "math; 1 / 0"},
                {"tail": "lacking"},
                {"last": "lacking"},
            )
        ),
        ("import lacking", "result = 1", "test_broken"),
        ("def test_execution(", "result = 1", "test_broken"),
        ("def other(solution): pass", "result = 1", "test_broken"),
        ("import time\ntime.sleep(60)", "result = 1", "test_broken"),
        ("import os\nos._exit(0)", "result = 1", "test_broken"),
    ],
)
def test_a_test_that_does_not_run_here_says_nothing(context: str, code: str, expected: str) -> None:
    limits = SHORT if "sleep" in context else FAST
    tests = CodeTests("ds1000", context=context, reference="result = x + 1")
    report = run_tests(tests, code, limits)
    assert report.runs[-1].outcome == expected, report
    stances = {"passed": "correct", "test_broken": ""}
    assert report.stance == stances.get(expected, "incorrect")
