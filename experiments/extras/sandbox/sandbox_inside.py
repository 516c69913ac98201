"""First process inside the sandbox (`sandbox.py`): standard library only.

Process 1 of namespaces of its own: lays out a file system that holds the interpreter and nothing
else of the machine, runs one program in it without any capability, and watches it. Started by
path, never imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import math
import os
import platform
import re
import resource
import signal
import sys
import time
from pathlib import Path

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    *(1, 2, 4, 32, 4096, 16384, 1 << 18),
)
FLAGS = {"nosuid": MS_NOSUID, "nodev": MS_NODEV, "noexec": 8, "noatime": 1024, "nodiratime": 2048}
MNT_DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, LAST_CAPABILITY, PR_SET_SECCOMP = 38, 24, 63, 22
# without "zero": mapped, it is memory that a process holds without having it counted
DEVICES = ("null", "urandom", "random")
HOME = "/sandbox"
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MMAP, KEYCTL = {"x86_64": 9, "aarch64": 222}, {"x86_64": 250, "aarch64": 219}
# memory that is in no process's own: shared segments, queues and semaphores, files without a name,
# pages given to a pipe, rings and maps of the kernel; and keys
DENIED = {
    "x86_64": (29, 64, 68, 240, 278, 298, 319, 321, 425, 447, 248, 249, 250),
    "aarch64": (194, 190, 186, 180, 75, 241, 279, 280, 425, 447, 217, 218, 219),
}
"""Denied system calls in order: shmget, semget, msgget, mq_open, vmsplice, perf_event_open,
memfd_create, bpf, io_uring_setup, memfd_secret, add_key, request_key, keyctl."""
_UNIX, _INET, _INET6 = 1, 2, 10
SOCKETS = {
    "x86_64": {41: (_UNIX, _INET, _INET6), 53: (_UNIX,)},
    "aarch64": {198: (_UNIX, _INET, _INET6), 199: (_UNIX,)},
}
"""Numbers of socket and socketpair -> the families that they may be of: those that a network
namespace contains. AF_VSOCK reaches the machine's own."""
FILES = 4096
"""Most files in the sandbox: a file without content, too, is memory of the kernel's."""
MACHINE = platform.machine()
libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if MACHINE not in ARCHITECTURE:
        sys.exit(f"no system calls are known of {MACHINE}; run it on {' or '.join(ARCHITECTURE)}")
    job = json.load(sys.stdin)
    lay_out(job["read_only"], job["tmpfs_mb"])
    program = next(iter(job["harness"]), "solution.py")
    for name, text in (job["harness"] or {program: job["code"]}).items():
        Path(name).write_text(text, "utf-8")
    if job["harness"]:
        told = {name: job[name] for name in ("kind", "code", "context", "stdin", "nonce")}
        Path("job.json").write_text(json.dumps(told), "utf-8")
    Path("in").write_text(job["stdin"], "utf-8")
    # opened here: whatever the program makes of their names, these are what it wrote
    new = os.O_RDWR | os.O_CREAT | os.O_TRUNC
    files = os.open("in", os.O_RDONLY), os.open("out", new, 0o600), os.open("err", new, 0o600)
    told, tells = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run(job, program, files, tells)
        except BaseException as error:
            os.write(tells, repr(error).encode())
        os._exit(125)
    os.close(tells)
    # the pipe closes as the program begins: what is said until then is of the sandbox, not of it
    if said := os.read(told, 1000):
        sys.exit(said.decode())
    print(json.dumps(watch(child, job, *files[1:])))


