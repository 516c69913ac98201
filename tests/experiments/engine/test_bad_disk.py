"""A disk or a run folder with something wrong: one line that helps, and nothing lost."""

from __future__ import annotations

import contextlib
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_input import complaint, outputs, write

from faithscope.experiments.cli import execute


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("left", [24_000, 400_000], ids=["records", "outputs"])
def test_a_full_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], finished: dict[str, bytes], left: int
) -> None:
    path = write(tmp_path, out=str(tmp_path / "disk"))
    with small_disk(tmp_path / "disk") as disk:
        filler = disk / "filler"
        filler.write_bytes(b"\0" * (4 * 1024**2 - left))
        line = complaint(capsys, "run", path)
        assert line.startswith(f"error: {disk}/t")
        assert "cannot be written (No space left on device); make room" in line
        assert not list(disk.rglob("*.writing"))
        filler.unlink()
        assert execute(["run", path]) == 0
        assert outputs(disk / "t") == finished


@pytest.mark.slow
def test_a_limit_on_file_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], finished: dict[str, bytes]
) -> None:
    path = write(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, hard))
    try:
        line = complaint(capsys, "run", path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot be written (File too large)" in line
    assert execute(["run", path]) == 0
    assert outputs(tmp_path / "t") == finished


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    line = complaint(capsys, "run", write(tmp_path, out=str(tmp_path / "file/runs")))
    assert f"{tmp_path}/file/runs/t/records: cannot be written (Not a directory)" in line


@pytest.mark.slow
def test_a_disk_mounted_read_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], finished: dict[str, bytes]
) -> None:
    path = write(tmp_path, out=str(tmp_path / "disk"))
    with small_disk(tmp_path / "disk") as disk:
        assert execute(["run", path]) == 0
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for command in (["run", path], ["report", str(disk / "t")]):
            assert "Read-only file system" in complaint(capsys, *command)
        assert execute(["status", str(disk / "t")]) == 0
        assert outputs(disk / "t") == finished


# --- the run folder


@pytest.mark.parametrize("stage", [pytest.param("traces", marks=pytest.mark.slow), "slrc"])
def test_a_garbled_line_is_named_and_its_remedy_works(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    finished: dict[str, bytes],
    stage: str,
) -> None:
    path = write(tmp_path)
    assert execute(["run", path]) == 0
    file = tmp_path / f"t/records/{stage}.main.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    # one digit of one number: still JSON, and still wrong
    at = lines[1].rindex(b"1")
    lines[1] = lines[1][:at] + b"2" + lines[1][at + 1 :]
    file.write_bytes(b"".join(lines))
    for command in (
        ["run", path],
        ["status", str(tmp_path / "t")],
        ["report", str(tmp_path / "t")],
    ):
        line = complaint(capsys, *command)
        assert f"{file}: line 2 is damaged (it is not as it was written" in line
    remedy = line.partition("delete that line (")[2].partition(")")[0]
    assert remedy.startswith("sed -i ")
    subprocess.run([*remedy.split("'")[0].split(), remedy.split("'")[1], str(file)], check=True)
    assert execute(["run", path]) == 0
    assert outputs(tmp_path / "t") == finished


def test_a_clock_that_jumps_back_decides_nothing(
    tmp_path: Path, finished: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(2_000_000_000, 0, -3600))
    monkeypatch.setattr("time.time", lambda: float(next(times)))
    path = write(tmp_path)
    assert execute(["run", path, "--shard", "1/2"]) == 0
    assert execute(["run", path]) == 0
    assert execute(["status", str(tmp_path / "t")]) == 0
    assert outputs(tmp_path / "t") == finished
