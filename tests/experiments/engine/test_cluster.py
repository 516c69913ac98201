"""Jobs of a cluster as files and commands; `test_slurm.py` hands them to a real Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import loopback
import pytest
import rf_runs
from c2_runs import config as c2_config
from run_files import write_rows, write_yaml

from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine import memory_kills, planfile
from faithscope.experiments.engine.cluster import commands
from faithscope.experiments.engine.cluster.batch import Job, Server, text_of
from faithscope.experiments.engine.cluster.jobs import Submission, jobs_of
from faithscope.experiments.engine.cluster.profile import EXAMPLE, Profile, read_profile
from faithscope.experiments.engine.cluster.state import WorkLeft, note_of
from faithscope.experiments.engine.planfile import Shard, parse_shard
from faithscope.experiments.engine.processes import VISIBLE, gpu_groups, shares
from faithscope.experiments.engine.run import plan
from faithscope.experiments.engine.status import status
from faithscope.interp.errors import UserError

PLANTED = ("planted:faithful", "planted:hint")
COMMAND = '#!/bin/bash\nexec "{python}" -m faithscope.experiments.cli "$@"\n'


def config(folder: Path, models: Sequence[str] = PLANTED[:1], **changes: object) -> str:
    values = {
        "name": "parts",
        "out": str(folder / "runs"),
        "model": {"name": list(models)},
        "tasks": ["planted"],
        "data": {"limit": 4},
        "generation": {"batch_size": 2},
        "probes": ["attention"],
        "report": {"bootstrap": 20},
    }
    return str(write_yaml(folder / "parts.yaml", values | changes))


def profile(folder: Path, text: str) -> Path:
    path = folder / "profile"
    path.write_text(text)
    return path


def rendered(folder: Path, path: str, *options: str) -> dict[str, str]:
    """The batch files of a config, none of which bash refuses."""
    arguments = ["submit", path, "--shards", "4", *options, "--dry-run"]
    assert execute(arguments) == 0
    files = {p.name: p for p in (folder / "runs" / "parts" / "slurm").glob("*.sbatch")}
    for file in files.values():
        subprocess.run(["bash", "-n", str(file)], check=True)
    return {name: file.read_text() for name, file in files.items()}


def test_a_dry_run_writes_files_and_prints_the_commands_that_hand_them_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "account=lab\npartition=gpu\ncpu_partition=cpu\ntime=1-00:00:00\nextra=(--nice)\n"
    chosen = ["--profile", str(profile(tmp_path, settings)), "--gpus", "2"]
    files = rendered(tmp_path, config(tmp_path), *chosen)
    assert files.keys() == {"shards.sbatch", "merge.sbatch"}
    options = [line for line in files["shards.sbatch"].splitlines() if line.startswith("#SBATCH")]
    assert [line.removeprefix("#SBATCH ") for line in options[:-1]] == [
        "--job-name=parts",
        "--array=1-4",
        "--account=lab",
        "--partition=gpu",
        "--gres=gpu:2",
        "--cpus-per-task=8",
        "--mem=64G",
        "--time=1-00:00:00",
        "--signal=B:USR1@120",
        "--requeue",
        "--open-mode=append",
        f"--output={tmp_path}/runs/parts/slurm/logs/shards-%A_%a.log",
    ]
    assert "#SBATCH --partition=cpu" in files["merge.sbatch"]
    assert "--gres" not in files["merge.sbatch"]
    first, second, folder = capsys.readouterr().out.splitlines()
    below = f"{tmp_path}/runs/parts/slurm"
    assert first == f"JOB1=$(sbatch --parsable {below}/shards.sbatch)"
    assert second == f"JOB2=$(sbatch --parsable --dependency=afterany:$JOB1 {below}/merge.sbatch)"
    assert folder == f"{tmp_path}/runs/parts"
    assert not (Path(below) / "jobs.jsonl").exists()
    assert execute(["status", folder]) == 0
    assert "0 of 4 items done" in capsys.readouterr().out


def test_each_of_several_models_has_a_file_of_its_own(tmp_path: Path) -> None:
    files = rendered(tmp_path, config(tmp_path, PLANTED))
    assert files.keys() == {
        "shards-planted-faithful.sbatch",
        "shards-planted-hint.sbatch",
        "merge.sbatch",
    }
    assert "--model planted:hint &" in files["shards-planted-hint.sbatch"]


def test_models_ask_for_the_gpus_that_their_files_state(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "items.jsonl", rf_runs.Case("one").row)
    values = ["model.name=[Qwen/Qwen3-8B, Qwen/Qwen3-32B, openai/gpt-oss-120b]"]
    more = [f"data.path={path}", f"out={tmp_path}", "report.exclude=[]", "tests.run=never"]
    jobs = jobs_of(plan(load_config("paper/rfeval", [*values, *more])), 8)
    told = [(job.kind, job.model, job.gpus, job.only) for job in jobs]
    assert told == [
        ("shards", "Qwen/Qwen3-8B", 1, "weights"),
        ("judges", "Qwen/Qwen3-8B", 0, "apis"),
        ("shards", "Qwen/Qwen3-32B", 2, "weights"),
        ("judges", "Qwen/Qwen3-32B", 0, "apis"),
        ("shards", "openai/gpt-oss-120b", 2, "weights"),
        ("judges", "openai/gpt-oss-120b", 0, "apis"),
        ("merge", None, 0, None),
    ]


def test_items_that_a_model_writes_are_prepared_before_the_shards(tmp_path: Path) -> None:
    written = {"levels": [0.5], "acausal": "llm", "writer": "api:openai/gpt-4.1"}
    written["temperature"] = 0.0
    path = c2_config(tmp_path, {"model": "api:openai/gpt-4.1"}, perturb=written)
    prompt = {"task": "acausal", "source": "a test", "ours": True}
    prompt["template"] = "Rewrite {target_step} after {context}"
    write_yaml(tmp_path / "prompts" / "c2_acausal.yaml", prompt)
    jobs = jobs_of(plan(load_config(path)), 2)
    assert [(job.kind, job.gpus) for job in jobs] == [("build", 0), ("shards", 0), ("merge", 0)]


def test_a_server_on_the_node_is_started_by_the_job(tmp_path: Path) -> None:
    served = {"backend": "vllm-server", "endpoints": ["http://127.0.0.1:8000/v1"]}
    files = rendered(tmp_path, config(tmp_path, generation=served), "--gpus", "1")
    text = files["shards.sbatch"]
    assert "model=planted:faithful gpus=1 port=$((20000 + SLURM_JOB_ID % 20000))" in text
    assert '--set "generation.endpoints=[http://127.0.0.1:$port/v1]" &' in text
    elsewhere = served | {"endpoints": ["http://node7:8000/v1"]}
    files = rendered(tmp_path, config(tmp_path, generation=elsewhere))
    assert "port=" not in files["shards.sbatch"]


def test_a_comparison_asks_for_what_its_runs_need(
    tmp_path: Path, plain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = {"model.name": PLANTED[0], "tasks": ["planted"], "data.limit": 1}
    asked = {"traces.path": "source:traces", "judges.model": plain}
    sources = [
        {"name": "traces", "config": "planted", "set": traces},
        {"name": "judged", "config": "judge", "set": asked},
    ]
    values = {"name": "parts", "benchmark": "compare", "out": str(tmp_path / "runs")}
    path = write_yaml(tmp_path / "both.yaml", values | {"sources": sources})
    jobs = jobs_of(plan(load_config(path)), 2)
    assert [(job.kind, job.gpus) for job in jobs] == [("shards", 1), ("merge", 0)]
    traces["generation.backend"] = "vllm-server"
    traces["generation.endpoints"] = ["http://127.0.0.1:8000/v1"]
    path = write_yaml(tmp_path / "both.yaml", values | {"sources": sources})
    assert execute(["submit", str(path), "--shards", "2", "--dry-run"]) == 2
    assert "asks a server on the job's own node; submit that run first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("partitoin=gpu\n", "unknown setting 'partitoin'; did you mean 'partition'?"),
        ("time=4h\n", "time='4h': expected a time limit such as 04:00:00"),
        ("mem=64GB\n", "mem='64GB': expected an amount of memory such as 64G"),
        ("cpus=many\n", "cpus='many': expected a whole number"),
        ("if true\n", "bash cannot source it"),
        ("exit 3\n", "bash cannot source it: exit code 3"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused_with_the_reason(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = profile(tmp_path, text)
    arguments = ["submit", config(tmp_path), "--shards", "2", "--profile", str(path)]
    assert execute([*arguments, "--dry-run"]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_example_profile_states_the_settings_that_hold_without_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = EXAMPLE.read_text()
    assert read_profile(EXAMPLE) == Profile(text=text)
    assert execute(["submit", "--print-profile"]) == 0
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["sumbit"], "unknown command 'sumbit'; did you mean 'submit'?"),
        (["resubmti", "x"], "unknown command 'resubmti'; did you mean 'resubmit'?"),
        (["submit", "slrc", "--shard", "2"], "unknown option '--shard'; did you mean '--shards'?"),
        (["run", "quickstart", "--only", "weight"], "unknown 'weight'; did you mean 'weights'?"),
        (["run", "quickstart", "--workers", "all"], "expected a number of processes, or auto"),
    ],
)
def test_a_typo_is_answered_with_the_likely_word(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(arguments) == 2
    assert why in capsys.readouterr().err


def test_commands_say_what_a_folder_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered(tmp_path, config(tmp_path))
    run = str(tmp_path / "runs" / "parts")
    for command in ("resubmit", "cancel"):
        assert execute([command, run]) == 2
        assert "has no jobs; `faithscope submit` makes them" in capsys.readouterr().err
    assert execute(["run", config(tmp_path), "--model", "planted:hin"]) == 2
    assert "no items of 'planted:hin' are planned" in capsys.readouterr().err
    assert execute(["resubmit", run, "--time", "soon"]) == 2
    assert "expected a time limit" in capsys.readouterr().err
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="sbatch is not on this machine"):
        commands.submit(["sbatch", "--parsable", "x"])


def test_what_slurm_prints_of_arrays_is_read() -> None:
    assert commands.singles("12_[3,5-7%2]") == ["12_3", "12_5", "12_6", "12_7"]
    assert commands.singles("12_3") == ["12_3"]
    assert commands.singles("12") == ["12"]
    assert commands.indices("10-30:10,2") == [10, 20, 30, 2]
    for numbers in ([1], [1, 2], [3, 5, 6, 7, 9]):
        assert commands.indices(commands.as_indices(numbers)) == numbers
    assert Submission("12", Job("shards", 9), (3, 5)).names() == {"12_3": 3, "12_5": 5}
    assert Submission("12", Job("merge")).names() == {"12": 0}


def test_the_last_start_of_a_task_counts(tmp_path: Path) -> None:
    folder = tmp_path / "slurm" / "tasks"
    folder.mkdir(parents=True)
    lines = [
        "start job=17 restart=0 node=a1",
        "got USR1",
        "end code=130 signal=USR1",
        "again",
        "start job=17 restart=1 node=a2",
    ]
    path = folder / "12_3"
    assert note_of(tmp_path, "12_3") is None
    path.write_text("".join(f"2026-01-01T00:00:00+0000 {line}\n" for line in lines[:4]))
    note = note_of(tmp_path, "12_3")
    assert note is not None
    assert (note.code, note.signal, note.restart) == (130, "USR1", "0")
    path.write_text("".join(f"2026-01-01T00:00:00+0000 {line}\n" for line in lines))
    assert note_of(tmp_path, "12_3") == ("17", "1", "a2", None, "", "")
    path.write_text(path.read_text() + "2026-01-01T00:00:00+0000 end code=2 setup failed\n")
    note = note_of(tmp_path, "12_3")
    assert note is not None
    assert (note.code, note.text) == (2, "setup failed")


def carried_out(folder: Path, file: Path, faithscope: str, index: str = "1") -> int:
    """The exit code of a batch file in bash, with what Slurm sets for a task of an array of two.

    Args:
        faithscope: text of the command of this name.
    """
    command = folder / "faithscope"
    command.write_text(faithscope)
    command.chmod(0o755)
    slurm = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": index}
    slurm |= {"FAITHSCOPE_SHARDS": "2", "PATH": f"{folder}:{os.environ['PATH']}"}
    slurm |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(["bash", str(file)], env=os.environ | slurm).returncode


@pytest.mark.slow
@pytest.mark.parametrize(("index", "shard"), [("0", "2of2"), ("1", "1of2")])
def test_an_array_may_count_its_shards_from_0_or_1(
    index: str, shard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rendered(tmp_path, config(tmp_path, data={"limit": 2}, generation={"batch_size": 1}))
    run = tmp_path / "runs" / "parts"
    file = run / "slurm" / "shards.sbatch"
    assert carried_out(tmp_path, file, COMMAND.format(python=sys.executable), index) == 0
    assert {worker.name for worker in status(run).workers} == {shard}
    left = [WorkLeft(run).items(Job("shards", 2), n) for n in (1, 2)]
    assert left == ([1, 0] if index == "0" else [0, 1])
    note = note_of(run, f"5_{index}")
    assert note is not None
    assert note.code == 0


def test_an_index_beyond_the_shards_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rendered(tmp_path, config(tmp_path))
    run = tmp_path / "runs" / "parts"
    assert carried_out(tmp_path, run / "slurm" / "shards.sbatch", "#!/bin/bash\n", "3") == 2
    note = note_of(run, "5_3")
    assert note is not None
    assert (note.code, note.text) == (2, "no shard 3 of 2")


def test_odd_values_of_a_batch_file_are_single_words_for_bash(tmp_path: Path) -> None:
    odd = Path("/with 'a\" #c %j $(touch made);`x`~{a,b}/ é")
    profile = Profile(partition="two words", extra=("--comment=a #b", "--nice"))
    job = Job("shards", 5, model="org/$m odel", workers="2")
    text = text_of(job, odd, profile, odd, most=2)
    told = [line for line in text.splitlines() if line.startswith("#SBATCH")]
    assert told[1] == "#SBATCH --array=1-2"
    assert told[2] == '#SBATCH --partition="two words"'
    assert told[-3:] == [
        '#SBATCH --output="/with \'a\\" #c %%j $(touch made);`x`~{a,b}/ é/slurm/logs/'
        'shards-org-m-odel-%A_%a.log"',
        '#SBATCH "--comment=a #b"',
        "#SBATCH --nice",
    ]
    assert [" ".join(line.split()) for line in text.splitlines() if "beyond" in line] == [
        "# sbatch --array=1-2 … 2 shards from 3 on, beyond MaxArraySize",
        "# sbatch --array=1-1 … 4 shards from 5 on, beyond MaxArraySize",
    ]
    (assigned,) = [line for line in text.splitlines() if line.startswith("run=")]
    said = subprocess.run(
        ["bash", "-c", f'{assigned}; printf %s "$run"'], capture_output=True, text=True, check=True
    )
    assert said.stdout == str(odd)


@pytest.mark.parametrize("character", ["\n", "\r", "\t", "\x1b", "\x85", "\u2028", "\udcff"])
def test_control_characters_in_a_batch_file_are_refused(character: str) -> None:
    name = f"a{character}touch made #"
    plain, run = Path("/work"), Path("/runs/one")
    for job, folder, profile, working_dir in (
        (Job("merge"), run / name, Profile(), plain),
        (Job("merge"), run, Profile(), plain / name),
        (Job("merge"), run, Profile(account=name), plain),
        (Job("shards", 2, model=name), run, Profile(), plain),
    ):
        with pytest.raises(UserError, match="which no batch file can hold"):
            text_of(job, folder, profile, working_dir)
    with pytest.raises(UserError, match="has a backslash, with which Slurm does not tell"):
        text_of(Job("merge"), run / "a\\b", Profile(), plain)


def test_a_server_has_the_first_gpus_of_its_job_and_the_worker_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VISIBLE, "4,5,7")
    run, port = tmp_path / "runs" / "parts", loopback.free_port()
    (run / "slurm" / "logs").mkdir(parents=True)
    (run / "slurm" / "tasks").mkdir()
    serve = f"cd {tmp_path}; echo $CUDA_VISIBLE_DEVICES > of_server; touch health"
    serve += f"; exec {sys.executable} -m http.server --bind 127.0.0.1 $port"
    (run / "slurm" / "profile").write_text(f"serve() {{ {serve}; }}\n")
    job = Job("shards", 2, gpus=3, server=Server("org/model", "", port, gpus=2))
    file = run / "slurm" / job.file
    file.write_text(text_of(job, run, Profile(), tmp_path))
    worker = "#!/bin/bash\necho $CUDA_VISIBLE_DEVICES > of_worker\n"
    assert carried_out(tmp_path, file, worker) == 0
    assert (tmp_path / "of_server").read_text() == "4,5\n"
    assert (tmp_path / "of_worker").read_text() == "7\n"


def test_a_folder_made_with_another_config_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, data={"limit": 2})
    assert execute(["run", path, "--shard", "1/2"]) == 0
    other = ["submit", path, "--shards", "2", "--set", "data.limit=3", "--dry-run"]
    assert execute(other) == 2
    assert "was made with another config (data.limit: 2 there, 3 now)" in capsys.readouterr().err
    assert execute(["submit", path, "--shards", "2", "--dry-run"]) == 0


@pytest.mark.slow
def test_the_items_of_one_model_are_done_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, PLANTED, data={"limit": 2})
    assert execute(["run", path, "--model", PLANTED[1]]) == 0
    run = tmp_path / "runs" / "parts"
    assert [(g.model, g.done) for g in status(run).groups] == [(PLANTED[0], 0), (PLANTED[1], 2)]
    assert not (run / "tables").exists()
    assert execute(["merge", str(run)]) == 2
    assert PLANTED[0] in capsys.readouterr().err
    assert execute(["run", path, "--model", PLANTED[0], "--shard", "1/2"]) == 0
    assert execute(["run", path, "--model", PLANTED[0], "--shard", "2/2"]) == 0
    assert execute(["merge", str(run)]) == 0
    workers = {worker.name for worker in status(run).workers}
    assert workers == {"main@planted-hint", "1of2@planted-faithful"}


def test_a_worker_that_was_killed_for_memory_starts_with_a_smaller_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, run = config(tmp_path, data={"limit": 2}), tmp_path / "runs" / "parts"
    assert memory_kills.add_kill(run, "1of2", "17.0")
    assert not memory_kills.add_kill(run, "1of2", "17.0")
    assert memory_kills.add_kill(run, "1of2", "17.1")
    assert execute(["run", path, "--shard", "1/2"]) == 0
    said = capsys.readouterr().err
    assert "was killed 2 times for lack of memory; it starts with a token budget of 8192" in said
    notes = json.loads((run / "environment.json").read_text())["sessions"][0]["notes"]
    assert any("token budget of 8192" in note for note in notes)


def test_processes_share_a_shard_and_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "0,1,2,3,4")
    assert gpu_groups(None, 2) == [["0", "1"], ["2", "3"]]
    assert gpu_groups(3, 1) == [["0"], ["1"], ["2"]]
    assert gpu_groups(2, 0) == [[], []]
    with pytest.raises(UserError, match="give a number of processes"):
        gpu_groups(None, 0)
    monkeypatch.setenv(VISIBLE, "")
    with pytest.raises(UserError, match="more GPUs than the 0 that are here"):
        gpu_groups(None, 1)
    parts = shares(Shard(2, 8, "m"), 2)
    assert [part.worker for part in parts] == ["3of16@m", "11of16@m"]
    items = {"m": [planfile.StoredItem("m", "t", str(i), {}) for i in range(100)]}
    whole = [batch for part in parts for batch in part.deal(items, 3)["m"]]
    assert sorted(whole, key=lambda b: int(b[0].item)) == Shard(2, 8, "m").deal(items, 3)["m"]
    assert parse_shard("3/8", "m") == Shard(2, 8, "m")


def test_models_of_one_batch_each_are_shared_out_over_all_shards() -> None:
    items = tuple(planfile.StoredItem(m, "t", str(i), {}) for m in "abcde" for i in range(7))
    planned = planfile.StoredPlan(8, items)
    parts = [planned.part(Shard(k, 2)) for k in range(2)]
    assert [sorted({item.model for item in part}) for part in parts] == [[*"ace"], [*"bd"]]
    assert len(parts[0]) + len(parts[1]) == len(items)
    assert planned.part(Shard(1, 2, "b")) == [] != planned.part(Shard(0, 2, "b"))
    assert planned.idle(Shard(of=5)) == ""
    told = planned.idle(Shard(of=8))
    assert told.startswith("of 8 shards those from 6 on do nothing: items are shared out in whole ")
    assert "there are 5 batches of the run; take 5 shards, or a smaller batch_size" in told
    assert "there is one batch of b; take 1 shard," in planned.idle(Shard(of=2, model="b"))


def test_a_shard_without_items_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, data={"limit": 2})
    assert execute(["run", path, "--shard", "7/8"]) == 0
    assert "of 8 shards those from" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_in_two_processes_has_the_tables_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["run", config(tmp_path)]) == 0
    alone = {p.name: p.read_bytes() for p in (tmp_path / "runs/parts/tables").glob("*.csv")}
    two = tmp_path / "two"
    two.mkdir()
    assert execute(["run", config(two), "--workers", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{two}/runs/parts"
    run = two / "runs" / "parts"
    assert {worker.name for worker in status(run).workers} == {"1of2", "2of2"}
    assert {p.name: p.read_bytes() for p in (run / "tables").glob("*.csv")} == alone != {}


@pytest.mark.slow
def test_what_a_run_needs_is_brought_and_tried_without_the_hub(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["prefetch", config(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "a dry run without the hub plans the same run" in said.err
    assert said.out.startswith("export HF_HOME=")
    assert said.out.rstrip().endswith("HF_HUB_OFFLINE=1")
