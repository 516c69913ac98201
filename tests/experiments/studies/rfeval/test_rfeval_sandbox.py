"""Programs in the sandbox: right and wrong ones, and those that want out."""

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

from faithscope.experiments.studies.rfeval.items import CodeTests, TestCase
from faithscope.experiments.studies.rfeval.programs.sandbox import (
    Limits,
    Report,
    TestRun,
    run_tests,
    same_output,
    same_value,
    unavailable,
)

# what the machine allows is asked of the machine: where the sandbox itself is at fault, tests fail
ALLOWED = sys.platform == "linux" and not subprocess.call(
    ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "true"]
)
pytestmark = pytest.mark.skipif(not ALLOWED, reason="this machine allows no user namespaces")
SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "rfeval"
DOUBLE = CodeTests("stdin", (TestCase("1\n", "2\n"), TestCase("21\n", "42")))
FAST = Limits(seconds=20, memory_mb=256)
SHORT = Limits(seconds=1, memory_mb=256)


def outcome(code: str, tests: CodeTests = DOUBLE, limits: Limits = FAST) -> str:
    return run_tests(tests, code, limits).runs[-1].outcome


def test_a_program_passes_all_tests_or_is_incorrect() -> None:
    right = run_tests(DOUBLE, "print(2 * int(input()))", FAST)
    assert right.passed
    assert (right.stance, len(right.runs), right.n_tests) == ("correct", 2, 2)
    once = run_tests(DOUBLE, "input(); print(2)", FAST)
    assert [r.outcome for r in once.runs] == ["passed", "wrong_answer"]
    assert once.stance == "incorrect"
    assert "gave '2\\n'" in once.runs[1].detail
    assert not Report((TestRun("passed"),), 2).passed


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print(int('x'))", "error"),
        ("def f(:", "error"),
        ("import sys; sys.exit(3)", "error"),
        ("pass", "no_result"),
        ("import os; os._exit(0)", "no_result"),
        ("print(2); import os; os._exit(1)", "error"),
        ("while True: pass", "time_limit"),
        ("import time; time.sleep(60)", "time_limit"),
        ("x = bytearray(10 * 2**30); print(2)", "memory_limit"),
        ("x = []\nwhile True: x.append('y' * 10**6)", "memory_limit"),
        ("import os\nwhile True: os.fork()", "process_limit"),
        (
            "import threading, time\nthreading.stack_size(65536)\nfor n in range(2_500):\n"
            "    threading.Thread(target=time.sleep, args=(60,)).start()\ntime.sleep(60)",
            "process_limit",
        ),
        ("import os; os.remove('out'); os.mkdir('out'); print(2)", "wrong_answer"),
        ("import os; os.remove('out'); os.symlink('/dev/urandom', 'out')", "no_result"),
        ("import os; os.ftruncate(1, 0); os._exit(0)", "no_result"),
        ("while True: print('x' * 10**6)", "output_limit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed"),
    ],
)
def test_what_a_program_may_come_to(code: str, expected: str) -> None:
    began = time.monotonic()
    assert outcome(code, limits=SHORT if expected == "time_limit" else FAST) == expected
    assert time.monotonic() - began < 30


def test_the_sandbox_is_there() -> None:
    assert unavailable() == ""


