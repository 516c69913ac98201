"""A real Slurm of one node on loopback: Debian's daemons, as root, without systemd and munge."""

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
CPUS = 8
MEMORY = Path("/sys/fs/cgroup/memory")
"""The memory controller of cgroup v1, by which Slurm's daemon can hold a job to its memory."""
CONFIG = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
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
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
# else a node that is said to have more CPUs than there are is invalid
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CommunicationParameters=NoInAddrAny
FirstJobId={first_job}
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus}
PartitionName=main Nodes={host} Default=YES PriorityTier=1 DefMemPerCPU=100
PartitionName=urgent Nodes={host} PriorityTier=10 DefMemPerCPU=100
"""
CGROUP = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedSwapSpace=0
"""


GPUS = 4
"""Number of GPUs that the node is said to have: Slurm hands out numbers, and no job uses them."""
GRES = "Name=gpu File={folder}/gpu[0-{last}]\n"


def install() -> None:
    """Installs Slurm where it is missing, or skips the test with the reason."""
    if all(shutil.which(name) for name in ("slurmctld", "slurmd", "sbatch")):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip(f"needs Slurm ({', '.join(PACKAGES)}), and only root can install it by apt")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends", *PACKAGES]
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
        with (self.folder / f"{name}.out").open("ab") as out:
            command = [shutil.which(name) or name, "-D"]
            self.daemons[name] = subprocess.Popen(
                command, stdout=out, stderr=out, env=os.environ | self.environment
            )

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
def slurm(folder: Path) -> Iterator[Slurm]:
    """Yields a Slurm that is ready for jobs; it and all its jobs end with the block."""
    install()
    limits_memory = os.access(MEMORY, os.W_OK) and os.geteuid() == 0
    for name in ("state", "spool"):
        (folder / name).mkdir()
    text = CONFIG.format(
        host=socket.gethostname().partition(".")[0],
        ports=[loopback.free_port() for _ in range(2)],
        folder=folder,
        cpus=CPUS,
        gpus=GPUS,
        memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        task_plugin="task/cgroup" if limits_memory else "task/none",
        resources="CR_Core_Memory" if limits_memory else "CR_Core",
        # two Slurms of one machine must not share the cgroups of their jobs
        first_job=random.SystemRandom().randrange(1000, 50_000_000),
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "cgroup.conf").write_text(CGROUP)
    (folder / "gres.conf").write_text(GRES.format(folder=folder, last=GPUS - 1))
    for number in range(GPUS):
        # the device behind /dev/null
        os.mknod(folder / f"gpu{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    running = Slurm(folder, limits_memory)
    try:
        running.start("slurmctld")
        time.sleep(2)
        running.start("slurmd")
        running.wait("no idle node", lambda: _is_idle(running), 60)
        yield running
    finally:
        if running.said("squeue", "--noheader"):
            running("scancel", "--user=root")
            running.wait("jobs do not end", lambda: not running.said("squeue", "--noheader"), 60)
        for name in ("slurmd", "slurmctld"):
            if name in running.daemons:
                running.stop(name)


def _is_idle(running: Slurm) -> bool:
    for name, daemon in running.daemons.items():
        assert daemon.poll() is None, (running.folder / f"{name}.out").read_text()
    return set(running.said("sinfo", "--noheader", "--format=%T").split()) == {"idle"}
