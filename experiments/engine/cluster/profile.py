"""Profiles: what jobs ask a cluster for, and what they do on a node before the run.

A profile is a piece of bash with settings and functions. The settings are read once, when jobs are
submitted; every job sources the profile for its functions.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, fields
from pathlib import Path

from faithscope.experiments.config import shipped
from faithscope.interp.errors import UserError, did_you_mean

EXAMPLE = shipped.FOLDER.parent / "slurm" / "profile.example"
"""The commented profile that is shipped, whose settings hold where no profile is given."""
_LISTS = ("container", "extra")
_TIME = re.compile(r"(\d+-\d+(:\d+){0,2}|\d+(:\d+){0,2})|UNLIMITED|INFINITE")
_MEM = re.compile(r"\d+[KMGT]?")


@dataclass(frozen=True)
class Profile:
    """The settings of a profile, as `slurm/profile.example` explains them."""

    account: str = ""
    partition: str = ""
    cpu_partition: str = ""
    qos: str = ""
    constraint: str = ""
    gpu_request: str = "--gres=gpu:"
    cpus: str = "8"
    mem: str = "64G"
    time: str = "04:00:00"
    at_once: str = ""
    report_cpus: str = "2"
    report_mem: str = "32G"
    report_time: str = "00:30:00"
    notice: str = "120"
    requeue: str = "3"
    extra: tuple[str, ...] = ()
    text: str = ""
    """The profile itself, which jobs source."""


SETTINGS = tuple(field.name for field in fields(Profile) if field.name != "text")
_READ = r"""
set -e
exec 3>&1 >&2
BEFORE=$(compgen -v)
source "$1"
for NAME in $(compgen -v | grep '^[a-z]' | grep -vxF "$BEFORE"); do
  declare -n VALUE=$NAME
  printf '%s\0' "$NAME" "${#VALUE[@]}" "${VALUE[@]}" >&3
done
"""
"""Prints each variable in small letters that the profile sets: name, number of entries, entries."""


def read_profile(path: Path) -> Profile:
    """Read the settings of a profile.

    Raises:
        UserError: there is no such file, bash cannot source it, or a setting is unknown or has a
            value that Slurm would refuse.
    """
    if not path.is_file():
        raise UserError(
            f"--profile {path}: no such file; `faithscope submit --print-profile` prints one to "
            "edit"
        )
    if not (bash := shutil.which("bash")):
        raise UserError("profiles are pieces of bash, and there is no bash on this machine")
    command = [bash, "--noprofile", "--norc", "-c", _READ, "profile", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ended.returncode:
        why = " ".join(ended.stderr.split()) or f"exit code {ended.returncode}"
        raise UserError(f"{path}: bash cannot source it: {why}")
    values: dict[str, str | tuple[str, ...]] = {}
    words = iter(ended.stdout.split("\0")[:-1])
    for name in words:
        n = int(next(words))
        entries = tuple(next(words) for _ in range(n))
        if name not in (*SETTINGS, *_LISTS):
            guess = did_you_mean(name, (*SETTINGS, *_LISTS)) or f"; known: {', '.join(SETTINGS)}"
            raise UserError(
                f"{path}: unknown setting {name!r}{guess} (give variables of your own names in "
                "CAPITALS)"
            )
        if name in SETTINGS:
            values[name] = entries if name in _LISTS else " ".join(entries)
    profile = Profile(**values, text=path.read_text("utf-8"))  # type: ignore[arg-type]
    for name in ("cpus", "report_cpus", "notice", "requeue", "at_once"):
        value = getattr(profile, name)
        if not value.isdecimal() and (value or name != "at_once"):
            raise UserError(f"{path}: {name}={value!r}: expected a whole number")
    for name in ("time", "report_time"):
        check_time(f"{path}: {name}=", getattr(profile, name))
    for name in ("mem", "report_mem"):
        check_mem(f"{path}: {name}=", getattr(profile, name))
    return profile


def check_time(where: str, text: str) -> None:
    """Check a time limit.

    Raises:
        UserError: Slurm would not understand it.
    """
    if not _TIME.fullmatch(text):
        raise UserError(f"{where}{text!r}: expected a time limit such as 04:00:00 or 1-12:00:00")


def check_mem(where: str, text: str) -> None:
    """Check an amount of memory.

    Raises:
        UserError: Slurm would not understand it.
    """
    if not _MEM.fullmatch(text):
        raise UserError(f"{where}{text!r}: expected an amount of memory such as 64G")
