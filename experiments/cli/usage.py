"""What was meant by a command line that cannot be used: the line to paste instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.extensions import why_broken

_OPTIONS = {
    "--workers": "gpus num_gpus n_gpus ngpu num_workers nproc jobs j",
    "--dry-run": "dry dryrun plan check",
    "--shard": "part array_index",
    "--as": "format to f t type fmt",
    "--out": "o output output_dir out_dir dir folder",
    "--item": "id i name",
    "--into": "o out output output_dir",
}
"""Option -> what other tools call it."""
_CONFIG = "config c cfg config_file config_name yaml"
"""What other tools call the option of a config, which is an argument here."""
_FORMATS = "csv tsv markdown latex inspect dataset bonafide"
"""Values of --as that other tools have as options."""
_NEEDLESS = {
    "resume": "the same command goes on with a run",
    "continue": "the same command goes on with a run",
    "overwrite": "a run is made anew under another name (--set name=NAME), or once its folder is "
    "deleted",
    "force": "a run is made anew under another name (--set name=NAME), or once its folder is "
    "deleted",
    "verbose": "progress is always said",
    "v": "progress is always said",
}
"""An option of other tools that is not needed -> why."""


def usage(error: typer.TyperException, arguments: Sequence[str]) -> str:
    """One line for a usage error of typer, with what was probably meant or where to look."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "faithscope"
    message = " ".join(error.format_message().split()).rstrip(".")
    if context and message.startswith("No such command"):
        return _no_command(message, sorted(getattr(context.command, "commands", {})), where)
    params = context.command.params if context else []
    option = getattr(error, "option_name", None)
    if params and (line := _meant(params, where, arguments)):
        return line
    if option and message.startswith("No such option"):
        known = [*(name for p in params for name in p.opts), "--help"]
        guess = did_you_mean(option, known) or f"; known: {', '.join(known)}"
        return f"{where}: unknown option {option!r}{guess}"
    see = f"; see {where} --help"
    if message.startswith("Missing argument"):
        see = f"{_example(where, getattr(error, 'param', None))}{see}"
    return f"{where}: {message[:1].lower()}{message[1:]}{see}"


def _example(where: str, argument: Any) -> str:
    """`, e.g. faithscope show runs/x` for a missing argument; empty where nothing can be named."""
    if argument is not None and argument.name == "config":
        return f", e.g. {where} quickstart"
    if argument is not None and str(argument.metavar).startswith("RUN"):
        runs = sorted(Path("runs").glob("*/config.yaml"), key=lambda p: p.stat().st_mtime)
        return f", e.g. {where} {_quoted(str(runs[-1].parent))}" if runs else ""
    return ""


def _no_command(message: str, commands: Sequence[str], where: str) -> str:
    # click may add a guess of its own after the name of the command
    named = re.match(r"""No such command (['"])(.*?)\1""", message)
    word = named[2] if named else message.removeprefix("No such command ").strip("'\"")
    if problem := why_broken(word, "commands"):
        return problem
    from faithscope.experiments.config.shipped import names

    if word in names() or Path(word).is_file():
        instead = not_a_config(word) or f"did you mean: faithscope run {word}"
        return f"{where}: {word!r} is no command; {instead}"
    guess = did_you_mean(word, commands) or f"; known: {', '.join(commands)}"
    return f"{where}: unknown command {word!r}{guess}"


def _meant(params: Sequence[Any], where: str, arguments: Sequence[str]) -> str | None:
    """The command line that is meant, with what is wrong with the given one; None if some of it
    cannot be told."""
    flags = {name: bool(p.is_flag) for p in params for name in p.opts if name.startswith("-")}
    words = [*arguments][len(where.split()) - 1 :]
    line, wrong, keys = list[str](), list[str](), list[tuple[str, str | None]]()
    configs = any(p.name == "config" for p in params)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if short := re.fullmatch(r"-([a-zA-Z])(\d+)", word):
            name, equals, value = f"-{short[1]}", "=", short[2]
        if name in flags and (flags[name] or equals or words):
            line += [word] if flags[name] or equals else [word, words.pop(0)]
        elif not name.startswith("-") or name == "-":
            if equals and not Path(word).exists() and re.fullmatch(r"[\w.-]+", name):
                keys.append((name, value))
                wrong.append(repr(word))
            else:
                line.append(word)
        else:
            known = name.lstrip("-").replace("-", "_")
            why = f" ({_NEEDLESS[known]})" if known in _NEEDLESS else ""
            wrong.append(f"{name!r}{why}")
            given = value if equals else None
            if not equals and words and not words[0].startswith("-") and not _is_flag(known):
                given = words.pop(0)
            if known in _CONFIG.split() and configs and given:
                line.insert(0, given)
            elif known in _FORMATS.split() and "--as" in flags:
                line += ["--as", known]
            elif option := next((o for o in _OPTIONS if o in flags and _is(known, o)), None):
                line += [option] if flags.get(option) or not given else [option, given]
            elif not why:
                keys.append((known, given))
    if not wrong or (keys and "--set" not in flags):
        return None
    given = [v for o, v in pairwise(line) if o == "--set"]
    sets = [*_sets(line[0] if line and configs else None, given, keys)] if keys else []
    if None in sets:
        return None
    if configs and (not line or line[0].startswith("-")):
        line.insert(0, "CONFIG")
    said = " ".join([where, *map(_quoted, line), *map(str, sets)])
    s = "s" * (len(wrong) > 1)
    return f"{where}: no option{s} {', '.join(wrong)}; did you mean: {said}"


