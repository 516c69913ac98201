"""How large each room is, and its budget: `python tools/house.py`.

Lines of code and of what is written instead of code: Python, templates, scripts, styles, CSV and
YAML, blank lines and docstrings among them. `tests/test_house.py` fails where a room is over its
budget. A budget is about a tenth above the room's size when it was set, so that a measure, a column
or a judge's form fits in; what does not fit is said in the commit that raises the number. A room
that has shrunk gets a smaller budget. No room contains another one that has a budget.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST_FLOOR = "experiments"
BUDGETS = {
    "interp": 15_200,
    "interventions": 5_800,
    "probes": 19_200,
    "experiments/analysis": 18_400,
    "experiments/cli": 3_400,
    "experiments/config": 1_960,
    "experiments/data": 12_100,
    "experiments/engine": 14_400,
    "experiments/extras": 5_000,
    "experiments/studies/c2faith": 7_800,
    "experiments/studies/compare": 1_800,
    "experiments/studies/rfeval": 12_500,
    "experiments/studies/slrc": 22_900,
    "experiments/studies/training": 3_200,
    "tests": 78_200,
}
"""Room -> most lines."""
COUNTED = ("py", "jinja", "js", "css", "csv", "yaml")
"""Endings of the files that count."""
FILES_IN_A_FOLDER = 25
GROWING = {
    "experiments/data/given",
    "experiments/data/tasks",
    "experiments/studies/slrc/measures",
}
"""Folders with a file for each thing of one kind, of which there may be any number."""


def lines(folder: Path) -> int:
    """Number of lines of all files below a folder that count."""
    files = [path for suffix in COUNTED for path in folder.rglob(f"*.{suffix}")]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def rooms() -> dict[str, int]:
    """Lines of every room, by its folder below the root of the repository."""
    floor = ROOT / FIRST_FLOOR
    studies = floor / "studies"
    first = [p for p in sorted(floor.iterdir()) if p != studies and any(p.rglob("*.py"))]
    each = [p for p in sorted(studies.iterdir()) if any(p.glob("*.py"))]
    bottom = [ROOT / name for name in ("interp", "interventions", "probes")]
    every = [*bottom, *first, *each, ROOT / "tests"]
    return {room.relative_to(ROOT).as_posix(): lines(room) for room in every if room.is_dir()}


def too_large() -> list[str]:
    """What is over its budget, in words that say what to do."""
    said = []
    for name, n in rooms().items():
        if name not in BUDGETS:
            said.append(f"{name} has {n:,} lines and no budget: give it one in tools/house.py")
        elif n > BUDGETS[name]:
            said.append(
                f"{name} has {n:,} lines, {n - BUDGETS[name]:,} more than its budget: look for "
                "what another room has already; else raise BUDGETS in tools/house.py in the same "
                "commit, a tenth above the size, and say in its message what the lines are for"
            )
    said += [f"{name} is gone: take it out of tools/house.py" for name in BUDGETS.keys() - rooms()]
    folders = sorted({p.parent for p in (ROOT / FIRST_FLOOR).rglob("*.py")})
    counts = {p.relative_to(ROOT).as_posix(): len(list(p.glob("*.py"))) for p in folders}
    said += [
        f"{name} holds {n} files, more than a reader surveys ({FILES_IN_A_FOLDER}): put those that "
        "belong together in a folder of their own"
        for name, n in counts.items()
        if n > FILES_IN_A_FOLDER and name not in GROWING
    ]
    return said


def main() -> None:
    sizes = rooms()
    for name, n in sizes.items():
        print(f"{name:<32} {n:>6,} of {BUDGETS.get(name, 0):>6,}")
    floor = sum(n for name, n in sizes.items() if name.startswith(FIRST_FLOOR))
    print(f"{FIRST_FLOOR:<32} {floor:>6,}")
    for line in too_large():
        print(line)


if __name__ == "__main__":
    main()
