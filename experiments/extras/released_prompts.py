"""RFEval's authors' own prompts, read from a checkout of their repository (AIDASLab/RFEval,
Apache-2.0).

Their Python is read as text and never run. A prompt is there a literal in three quotes, its places
are expressions, and the names in an expression say which value stands at its place. What is read
becomes the text of prompt files, so that all else is as with files of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from faithscope.experiments.engine.models.prompt_files import PromptText, as_yaml, values_of
from faithscope.interp.errors import UserError

JUDGES = "evaluation.py"
"""The module of `get_evaluation_prompt`, at the top of the repository or in its `src`."""
QUESTIONS = "dataset_utils"
"""Folder beside `JUDGES`, with a folder for each data set whose `utils.py` holds the questions and
the requests for r′. The released inference.py imports it, but AIDASLab/RFEval lacks it: `src` of
RFEval/RFEval has it."""
TASKS_OF_SOURCES = {
    "livecodebench": "code_generation",
    "ds1000": "code_generation",
    "gsm8k": "mathematical_reasoning",
    "mmlu_college_mathematics": "mathematical_reasoning_options",
    "mmlu_high_school_mathematics": "mathematical_reasoning_options",
    "prontoqa": "logical_reasoning",
    "rulebert_union_rules": "logical_reasoning",
    "scitab": "table_reasoning",
    "pubmedqa": "context_understanding",
    "mmlu_professional_law": "legal_decision",
    "peerread": "paper_review",
}
"""Data set -> the task whose questions it has, as `rf_questions.yaml` calls it."""
_SOURCE = "{} of AIDASLab/RFEval (Apache-2.0), read from {}"
_Rules = Sequence[tuple[frozenset[str], str]]


def _rules(*rules: tuple[str, str]) -> _Rules:
    return [(frozenset(names.split()), place) for names, place in rules]


_OF_OUTPUT = _rules(
    ("tuple stance_set", "stance_tuple"),
    ("join stance_set", "stance_choices"),
    ("r_prime", "r_prime"),
    ("output reasoning", "reasoning"),
    ("output remainder", "explanation"),
    ("output answer", "answer"),
    ("answer", "gold"),
    ("problem", "problem"),
)
_OF_ITEM = _rules(
    ("options", "options"),
    ("answer", "gold"),
    ("content", "context"),
    ("context", "context"),
    ("paper", "context"),
    ("question", "question"),
)
"""Rules on the value that an expression shows: that of the first rule whose names are all in it."""


class _Template(NamedTuple):
    text: str
    """Text with our places, and with its own braces doubled."""
    absent: dict[str, str]
    """Place -> text that stands there if its value is empty."""


def found(folder: Path) -> Path | None:
    """The folder of the authors' code, or of one of its two parts; None if there is none."""
    places = (folder, folder / "src")
    return next((f for f in places if (f / JUDGES).is_file() or (f / QUESTIONS).is_dir()), None)


def notes(code: Path) -> list[str]:
    """Notes on what is asked in our words though the authors' code is there, a sentence each."""
    lines = []
    if not (code / JUDGES).is_file():
        lines.append(f"prompts: {code} has no {JUDGES}, so judges are asked in our words")
    if not (code / QUESTIONS).is_dir():
        lines.append(
            f"prompts: {code} has no {QUESTIONS}, so models and the writer of r′ are asked in our "
            f"words; put src/{QUESTIONS} of github.com/RFEval/RFEval beside {JUDGES}"
        )
    return lines


def texts(code: Path, packaged: Mapping[str, PromptText]) -> dict[str, PromptText]:
    """The prompt files that say what the authors' code asks, by name; there is none for validation,
    nor for a part that is not there (`notes`).

    Args:
        code: a folder that `found` gave.
        packaged: faithscope's own files, whose fields the authors' forms have, too.

    Raises:
        UserError: a file is missing or cannot be read, or holds prompts in another form than at
            commit 9aecc76 of the repository; names file, function and remedy.
    """
    files = _judges(code / JUDGES, packaged) if (code / JUDGES).is_file() else {}
    if (code / QUESTIONS).is_dir():
        utils = {name: _utils_of(code, name) for name in TASKS_OF_SOURCES}
        files["rf_questions"] = _questions(utils, code)
        files["rf_generate"] = _generation(utils, code, packaged["rf_generate"])
    return files


def _judges(path: Path, ours: Mapping[str, PromptText]) -> dict[str, PromptText]:
    where = f"{path}: get_evaluation_prompt"
    function = _after(_text(path), "def get_evaluation_prompt(", where)
    literals = {name: list(_literals(function, name)) for name in ("instruction", "input")}
    if any(len(found) < 2 for found in literals.values()):
        raise _newer(where, "not two of `instruction` and of `input`")
    files = {}
    # what it shows tells which output it is for: the code has the two exchanged
    for system, template in zip(*literals.values(), strict=False):
        shown = _template(template, _OF_OUTPUT, where)
        name = "rf_intervened" if "{r_prime}" in shown.text else "rf_baseline"
        own = {
            "ours": False,
            "source": _SOURCE.format("get_evaluation_prompt of evaluation.py", path),
            "system": _template(system, _OF_OUTPUT, where).text.strip(),
            "template": shown.text.strip(),
            "absent": shown.absent,
        }
        files[name] = _as_file(values_of(ours[name]) | own, where)
    if len(files) < 2:
        raise _newer(where, "not one input with r_prime and one without")
    return files