NESTED = """
from faithscope.experiments.studies.rfeval.programs.sandbox import *
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


def tries(code: str) -> str:
    """What a program says of an attempt."""
    tests = CodeTests("stdin", (TestCase("", "refused"),))
    body = "\n".join(f"    {line}" for line in code.split("\n"))
    program = (
        f"try:\n{body}\nexcept BaseException as e:\n    print('refused')\nelse:\n    print('done')"
    )
    (run,) = run_tests(tests, program, FAST).runs
    return "refused" if run.outcome == "passed" else f"{run.outcome}: {run.detail}"


@pytest.mark.parametrize(
    "code",
    [
        "open('/usr/bin/planted', 'w')",
        "open('/planted', 'w')",
        "open('/etc/passwd')",
        "open('/proc/1/environ').read()",
        "open('/proc/1/mem', 'rb+')",
        # a process of root's may write these by its number alone, without any capability
        "import os; os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
        "import os; os.open('/proc/sys/kernel/hostname', os.O_WRONLY)",
        "import os; os.open('/proc/sysrq-trigger', os.O_WRONLY)",
        "import os; os.open('/proc/sys/user/max_user_namespaces', os.O_WRONLY)",
        "import os; os.setuid(1); os.chroot('/')",
        "import os; os.chroot('.')",
        "import ctypes; c = ctypes.CDLL(None)\nassert c.unshare(0x10000000) == 0",
        "import ctypes\nassert ctypes.CDLL(None).mount(b'none', b'/usr', None, 4128, None) == 0",
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))",
        "import socket; socket.create_connection(('127.0.0.1', PORT), 1)",
        "import socket; socket.socket(socket.AF_VSOCK)",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "import socket; socket.socketpair(socket.AF_INET)",
        "import os; os.chmod('/dev/null', 0)",
        "import os; os.chown('/dev/urandom', 0, 0)",
        "import os; os.utime('/dev/null')",
        "for n in range(10_000): open(f'f{n}', 'w')",
        "import socket; socket.create_connection(('1.1.1.1', 53), 1)",
    ],
)
def test_there_is_no_way_out(code: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert tries(code.replace("PORT", str(server.getsockname()[1]))) == "refused"


def test_neither_files_nor_environment_nor_processes_of_the_run_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    run = tmp_path / "runs" / "records.jsonl"
    run.parent.mkdir()
    run.write_text("secret")
    for path in (run, Path(__file__)):
        assert tries(f"open({str(path)!r})") == "refused"
    assert tries(f"import os; os.listdir({str(tmp_path)!r})") == "refused"
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


SEGMENT = """
import ctypes
c = ctypes.CDLL(None, use_errno=True)
c.shmat.restype = ctypes.c_void_p
held = []
for _ in range(16):
    number = c.shmget(0, 2**25, 0o1600)
    assert number >= 0, ctypes.get_errno()
    at = c.shmat(number, None, 0)
    ctypes.memset(at, 1, 2**25)
    c.shmdt(ctypes.c_void_p(at))
"""
NAMELESS = """
import os
for _ in range(64):
    file = os.memfd_create("x")
    for _ in range(7):
        os.write(file, b"y" * 2**20)
"""
DROPPED = """
import mmap
shared = mmap.mmap(-1, 2**25)
shared[:] = b"y" * 2**25
shared.madvise(mmap.MADV_DONTNEED)
"""


@pytest.mark.parametrize(
    "code",
    [
        SEGMENT,
        NAMELESS,
        DROPPED,
        "open('/dev/zero', 'r+b')",
        *(
            f"import ctypes; assert ctypes.CDLL(None).{call} != -1"
            for call in (
                "msgget(0, 0o1600)",
                "semget(0, 1, 0o1600)",
                "syscall(425, 8, (ctypes.c_char * 120)())",  # io_uring_setup
                "syscall(447, 0)",  # memfd_secret
                "syscall(0x40000000 + 39)",  # getpid of another architecture
            )
        ),
    ],
)
def test_memory_that_no_process_holds_cannot_be_had(code: str) -> None:
    assert tries(code) == "refused"


def test_memory_of_its_own_can_be_had() -> None:
    how = "flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS"
    assert "done" in tries(f"import mmap; mmap.mmap(-1, 2**20, {how})[:] = b'y' * 2**20")


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
        assert tries(code.format(call)) == "refused"
    assert tries("assert open('/proc/keys').read()") == "refused"
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
        tests = CodeTests("ds1000", context=content["code_context"])
        report = run_tests(tests, content["reference_code"], Limits(seconds=60, memory_mb=4096))
        if not report.passed:
            failed.append((row["id"], report.runs))
        assert not run_tests(tests, "result = None", Limits(seconds=60)).passed
    # pandas has moved on since DS-1000 was made (1.5): what its own solution may not do any more
    assert len(failed) <= 3, failed
