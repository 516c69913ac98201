"""Sizes of the rooms and their budgets: `python tools/house.py`.

Counts lines of Python and templates, with blank lines and docstrings. A room over its budget is
marked.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST_FLOOR = "experiments"
BUDGETS = {
    FIRST_FLOOR: 31_000,
    f"{FIRST_FLOOR}/engine": 3_800,
    f"{FIRST_FLOOR}/studies/rfeval": 9_500,
    f"{FIRST_FLOOR}/studies/c2faith": 5_500,
    "tests": 30_000,
}
FILES_IN_A_FOLDER = 20


def lines(folder: Path) -> int:
    """Number of lines in all files below a folder."""
    files = [p for suffix in ("py", "jinja") for p in folder.rglob(f"*.{suffix}")]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def main() -> None:
    floor = ROOT / FIRST_FLOOR
    rooms = [p for p in sorted(floor.iterdir()) if p.is_dir() and any(p.rglob("*.py"))]
    studies = sorted(p for p in (floor / "studies").iterdir() if any(p.glob("*.py")))
    bottom = [ROOT / name for name in ("interp", "interventions", "probes")]
    for folder in [*bottom, floor, *rooms, *studies, ROOT / "tests"]:
        name, n = folder.relative_to(ROOT).as_posix(), lines(folder)
        budget = BUDGETS.get(name)
        told = "" if budget is None else f" of {budget:>6,}{'  OVER' if n > budget else ''}"
        print(f"{name:<32} {n:>6,}{told}")
    for folder in sorted({p.parent for p in floor.rglob("*.py")}):
        n = len(list(folder.glob("*.py")))
        if n > FILES_IN_A_FOLDER:
            print(f"{folder.relative_to(ROOT).as_posix()}: {n} files, {FILES_IN_A_FOLDER} at most")


if __name__ == "__main__":
    main()
