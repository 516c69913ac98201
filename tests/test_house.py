"""The house rules about imports, names of rooms, and files of a measure."""

from __future__ import annotations

import ast
import graphlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import get_args

import house
import pytest
from imports import PACKAGE, ROOT, file_of, names

from faithscope.probes import PROBES
from faithscope.probes.probe import Word
from faithscope.probes.record import KEYS

MAY_IMPORT = {
    "interventions": {"interventions"},
    "interp": {"interp"},
    "probes": {"probes", "interp", "interventions"},
    "experiments": {"experiments", "probes", "interp", "interventions"},
}
"""Package -> packages that it may import: nothing imports experiments or the package above all, and
the two at the bottom do not know each other."""

ROOMS = ("config", "data", "engine", "analysis", "studies", "cli", "extras")
"""Rooms of `experiments` in order; each may import those before it."""
ABOVE_ALL = {"__init__"}
"""Files of `experiments` that stand above its rooms; the others stand below them."""
READS_OTHERS = {"compare"}
"""Studies that may know other studies."""

HEAVY = {"torch", "transformers"}


def room_of(module: str) -> str:
    """The room of a module: `interp` of `faithscope.interp.load`, else its top-level package."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return room if package == PACKAGE and room in MAY_IMPORT else package


def breaches(package: str, forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, module in names(path)
        if room_of(module) in forbidden
    ]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_one_way(package: str) -> None:
    assert (ROOT / package / "__init__.py").is_file()
    assert not breaches(package, {PACKAGE, *MAY_IMPORT} - MAY_IMPORT[package])


def test_no_file_needs_itself_by_way_of_others() -> None:
    # lazy and type-only imports count, too: a circle can only be understood as a whole
    arrows = {
        path: {
            target
            for _, name in names(path)
            if (target := file_of(name)) is not None and target != path
        }
        for package in MAY_IMPORT
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    try:
        list(graphlib.TopologicalSorter(arrows).static_order())
    except graphlib.CycleError as circle:
        pytest.fail(" -> ".join(str(p.relative_to(ROOT)) for p in circle.args[1]))


def rank_of(parts: tuple[str, ...]) -> int:
    """Rank of a file of `experiments`: -1 below the rooms, the index of its room, or above them."""
    if len(parts) > 1:
        return ROOMS.index(parts[0])
    return len(ROOMS) if parts[0] in ABOVE_ALL else -1


def test_rooms_of_the_first_floor_use_those_before_them() -> None:
    floor, wrong = ROOT / "experiments", []
    for path in sorted(floor.rglob("*.py")):
        own = path.relative_to(floor).with_suffix("").parts
        for line, name in names(path):
            target = file_of(name)
            if target is None or floor not in target.parents:
                continue
            other = target.relative_to(floor).with_suffix("").parts
            later = rank_of(other) > rank_of(own)
            study, another = own[1:2], other[1:2]
            stranger = own[0] == other[0] == "studies" and len(own) > 2 and study != another
            if later or (stranger and study[0] not in READS_OTHERS):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong


def test_rooms_below_the_studies_name_no_study_and_no_probe() -> None:
    studies = {p.name for p in (ROOT / "experiments/studies").iterdir() if p.is_dir()}
    naming = [
        f"{path.relative_to(ROOT)}: {name}"
        for room in ROOMS[: ROOMS.index("studies")]
        for path in sorted((ROOT / "experiments" / room).rglob("*.py"))
        for name in sorted(named_in(path, "studies") & ({*studies, *PROBES} - OTHERWISE))
    ]
    assert not naming


OTHERWISE = {*KEYS, *get_args(Word), "training", "injection", "states"}
"""Names of studies and probes that also name something else in these rooms: a key of records, a
part of a task, a split of a data set, what C2-Faith does to judges, an array of another probe."""


@cache
def named_in(path: Path, room: str) -> frozenset[str]:
    """The words by which a file's code may name a study or a probe: as a module of a room that it
    imports, as a text that is nothing but the name, or as a section of a config. An ordinary word
    may be a probe's name: it may stand in a longer text, and be the name of anything else."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = (pair for _, name in names(path) for pair in pairwise(name.split(".")))
    modules = {name for of, name in imported if of in ("probes", room)}
    texts = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    sections = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("config")
    }
    return frozenset({*modules, *texts, *sections})


