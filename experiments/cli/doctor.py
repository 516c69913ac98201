"""Report of `faithscope doctor`: what this machine has, what is missing, and how to install it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Literal, get_args

from packaging.requirements import Requirement

from faithscope.experiments.data.planted import plants
from faithscope.experiments.engine.environment import ROOT, install_command
from faithscope.experiments.numerals import decimal, significant
from faithscope.interp import sources
from faithscope.interp.extensions import Kind, broken, entries, extensions

if TYPE_CHECKING:
    from faithscope.interp.formats import ReasoningFormat

OK, OPTIONAL, BROKEN = "ok", "optional", "broken"

EXTRAS = {
    "bundled": "the bundled model and other GGUF files",
    "planted": "the planted models beside the twins",
    "data": "datasets from the hub",
    "quant": "8- and 4-bit weights",
    "tl": "TransformerLens on the same weights",
    "nnsight": "nnsight on the same weights",
    "notebook": "the notebooks, and figures that answer to the pointer",
    "judge": "judges behind an API",
    "inspect": "tasks and scorers for Inspect, and its logs",
    "vllm": "generation by vLLM, whose pins may need an environment of their own",
    "train": "training of adapters, and adapters as models",
    "docs": "the documentation site",
    "dev": "tests, linters, notebooks",
}
"""Extra of the distribution -> what it adds."""
OF_A_CHECKOUT = {"docs", "dev"}
"""Extras that serve work in the repository alone."""


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    area: Literal["python", "packages", "plugins", "devices", "extras", "cache", "models"]
    name: str
    finding: str
    """A version, a size, a path, or what is missing."""
    state: Literal["ok", "optional", "broken"] = OK
    """`optional`: missing, and not needed for the rest; `broken`: faithscope cannot work."""
    remedy: str = ""
    """Command that helps; empty where none does."""


def report() -> list[Check]:
    """All checks of this machine; they take a second or two and load no model."""
    return [_python(), *_packages(), *_plugins(), *_devices(), *_extras(), *_cache(), *_models()]


def check_model(name: str, dtype: str = "auto", device: str = "auto") -> list[str]:
    """Load a model and verify it; returns the findings as lines.

    Raises:
        UserError: the model cannot be loaded, or a check of `interp.verify` failed.
    """
    from faithscope import interp

    began = time.perf_counter()
    model = interp.load(name, dtype=dtype, device=device)  # pyright: ignore[reportArgumentType]
    seconds = time.perf_counter() - began
    size = sum(p.numel() for p in model.hf.parameters())
    ends = ", ".join(repr(model.tokenizer.decode([i])) for i in sorted(model.end_ids))
    return [
        f"{model.hf.config.model_type}, {significant(size / 1e6, 3)} M parameters, "
        f"{model.n_layers} layers, "
        f"{model.dtype} on {model.device}, loaded in {decimal(seconds, 0)} s",
        f"revision: {model.revision or 'not pinned'}",
        f"chat template: {'yes' if model.tokenizer.chat_template else 'none, plain prompts'}",
        f"reasoning: {_marked(model.format)}",
        f"ends a turn with: {ends or 'nothing known'}",
        *model.checks,
        *(f"caution: {caution}" for caution in model.cautions),
    ]


def _marked(form: ReasoningFormat) -> str:
    if not form.marks:
        return "in plain prose; the chat template names no marks"
    return f"{form.name}, between {form.opener!r} and {form.closer!r}"


def doctor(model: str | None = None) -> int:
    """Print the report on this machine, or on one model; returns the exit code.

    Returns:
        0, or 3 where something is broken.

    Raises:
        UserError: `model` cannot be loaded, or a check failed.
    """
    if model is not None:
        for line in check_model(model):
            print(f"{'!!' if line.startswith('caution: ') else 'ok'}  {line}")
        return 0
    checks = report()
    width = max(len(check.name) for check in checks)
    marks = {OK: "ok", OPTIONAL: "--", BROKEN: "!!"}
    area = None
    for check in checks:
        if check.area != area:
            area = check.area
            print(f"{area}")
        print(f"  {marks[check.state]}  {check.name:<{width}}  {check.finding}")
        if check.remedy:
            print(f"      {'':<{width}}  -> {check.remedy}")
    broken = [check.name for check in checks if check.state == BROKEN]
    print(f"broken: {', '.join(broken)}" if broken else "all that faithscope needs is here")
    return 3 if broken else 0


def _python() -> Check:
    note = f"{platform.python_version()} at {sys.executable}"
    return Check("python", "python", note, OK if sys.version_info >= (3, 11) else BROKEN)


def _requirements() -> list[tuple[str, Requirement]]:
    """Each requirement of the distribution with the extra it belongs to, core first."""
    requirements = []
    for line in metadata.requires("faithscope") or ():
        requirement = Requirement(line)
        of_extra = re.search(r"""extra == ['"]([\w-]+)""", line)
        requirements.append((of_extra[1] if of_extra else "", requirement))
    return requirements


def _problem(requirement: Requirement) -> str | None:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(version, prereleases=True):
        return f"{requirement.name} {version} does not fit {requirement.specifier}"
    return None


def _packages() -> list[Check]:
    checks = [Check("packages", "faithscope", metadata.version("faithscope"))]
    for extra, requirement in _requirements():
        if extra:
            continue
        if problem := _problem(requirement):
            state, note, remedy = BROKEN, problem, install_command()
        else:
            state, note, remedy = OK, metadata.version(requirement.name), ""
        checks.append(Check("packages", requirement.name, note, state, remedy))
    return checks


def _plugins() -> list[Check]:
    """What other installed packages add, each of which is imported."""
    # these rooms know which names are taken
    from faithscope.experiments.data.given import reading as _readers  # noqa: F401
    from faithscope.experiments.data.tasks import TASKS as _tasks  # noqa: F401
    from faithscope.experiments.engine.forms import trace_forms
    from faithscope.probes import PROBES as _probes  # noqa: F401

    trace_forms()
    checks = []
    for kind in get_args(Kind):
        extensions(kind)
        unusable = broken(kind)
        for entry in entries(kind):
            package = entry.dist.name if entry.dist else entry.module
            if entry.name in unusable:
                checks.append(Check("plugins", package, unusable[entry.name], BROKEN))
            elif package != "faithscope":
                checks.append(Check("plugins", package, f"{entry.name} of faithscope.{kind}"))
    return checks


def _extras() -> list[Check]:
    checks = []
    for extra, adds in EXTRAS.items():
        if extra in OF_A_CHECKOUT and not (ROOT / "pyproject.toml").is_file():
            continue
        if extra == "planted":  # a checkout holds them without the package
            problems = [f"{len(absent)} are not here"] if (absent := plants.absent()) else []
        else:
            problems = [p for e, r in _requirements() if e == extra and (p := _problem(r))]
        if problems:
            note = f"{adds}: {', '.join(problems)}"
            checks.append(Check("extras", extra, note, OPTIONAL, install_command(extra)))
        else:
            checks.append(Check("extras", extra, adds))
    return checks


def _devices() -> list[Check]:
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    cores = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, {capability}"
    checks = [Check("devices", "cpu", f"{cores}; {_dtypes('cpu')}")]
    for i in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(i)
        size = f"{properties.name}, {decimal(properties.total_memory / 2**30, 0)} GiB"
        checks.append(Check("devices", f"cuda:{i}", f"{size}; {_dtypes(f'cuda:{i}')}"))
    if torch.backends.mps.is_available():
        checks.append(Check("devices", "mps", _dtypes("mps")))
    if len(checks) == 1:
        built = torch.version.cuda or torch.version.hip
        why = "torch is built without CUDA" if not built else "torch sees none"
        checks.append(Check("devices", "accelerator", f"none ({why})", OPTIONAL))
    return checks


def _dtypes(device: str) -> str:
    """Speed of a matrix product in each dtype relative to float32, as text."""
    import torch

    seconds = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        try:
            seconds[name] = _seconds(torch.ones(256, 256, dtype=dtype, device=device))
        except (RuntimeError, TypeError):
            seconds[name] = None
    base = seconds["float32"]
    return ", ".join(
        f"no {name}" if s is None else f"{name} {significant(base / s)}x" if base else name
        for name, s in seconds.items()
    )


def _seconds(matrix) -> float:
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        # reading a value waits for a device that runs asynchronously
        (matrix @ matrix)[0, 0].item()
        best = min(best, time.perf_counter() - began)
    return best


def _cache() -> list[Check]:
    folder = sources.cache_dir()
    there = next(p for p in (folder, *folder.parents) if p.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        remedy = "set FAITHSCOPE_CACHE to a folder that can be written"
        return [Check("cache", "folder", f"{folder} cannot be written", BROKEN, remedy)]
    free = shutil.disk_usage(there).free / 2**30
    checks = [Check("cache", "folder", f"{folder}, {decimal(free, 0)} GiB free")]
    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("0", ""):
        checks.append(Check("cache", "hub", "HF_HUB_OFFLINE is set: hub ids load from cache only"))
    return checks


def _models() -> list[Check]:
    checks = []
    for name, what in sources.PACKAGED.items():
        if sources.is_here(name):
            checks.append(Check("models", f"bundled:{name}", f"here; {what.note}"))
        else:
            remedy = f"faithscope fetch {name}"
            note = f"not fetched yet; {what.note}"
            checks.append(Check("models", f"bundled:{name}", note, OPTIONAL, remedy))
    return checks
