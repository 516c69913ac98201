"""Code blocks of documentation pages, and what can be said of them without running them."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import typer
import yaml

from faithscope.experiments import cli
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.forms import form_at
from faithscope.probes import PROBES

ROOT = Path(__file__).parents[1]
_MADE_BY_A_BUILD = ("api", "project", "tutorials")
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.relative_to(ROOT / "docs").parts[0] not in _MADE_BY_A_BUILD
    ),
]
_BLOCK = re.compile(r"^( *)(`{3,})([^`\n]*)\n(.*?)^\1\2$", re.M | re.S)
_NOTE = re.compile(r"<!-- (not run|file): ([^\n]+?) -->\s*\Z")
NOT_CODE = {"text", "{toctree}"}
"""Languages of blocks in which nothing can be run."""


class Block(NamedTuple):
    """A fenced block of a page."""

    line: int
    language: str
    code: str
    not_run: str | None
    """Why no test runs it, from the comment above it."""
    file: str | None
    """Name of the file that it is the content of, from the comment above it or its first line."""

    def commands(self) -> Iterator[list[str]]:
        """The words of each command of a shell block; `…` stands for the words of the one before
        up to its last."""
        text = self.code.replace("\\\n", "")
        if self.language == "console":
            text = "\n".join(re.findall(r"^\$ (.*)$", text, re.M))
        before: list[str] = []
        for line in text.splitlines():
            line = line.partition(" > ")[0] if line.startswith("faithscope ") else line
            if words := shlex.split(line, comments=True):
                if "…" in words:
                    at = words.index("…")
                    words = [*words[:at], *before[at:], *words[at + 1 :]]
                before = words
                yield words


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page."""
    text = page.read_text("utf-8")
    for found in _BLOCK.finditer(text):
        above = text[: found.start()]
        note = _NOTE.search(above)
        code = found[4] if not found[1] else re.sub(f"^{found[1]}", "", found[4], flags=re.M)
        named = re.match(r"# (\S+\.yaml)\n|name: ([\w-]+)\n", code)
        file = note[2] if note and note[1] == "file" else None
        if found[3] == "yaml" and named:
            file = named[1] or f"{named[2]}.yaml"
        yield Block(
            above.count("\n") + 1,
            found[3],
            code,
            note[2] if note and note[1] == "not run" else None,
            file,
        )


def check(block: Block, folder: Path, made: set[str]) -> None:
    """Fails where a block cannot be right.

    Args:
        folder: folder with the files that the page shows.
        made: names that earlier code of the page has made.
    """
    if block.language in ("sh", "console"):
        for command in block.commands():
            check_command(command, folder, block.not_run)
    elif block.language == "python":
        check_python(block.code, made)
    elif block.language == "yaml":
        check_yaml(block, folder)
    elif block.language == "toml":
        tomllib.loads(block.code)
    elif block.language == "json":
        for line in block.code.splitlines():
            assert isinstance(json.loads(line), dict)
    else:
        assert block.language in NOT_CODE, f"```{block.language}: say what language it is in"


def check_command(words: Sequence[str], folder: Path, not_run: str | None) -> None:
    """A command of ours has these options and, where it takes a config, this config with these
    keys; another program is run, or the page says why not."""
    program, *arguments = words
    if program != "faithscope":
        why = "run it, or say why not: <!-- not run: it needs a GPU -->"
        assert not_run or program in RUN_BY_BASH, f"{program}: {why}"
        if program == "make":
            targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M)
            assert set(arguments) <= set(targets), words
        return
    group = commands()
    root = group.make_context("faithscope", [], resilient_parsing=True)
    name, command, rest = group.resolve_command(root, arguments)
    if "--print-profile" in rest:
        return
    given = command.make_context(name, rest, parent=root).params
    config, overrides = given.get("config"), given.get("overrides") or []
    if config and "probes=[my_probe]" not in overrides:  # `faithscope new` makes it
        shown = folder / config
        load_config(shown if shown.is_file() else config, overrides, at_hand=False)


@cache
def commands() -> Any:
    """All commands of ours, as click has them."""
    cli._add_commands()
    return typer.main.get_command(cli.app)


RUN_BY_BASH = {"ls", "sed", "pip"}
GIVEN = {"faithscope", "model", "trace", "run"}
"""Names that code may use without making them: a model, a chain, and a finished run."""


def check_python(code: str, made: set[str]) -> None:
    """The code compiles, and every name in it exists and, if it is ours, takes these arguments.

    Args:
        made: names that earlier blocks of the page have made; those of this block are added.
    """
    tree = ast.parse(code)
    known: dict[str, Any] = {"faithscope": importlib.import_module("faithscope")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {a.asname or a.name: importlib.import_module(a.name) for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            known |= {a.asname or a.name: getattr(module, a.name) for a in node.names}
        elif isinstance(node, ast.FunctionDef):
            made |= {node.name}
        elif isinstance(node, ast.arg):
            made |= {node.arg}
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            made |= {node.id}
    made.update(known)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            assert node.id in made | GIVEN or hasattr(builtins, node.id), f"{node.id}: who made it?"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = known.get(node.value.id)
            assert not inspect.ismodule(owner) or hasattr(owner, node.attr), node.attr
        elif isinstance(node, ast.Call):
            _check_call(node, known)


def _check_call(call: ast.Call, known: dict[str, Any]) -> None:
    of = call.func
    called = known.get(of.id) if isinstance(of, ast.Name) else None
    if isinstance(of, ast.Attribute) and isinstance(of.value, ast.Name):
        called = getattr(known.get(of.value.id), of.attr, None)
    if called is not None and getattr(called, "__module__", "").startswith("faithscope"):
        named = {k.arg: None for k in call.keywords if k.arg}
        inspect.signature(called).bind(*call.args, **named)


STEERING = {"direction": "hint.safetensors"}


def check_yaml(block: Block, folder: Path) -> None:
    """A judge's form is one, and a config is valid: a part of one beside a model and a probe that
    it is about."""
    values = yaml.safe_load(block.code)
    if "asks" in values:
        form_at(folder / (block.file or ""), "judges.forms")
        return
    path = folder / (block.file or "part.yaml")
    if "name" not in values:
        about = [name for name in values if name in PROBES]
        takes = ["hints"] if "cues" in values else ["slrc", "steering"]
        rest = {"name": "part", "tasks": ["single_cue"], "probes": about or takes}
        model = {"name": "bundled:smollm2-135m"}
        path.write_text(yaml.safe_dump(rest | {"model": model, "steering": STEERING} | values))
    load_config(path, at_hand=False)