def lay_out(read_only: list[str], tmpfs_mb: int) -> None:
    """Gives the process a root of its own: what is listed, read-only, a few devices, its own /proc,
    and HOME."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    # what is mounted over is hidden: a folder that nothing wanted stands in
    root = next(
        folder
        for folder in ("/mnt", "/media", "/srv", "/tmp", "/var", "/home")
        if os.path.isdir(folder) and not any(p.startswith(f"{folder}/") for p in read_only)
    )
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    for path in read_only:
        target = root + path
        if os.path.islink(path):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(os.readlink(path), target)
            continue
        os.makedirs(target, exist_ok=True)
        mount(path, target, None, MS_BIND | MS_REC)
    for point, flags in mounted([root + path for path in read_only]):
        mount("none", point, None, MS_BIND | MS_REMOUNT | MS_RDONLY | flags)
    for name in ("proc", "dev", HOME.strip("/")):
        os.makedirs(f"{root}/{name}", exist_ok=True)
    mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | 8)
    room = f"size={tmpfs_mb}m,nr_inodes={FILES},mode=755"
    mount("tmpfs", root + HOME, "tmpfs", MS_NOSUID | MS_NODEV, room)
    for name in DEVICES:
        Path(f"{root}/dev/{name}").touch()
        mount(f"/dev/{name}", f"{root}/dev/{name}", None, MS_BIND)
    # devices are the machine's own: what is written goes on its way, but no mode or owner changes
    for point, flags in mounted([f"{root}/dev"]):
        mount("none", point, None, MS_BIND | MS_REMOUNT | MS_RDONLY | flags)
    os.chdir(root)
    os.mkdir("old")
    if libc.syscall(PIVOT_ROOT[MACHINE], b".", b"old"):
        raise failed("pivot_root")
    os.chdir("/")
    if libc.umount2(b"/old", MNT_DETACH):
        raise failed("umount")
    os.rmdir("/old")
    mount("none", "/", None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    # no namespaces within: there capabilities would come back
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    for name in ("keys", "key-users"):
        if os.path.exists(f"/proc/{name}"):
            mount("/dev/null", f"/proc/{name}", None, MS_BIND)
    # root's processes may write sysctls by their user number alone, without any capability
    mount("none", "/proc", None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | 8)
    os.chdir(HOME)


def mounted(folders: list[str]) -> list[tuple[str, int]]:
    """Every mount at or below one of the folders with its flags, mounts that came along included.

    Flags that a mount has from outside are locked, and have to be named again.
    """
    found = []
    for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        fields = line.split()
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4])
        if any(point == f or point.startswith(f"{f}/") for f in folders):
            flags = sum(FLAGS.get(option, 0) for option in fields[5].split(","))
            found.append((point, flags))
    return found


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    kind_bytes = None if kind is None else kind.encode()
    if libc.mount(source.encode(), target.encode(), kind_bytes, flags, data.encode() or None):
        raise failed(f"mount {target}")


def failed(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def run(job: dict, program: str, files: tuple[int, ...], tells: int) -> None:
    """Becomes the program: without capabilities and keys, within its limits.

    Args:
        files: what it reads, and where it writes output and errors.
        tells: an end of a pipe, to be closed as the program begins.
    """
    os.setsid()
    # a session keyring of its own: the caller's is inherited. Where there are no keys, or keyctl
    # is forbidden to all here, none is to be had by the program either
    joined = libc.syscall(KEYCTL[MACHINE], 1, None)
    if joined == -1 and ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        raise failed("keyctl")
    for number, opened in enumerate(files):
        os.dup2(opened, number)
    os.dup2(tells, 3, inheritable=False)
    os.closerange(4, 256)
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise failed("no_new_privs")
    memory, output = job["memory_mb"] << 20, job["output_mb"] << 20
    cpu = math.ceil(job["seconds"])
    for which, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, output),
        (resource.RLIMIT_NPROC, job["processes"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        resource.setrlimit(which, (value, value))
    os.setpriority(os.PRIO_PROCESS, 0, job["nice"])
    # at the first a signal of its own tells the limit; at the second it is killed as by any other
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    deny()
    env = {"HOME": HOME, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
    env |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    env |= {"MPLBACKEND": "Agg", "TMPDIR": HOME}
    python = job["python"]
    os.execve(python, [python, "-I", "-X", "utf8", program], env)


def deny() -> None:
    """Refuses the system calls of `DENIED`, sockets of other families than those of `SOCKETS`, and
    shared memory that belongs to no file.

    A filter of the kernel's own (seccomp), for this process and all that come of it. Calls of
    another architecture, and x32's, are refused too: their numbers mean something else.
    """

    class Step(ctypes.Structure):
        _fields_ = (
            ("code", ctypes.c_ushort),
            ("yes", ctypes.c_ubyte),
            ("no", ctypes.c_ubyte),
            ("k", ctypes.c_uint32),
        )

    class Filter(ctypes.Structure):
        _fields_ = (("n", ctypes.c_ushort), ("steps", ctypes.POINTER(Step)))

    load, equal, at_least, both, give = 0x20, 0x15, 0x35, 0x54, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    number, architecture, flags = 0, 4, 16 + 3 * 8  # in struct seccomp_data
    shared_anonymous = 0x01 | 0x20
    refused = (give, 0, 0, refuse)
    steps = [(load, 0, 0, architecture), (equal, 1, 0, ARCHITECTURE[MACHINE]), refused]
    steps += [(load, 0, 0, number), (at_least, 0, 1, 0x40000000), refused]
    for call in DENIED[MACHINE]:
        steps += [(equal, 0, 1, call), refused]
    for call, allowed in SOCKETS[MACHINE].items():
        # the first argument is the family; behind it, whatever was compared is no call any more
        steps += [(equal, 0, len(allowed) + 3, call), (load, 0, 0, 16)]
        steps += [(equal, len(allowed) - i, 0, family) for i, family in enumerate(allowed)]
        steps += [refused, (give, 0, 0, allow)]
    steps += [(equal, 1, 0, MMAP[MACHINE]), (give, 0, 0, allow)]
    steps += [(load, 0, 0, flags), (both, 0, 0, shared_anonymous)]
    steps += [(equal, 0, 1, shared_anonymous), refused, (give, 0, 0, allow)]
    made = (Step * len(steps))(*(Step(*step) for step in steps))
    if libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(Filter(len(steps), made)), 0, 0):
        raise failed("seccomp filter (the kernel needs CONFIG_SECCOMP_FILTER)")


def watch(child: int, job: dict, out: int, err: int) -> dict:
    """Waits for the program; ends all processes if one goes over a limit that the kernel does not
    hold.

    Limits of a process do not bound what many do together: their number and the memory that they
    hold are looked at here.
    """
    began = time.monotonic()
    outcome, status = "ended", 0
    while True:
        # whatever has lost its parent comes to process 1, and is waited for as well
        with contextlib.suppress(ChildProcessError):
            pid, code = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                status = code
                break
            if pid:
                continue
        if time.monotonic() - began > job["seconds"]:
            outcome = "time_limit"
            break
        processes, memory = load(job["processes"])
        if processes > job["processes"]:
            outcome = "process_limit"
            break
        if memory > job["memory_mb"] << 20:
            outcome = "memory_limit"
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    if outcome == "ended" and os.WIFSIGNALED(status):
        killed = os.WTERMSIG(status)
        limits = {int(signal.SIGXCPU): "time_limit", int(signal.SIGXFSZ): "output_limit"}
        outcome = limits.get(killed, "killed")
    return {
        "outcome": outcome,
        "exit": os.waitstatus_to_exitcode(status),
        "out": read(out, job["output_mb"] << 20),
        "err": read(err, 1 << 20)[-2000:],
        "seconds": time.monotonic() - began,
    }


def load(most: int) -> tuple[int, int]:
    """Counts the threads beside this process's own, and the bytes of memory that they hold.

    Where there are more than `most` processes, that they are is all that is said: to look at each
    would leave them the time to become more.
    """
    names = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    if len(names) > most:
        return len(names), 0
    pages = n = 0
    for name in names:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{name}/statm").read_text().split()[1])
            # the 20th field; the second is a name in brackets, with anything in it
            n += int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[17])
    return n, pages * resource.getpagesize()


def read(file: int, limit: int) -> str:
    return os.pread(file, limit, 0).decode("utf-8", "replace")


if __name__ == "__main__":
    main()
