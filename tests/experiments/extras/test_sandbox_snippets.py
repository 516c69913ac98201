"""DS-1000's snippets in the sandbox: compared as data, in a process that they cannot reach."""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hostile_programs import (
    ARRAY,
    FAST,
    HOSTILE,
    INTEGERS,
    NUMBER,
    PRIVATE,
    ROOMY,
    SHORT,
    Hostile,
    context,
    needs_namespaces,
    outcome,
)

from faithscope.experiments.extras.sandbox import sandbox_data
from faithscope.experiments.extras.sandbox.sandbox import run_tests
from faithscope.experiments.studies.rfeval.items import CodeTests

pytestmark = needs_namespaces
CHEATING = HOSTILE["cheats a test of DS-1000"]
IN_TIME = [CHEATING[n].code for n in (0, 3, 10)]
"""A changed comparison, an object equal to everything, and the expected value read from a frame."""


@pytest.mark.parametrize(
    "cheat",
    [pytest.param(c, marks=[] if c.code in IN_TIME else pytest.mark.slow) for c in CHEATING],
)
def test_no_cheat_passes(cheat: Hostile) -> None:
    report = run_tests(cheat.tests, cheat.code, cheat.limits)
    assert report.runs[-1].outcome == cheat.expected, report
    assert report.compared == "outside"


@pytest.mark.parametrize("tests", [ARRAY, NUMBER, INTEGERS, PRIVATE])
def test_the_tests_that_are_cheated_pass_a_right_snippet(tests: CodeTests) -> None:
    assert run_tests(tests, tests.reference, ROOMY).passed


FRAME = "pd.testing.assert_frame_equal(result, ans)"
SERIES = "pd.testing.assert_series_equal(result, ans)"
DAYS = "pd.DataFrame({'t': pd.to_datetime(['2015-12-01 00:00-06:00', None]), 'n': [n, 2]})"
PIVOT = "x.pivot_table(index='b', columns='a', values='v', aggfunc='sum')"
SPARSE = "sparse.random(4, 5, 0.5, 'csr', random_state=n)"
PANDAS = "import pandas as pd"
FIGURE = """plt.plot([1, 2]); plt.savefig('ans.png'); plt.close()
    return [1, n], None"""


@pytest.mark.takes("pandas is imported in seven sandboxes of a process each")
@pytest.mark.in_time(1)
@pytest.mark.parametrize(
    ("tests", "wrong", "where"),
    [
        (
            context(
                "x = pd.DataFrame({'a': list('xyx'), 'b': [1, 1, n], 'v': [1.0, 2, np.nan]})\n"
                "    return x, x.set_index(['a', 'b'])",
                FRAME,
                "result = x.set_index(['a', 'b'])",
                f"{PANDAS}, numpy as np",
            ),
            "result = x.set_index(['b', 'a'])",
            "outside",
        ),
        (
            context(
                f"x = {DAYS}\n    return x, x.assign(t=x['t'].dt.tz_localize(None))",
                FRAME,
                "x['t'] = x['t'].dt.tz_localize(None)\nresult = x",
                PANDAS,
            ),
            "result = x",
            "outside",
        ),
        (
            context(
                f"x = {DAYS}\n    return x, x['t'].dt.to_period('M').value_counts()",
                SERIES,
                "result = x['t'].dt.to_period('M').value_counts()",
                PANDAS,
            ),
            "result = x['t'].dt.to_period('Y').value_counts()",
            "outside",
        ),
        (
            context(
                "x = pd.Series([1, 5, 9 + n])\n    return x, pd.cut(x, 3)",
                SERIES,
                "result = pd.cut(x, 3)",
                PANDAS,
            ),
            "result = pd.cut(x, 2)",
            "outside",
        ),
        (
            context(
                "x = pd.DataFrame({'a': pd.Categorical(list('xyx')), 'b': [n, 2, 2], 'v': 1})\n"
                f"    return x, {PIVOT}",
                FRAME,
                f"result = {PIVOT}",
                PANDAS,
            ),
            f"result = {PIVOT}.T",
            "outside",
        ),
        (
            context(
                f"x = {SPARSE}\n    return x, x.T.tocsr()",
                "assert type(result) is type(ans) and abs(result - ans).nnz == 0",
                "result = x.T.tocsr()",
                "from scipy import sparse",
            ),
            "result = x.T.tocsr() * 2",
            "outside",
        ),
        (
            context(
                "return [n, 'a', {2: (n, None)}], {'n': [n, {2: (n, None)}]}",
                "assert result == ans",
                "from collections import defaultdict\nresult = defaultdict(list)\n"
                "result['n'] = [x[0], x[2]]",
                "import math",
            ),
            "result = {'n': [x[0], {2: [x[0], None]}]}",
            "outside",
        ),
        # an object that is no data
        (
            context(
                "return n, slice",
                "assert result(ans) == 3",
                "result = lambda of: 3 if of is slice else 0",
                "import math",
            ),
            "result = lambda of: 0",
            "inside",
        ),
        # figures are drawn, and no value is expected
        (
            context(
                FIGURE,
                "assert len(plt.gca().lines) == 1 and not plt.gca().get_xlabel()",
                "plt.plot(x)\nresult = None",
                "import matplotlib.pyplot as plt",
            ),
            "plt.plot(x); plt.xlabel('x')\nresult = None",
            "inside",
        ),
    ],
)
def test_a_right_snippet_passes_and_a_wrong_one_does_not(
    tests: CodeTests, wrong: str, where: str
) -> None:
    right = run_tests(tests, tests.reference, ROOMY)
    assert (right.stance, right.compared) == ("correct", where), right
    other = run_tests(tests, wrong, ROOMY)
    assert (other.stance, other.compared) == ("incorrect", where), other


