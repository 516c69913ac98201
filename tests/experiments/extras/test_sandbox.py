"""Programs and functions in the sandbox: right and wrong ones, and those that want out."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile_programs import (
    DOUBLE,
    FAST,
    FUNCTION,
    FUNCTIONS,
    LEAVES_THE_SCORE,
    REFUSED,
    SHORT,
    UNCHARGED_MEMORY,
    USES_UP,
    WAYS_OUT,
    needs_namespaces,
    outcome,
    tries,
)

from faithscope.experiments.extras.sandbox.sandbox import (
    Limits,
    Report,
    TestRun,
    run_tests,
    same_output,
    same_value,
    unavailable,
)
from faithscope.experiments.studies.rfeval.items import CodeTests, TestCase

pytestmark = needs_namespaces
SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "rfeval"


def test_a_program_passes_all_tests_or_is_incorrect() -> None:
    right = run_tests(DOUBLE, "print(2 * int(input()))", FAST)
    assert right.passed
    assert (right.stance, len(right.runs), right.n_tests) == ("correct", 2, 2)
    once = run_tests(DOUBLE, "input(); print(2)", FAST)
    assert [r.outcome for r in once.runs] == ["passed", "wrong_answer"]
    assert once.stance == "incorrect"
    assert "gave '2\\n'" in once.runs[1].detail
    assert not Report((TestRun("passed"),), 2).passed


@pytest.mark.in_time(6)
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print(int('x'))", "error"),
        ("def f(:", "error"),
        ("import sys; sys.exit(3)", "error"),
        ("pass", "no_result"),
        *USES_UP,
        *LEAVES_THE_SCORE,
    ],
)
def test_what_a_program_may_come_to(code: str, expected: str) -> None:
    began = time.monotonic()
    assert outcome(code, limits=SHORT if expected == "time_limit" else FAST) == expected
    assert time.monotonic() - began < 30


@pytest.mark.in_time(6)
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


def test_the_sandbox_is_there() -> None:
    assert unavailable() == ""


NESTED = """
from faithscope.experiments.extras.sandbox.sandbox import *
tests = CodeTests("stdin", (TestCase("", "Read-only"),))
code = "try: open('/usr/local/planted', 'w')\\nexcept OSError as e: print(e.strerror.split()[0])"
print(run_tests(tests, code).runs)
"""


def test_what_is_mounted_inside_a_folder_that_is_let_in_is_read_only_too() -> None:
    mount = 'mount -t tmpfs none /usr/local && exec "$0" -c "$1"'
    said = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount, sys.executable, NESTED],
        capture_output=True,
        text=True,
    )
    assert "outcome='passed'" in said.stdout, said


def test_a_fork_bomb_leaves_nothing_behind() -> None:
    """Forks that set themselves apart from their parents, too."""
    mark = f"left{os.getpid()}"
    code = (
        f"import ctypes, os, time\nctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)\n"
        "for _ in range(20):\n  if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n"
        "print(len(os.listdir('/proc')))\ntime.sleep(600)"
    )
    assert outcome(code, limits=SHORT) == "time_limit"
    assert mark not in map(_name, filter(str.isdigit, os.listdir("/proc")))


def _name(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def attempt(code: str) -> str:
    """What a program says of an attempt."""
    (run,) = run_tests(REFUSED, tries(code), FAST).runs
    return "refused" if run.outcome == "passed" else f"{run.outcome}: {run.detail}"


@pytest.mark.in_time(8)
@pytest.mark.parametrize("code", WAYS_OUT)
def test_there_is_no_way_out(code: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert attempt(code.replace("PORT", str(server.getsockname()[1]))) == "refused"


def test_neither_files_nor_environment_nor_processes_of_the_run_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    run = tmp_path / "runs" / "records.jsonl"
    run.parent.mkdir()
    run.write_text("secret")
    for path in (run, Path(__file__)):
        assert attempt(f"open({str(path)!r})") == "refused"
    assert attempt(f"import os; os.listdir({str(tmp_path)!r})") == "refused"
    tests = CodeTests("stdin", (TestCase("", ""),))
    report = run_tests(
        tests,
        "import os\nprint(sorted(os.environ), [p for p in os.listdir('/proc') if p.isdigit()])\n"
        "print(sorted(os.listdir('/')), os.listdir('.'))\n"
        # there for the way to an interpreter that lies below it, and for nothing else
        "print(os.listdir('/tmp') if os.path.exists('/tmp') else [])",
        FAST,
    )
    said = report.runs[0].detail
    assert "KEY" not in said
    assert "'1', '" in said
    assert said.count("', '") < 40
    assert "old" not in said
    assert tmp_path.parts[2] not in said


@pytest.mark.parametrize("code", UNCHARGED_MEMORY)
def test_memory_that_no_process_holds_cannot_be_had(code: str) -> None:
    assert attempt(code) == "refused"


def test_memory_of_its_own_can_be_had() -> None:
    how = "flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS"
    assert "done" in attempt(f"import mmap; mmap.mmap(-1, 2**20, {how})[:] = b'y' * 2**20")


def test_the_keyrings_of_the_caller_are_out_of_reach() -> None:
    numbers = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[platform.machine()]
    add, request, keyctl = numbers
    session = -3
    key = ctypes.CDLL(None).syscall(add, b"user", b"planted", b"secret", 6, session)
    if key == -1:
        pytest.skip("this machine has no keyrings")
    code = "import ctypes; c = ctypes.CDLL(None); assert c.syscall({}) != -1"
    for call in (
        f"{keyctl}, 11, {key}, (ctypes.c_char * 9)(), 9, 0",
        f"{keyctl}, 10, {session}, b'user', b'planted', 0",
        f"{request}, b'user', b'planted', None, {session}",
        f"{add}, b'user', b'other', b'x', 1, {session}",
    ):
        assert attempt(code.format(call)) == "refused"
    assert attempt("assert open('/proc/keys').read()") == "refused"
    ctypes.CDLL(None).syscall(keyctl, 3, key)


def test_outputs_and_values_are_compared_by_what_they_mean() -> None:
    # as LiveCodeBench: a line is the same as text, or all numbers
    assert same_output("1 2\n3\n\n", "1  2 \n3")
    assert same_output("0.50", "0.5")
    assert same_output("0010", "10")
    assert not same_output("case 0010", "case 10")
    assert not same_output("a  b", "a b")
    assert not same_output("1 2 3", "1 2\n3")
    assert not same_output("Yes", "yes")
    assert same_output("1e400 -Infinity", "10e399 -inf")
    for nan in ("nan", "NaN1", "sNaN", "-sNaN123"):
        assert not same_output(f"1 {nan}", "1 2")
        assert not same_output("1 2", f"1 {nan}")
        assert same_output(nan, nan)
    assert same_value([1, [0.5]], [1, [0.5]])
    assert not same_value([0.1 + 0.2], [0.3])
    assert not same_value(1e-10, 0)
    assert not same_value("1", 1)
    assert not same_value(10**400, 0.5)
    with pytest.raises(ValueError, match="seconds = 0; give more than 0"):
        Limits(seconds=0)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the real rows are not beside this checkout")
def test_reference_solutions_pass_their_own_tests() -> None:
    rows = (SHARED / "code_generation.jsonl").read_text("utf-8").splitlines()
    failed = []
    for row in map(json.loads, rows):
        content = row["content"]
        if content["source"] != "ds1000":
            continue
        reference = content["reference_code"]
        tests = CodeTests("ds1000", context=content["code_context"], reference=reference)
        report = run_tests(tests, reference, Limits(seconds=60, memory_mb=4096))
        if not report.passed:
            failed.append((row["id"], report.runs))
        assert report.compared == "outside" or not report.passed
        assert not run_tests(tests, "result = None", Limits(seconds=60)).passed
    # pandas has moved on since DS-1000 was made (1.5): what its own solution may not do any more
    assert len(failed) <= 3, failed
