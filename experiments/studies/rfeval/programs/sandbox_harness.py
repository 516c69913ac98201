"""What runs inside the sandbox around a function, or around a snippet of DS-1000, and tells what
came of it: standard library only. It is put into the sandbox as text, and never imported.

Lines `[nonce, word, value]` go to what was standard output: `ready` once an item's own context
stands, `broken` where that context fails, `result` at the end. A program itself has none.
"""

import ast
import builtins
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

Tell = Callable[[str, Any], None]
TESTS = "tests.py"
PRELUDE = """
from typing import *
from collections import *
import collections, functools, heapq, itertools, math, bisect, string, re
from functools import *
from itertools import *
from heapq import *
from bisect import *
from math import *
"""


def main() -> None:
    with open("job.json", encoding="utf-8") as file:
        job = json.load(file)
    os.remove("job.json")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)

    def tell(word: str, value: Any) -> None:
        out.write(json.dumps([job["nonce"], word, value]) + "\n")
        out.flush()

    if job["kind"] == "ds1000":
        run_snippet(job["context"], job["code"], tell)
    else:
        run_function(job["code"], job["stdin"], tell)


def run_snippet(context: str, code: str, tell: Tell) -> None:
    """A snippet of DS-1000, tested by its context."""
    ran: list[Any] = []

    def noted(source: Any, globals: Any = None, locals: Any = None, /) -> None:
        caller = sys._getframe(1)
        ran.append(source)
        if globals is None:
            globals, locals = caller.f_globals, caller.f_locals if locals is None else locals
        builtins.exec(source, globals, locals)

    space: dict[str, Any] = {"__name__": "solution", "exec": noted}
    exec(compile(context, TESTS, "exec"), space)
    tell("ready", True)
    try:
        space["test_execution"](code)
        if "test_string" in space:
            space["test_string"](code)
    except BaseException as error:
        if of_context(error, ran, str(space.get("exec_context", ""))):
            tell("broken", "".join(traceback.format_exception_only(error)).strip())
        raise
    tell("result", True)


def of_context(error: BaseException, ran: Sequence[Any], template: str) -> bool:
    """Whether the item's own context fails, and not the snippet that was put into it.

    It is at fault for what comes before any snippet was run, in making its test cases and in the
    lines ahead of the snippet; and for every import of its own that fails.
    """
    if not ran:
        return True
    if isinstance(error, MemoryError):
        return False
    head, _, tail = template.partition("[insert]")
    lines = str(ran[-1]).count("\n") + 1
    places = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        of, name = frame.f_code.co_filename, frame.f_code.co_name
        if of == TESTS:
            places.append("cases" if name == "generate_test_case" else "tests")
        elif of == "<string>":
            before, after = head.count("\n"), lines - tail.count("\n")
            places.append("head" if line <= before else "tail" if line > after else "snippet")
    if not places or "snippet" in places[-1:]:
        return False
    if "cases" in places or isinstance(error, ImportError):
        return True
    return places[-1] == "head" and "snippet" not in places


def run_function(code: str, stdin: str, tell: Tell) -> None:
    """The function that a test is of, or the method of `Solution`, called with its arguments."""
    space: dict[str, Any] = {"__name__": "solution"}
    exec(PRELUDE, space)
    before = set(space)
    exec(compile(code, "solution.py", "exec"), space)
    arguments = [json.loads(line) for line in stdin.split("\n") if line.strip()]
    body = ast.parse(code).body
    solution = space.get("Solution")
    if isinstance(solution, type):
        made = solution()
        found = {
            name: getattr(made, name)
            for name, value in vars(solution).items()
            if callable(value) and not name.startswith("_")
        }
        classes = [s for s in body if isinstance(s, ast.ClassDef) and s.name == "Solution"]
        body = classes[-1].body if classes else []
    else:
        found = {
            name: value
            for name, value in space.items()
            if name not in before
            and callable(value)
            and not isinstance(value, type)
            and getattr(value, "__module__", "") == "solution"
        }
    fitting = [name for name, function in found.items() if takes(function, arguments)]
    if not fitting:
        raise SystemExit(f"no function takes the {len(arguments)} arguments of the test")
    helpers = used_by_others(body, set(found))
    # what another function uses is its helper, wherever it stands
    name = ([name for name in fitting if name not in helpers] or fitting)[-1]
    tell("result", found[name](*arguments))


def takes(function: Callable[..., Any], arguments: list[Any]) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    return True


def used_by_others(body: list[ast.stmt], functions: set[str]) -> set[str]:
    """The functions that another one of a module, or of a class, names."""
    used = set()
    for statement in body:
        if isinstance(statement, ast.Assign):
            # a call at the level of the module tries a function out, and makes no helper of it
            own = {t.id for t in statement.targets if isinstance(t, ast.Name)} & functions
            if not own:
                continue
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own = {statement.name}
        else:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                used |= {node.id} - own
            elif isinstance(node, ast.Attribute) and _of_the_class(node.value):
                used |= {node.attr} - own
    return used & functions


def _of_the_class(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        value = value.func
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "Solution")


if __name__ == "__main__":
    main()
