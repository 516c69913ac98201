"""A disk or a run folder with something wrong: one line that helps, and nothing lost."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_input import ITEMS, outputs, refused, write
from damage import HELD, WAYS, Damaged

from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.folder import check_config
from faithscope.experiments.engine.store import hold
from faithscope.experiments.files import StoreError


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


@pytest.mark.slow
@pytest.mark.takes("a run that is cut short and done again")
@pytest.mark.in_time(1)
@pytest.mark.parametrize("left", [24_000, 400_000], ids=["records", "outputs"])
def test_a_full_disk(tmp_path: Path, finished: dict[str, bytes], left: int) -> None:
    path = write(tmp_path, out=str(tmp_path / "disk"))
    with small_disk(tmp_path / "disk") as disk:
        filler = disk / "filler"
        filler.write_bytes(b"\0" * (4 * 1024**2 - left))
        line = refused("run", path)
        assert line.startswith(f"error: {disk}/t")
        assert "cannot be written (No space left on device); make room" in line
        assert not list(disk.rglob("*.writing"))
        filler.unlink()
        assert execute(["run", path]) == 0
        assert outputs(disk / "t") == finished


@pytest.mark.slow
def test_a_limit_on_file_size(tmp_path: Path, finished: dict[str, bytes]) -> None:
    path = write(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, hard))
    try:
        line = refused("run", path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot be written (File too large)" in line
    assert execute(["run", path]) == 0
    assert outputs(tmp_path / "t") == finished


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("planted:faithful", "planted:hint", "model.name"),
        (f"limit: {ITEMS}", "limit: 1", "data.limit"),
    ],
)
def test_a_config_that_was_changed_beside_its_records_is_refused(
    finished_copy: str, tmp_path: Path, old: str, new: str, key: str
) -> None:
    config, run = tmp_path / "t" / "config.yaml", str(tmp_path / "t")
    config.write_text(config.read_text().replace(old, new))
    line = refused("report", run)
    assert f"{config}: was changed after its records were made ({key}: " in line
    assert "change it back, or run the changed one under another name" in line
    with pytest.raises(StoreError, match=f"made \\({key}: "):
        check_config(load_config(config))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = refused("run", write(tmp_path, out=str(tmp_path / "file/runs")))
    assert f"{tmp_path}/file/runs/t/records: cannot be written (Not a directory)" in line


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    path = write(tmp_path)
    monkeypatch.setattr(fcntl, "flock", flock)
    assert "this file system has no locks" in refused("run", path)
    assert not list((tmp_path / "t").glob("records/*"))


@pytest.mark.slow
def test_a_disk_mounted_read_only(tmp_path: Path, finished: dict[str, bytes]) -> None:
    path = write(tmp_path, out=str(tmp_path / "disk"))
    with small_disk(tmp_path / "disk") as disk:
        assert execute(["run", path]) == 0
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for command in (["run", path, "--set", "report.bootstrap=30"], ["report", str(disk / "t")]):
            assert "Read-only file system" in refused(*command)
        # with nothing to do there is nothing to write
        assert execute(["run", path]) == 0
        assert execute(["status", str(disk / "t")]) == 0
        assert outputs(disk / "t") == finished


# --- the run folder


@pytest.mark.slow
@pytest.mark.parametrize("stage", [pytest.param("traces", marks=pytest.mark.slow), "slrc"])
def test_a_garbled_line_is_named_and_its_remedy_works(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    finished: dict[str, bytes],
    finished_copy: str,
    stage: str,
) -> None:
    file = tmp_path / f"t/records/{stage}.main.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    # one digit of one number: still JSON, and still wrong
    at = lines[1].rindex(b"1")
    lines[1] = lines[1][:at] + b"2" + lines[1][at + 1 :]
    file.write_bytes(b"".join(lines))
    for command in (
        ["run", finished_copy],
        ["status", str(tmp_path / "t")],
        ["report", str(tmp_path / "t")],
    ):
        line = refused(*command)
        assert f"{file}: line 2 is damaged (it is not as it was written" in line
    assert "faithscope repair drops it" in line
    assert execute(["repair", str(tmp_path / "t")]) == 0
    assert f"{file}: line 2 is dropped (it is not as it was written" in capsys.readouterr().out
    assert execute(["run", finished_copy]) == 0
    assert outputs(tmp_path / "t") == finished


@pytest.mark.takes("a run writes its outputs again")
@pytest.mark.slow
def test_everything_that_is_damaged_is_repaired_at_once(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    finished: dict[str, bytes],
    finished_copy: str,
) -> None:
    run = tmp_path / "t"
    records = run / "records/slrc.main.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join([b"{}\n", *lines[1:], b"no JSON\n", b"torn"]))
    (run / "environment.json").write_text("[]")
    (run / "plan.jsonl").write_text("[" * 100_000)
    (run / "spend.main.jsonl").write_text("1\n2\n")
    capsys.readouterr()
    assert execute(["repair", str(run)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 7
    assert (run / "records/slrc.main.jsonl.dropped").read_bytes() == b"{}\nno JSON\n"
    assert (run / "environment.json.dropped").read_text() == "[]"
    assert execute(["repair", str(run)]) == 0
    assert capsys.readouterr().out == "nothing is damaged\n"
    assert execute(["run", finished_copy]) == 0
    assert outputs(run) == finished


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path, finished_copy: str) -> None:
    run = tmp_path / "t"
    records = run / "records/slrc.main.jsonl"
    records.unlink()
    records.mkdir()
    for command in (
        ["run", finished_copy],
        ["status", str(run)],
        ["report", str(run)],
        ["repair", str(run)],
    ):
        assert f"{records}: is " in refused(*command)


def test_a_damaged_input_report_and_lost_traces_are_errors_with_a_remedy(
    tmp_path: Path, finished_copy: str
) -> None:
    run = tmp_path / "t"
    report, traces = run / "input_report.json", run / "records/traces.main.jsonl"
    whole = report.read_bytes()
    report.write_bytes(whole[:-20])
    assert f"{report}: is damaged (" in refused("report", run)
    report.write_bytes(whole)
    traces.write_bytes(b"".join(traces.read_bytes().splitlines(keepends=True)[:-1]))
    assert "traces are lost, which `faithscope run` writes anew" in refused("report", run)


@pytest.fixture(scope="session")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    return Damaged(tmp_path_factory.mktemp("damaged"))


IN_TIME = ("environment.json is gone",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [pytest.param(w, marks=[] if w in IN_TIME else pytest.mark.slow) for w in WAYS]
)
def test_no_damage_is_silent(way: str, damaged: Damaged, tmp_path: Path) -> None:
    assert damaged.after(way, tmp_path) in HELD


@pytest.mark.usefixtures("finished_copy")
def test_no_repair_under_a_worker_at_work(tmp_path: Path) -> None:
    with hold(tmp_path / "t", "main"):
        assert "another process is at work" in refused("repair", tmp_path / "t")


@pytest.mark.slow
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
