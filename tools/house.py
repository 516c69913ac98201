"""How large each room is, and its budget: `python tools/house.py`.

Lines of Python and templates, blank lines and docstrings among them. `tests/test_house.py` fails
where a room is over its budget: whoever adds a feature raises the budget in the same commit, and so
says what the feature costs. A room that has shrunk gets a smaller budget.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST_FLOOR = "experiments"
BUDGETS = {
    "interp": 11_500,
    "interventions": 3_000,
    "probes": 11_600,
    FIRST_FLOOR: 78_350,
    "experiments/analysis": 13_150,
    "experiments/cli": 2_450,
    "experiments/config": 1_500,
    "experiments/data": 8_400,
    "experiments/engine": 10_250,
    "experiments/studies": 42_650,
    "experiments/studies/c2faith": 7_450,
    "experiments/studies/compare": 2_500,
    "experiments/studies/faithcot": 3_500,
    "experiments/studies/judge": 1_850,
    "experiments/studies/rfeval": 12_800,
    "experiments/studies/slrc": 11_500,
    "experiments/studies/training": 2_850,
    "tests": 60_700,
}
"""Room -> most lines; every room has one."""
FILES_IN_A_FOLDER = 22


def lines(folder: Path) -> int:
    """Number of lines of all Python files and templates below a folder."""
    files = [p for suffix in ("py", "jinja") for p in folder.rglob(f"*.{suffix}")]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def rooms() -> dict[str, int]:
    """Lines of every room, by its folder below the root of the repository."""
    floor = ROOT / FIRST_FLOOR
    folders = [p for p in sorted(floor.iterdir()) if p.is_dir() and any(p.rglob("*.py"))]
    studies = sorted(p for p in (floor / "studies").iterdir() if any(p.glob("*.py")))
    bottom = [ROOT / name for name in ("interp", "interventions", "probes")]
    every = [*bottom, floor, *folders, *studies, ROOT / "tests"]
    return {folder.relative_to(ROOT).as_posix(): lines(folder) for folder in every}


def crowded() -> dict[str, int]:
    """Folders of the first floor that hold more Python files than a reader can survey."""
    folders = sorted({p.parent for p in (ROOT / FIRST_FLOOR).rglob("*.py")})
    counts = {p.relative_to(ROOT).as_posix(): len(list(p.glob("*.py"))) for p in folders}
    return {name: n for name, n in counts.items() if n > FILES_IN_A_FOLDER}


def main() -> None:
    for name, n in rooms().items():
        budget = BUDGETS[name]
        print(f"{name:<32} {n:>6,} of {budget:>6,}{'  OVER' if n > budget else ''}")
    for name, n in crowded().items():
        print(f"{name}: {n} files, {FILES_IN_A_FOLDER} at most")


if __name__ == "__main__":
    main()
