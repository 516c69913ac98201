"""Runs as jobs of a real Slurm: arrays, mishaps and what is submitted again after them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import completions_server
import psutil
import pytest
from run_files import write_yaml
from slurm_here import Slurm, slurm

from faithscope.experiments.cli import execute
from faithscope.experiments.engine.cluster.jobs import submissions
from faithscope.experiments.engine.cluster.state import ClusterState, TaskState, cluster_state
from faithscope.experiments.engine.memory_kills import n_kills

pytestmark = pytest.mark.slow

COMMAND = """\
#!/bin/bash
echo "worker has GPUs <$CUDA_VISIBLE_DEVICES>" >&2
exec "{python}" -m faithscope.experiments.cli "$@"
"""
PROFILE = """\
cpus=1
mem=1000M
time=02:00:00
report_cpus=1
report_mem=1500M
report_time=02:00:00
notice=60
requeue=1
setup() {{ export OMP_NUM_THREADS=1; {setup}; }}
serve() {{
  echo "server has GPUs <$CUDA_VISIBLE_DEVICES>"
  {python} {server} serve "$model" --port "$port"
}}
"""


@dataclass
class Cluster:
    """A cluster with a folder to submit from."""

    slurm: Slurm
    folder: Path

    def profile(self, setup: str = ":") -> str:
        """Path of the profile of this cluster."""
        server = completions_server.__file__
        text = PROFILE.format(setup=setup, python=sys.executable, server=server)
        (self.folder / "profile").write_text(text)
        return str(self.folder / "profile")

    def config(self, name: str, **changes: object) -> str:
        """Path of a config of a small run."""
        values = {
            "name": name,
            "out": str(self.folder / "runs"),
            "model": {"name": "planted:faithful", "dtype": "float32", "device": "cpu"},
            "tasks": ["planted"],
            "data": {"limit": 32},
            "generation": {"batch_size": 2},
            "probes": ["attention", "flow"],
            "report": {"bootstrap": 20},
        }
        return str(write_yaml(self.folder / f"{name}.yaml", values | changes))

    def run(self, name: str) -> Path:
        return self.folder / "runs" / name

    def logs(self, name: str, of: str) -> list[str]:
        """What the jobs of a run printed, or their servers, in logs whose names begin so."""
        files = sorted((self.run(name) / "slurm" / "logs").glob(f"{of}*"))
        return [path.read_text() for path in files]

    def tables(self, name: str) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in (self.run(name) / "tables").glob("*.csv")}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture(scope="module")
def two_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm(tmp_path_factory.mktemp("slurm"), nodes=2, records=True) as running:
        yield running


@pytest.fixture
def cluster(running: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return _cluster(running, tmp_path, monkeypatch)


@pytest.fixture
def two_nodes(two_running: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster of two nodes, of whose ended jobs sacct knows."""
    return _cluster(two_running, tmp_path, monkeypatch)