NO_DRAWING = context(
    "return n, None",
    "assert plt.gca().get_legend() is None",
    "plt.plot([x], label='x')\nresult = 0",
    "import matplotlib.pyplot as plt",
)


@pytest.mark.slow
def test_what_is_drawn_is_not_looked_for_where_nothing_was() -> None:
    """An empty figure in the context's process has no legend, whatever the snippet drew."""
    drawn = "plt.plot([x], label='x')\nplt.legend()\nresult = 0"
    assert not run_tests(NO_DRAWING, drawn, ROOMY).passed
    assert run_tests(NO_DRAWING, NO_DRAWING.reference, ROOMY).passed


@pytest.mark.slow
def test_an_item_without_a_solution_of_its_own_is_compared_where_it_can_be() -> None:
    for tests, where in ((ARRAY, "outside"), (NO_DRAWING, "inside")):
        bare = CodeTests("ds1000", context=tests.context)
        assert run_tests(bare, "raise ValueError", ROOMY).compared == where
        assert run_tests(bare, tests.reference, ROOMY).passed


NOW = pd.Timestamp("2020-02-03 04:05:06.000000007", tz="Europe/Paris")
DATES = pd.date_range("2020-01-31", periods=4, freq="ME", tz="UTC", name="t")
LEVELS = pd.MultiIndex.from_product([["a", "b"], DATES[:2]], names=["k", None])
MIXED = np.array([1, "a", None, float("nan"), (1, 2), pd.NaT], dtype=object)
VALUES: list[Any] = [
    *(None, True, 10**400, -0.0, float("inf"), "ü\ud800", 2 + 3j, b"\x00\xff", 1e-300),
    *([1, [2.5, (None,)]], {1, 2}, frozenset({"a"}), {(1, 2): {"a": [1]}, None: 0}),
    *(range(3, 9, 2), slice(None, 4), decimal.Decimal("0.10"), fractions.Fraction(1, 3)),
    *(datetime.date(2020, 1, 2), datetime.time(3, 4, 5, 6), datetime.timedelta(-1, 2, 3)),
    datetime.datetime(2020, 1, 2, 3, 4, 5, 6),
    *(np.float32(0.1), np.int8(-3), np.str_("a"), np.datetime64("2020-01", "M"), np.bool_(True)),
    *(np.arange(6, dtype=">i2").reshape(2, 3).T, np.zeros((0, 3)), np.array("x"), MIXED),
    np.array(["a", "bcd"]),
    *(NOW, pd.Timestamp(2020, unit="s"), pd.Timedelta(3, "s"), pd.Period("2020-03", "Q")),
    pd.Interval(1, 2.5, "left"),
    *(DATES, DATES.tz_localize(None), DATES[1:] - DATES[:-1], DATES[[2, 0]], LEVELS, pd.Index([])),
    *(
        pd.RangeIndex(1, 9, 2, name="r"),
        pd.Index(["a", None], name="s"),
        DATES.tz_localize(None).to_period("D"),
    ),
    *(pd.CategoricalIndex(["b", "a", "b"]), pd.interval_range(0, 3), pd.Index([1.5, np.nan])),
    pd.Series([1, None, 3], dtype="Int64", index=list("xyz"), name=("a", 1)),
    pd.Series(MIXED),
    pd.Series([True, None], dtype="boolean"),
    pd.Series(pd.Categorical(["b", None], categories=["b", "a"], ordered=True)),
    pd.Series([0, 0, 7], dtype=pd.SparseDtype(int, 0)),
    pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": DATES[:2]}).rename(columns={"b": "a"}),
    pd.DataFrame(np.ones((4, 4)), index=LEVELS, columns=LEVELS),
    pd.DataFrame(index=[1, 2]),
    pd.DataFrame(columns=["a", "b"]),
    *(scipy.sparse.coo_matrix([[0, 2], [3, 0]]), scipy.sparse.csr_array([[0, 2.5]])),
    *(torch.tensor([[1, 2]]), torch.tensor([0.1, 0.2], dtype=torch.bfloat16)),
]


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    match a:
        case pd.DataFrame():
            pd.testing.assert_frame_equal(a, b)
        case pd.Series():
            pd.testing.assert_series_equal(a, b)
        case pd.Index():
            pd.testing.assert_index_equal(a, b, exact=True)
            assert getattr(a, "freq", None) == getattr(b, "freq", None)
        case np.ndarray() | np.generic():
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert repr(a.tolist()) == repr(b.tolist())
        case torch.Tensor():
            torch.testing.assert_close(a, b, rtol=0, atol=0)
        case _ if scipy.sparse.issparse(a):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a.toarray(), b.toarray())
        case _:
            assert repr(a) == repr(b)
            assert a == b or a is pd.NaT


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{type(v).__name__}")
def test_data_comes_back_as_it_was(value: Any) -> None:
    text = json.dumps(sandbox_data.encode(value))
    same(sandbox_data.decode(json.loads(text)), value)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        len,
        [object()],
        np.ma.array([1]),
        np.zeros(1, "i4,i4"),
        np.array([object()]),
        type("Text", (str,), {})("a"),
        datetime.datetime.now(datetime.UTC),
        torch.ones(2).to_sparse(),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_is_no_data_is_refused(value: Any) -> None:
    with pytest.raises(sandbox_data.NoDataError):
        sandbox_data.encode(value)


@pytest.mark.parametrize(
    "told",
    [
        ["builtins.eval", "1"],
        ["numpy.ndarray", "O", [1], ""],
        ["numpy.ma", []],
        ["pandas.read_pickle", "x"],
        ["scipy.io", []],
        ["torch.Tensor", "load", ["numpy.generic", 1]],
        ["torch.load", "x"],
        {"a": 1},
        [[]],
    ],
    ids=str,
)
def test_nothing_else_is_made(told: Any) -> None:
    with pytest.raises((sandbox_data.NoDataError, TypeError, ValueError)):
        sandbox_data.decode(told)


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


@pytest.mark.in_time(5)
@pytest.mark.parametrize(
    ("context", "code", "expected"),
    [
        (CASES.format(**THERE), "result = x + 1", "passed"),
        (CASES.format(**THERE), "result = x", "error"),
        (CASES.format(**THERE), "import lacking", "error"),
        (CASES.format(**THERE), "y = x\nimport math, lacking", "error"),
        (CASES.format(**THERE), "y = x", "error"),
        (CASES.format(**THERE), "result = (", "error"),
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
