"""`faithscope new`: what it writes is installed, found, run and tested as its user would."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bad_input import refused
from new_packages import ROOT, faithscope, installed, python, written

from faithscope.experiments.cli.new import KINDS


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with new packages, which are installed."""
    folder = tmp_path_factory.mktemp("new")
    return installed(folder, *written(folder))


@pytest.mark.takes("a suite of tests of its own is run in another process")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow if k in ("probe", "study") else ()) for k in KINDS],
)
def test_a_new_package_passes_the_tests_that_come_with_it(here: Path, kind: str) -> None:
    done = python(here, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"my_{kind}")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.takes("pytest is started in another process")
def test_every_test_of_new_packages_can_be_collected(here: Path) -> None:
    folders = [f"my_{kind}" for kind in KINDS]
    done = python(here, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *folders)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_is_written_as_this_repository_is(here: Path, kind: str) -> None:
    ruff = ["-m", "ruff", "--config", str(ROOT / "pyproject.toml")]
    for command in (["check"], ["format", "--check"]):
        files = map(str, sorted((here / f"my_{kind}").glob("*.py")))
        done = python(here, *ruff, *command, *files)
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_lists_and_runs_know_what_is_installed(here: Path) -> None:
    assert "\nmy_task " in faithscope(here, "list", "tasks").stdout
    models = ["--set", "model.name=bundled:smollm2-135m"]
    probed = [*models, "--set", "tasks=[my_task]", "--set", "probes=[my_probe]"]
    planned = faithscope(here, "run", "quickstart", *probed, "--dry-run")
    assert "probes      my_probe\n" in planned.stdout, planned.stderr


@pytest.mark.slow
def test_a_run_says_which_packages_took_part(here: Path) -> None:
    code = "from faithscope.experiments.engine.environment import environment as e; "
    done = python(here, "-c", code + "print(*e()['packages'].items(), sep='\\n')")
    names = {f"my-{kind}" for kind in KINDS}
    assert {f"('{name}', '0.1.0')" for name in names} <= set(done.stdout.splitlines()), done.stderr


def broken(here: Path, into: Path, kind: str, old: str, new: str) -> Path:
    """Another folder, in which one of the packages is installed with another text in its files."""
    for installed_there in (here / "site").glob(f"my_{kind}*"):
        at = into / "site" / installed_there.name
        if installed_there.is_dir():
            shutil.copytree(installed_there, at, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            at.parent.mkdir(exist_ok=True)
            shutil.copyfile(installed_there, at)
    for path in (into / "site").rglob("*.py"):
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    return into


FUTURE = "from __future__ import annotations"
USES = {
    "probe": "quickstart --set probes=[my_probe]",
    "task": "quickstart --set tasks=[my_task]",
    "study": "my_study.yaml",
    "reader": "quickstart --set traces.path=my_study.yaml --set traces.format=my_reader",
    "form": "judge --set judges.forms=[my_form] --set traces.path=my_study.yaml",
}
"""Kind of package -> config and settings of a run that uses what it adds."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.in_time(2)
def test_a_package_that_cannot_be_loaded_stops_what_uses_it(
    here: Path, tmp_path: Path, kind: str
) -> None:
    broken(here, tmp_path, kind, FUTURE, "import no_such_module")
    (tmp_path / "my_study.yaml").write_text("benchmark: my_study\nname: x\n")
    done = faithscope(tmp_path, "run", *USES[kind].split(), "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"package my-{kind}: its entry 'my_{kind}' of faithscope." in done.stderr
    assert "(ModuleNotFoundError: No module named 'no_such_module'); mend it" in done.stderr
    assert f"pip uninstall my-{kind}" in done.stderr


@pytest.mark.slow
@pytest.mark.takes("each package is imported in another process")
@pytest.mark.parametrize(
    "breaks",
    [
        "raise SystemExit(3)",
        "import pytest; pytest.skip('not here', allow_module_level=True)",
        "raise KeyboardInterrupt",
    ],
)
@pytest.mark.in_time(1)
def test_broken_packages_stop_nothing_else_and_the_doctor_names_them(
    here: Path, tmp_path: Path, breaks: str
) -> None:
    for kind in KINDS:
        broken(here, tmp_path, kind, FUTURE, breaks)
    assert faithscope(tmp_path, "list", "tasks").returncode == 0
    assert faithscope(tmp_path, "run", "quickstart", "--dry-run").returncode == 0
    done = faithscope(tmp_path, "doctor")
    assert done.returncode == 3
    for kind in KINDS:
        assert f"package my-{kind}: its entry 'my_{kind}' of faithscope." in done.stdout


def test_an_interruption_by_the_user_while_a_package_is_imported_ends_the_command(
    here: Path, tmp_path: Path
) -> None:
    # a process that a shell put in the background ignores SIGINT from birth
    breaks = (
        "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)"
    )
    broken(here, tmp_path, "task", FUTURE, breaks)
    done = faithscope(tmp_path, "list", "tasks")
    assert (done.returncode, done.stdout) == (130, "")


def test_a_package_cannot_take_a_name_that_is_taken(here: Path, tmp_path: Path) -> None:
    broken(here, tmp_path, "task", "", "")
    (entries,) = (tmp_path / "site").glob("*/entry_points.txt")
    entries.write_text(entries.read_text("utf-8").replace("my_task = ", "gsm8k = "), "utf-8")
    done = faithscope(tmp_path, "run", "quickstart", "--dry-run", "--set", "tasks=[gsm8k]")
    assert done.returncode == 2
    assert "its entry 'gsm8k' of faithscope.tasks has a name that is taken" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("prob", "x"), "no template 'prob'; did you mean 'probe'?"),
        (("xyz", "x"), "no template 'xyz'; known: probe, task, study, reader, form"),
        (("probe", "tracing"), "there is already a probe 'tracing'; take another name"),
        (("probe", "data"), "there is already a probe 'data'; take another name"),
        (("task", "gsm8k"), "there is already a task 'gsm8k'; take another name"),
        (("study", "rfeval"), "there is already a study 'rfeval'; take another name"),
        (("reader", "run"), "there is already a reader 'run'; take another name"),
        (("form", "legibility"), "there is already a form 'legibility'; take another name"),
        (("task", "json"), "a Python module 'json' is already installed; take another name"),
        (("task", "my-task"), "'my-task' cannot name a Python module; use lower-case letters"),
    ],
)
def test_a_name_that_cannot_be_is_refused(
    arguments: tuple[str, str], expected: str, tmp_path: Path
) -> None:
    folder = tmp_path / "x"
    assert expected in refused("new", *arguments, "--to", folder)
    assert not folder.exists()


def test_files_that_are_there_are_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "my_task.py"
    own.write_text("mine")
    assert "my_task.py: is already there; move it" in refused(
        "new", "task", "my_task", "--to", tmp_path
    )
    assert [path.name for path in tmp_path.iterdir()] == ["my_task.py"]
    assert own.read_text() == "mine"


def test_a_probe_of_a_package_is_had_by_its_name_before_and_after_all_are(here: Path) -> None:
    code = "from faithscope.probes import probe_called as p; first = p('my_probe')\n"
    code += (
        "from faithscope.probes import PROBES; assert first is PROBES['my_probe'] is p('my_probe')"
    )
    done = python(here, "-c", code)
    assert done.returncode == 0, done.stderr