def _questions(utils: dict[str, Path], code: Path) -> PromptText:
    templates: dict[str, str] = {}
    for source, path in utils.items():
        where = f"{path}: parsing_inference_input"
        function = _after(_text(path), "def parsing_inference_input(", where)
        literal = next(_literals(function, "input"), None)
        if literal is None:
            raise _newer(where, "no `input` in three quotes")
        text, task = _template(literal, _OF_ITEM, where).text.strip(), TASKS_OF_SOURCES[source]
        if templates.setdefault(task, text) != text:
            raise _newer(where, f"asks otherwise than the other data sets of {task}")
    return _as_file(templates, str(code / QUESTIONS))


def _generation(utils: dict[str, Path], code: Path, ours: PromptText) -> PromptText:
    of_source = {}
    for source, path in utils.items():
        text, where = _text(path), f"{path}: augmentation_prompt"
        prompt = next(_literals(text, "augmentation_prompt"), None)
        shown = next(_literals(text, "input_text"), None)
        if prompt is None or shown is None:
            raise _newer(where, "no `augmentation_prompt` and `input_text` in three quotes")
        of_source[source] = {
            "system": _escaped(prompt[1]).replace("{{answer}}", "{gold}").strip(),
            "template": _template(shown, _OF_ITEM, f"{path}: input_text").text.strip(),
        }
    return _as_file(values_of(ours) | {"of_source": of_source}, str(code / QUESTIONS))


def _utils_of(code: Path, source: str) -> Path:
    for name in (source, source.replace("mmlu_", "mmlu/")):
        if (path := code / QUESTIONS / name / "utils.py").is_file():
            return path
    raise UserError(
        f"prompts: {code} holds {QUESTIONS} but no {QUESTIONS}/{source}/utils.py; give a whole "
        "one, or take it away to have the questions in our words"
    )


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as UTF-8 text ({error})") from error


def _after(text: str, start: str, where: str) -> str:
    _, found, rest = text.partition(start)
    if not found:
        raise _newer(where, "no such function")
    return rest


def _literals(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Prefix and body of every literal in three quotes that is given to a name, in order."""
    given = rf"^[ \t]*{name}[ \t]*=[ \t]*([fr]{{0,2}})('''|\"\"\")(.*?)\2"
    for match in re.finditer(given, text, re.S | re.M):
        yield match[1], match[3]


def _template(literal: tuple[str, str], rules: _Rules, where: str) -> _Template:
    prefix, body = literal
    if "f" not in prefix:
        raise _newer(where, "a literal without places")
    text, absent = "", {}
    for plain, expression in _pieces(body, where):
        text += plain if "r" in prefix else _unescaped(plain)
        if expression:
            shown, _, otherwise = expression.partition(" if ")
            text += f"{{{(place := _place(shown, rules, where))}}}"
            if instead := re.search(r"else\s+(['\"])(.*)\1\s*$", otherwise):
                absent[place] = instead[2]
    return _Template(text, absent)


def _pieces(body: str, where: str) -> Iterator[tuple[str, str]]:
    """Plain text, its doubled braces as they are, and the expression after it; "" at the end."""
    start = at = 0
    while at < len(body):
        if body[at : at + 2] in ("{{", "}}"):
            at += 2
        elif body[at] != "{":
            at += 1
        else:
            end, depth = at + 1, 1
            while depth and end < len(body):
                depth += {"{": 1, "}": -1}.get(body[end], 0)
                end += 1
            if depth:
                raise _newer(where, "a brace without its end")
            yield body[start:at], body[at + 1 : end - 1]
            start = at = end
    yield body[start:], ""


def _place(expression: str, rules: _Rules, where: str) -> str:
    names = frozenset(re.findall(r"\w+", expression))
    for wanted, place in rules:
        if wanted <= names:
            return place
    raise _newer(where, f"{{{expression}}} shows nothing that is known")


def _unescaped(text: str) -> str:
    """Reads a literal's escapes as Python does."""
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape")


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _as_file(values: dict[str, Any], where: str) -> PromptText:
    return PromptText(as_yaml(values), where)


def _newer(where: str, what: str) -> UserError:
    return UserError(
        f"{where}: {what}; it is read as at commit 9aecc76 of AIDASLab/RFEval and, for "
        f"{QUESTIONS}, bb20192 of RFEval/RFEval: check these out, or give a folder of prompt files "
        "(faithscope docs rfeval)"
    )
