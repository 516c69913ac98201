"""Test of a snippet of DS-1000 by its context, inside the sandbox.

A context of DS-1000 makes its inputs, executes the snippet on them, and compares the outcome with
an expected value that it computes itself. Here context and snippet are two processes. The snippet's
process gets a source and inputs, and gives back data (`sandbox_data`). It cannot read the memory of
the context's process, so it meets no expected value, changes no comparison, and gives no object
with an equality of its own. For the kind `ds1000_inside` the snippet is executed in the context's
own process, as DS-1000 itself does it.

`sandbox.py` puts this file and `sandbox_data.py` into the sandbox as text. It is started by path:
alone as the context, with the argument `program` as the snippet. The context writes lines
`[nonce, word, value]` to what was its standard output, when no process of the snippet runs any
more:

- `ready`: the item's own context stands;
- `no_data`: its inputs or expected values are not data, so it can be compared inside alone;
- `broken`: the context itself fails, whatever the snippet;
- `result`: the snippet passed.
"""

import ast
import builtins
import ctypes
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

# python -I has no folder of the script's on its path, and none is left there for a snippet to use
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sandbox_data import NoDataError, decode, encode

del sys.path[0]

TESTS = "tests.py"
PR_SET_DUMPABLE = 4
NA = json.dumps(["pandas.NAType"])


class ProgramError(Exception):
    """Raised if the snippet ended with an exception, or gave no data."""


def main() -> None:
    with open("job.json", encoding="utf-8") as file:
        job = json.load(file)
    os.remove("job.json")
    # closes /proc/PID/mem and its like, ptrace and pidfd_getfd to the snippet's process
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    words: dict[str, Any] = {}
    try:
        test(job["context"], job["code"], words, apart=job["kind"] == "ds1000")
    finally:
        # the nonce is written only when no process of the snippet's is left to read it
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        for word, value in words.items():
            out.write(json.dumps([job["nonce"], word, value]) + "\n")
        out.flush()


def test(context: str, code: str, words: dict[str, Any], apart: bool) -> None:
    """Tests a snippet by its context.

    Args:
        words: gets what is to be written, by its word.
        apart: whether the snippet is executed in a process of its own.

    Raises:
        BaseException: the snippet is not right, or the context fails.
    """
    executed: list[Any] = []
    names = names_read(context)
    program = Program(names) if apart else None

    def execute(source: Any, globals: Any = None, locals: Any = None, /) -> None:
        executed.append(source)
        if program is not None:
            if globals is None or locals is not None or not names:
                raise NoDataError("what the snippet gives is not read from a space of its own")
            program.execute(source, globals)
            return
        if globals is None:
            caller = sys._getframe(1)
            globals, locals = caller.f_globals, caller.f_locals if locals is None else locals
        builtins.exec(source, globals, locals)

    space: dict[str, Any] = {"__name__": "solution", "exec": execute}
    exec(compile(context, TESTS, "exec"), space)
    words["ready"] = True
    made_by: Any = space.get("generate_test_case")

    def generate_test_case(*args: Any, **kwargs: Any) -> Any:
        case = made_by(*args, **kwargs)
        try:
            text = text_of(case, names)
            if program is not None:
                program.may_give_na = NA in text
        except NoDataError as error:
            if apart:
                raise
            words["no_data"] = str(error)
        return case

    if made_by is not None:
        space["generate_test_case"] = generate_test_case
    try:
        space["test_execution"](code)
        if "test_string" in space:
            space["test_string"](code)
    except BaseException as error:
        if of_context(error, executed, str(space.get("exec_context", ""))):
            words["broken"] = "".join(traceback.format_exception_only(error)).strip()
        raise
    words["result"] = True


def names_read(context: str) -> set[str]:
    """The names that a context reads of what a snippet left: x of `exec(code, env)`, `env["x"]`."""
    nodes = list(ast.walk(ast.parse(context)))
    calls = [n for n in nodes if isinstance(n, ast.Call) and ast.unparse(n.func) == "exec"]
    spaces = {
        call.args[1].id
        for call in calls
        if len(call.args) > 1 and isinstance(call.args[1], ast.Name)
    }
    return {
        n.slice.value
        for n in nodes
        if isinstance(n, ast.Subscript)
        and isinstance(n.value, ast.Name)
        and n.value.id in spaces
        and isinstance(n.slice, ast.Constant)
        and isinstance(n.slice.value, str)
    }


def text_of(case: Any, names: set[str]) -> str:
    """A test case, (inputs, expected value), as text, if it is data with which data is compared.

    Raises:
        NoDataError: it is not; a figure, for instance, is drawn, with None as the expected value.
    """
    if not names:
        raise NoDataError("no value that the snippet gives is read")
    if isinstance(case, tuple) and any(value is None for value in case[1:]):
        raise NoDataError("no value is expected")
    return json.dumps(encode(case))


class Program:
    """The snippet's process. It begins with the first source and has nothing of this process.

    Args:
        names: of the values that are to come back.
    """

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.may_give_na = True
        """Whether pd.NA may come back: pandas' `all` skips it, as if it were equal to any value."""
        self.process: subprocess.Popen[bytes] | None = None

    def execute(self, source: str, space: dict[str, Any]) -> None:
        """Executes a source on the values of a space, and enters those that come back.

        Raises:
            NoDataError: a value of the space is not data.
            ProgramError: the source ended with an exception, or its values are not data.
            SystemExit: the process ended.
        """
        inputs = {name: value for name, value in space.items() if name != "__builtins__"}
        job = {"source": source, "names": sorted(self.names), "space": encode(inputs)}
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", __file__, "program"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            # no file that the snippet leaves in its folder is then read by its name
            os.chdir("/")
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            end = self.process.wait()
            if end < 0:
                os.kill(os.getpid(), -end)
            raise SystemExit(end)
        try:
            reply = json.loads(line)
            values = {name: decode(reply[name]) for name in self.names & set(reply)}
            if not self.may_give_na and NA in json.dumps(encode(values)):
                raise NoDataError("pd.NA, where the test has none")
        except Exception as error:
            raise ProgramError(f"no data came back: {error!r}"[:1000]) from None
        if "" in reply:
            raise ProgramError(str(reply[""])[-1000:])
        space.update(values)


def run_program() -> None:
    """The snippet's process: executes each source that comes, and writes the values it made.

    A reply holds values by name, or under "" what went wrong.
    """
    channel, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    for line in channel:
        job = json.loads(line)
        space = decode(job["space"])
        try:
            builtins.exec(job["source"], space)
            text = json.dumps({name: encode(space[name]) for name in job["names"] if name in space})
        except Exception as error:
            traceback.print_exc()
            text = json.dumps({"": "".join(traceback.format_exception_only(error)).strip()})
        replies.write(text.encode() + b"\n")
        replies.flush()


def of_context(error: BaseException, executed: Sequence[Any], template: str) -> bool:
    """Whether the item's own context fails, and not the snippet that was put into it.

    It is at fault for what comes before any snippet was executed, in making its test cases and in
    the lines ahead of the snippet; and for every import of its own that fails.

    Args:
        executed: the sources.
        template: what a source is made of, with `[insert]` in the snippet's place.
    """
    if not executed:
        return True
    if isinstance(error, MemoryError):
        return False
    head, _, tail = template.partition("[insert]")
    lines = str(executed[-1]).count("\n") + 1
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


if __name__ == "__main__":
    if sys.argv[1:] == ["program"]:
        run_program()
    else:
        main()