def _is(name: str, option: str) -> bool:
    return name in _OPTIONS[option].split()


def _is_flag(name: str) -> bool:
    return _is(name, "--dry-run") or name in _NEEDLESS or name in _FORMATS.split()


def _quoted(word: str) -> str:
    from faithscope.experiments.config.meant import quoted

    return quoted(word)


def _sets(
    config: str | None, given: Sequence[str], keys: Sequence[tuple[str, str | None]]
) -> Iterator[str | None]:
    """The `--set` option of each key and its value; None for a word that no key is close to.

    Args:
        given: the overrides that the command line has.
    """
    from faithscope.experiments.config.meant import meant, option
    from faithscope.experiments.config.shipped import config_path
    from faithscope.experiments.config.study import study_of
    from faithscope.experiments.config.yaml_source import read_tree

    try:
        values = read_tree(config_path(config), [*given]).values if config else {}
        kind = study_of(values).config()
    except UserError:
        values, kind = {}, study_of({}).config()
    for word, value in keys:
        key = meant(kind, word, values)
        yield None if key is None else option(kind, key, value)


def not_a_config(word: str) -> str:
    """What to call instead where a word that is given as a config is data, a run, a measure, a
    task, a model or a table of a paper; empty if it is none of these."""
    from faithscope.experiments.config import shipped

    path = Path(word).expanduser()
    if path.is_dir():
        if (path / "config.yaml").is_file():
            return f"is a run folder; to go on with it: faithscope run {path / 'config.yaml'}"
        return f"is a folder; if it holds chains: faithscope run chains --set traces.path={word}"
    if path.is_file():
        return "" if path.suffix in (".yaml", ".yml") else _of_data(path)
    if word in shipped.names() or path.suffix in (".yaml", ".yml"):
        return ""
    if (Path("runs") / word / "config.yaml").is_file():
        return f"is a run; to go on with it: faithscope run runs/{word}/config.yaml"
    return _of_name(word)


def _of_name(word: str) -> str:
    from faithscope.experiments.config import shipped
    from faithscope.experiments.config.yaml_source import read_tree
    from faithscope.experiments.data.tasks import task_rows
    from faithscope.probes import PROBES

    if word.startswith("api:"):
        return f"is no config; for a judge: faithscope run judge --set judges.model={word}"
    if re.fullmatch(r"(planted|bundled):[\w.-]+|[\w.-]+/[\w.-]+", word):
        return f"is no config; for a model: faithscope run chains --set model.name={word}"
    lists = {
        "config": shipped.names(),
        "measure": [*PROBES],
        "task": [name for name, _ in task_rows()],
    }
    known = {name: kind for kind, names in reversed(lists.items()) for name in names}
    name = next(iter(difflib.get_close_matches(word.lower(), known, 1)), "")
    kind = known.get(name)
    if kind == "measure":
        plain = (config for config in shipped.names() if "/" not in config)
        for config in plain:
            if name in (read_tree(shipped.config_path(config), []).values.get("probes") or ()):
                return f"is no config; for the measure {name}: faithscope run {config}"
        return f"is no config; for the measure {name}: faithscope run chains --set probes=[{name}]"
    if kind == "task":
        return f"is no config; for the task {name}: faithscope run chains --set tasks=[{name}]"
    return ""


def _of_data(path: Path) -> str:
    """The command that measures the chains, or asks the questions, of a data file."""
    from faithscope.experiments.config.meant import quoted
    from faithscope.experiments.data.given.columns import line_of, proposed
    from faithscope.experiments.data.given.reading import READERS
    from faithscope.experiments.data.tasks.sources.files import SUFFIXES, rows_in, suffix_of
    from faithscope.experiments.data.tasks.sources.rows import folded

    chains = f"faithscope run chains --set {quoted(f'traces.path={path}')}"
    asks = f"faithscope run chains --set tasks=[own] --set {quoted(f'data.path={path}')}"
    if any(reader.owns(path) for reader in READERS):
        return f"holds chains: {chains}"
    if suffix_of(path) not in SUFFIXES:
        return ""
    cells = next((row.cells.plain for row in rows_in(path)), {})
    if not cells:
        return "is no config (.yaml), and holds no rows"
    if suffix_of(path) == ".json" and isinstance(cells.get("model", cells.get("data")), dict):
        return ""  # JSON is YAML, and this is a config
    if any(reader.recognises(cells) for reader in READERS):
        return f"holds chains: {chains}"
    columns = proposed(cells)
    have = {*map(folded, map(str, cells)), *columns}
    if {"reasoning", "steps"} & have:
        return f"holds chains: {chains} {line_of(columns)}"
    return f"holds questions: {asks}" if "question" in have else f"is data; for chains: {chains}"
