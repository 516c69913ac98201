"""A real Slurm on loopback: Debian's daemons, as root, without systemd and munge."""

from __future__ import annotations

import os
import random
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import loopback
import pytest

PACKAGES = ("slurmctld", "slurmd", "slurm-client")
ACCOUNTING = ("slurmdbd", "mariadb-server")
"""Packages by which a cluster keeps the records that sacct reads."""
CPUS = 8
MEMORY = Path("/sys/fs/cgroup/memory")
"""The memory controller of cgroup v1, by which Slurm's daemon can hold a job to its memory."""
CONFIG = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
# with the default every job that is queued again waits two minutes
AuthInfo=cred_expire=10
ProctrackType=proctrack/linuxproc
TaskPlugin={task_plugin}
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters={resources}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/{storage}
AccountingStoragePort={accounting_port}
AccountingStorageHost=127.0.0.1
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdTimeout=20
MaxArraySize={max_array_size}
# else a node that is said to have more CPUs than there are is invalid
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge={min_job_age}
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CommunicationParameters=NoInAddrAny
FirstJobId={first_job}
GresTypes=gpu
{nodes}
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 DefMemPerCPU=100
PartitionName=urgent Nodes=ALL PriorityTier=10 DefMemPerCPU=100
"""
NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} "
    "RealMemory={memory} Gres=gpu:{gpus}"
)
CGROUP = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedSwapSpace=0
"""


MAX_ARRAY_SIZE = 18
"""Slurm refuses indices of arrays from here on; a cluster has 1001, or what its people set."""
GPUS = 4
"""Number of GPUs that the node is said to have: Slurm hands out numbers, and no job uses them."""
GRES = "Name=gpu File={folder}/gpu[0-{last}]\n"


