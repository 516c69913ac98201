"""Programs that a model wrote, put to an item's public tests where they can do no harm.

Linux namespaces and limits: no network; of the file system the interpreter and its packages,
read-only, and an empty folder in memory; no process but its own, none of this process's
environment or keyrings, no capability; bounded time, memory, output and number of processes. Memory
that no process would be charged with cannot be had (a filter of system calls), but for what stands
unread in sockets and pipes, some 200 kB a descriptor. Where the machine does not allow all that,
nothing is run: there is no weaker way to fall back on.
"""

from __future__ import annotations

import json
import os
import reprlib
import secrets
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from faithscope.experiments.studies.rfeval.items import CodeTests, TestCase
from faithscope.experiments.studies.rfeval.subjects.programs import (
    Limits,
    Outcome,
    Report,
    TestRun,
    Where,
)
from faithscope.interp.errors import UserError

_INSIDE = Path(__file__).with_name("sandbox_inside.py")
_HARNESSES = {
    "functional": ("sandbox_harness.py",),
    "ds1000": ("sandbox_snippets.py", "sandbox_data.py"),
    "ds1000_inside": ("sandbox_snippets.py", "sandbox_data.py"),
}
"""Kind of program -> files that are put into the sandbox. The first of them is started there, or
the program itself if there is none."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
_GRACE = 10.0
"""Seconds that laying out and ending may take beside the program's own."""


def run_tests(tests: CodeTests, code: str, limits: Limits | None = None) -> Report:
    """Run a program against the public tests of an item, until one fails.

    What a program gives is compared outside its process, and it never sees what a test wants. A
    snippet of DS-1000 gives data (`sandbox_snippets`), which its context compares in a process of
    its own. Where the item's own solution passes only in the context's process, as of figures and
    fitted models, the snippet is executed there, and the report says "inside": a snippet written
    to cheat can pass such a test. A program that ends before it has given its result passes
    nothing, whatever its exit code, and none can have its test taken for a broken one, or have
    itself compared inside: that is found out without it.

    Args:
        code: Python; fences around it are to be taken off before (`parsing.split_answer` does).

    Raises:
        UserError: the machine has no sandbox (see `unavailable`).
    """
    if reason := unavailable():
        raise UserError(f"code items are run in a sandbox, and there is none: {reason}")
    limits = limits or Limits()
    if tests.kind == "ds1000":
        return _run_snippet(tests, code, limits)
    cases = tests.cases or (TestCase("", ""),)
    runs = []
    for case in cases:
        runs.append(_run(tests, tests.kind, case.input, code, limits, case.output))
        if runs[-1].outcome != "passed":
            break
    return Report(tuple(runs), len(cases))


def _run_snippet(tests: CodeTests, code: str, limits: Limits) -> Report:
    run = _run(tests, "ds1000", "", code, limits)
    if run.outcome == "passed":
        return Report((run,), 1)
    where, why = _can_be_compared(tests, limits)
    if why:
        return Report((TestRun("test_broken", why[-500:], run.seconds),), 1)
    if where == "inside":
        run = _run(tests, "ds1000_inside", "", code, limits)
    return Report((run,), 1, where)


@lru_cache(maxsize=1024)
def _can_be_compared(tests: CodeTests, limits: Limits) -> tuple[Where, str]:
    """The side on which a DS-1000 item can be compared, and why its test says nothing here, "" if
    it says something.

    It is tried with the item's own solution, or, if it has none, with a line that does nothing:
    never with a program's own run, with which it may have tampered.
    """
    if tests.reference:
        for where, kind in (("outside", "ds1000"), ("inside", "ds1000_inside")):
            run = _run(tests, kind, "", tests.reference, limits)
            if run.outcome == "passed":
                return cast(Where, where), ""
        return "inside", f"its own solution: {run.outcome} {run.detail}"
    nonce = secrets.token_hex(16)
    ended = _inside("ds1000_inside", "pass", tests.context, "", nonce, limits)
    harness_says = _said_by_harness(ended["out"], nonce)
    where = "inside" if "no_data" in harness_says else "outside"
    if "ready" not in harness_says:
        return where, f"{ended['outcome']} {ended['err'].strip()}"
    return where, str(harness_says.get("broken", ""))


@cache
def unavailable() -> str:
    """Why programs cannot be run here, and what to do; "" if they can."""
    if sys.platform != "linux":
        return "it needs Linux; run code items there, or leave the task out"
    if shutil.which("unshare") is None:
        return "no `unshare` on PATH; install util-linux"
    try:
        trial = _inside("stdin", "print(6 * 7)", "", "", "", Limits())
    except UserError as error:
        return str(error)
    if trial["out"] != "42\n":
        return f"a trial ended with {trial['outcome']}: {trial['err'][-300:].strip()}"
    return ""