@pytest.mark.parametrize("probe", PROBES)
def test_a_measure_lives_in_two_files(probe: str) -> None:
    listed = ["git", "ls-files", "*.py", *(f":!{folder}" for folder in READ_MEASURES)]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    own = {f"probes/{probe}.py", f"experiments/studies/slrc/measures/{probe}.py"}
    assert all((ROOT / file).is_file() for file in own)
    naming = {f for f in files.split() if probe in named_in(ROOT / f, "measures") - OTHERWISE} - own
    # tables, figures and words of the papers that it is in
    of_papers = {f for f in naming if f.startswith("experiments/studies/")}
    assert naming == (of_papers if PROBES[probe].papers else set())


READ_MEASURES = ("tests", "notebooks", "benchmarks", "tools", "probes", "interp")
"""Folders that may name measures: what tests and runs them; other probes, which may build on their
parts; and the engine of models, which knows no probe and has sites of the same names."""


def test_interventions_work_on_token_ids_alone() -> None:
    assert not breaches("interventions", HEAVY)


def test_the_rule_sees_imports_inside_functions(tmp_path: Path) -> None:
    source = "def f():\n    from faithscope import load\n    import faithscope.probes.slrc as p\n"
    (tmp_path / "a.py").write_text(source)
    found = list(names(tmp_path / "a.py"))
    assert found == [(2, "faithscope.load"), (3, "faithscope.probes.slrc")]
    assert [room_of(name) for _, name in found] == [PACKAGE, "probes"]


def test_the_rule_sees_a_probe_by_module_text_and_section(tmp_path: Path) -> None:
    imported = "def f():\n    from faithscope.probes.filler import filled\n"
    sources = {imported: True, "a = {'filler'}\n": True, "self.config.filler\n": True}
    sources |= {"filler = 'a filler'\nx.filler\n": False, "import filler\n": False}
    for i, (source, named) in enumerate(sources.items()):
        (tmp_path / f"{i}.py").write_text(source)
        assert ("filler" in named_in(tmp_path / f"{i}.py", "studies")) == named, source


@pytest.mark.slow
def test_folders_of_the_same_names_shadow_nothing(tmp_path: Path) -> None:
    # a user may keep an own experiments/ in the working folder
    for name in MAY_IMPORT:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    code = "import faithscope; print(faithscope.load_run.__module__, faithscope.load.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    homes = "faithscope.experiments.analysis.run faithscope.interp.loading"
    assert done.stdout.strip() == homes


LINKS = {"interp", "interventions", "probes", "experiments", "configs", "docs", "slurm"}
"""Links in the folder of the package to the folders beside it."""


def import_without_links(folder: Path) -> subprocess.CompletedProcess[str]:
    """Imports the package from a checkout in which Git wrote links as files with their targets."""
    package = folder / PACKAGE
    package.mkdir()
    for name in ("__init__.py", "_rooms.py"):
        shutil.copy(ROOT / PACKAGE / name, package / name)
    for name in LINKS:
        (package / name).write_text(f"../{name}")
    code = (
        "import faithscope; from faithscope.experiments.cli import docs; "
        "from faithscope.experiments.config import shipped; "
        "print(faithscope.load.__module__, 'given' in docs.names(), 'slrc' in shipped.names())"
    )
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_a_checkout_without_symbolic_links_works(tmp_path: Path) -> None:
    assert {p.name for p in (ROOT / PACKAGE).iterdir() if p.is_symlink()} == LINKS
    for name in LINKS:
        (tmp_path / name).symlink_to(ROOT / name)
    done = import_without_links(tmp_path)
    assert done.stdout == "faithscope.interp.loading True True\n", done.stderr


