"""With a lock file, pip installs the same bytes and refuses a changed file."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--isolated", "-q"]


def wheel(folder: Path, name: str, needs: str = "", body: str = "") -> Path:
    path, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", body)
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needed}"
        )
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return path


def pip(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PIP, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.slow
def test_pip_installs_what_was_locked_and_nothing_else(tmp_path: Path) -> None:
    wheel(tmp_path, "lk_upper", needs="lk_lower")
    lower = wheel(tmp_path, "lk_lower")
    report, lock = tmp_path / "report.json", tmp_path / "lock.txt"
    here = ("--no-index", "--find-links", tmp_path)
    ended = pip(*here, "--dry-run", "--ignore-installed", "--report", report, "lk_upper")
    assert ended.returncode == 0, ended.stderr
    made = subprocess.run(
        [sys.executable, ROOT / "tools/lock.py", report], capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in made.stdout.splitlines()] == [
        "lk_lower==1.0",
        "lk_upper==1.0",
    ]
    lock.write_text(made.stdout)
    how = (*here, "--require-hashes", "--no-deps", "-r", lock, "--target")
    ended = pip(*how, tmp_path / "one")
    assert ended.returncode == 0, ended.stderr
    wheel(tmp_path, "lk_lower", body="changed = True")
    assert lower.is_file()
    ended = pip(*how, tmp_path / "two")
    assert ended.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in ended.stderr
    without = json.loads(report.read_text())
    del without["install"][0]["download_info"]["archive_info"]
    report.write_text(json.dumps(without))
    made = subprocess.run(
        [sys.executable, ROOT / "tools/lock.py", report], capture_output=True, text=True
    )
    assert made.returncode == 1
    assert "pip gives no sha256 of lk_" in made.stderr