def _run(
    tests: CodeTests, kind: str, given: str, code: str, limits: Limits, wanted: str = ""
) -> TestRun:
    nonce = secrets.token_hex(16)
    ended = _inside(kind, code, tests.context, given, nonce, limits)
    outcome, detail = ended["outcome"], ended["err"].strip()
    if outcome == "ended" and ended["exit"] != 0:
        # what Python says when it meets a limit that the kernel holds it to
        limit = {"MemoryError": "memory_limit", "File too large": "output_limit"}
        outcome = next((name for sign, name in limit.items() if sign in detail), "error")
    elif outcome == "ended":
        harness_says = {} if kind == "stdin" else _said_by_harness(ended["out"], nonce)
        outcome, detail = _judged(kind, wanted, ended["out"], harness_says, detail)
    return TestRun(cast(Outcome, outcome), detail[-500:], ended["seconds"])


def _said_by_harness(out: str, nonce: str) -> dict[str, Any]:
    """The values that the harness wrote, by their word."""
    values = {}
    for line in out.splitlines():
        try:
            by, word, value = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if by == nonce:
            values[word] = value
    return values


def _judged(
    kind: str, wanted: str, out: str, harness_says: dict[str, Any], err: str
) -> tuple[Outcome, str]:
    if kind == "stdin":
        if same_output(out, wanted):
            return "passed", ""
        return ("wrong_answer", f"gave {out[:300]!r}") if out.strip() else ("no_result", err)
    if "result" not in harness_says:
        return "no_result", err
    if kind.startswith("ds1000"):
        return "passed", ""
    value: Any = wanted
    with suppress(ValueError):
        value = json.loads(wanted)
    result = harness_says["result"]
    if same_value(result, value):
        return "passed", ""
    return "wrong_answer", f"gave {reprlib.repr(result)}"


def _inside(
    kind: str, code: str, context: str, stdin: str, nonce: str, limits: Limits
) -> dict[str, Any]:
    job = {
        **asdict(limits),
        "kind": kind,
        "code": _encodable(code),
        "context": context,
        "stdin": stdin,
        "nonce": nonce,
        "harness": {name: _text(name) for name in _HARNESSES.get(kind, ())},
        "python": sys.executable,
        "read_only": _read_only(),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
    }
    # the kernel holds no process of the machine's root to a number of them: whoever watches a
    # program comes before it, however many it has become
    first = ("nice", "-n", "-10") if os.geteuid() == 0 else ()
    unshare = [
        *first,
        *("unshare", "--user", "--map-root-user", "--net", "--pid", "--ipc", "--uts", "--mount"),
        *("--fork", "--kill-child", sys.executable, "-I", str(_INSIDE)),
    ]
    process = subprocess.Popen(
        unshare,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", os.defpath)},
        cwd="/",
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(json.dumps(job), timeout=limits.seconds + _GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {
            "outcome": "time_limit",
            "exit": -9,
            "out": "",
            "err": "",
            "seconds": limits.seconds,
        }
    except BaseException:
        process.kill()
        raise
    if process.returncode != 0:
        message = " ".join(err.split())[-300:]
        raise UserError(
            f"the sandbox could not be laid out ({message}); it needs user namespaces "
            "(kernel.unprivileged_userns_clone = 1, and no container that forbids them)"
        )
    return json.loads(out)


def _encodable(code: str) -> str:
    return code.encode("utf-8", "replace").decode("utf-8")


@cache
def _text(name: str) -> str:
    return _INSIDE.with_name(name).read_text("utf-8")


@cache
def _read_only() -> list[str]:
    """Paths that the interpreter needs of the file system, without those inside another of them."""
    real = os.path.realpath(sys.executable)
    wanted = [*_SYSTEM, sys.base_prefix, sys.prefix, os.path.dirname(real)]
    outermost: list[str] = []
    for path in sorted({p for p in wanted if os.path.lexists(p)}):
        inside = any(
            path == k or path.startswith(f"{k}/") for k in outermost if not os.path.islink(k)
        )
        if not inside and path != "/":
            outermost.append(path)
    return outermost


def same_output(given: str, wanted: str) -> bool:
    """Whether two outputs are the same, as LiveCodeBench has it (`testing_util.grade_stdio`): as
    many lines, each the same but for white space at its ends, or all numbers and these equal."""
    one, other = ([line.strip() for line in t.strip().split("\n")] for t in (given, wanted))
    return len(one) == len(other) and all(
        a == b or ((numbers := _numbers(a)) is not None and numbers == _numbers(b))
        for a, b in zip(one, other, strict=True)
    )


def _numbers(line: str) -> list[Decimal] | None:
    try:
        numbers = [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return None
    # a signalling NaN raises when it is compared
    return None if any(n.is_snan() for n in numbers) else numbers


def same_value(given: Any, wanted: Any) -> bool:
    """Whether two JSON values are the same, as LiveCodeBench has it: exactly
    (`testing_util.grade_call_based`)."""
    try:
        return bool(given == wanted)
    except RecursionError:
        return False