def test_a_package_without_its_rooms_says_what_to_do(tmp_path: Path) -> None:
    done = import_without_links(tmp_path)
    assert done.returncode == 1
    assert f"faithscope at {tmp_path / PACKAGE} is incomplete" in done.stderr
    assert "core.symlinks=true" in done.stderr


WEIGHTS = "experiments/data/planted/weights"
"""Folder of the planted models, of which all but the twins are a wheel of their own."""
BESIDE = ("configs", "docs", "slurm", "pyproject.toml", "README.md", "LICENSE")
"""Further files and folders that a wheel is built from."""


@pytest.mark.slow
def test_a_wheel_holds_every_file_of_the_four_rooms(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    for name in files.split():
        if name.split("/")[0] in {*MAY_IMPORT, PACKAGE, *BESIDE}:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name, follow_symlinks=False)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, ".", f"./{WEIGHTS}"], cwd=copy, check=True)
    (wheel,) = copy.glob(f"{PACKAGE}-*.whl")
    assert wheel.stat().st_size <= 12e6
    held = set(zipfile.ZipFile(wheel).namelist())
    (data,) = copy.glob("faithscope_planted-*.whl")
    others = {
        name.replace("faithscope_planted", f"{PACKAGE}/{WEIGHTS}")
        for name in zipfile.ZipFile(data).namelist()
        if ".dist-info/" not in name
    }
    wanted = {
        f"{PACKAGE}/{name}"
        for name in files.split()
        if name.split("/")[0] in MAY_IMPORT
        and not name.endswith((".md", f"{WEIGHTS}/pyproject.toml"))
    }
    assert wanted - held == others
    configs = {f"{PACKAGE}/{name}" for name in files.split() if name.startswith("configs/")}
    profile = f"{PACKAGE}/slurm/profile.example"
    pages = {f"{PACKAGE}/{n}" for n in files.split() if n.startswith("docs/") and n.endswith(".md")}
    assert {f"{PACKAGE}/__init__.py", f"{PACKAGE}/py.typed", profile, *configs, *pages} <= held
    assert f"{PACKAGE}/docs/conf.py" not in held
    assert not {name.split("/")[0] for name in held} & set(MAY_IMPORT)


def test_test_files_have_names_of_their_own() -> None:
    # tests are no packages, so pytest imports two files of one name as the same module
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names))


IMPORTS_A_TEST = re.compile(r"\b(from|import)\b.*\btest_")


def test_test_files_import_no_test_files() -> None:
    # what several tests need stands in a helper, so that a test can be moved or deleted alone
    naming = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        # parsing every test takes seconds
        if IMPORTS_A_TEST.search(path.read_text("utf-8"))
        for line, name in names(path)
        if name.startswith("test_")
    ]
    assert naming == []


def test_every_room_keeps_its_budget() -> None:
    assert house.too_large() == []


STUDY_MODULES = {"config", "stages", "plan", "frames", "page", "item_views", "report"}
"""Modules that every study has (`CONTRIBUTING.md` says what each holds)."""


def test_every_study_stands_on_one_floor_plan() -> None:
    folders = sorted(p.parent for p in (ROOT / "experiments/studies").glob("*/__init__.py"))
    held = {folder.name: {p.stem for p in folder.iterdir()} for folder in folders}
    assert {name: STUDY_MODULES - modules for name, modules in held.items()} == {
        name: set() for name in held
    }


PAPER_FILES = {"paper.py", "paper.csv", "paper_rows.py", "paper_names.py", "paper_states.py"}
"""Files of a study that may declare its paper's printed tables."""


def test_every_paper_is_declared_in_the_same_files() -> None:
    for folder in (ROOT / "experiments/studies").iterdir():
        files = {p.name for p in folder.iterdir()} if folder.is_dir() else set()
        of_paper = {name for name in files if name.startswith(("paper", "published", "printed"))}
        assert of_paper <= PAPER_FILES, folder
        assert ("paper.py" in files) == ("paper.csv" in files), folder
        assert not of_paper or {"tables", "tables.py"} & files, folder