def _cluster(running: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    command = tmp_path / "bin" / "faithscope"
    command.parent.mkdir()
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return Cluster(running, tmp_path)


def shard(state: ClusterState, number: int) -> TaskState:
    (task,) = [task for task in state.shards if task.shard == number]
    return task


def processes(number: int, of: int) -> tuple[psutil.Process, psutil.Process]:
    """The batch shell of a shard, and its faithscope."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "--shard" in words and words[words.index("--shard") + 1] == f"{number}/{of}":
            parent = process.parent()
            assert parent is not None
            return parent, process
    raise LookupError(number)


def begun(run: Path, number: int, of: int) -> bool:
    """Whether a shard has stored something."""
    files = (run / "records").glob(f"*.{number}of{of}.jsonl")
    return any(path.stat().st_size for path in files)


class Freezer(threading.Thread):
    """Stops the processes of some shards, as a slow node would, once they have stored something."""

    def __init__(self, run: Path, numbers: set[int], of: int) -> None:
        super().__init__(daemon=True)
        self.run_dir, self.left, self.of = run, numbers, of
        self.start()

    def run(self) -> None:
        while self.left:
            for number in sorted(self.left):
                if begun(self.run_dir, number, self.of):
                    processes(number, self.of)[1].send_signal(signal.SIGSTOP)
                    self.left.remove(number)
            time.sleep(0.01)


HELD = 'while [[ -f "hold/$shard" ]]; do sleep 0.1; done'
"""Setup of a profile in which a shard waits as long as there is a file of its number."""
PATIENCE = 3000.0


def test_a_run_through_every_mishap_gives_the_tables_of_one_process(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm, last = cluster.slurm, 16
    command = ["faithscope", "run", cluster.config("alone")]
    alone = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    config, run = cluster.config("shards"), cluster.run("shards")
    freezer = Freezer(run, {1, 2, 3, last}, 16)
    submitted = ["submit", config, "--shards", "16", "--profile", cluster.profile()]
    assert execute(submitted) == 0
    job = cluster_state(run).shards[0].submission.id
    if slurm.limits_memory:
        # too little to load a library
        slurm("scontrol", "update", f"jobid={job}_9", "MinMemoryNode=120")

    def noted(number: int, text: str) -> bool:
        return text in (run / "slurm" / "tasks" / f"{job}_{number}").read_text()

    # one is killed with its shell, as if its node had lost power
    slurm.wait("shards are idle", lambda: not freezer.left & {1, 2, 3}, PATIENCE)
    for process in processes(1, 16):
        process.kill()
    slurm.stop("slurmctld")
    time.sleep(2)
    slurm.start("slurmctld")
    slurm.wait("slurmctld is away", lambda: bool(slurm.said("squeue", "--noheader")), PATIENCE)

    # two run into their time limit: one can still stop and queues again, one cannot
    for number in (2, 3):
        told = slurm("scontrol", "show", "job", f"{job}_{number}")
        ran = re.search(r"RunTime=(\d\d):(\d\d):", told)
        assert ran is not None
        limit = 60 * int(ran[1]) + int(ran[2]) + 3
        slurm("scontrol", "update", f"jobid={job}_{number}", f"TimeLimit={limit}")
    slurm.wait("no signal", lambda: noted(2, "got USR1"), PATIENCE)
    processes(2, 16)[1].send_signal(signal.SIGCONT)
    slurm.wait("not queued again", lambda: noted(2, "again"), PATIENCE)
    longer = ["scontrol", "update", f"jobid={job}_2", "TimeLimit=120"]
    slurm.wait("the limit stays", lambda: slurm.succeeds(*longer), PATIENCE)
    slurm.wait("shard 3 is alive", lambda: slurm.states(job)[f"{job}_3"] == "TIMEOUT", PATIENCE)
    assert noted(3, "got USR1")

    # one is preempted by a job of another partition, and queued again by Slurm
    def is_last() -> bool:
        active = {task.shard for task in cluster_state(run).active}
        return not freezer.left and active <= {0, last}

    slurm.wait("others are at work", is_last, PATIENCE)
    whole_node = ["--partition=urgent", "--cpus-per-task=8", "--mem=100M", "--output=/dev/null"]
    urgent = slurm("sbatch", "--parsable", *whole_node, "--wrap=sleep 1").strip()
    slurm.wait("nothing is preempted", lambda: noted(last, "got TERM"), PATIENCE)
    slurm.wait("urgent job", lambda: slurm.states(urgent)[urgent] == "COMPLETED", PATIENCE)
    slurm.wait("jobs are at work", lambda: not cluster_state(run).active, PATIENCE)
    assert noted(last, "restart=1")

    state = cluster_state(run)
    whys = {task.shard: task.why for task in state.shards if task.state == "failed"}
    assert whys.pop(1) == "ended without a word: it was killed, or its node failed"
    assert "at its time limit" in whys.pop(3)
    lacking = {1, 3}
    if slurm.limits_memory:
        lacking.add(9)
        assert "lack of memory" in whys.pop(9)
        assert n_kills(run, "9of16") == 2  # it had queued itself again once
    assert whys == {}
    capsys.readouterr()
    assert execute(["status", str(run)]) == 0
    assert f"do: faithscope resubmit {run}" in capsys.readouterr().out

    again = ["resubmit", str(run), "--mem", "1100M", "--time", "02:00:00", "--wait"]
    assert execute(again) == 0
    state = cluster_state(run)
    assert {task.state for task in state.tasks} == {"done"}
    assert {task.shard for task in state.shards if task.submission.id != job} == lacking
    assert alone.wait() == 0
    assert cluster.tables("shards") == cluster.tables("alone") != {}
    assert execute(["resubmit", str(run)]) == 0
    assert "nothing is missing" in capsys.readouterr().err


def test_each_model_has_jobs_of_its_own(cluster: Cluster) -> None:
    models = {"name": ["planted:faithful", "planted:hint"], "dtype": "float32", "device": "cpu"}
    small = {"model": models, "data": {"limit": 4}, "probes": ["attention"]}
    assert execute(["run", cluster.config("alone", **small)]) == 0
    config = cluster.config("models", **small)
    arguments = ["--shards", "1", "--gpus", "2", "--profile", cluster.profile(), "--wait"]
    assert execute(["submit", config, *arguments]) == 0
    state = cluster_state(cluster.run("models"))
    assert [task.job.model for task in state.shards] == models["name"]
    said = cluster.logs("models", "shards")
    assert [bool(re.search(r"worker has GPUs <\d,\d>\n", log)) for log in said] == [True, True]
    assert "worker has GPUs <>" in cluster.logs("models", "merge")[0]
    assert cluster.tables("models") == cluster.tables("alone") != {}


def test_a_run_that_reads_all_of_an_earlier_one_has_two_arrays(
    cluster: Cluster, plain: str
) -> None:
    subject = {"model.name": "planted:faithful", "tasks": ["planted"], "data.limit": 4}
    subject |= {"generation.batch_size": 2, "probes": ["attention"], "report.bootstrap": 20}
    asked = {"traces.path": "source:traces", "judges.model": plain, "judges.readings": "scored"}
    sources = [
        {"name": "traces", "config": "planted", "set": subject},
        {"name": "judged", "config": "judge", "set": asked | {"judges.forms": ["faithful_judge"]}},
    ]

    def config(name: str) -> str:
        values = {"name": name, "benchmark": "compare", "out": str(cluster.folder / "runs")}
        return str(write_yaml(cluster.folder / f"{name}.yaml", values | {"sources": sources}))

    arguments = ["--shards", "2", "--profile", cluster.profile(), "--wait"]
    assert execute(["submit", config("both"), *arguments]) == 0
    jobs = [submission.job for submission in submissions(cluster.run("both"))]
    assert [(job.kind, job.gpus) for job in jobs] == [("shards", 1)] * 2 + [("merge", 0)]
    assert execute(["run", config("alone")]) == 0
    for source in ("traces", "judged"):
        tables = cluster.tables(f"both/sources/{source}")
        assert tables == cluster.tables(f"alone/sources/{source}") != {}


def test_a_job_starts_the_server_of_its_worker_and_ends_it(cluster: Cluster) -> None:
    pytest.importorskip("openai", reason="needs the extra: pip install 'faithscope[judge]'")
    small = {"data": {"limit": 4}, "probes": ["attention"]}
    served = {"backend": "vllm-server", "endpoints": ["http://127.0.0.1:8000/v1"]}
    config = cluster.config("served", **small, generation={"batch_size": 2} | served)
    arguments = ["--shards", "2", "--gpus", "2", "--profile", cluster.profile(), "--wait"]
    assert execute(["submit", config, *arguments]) == 0
    assert {"attention.csv"} <= cluster.tables("served").keys()
    servers = cluster.logs("served", "server")
    assert [bool(re.match(r"server has GPUs <\d,\d>\n", log)) for log in servers] == [True, True]
    left = [p for p in psutil.process_iter(["cmdline"]) if "serve" in (p.info["cmdline"] or [])]
    assert not [p for p in left if completions_server.__file__ in p.info["cmdline"]]


def test_a_server_that_does_not_start_ends_its_job_with_the_reason(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    served = {"backend": "vllm-server", "endpoints": ["http://127.0.0.1:8000/v1"]}
    config = cluster.config("broken", generation=served)
    profile = Path(cluster.profile())
    profile.write_text(profile.read_text() + "serve() { echo no such model; return 1; }\n")
    arguments = ["--shards", "1", "--gpus", "0", "--profile", str(profile), "--wait"]
    assert execute(["submit", config, *arguments]) == 130
    assert "the server ended before it was ready" in capsys.readouterr().err


def test_cancelled_jobs_leave_the_queue_and_the_run_goes_on_later(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    (cluster.folder / "hold").mkdir()
    (cluster.folder / "hold" / "1").touch()
    config = cluster.config("cancelled", data={"limit": 2}, probes=["attention"])
    arguments = ["submit", config, "--shards", "1", "--profile", cluster.profile(HELD)]
    assert execute(arguments) == 0
    assert execute(arguments) == 2
    assert "wait or are at work" in capsys.readouterr().err
    run = cluster.run("cancelled")
    assert execute(["cancel", str(run)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    cluster.slurm.wait("not cancelled", lambda: not cluster_state(run).active, PATIENCE)
    assert "was cancelled" in "\n".join(cluster_state(run).lines())
    (cluster.folder / "hold" / "1").unlink()
    assert execute(["resubmit", str(run), "--wait"]) == 0


def test_a_shard_out_of_memory_starts_again_with_a_smaller_token_budget(cluster: Cluster) -> None:
    config, run = cluster.config("kills", data={"limit": 2}), cluster.run("kills")
    freezer = Freezer(run, {1}, 2)
    assert execute(["submit", config, "--shards", "2", "--profile", cluster.profile()]) == 0
    cluster.slurm.wait("shard 1 is idle", lambda: not freezer.left, PATIENCE)
    # what a kernel without memory does
    processes(1, 2)[1].kill()
    cluster.slurm.wait("jobs at work", lambda: not cluster_state(run).active, PATIENCE)
    assert n_kills(run, "1of2") == 1
    assert {task.state for task in cluster_state(run).tasks} == {"done"}
    log = next((run / "slurm" / "logs").glob("shards-*_1.log")).read_text()
    assert "was killed once for lack of memory; it starts with a token budget of 16384" in log


def test_the_queue_is_known_from_the_records_of_ended_jobs_too(cluster: Cluster) -> None:
    from faithscope.experiments.engine.cluster import commands

    job = cluster.slurm(
        "sbatch", "--parsable", "--array=3,5", "--output=/dev/null", "--wrap=exit 7"
    ).strip()
    names = {f"{job}_3", f"{job}_5"}
    cluster.slurm.wait("jobs at work", lambda: names <= commands.completed().keys(), 60)
    assert {commands.completed()[name] for name in names} == {"FAILED"}
    tasks, notes = commands.tasks_of([job])
    assert tasks.keys() == names
    assert notes == []
    assert commands.tasks_of(["1"]) == ({}, [])
    subprocess.run(["scancel", job], check=False)


def test_two_submits_at_once_with_more_shards_than_an_array_has_give_the_tables_of_one_process(
    two_nodes: Cluster,
) -> None:
    small = {"data": {"limit": 24}, "generation": {"batch_size": 1}, "probes": ["attention"]}
    assert execute(["run", two_nodes.config("alone", **small)]) == 0
    odd = two_nodes.folder / "a 'b\" #c %j $(touch made);"
    config = two_nodes.config("odd", **small, out=str(odd))
    command = ["faithscope", "submit", config, "--shards", "20", "--profile", two_nodes.profile()]
    both = [subprocess.Popen([*command, "--wait"], stderr=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate()[1].decode() for process in both]
    assert sorted(process.returncode for process in both) == [0, 2]
    assert sum("wait or are at work" in text for text in said) == 1
    arrays = [s for s in submissions(odd / "odd") if s.job.is_array]
    assert [(s.offset, len(s.tasks)) for s in arrays] == [(0, 17), (17, 3)]
    state = cluster_state(odd / "odd")
    assert [task.shard for task in state.shards] == [*range(1, 21)]
    assert {task.state for task in state.tasks} == {"done"}
    assert {task.note.node for task in state.shards if task.note} == {"node1", "node2"}
    assert not list(two_nodes.folder.rglob("made"))
    tables = {p.name: p.read_bytes() for p in (odd / "odd" / "tables").glob("*.csv")}
    assert tables == two_nodes.tables("alone") != {}


def test_jobs_go_in_together_or_not_at_all(
    two_nodes: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    config = two_nodes.config("half", data={"limit": 2}, probes=["attention"])
    profile = Path(two_nodes.profile())
    profile.write_text(profile.read_text().replace("report_mem=1500M", "report_mem=900T"))
    assert execute(["submit", config, "--shards", "2", "--profile", str(profile)]) == 2
    assert "which Slurm had taken, were cancelled" in capsys.readouterr().err
    assert submissions(two_nodes.run("half")) == []
    queue = lambda: two_nodes.slurm.said("squeue", "--noheader", "--name=half")  # noqa: E731
    two_nodes.slurm.wait("jobs are in the queue", lambda: not queue(), PATIENCE)


def test_a_node_that_fails_is_named_and_its_shards_are_done_elsewhere(two_nodes: Cluster) -> None:
    slurm, small = two_nodes.slurm, {"data": {"limit": 16}, "generation": {"batch_size": 1}}
    assert execute(["run", two_nodes.config("alone", **small)]) == 0
    config, run = two_nodes.config("failing", **small), two_nodes.run("failing")
    profile = Path(two_nodes.profile())
    profile.write_text(profile.read_text().replace("requeue=1", "requeue=0") + "cpus=4\n")
    freezer = Freezer(run, {1, 2, 3, 4}, 4)
    assert execute(["submit", config, "--shards", "4", "--profile", str(profile)]) == 0
    slurm.wait("shards are idle", lambda: not freezer.left, PATIENCE)
    nodes = {task.shard: task.note.node for task in cluster_state(run).shards if task.note}
    lost = {shard for shard, node in nodes.items() if node == "node2"}
    assert 0 < len(lost) < 4
    slurm.stop("slurmd:node2")
    for number in nodes:
        shell, worker = processes(number, 4)
        if number not in lost:
            worker.send_signal(signal.SIGCONT)
            continue
        # the daemon of the job, which would tell of its end, goes first
        for process in (*shell.parents()[:1], shell, worker):
            process.kill()
    slurm.wait("jobs are at work", lambda: not cluster_state(run).active, PATIENCE)
    whys = {task.shard: task.why for task in cluster_state(run).shards if task.state == "failed"}
    assert whys == dict.fromkeys(lost, "its node failed")
    assert execute(["resubmit", str(run), "--wait"]) == 0
    assert {t.note.node for t in cluster_state(run).shards if t.note} == {"node1"}
    assert two_nodes.tables("failing") == two_nodes.tables("alone") != {}
    slurm.start("slurmd:node2")
    slurm.wait("node2 is away", lambda: "node2" in slurm("sinfo", "-h", "-t", "idle", "-N"), 120)


def test_a_job_that_never_started_has_its_reason_from_the_records_of_sacct(
    two_nodes: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm, run = two_nodes.slurm, two_nodes.run("held")
    config = two_nodes.config("held", data={"limit": 2}, probes=["attention"])
    profile = Path(two_nodes.profile())
    profile.write_text(profile.read_text() + "extra=(--hold '--comment=two words')\n")
    assert execute(["submit", config, "--shards", "1", "--profile", str(profile)]) == 0
    (run / "slurm" / "logs").rename(run / "slurm" / "other")
    ids = [submission.id for submission in submissions(run)]
    slurm("scontrol", "release", *ids)
    slurm.wait("jobs wait", lambda: not cluster_state(run).active, PATIENCE)
    slurm.wait("squeue knows them", lambda: not slurm.states(), PATIENCE, pause=5)
    (task,) = cluster_state(run).shards
    log = run / "slurm" / "logs" / f"shards-{task.name}.log"
    assert task.why == (
        f"never started (FAILED, 0:53, node1); it has no log, so its node cannot write {log}, "
        "which all nodes must share"
    )
    (run / "slurm" / "other").rename(run / "slurm" / "logs")
    (run / "slurm" / "profile").write_text("echo no module of this name; exit 1\n")
    assert execute(["resubmit", str(run)]) == 0
    slurm("scontrol", "release", submissions(run)[-2].id)
    slurm.wait("a job waits", lambda: not cluster_state(run).shards[0].is_active, PATIENCE)
    assert cluster_state(run).shards[0].why.endswith("its log ends with: no module of this name")
    capsys.readouterr()
    assert execute(["cancel", str(run)]) == 0
    assert execute(["status", str(run)]) == 0
    assert "its log ends with: no module of this name" in capsys.readouterr().out