DATABASE = """\
AuthType=auth/none
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={ports[0]}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[1]}
StorageUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""


def install(packages: tuple[str, ...], commands: tuple[str, ...]) -> None:
    """Installs packages whose commands are missing, or skips the test with the reason."""
    if all(shutil.which(name) for name in commands):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip(f"needs {', '.join(packages)}, and only root can install them by apt")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    for command in (["apt-get", "update"], install):
        ended = subprocess.run(command, env=quiet, capture_output=True, text=True)
    if ended.returncode:
        pytest.skip(f"apt-get cannot install Slurm: {ended.stderr.strip().splitlines()[-1]}")


@dataclass
class Slurm:
    """A running Slurm, whose daemons can be stopped and started."""

    folder: Path
    limits_memory: bool
    """Whether jobs are killed for using more memory than they asked for."""
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables by which Slurm's commands find this Slurm."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self, name: str) -> None:
        """Starts a daemon; the name may be followed by `:` and a node."""
        program, _, node = name.partition(":")
        self._start(name, [program, "-D", *(["-N", node] if node else [])])

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                command, stdout=out, stderr=out, env=os.environ | self.environment
            )

    def keep_records(self, ports: list[int]) -> None:
        """Starts the database from which sacct reads, with its daemon."""
        data = self.folder / "database"
        quiet = {"check": True, "capture_output": True}
        made = ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}"]
        subprocess.run([*made, "--auth-root-authentication-method=normal"], **quiet)  # type: ignore[call-overload]
        served = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}"]
        served += ["--bind-address=127.0.0.1", f"--port={ports[1]}", f"--socket={data}/socket"]
        self._start("mariadbd", served)
        conf = self.folder / "slurmdbd.conf"
        conf.write_text(DATABASE.format(ports=ports, folder=self.folder, host=_host()))
        conf.chmod(0o600)
        for daemon, port in (("mariadbd", ports[1]), ("slurmdbd", ports[0])):
            if daemon == "slurmdbd":
                self.start(daemon)
            self.wait(f"{daemon} does not answer", lambda at=port: _answers(at), 60)

    def stop(self, name: str) -> None:
        daemon = self.daemons.pop(name)
        daemon.terminate()
        try:
            daemon.wait(30)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def __call__(self, *command: str) -> str:
        """What a command of Slurm prints; an error if it fails."""
        ended = self._ended(*command)
        assert ended.returncode == 0, f"{command}: {ended.stderr}"
        return ended.stdout

    def succeeds(self, *command: str) -> bool:
        return self._ended(*command).returncode == 0

    def said(self, *command: str) -> str:
        """What a command of Slurm prints, or nothing if it fails."""
        ended = self._ended(*command)
        return "" if ended.returncode else ended.stdout

    def _ended(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | self.environment
        return subprocess.run(command, env=env, capture_output=True, text=True)

    def states(self, *jobs: str) -> dict[str, str]:
        """Job (`12_3` in an array) -> state, for the given jobs or all."""
        which = [f"--jobs={','.join(jobs)}"] if jobs else []
        form = ["--noheader", "--array", "--states=all", "--format=%i %T"]
        lines = self("squeue", *form, *which).splitlines()
        return dict(line.split() for line in lines)  # type: ignore[misc]

    def wait(
        self, what: str, there: Callable[[], bool], seconds: float = 600, pause: float = 0.5
    ) -> None:
        """Waits until something is so; `what` says why it is not."""
        deadline = time.monotonic() + seconds
        while not there():
            assert time.monotonic() < deadline, f"{what}: {self('squeue', '--states=all')}"
            time.sleep(pause)


@contextmanager
def slurm(folder: Path, nodes: int = 1, records: bool = False) -> Iterator[Slurm]:
    """Yields a Slurm that is ready for jobs; it and all its jobs end with the block.

    Args:
        nodes: number of nodes, each with `CPUS` and `GPUS` of its own; of several the first is
            called `node1`.
        records: whether ended jobs are kept in a database, which sacct asks.
    """
    install(PACKAGES, ("slurmctld", "slurmd", "sbatch"))
    if records:
        install(ACCOUNTING, ("slurmdbd", "mariadbd", "mariadb-install-db"))
    limits_memory = os.access(MEMORY, os.W_OK) and os.geteuid() == 0
    host = _host()
    names = [host] if nodes == 1 else [f"node{n + 1}" for n in range(nodes)]
    (folder / "state").mkdir()
    facts = {
        "host": host,
        "cpus": CPUS,
        "gpus": GPUS,
        "memory": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
    }
    ports = [loopback.free_port() for _ in range(2)]
    text = CONFIG.format(
        **facts,
        port=loopback.free_port(),
        folder=folder,
        storage="slurmdbd" if records else "none",
        accounting_port=ports[0],
        # where a database keeps them, squeue may forget ended jobs
        min_job_age=2 if records else 3600,
        max_array_size=MAX_ARRAY_SIZE,
        task_plugin="task/cgroup" if limits_memory else "task/none",
        resources="CR_Core_Memory" if limits_memory else "CR_Core",
        # two Slurms of one machine must not share the cgroups of their jobs
        first_job=random.SystemRandom().randrange(1000, 50_000_000),
        nodes="\n".join(NODE.format(**facts, name=n, port=loopback.free_port()) for n in names),
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "cgroup.conf").write_text(CGROUP)
    (folder / "gres.conf").write_text(GRES.format(folder=folder, last=GPUS - 1))
    for number in range(GPUS):
        # the device behind /dev/null
        os.mknod(folder / f"gpu{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    running = Slurm(folder, limits_memory)
    try:
        if records:
            running.keep_records(ports)
        running.start("slurmctld")
        time.sleep(2)
        for name in names:
            (folder / f"spool-{name}").mkdir()
            running.start(f"slurmd:{name}")
        running.wait("no idle node", lambda: _is_idle(running), 60)
        yield running
    finally:
        if running.said("squeue", "--noheader"):
            running("scancel", "--user=root")
            running.wait("jobs do not end", lambda: not running.said("squeue", "--noheader"), 60)
        for name in reversed(list(running.daemons)):
            running.stop(name)


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _is_idle(running: Slurm) -> bool:
    for name, daemon in running.daemons.items():
        assert daemon.poll() is None, (running.folder / f"{name}.out").read_text()
    return set(running.said("sinfo", "--noheader", "--format=%T").split()) == {"idle"}
