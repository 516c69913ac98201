"""Harness that calls a function inside the sandbox and tells what it gave: standard library only.
It is put into the sandbox as text, and never imported.

A line `[nonce, "result", value]` goes to what was standard output. A program itself has none.
"""

import ast
import inspect
import json
import os
from collections.abc import Callable
from typing import Any

Tell = Callable[[str, Any], None]
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

    run_function(job["code"], job["stdin"], tell)


def run_function(code: str, stdin: str, tell: Tell) -> None:
    """Calls the function that a test is of, or the method of `Solution`, with the test's
    arguments."""
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
    """The functions that another function of the module, or of the class, names."""
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
