"""A row of the released RFEval as an item."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from faithscope.experiments.data.tasks.sources.rows import Row, has, text_of, usable
from faithscope.experiments.studies.rfeval.items import (
    LETTERS,
    TASKS,
    CodeTests,
    Item,
    Task,
    TestCase,
)
from faithscope.interp.errors import UserError, did_you_mean

_LETTERED = re.compile(r"^[ \t]*([A-Z])[ \t]*[:.)][ \t]*", re.M)
_ANSWER = re.compile(r"\s*([A-Z])\s*(?:[:.)]\s*(.*))?$", re.S)


def item_of(row: Row, task: Task | None = None, bare: bool = False) -> Item:
    """The item of a row.

    Args:
        task: of the file that the row stands in, where rows do not say theirs.
        bare: whether it may lack r′, which is then to be written: "".

    Raises:
        UserError: a field is missing or cannot be used; names row, field, value and remedy.
    """
    said = text_of(row, ("task",)) if has(row, "task") or task is None else task
    if said not in TASKS:
        guess = did_you_mean(said, TASKS) or f"; there are {', '.join(TASKS)}"
        raise UserError(f"{row.where}: unknown task {said!r}{guess}")
    of_task = cast("Task", said)
    content = _content(row)
    options = options_of(row.values.get("options"), row)
    number = usable(row.values["id"], "'id'", row) if has(row, "id") else row.id
    return Item(
        f"{of_task}/{number}",
        of_task,
        usable(content.get("source"), "'content.source'", row),
        text_of(row, ("question",)),
        _context(row, of_task, content),
        options,
        "" if of_task == "code_generation" else _answer(row, options),
        text_of(row, ("r_prime",)) if has(row, "r_prime") or not bare else "",
        text_of(row, ("explanation",)) if has(row, "explanation") else "",
        tests_of(row, content) if of_task == "code_generation" else None,
    )


def options_of(value: Any, row: Row) -> tuple[str, ...]:
    """The options of a row, from a list or from "A: …\\nB: …"; none of None.

    Raises:
        UserError: neither of the two, fewer than two options, letters out of order.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    if isinstance(value, str):
        found = list(_LETTERED.finditer(value))
        ends = [m.start() for m in found[1:]] + [len(value)]
        letters = "".join(m[1] for m in found)
        if not found or value[: found[0].start()].strip() or letters != LETTERS[: len(found)]:
            raise UserError(
                f"{row.where}: 'options' is {value[:60]!r}; give a list, or one option a line: "
                '"A: …\\nB: …"'
            )
        texts = [value[m.end() : end].strip() for m, end in zip(found, ends, strict=True)]
    elif isinstance(value, list | tuple):
        # some rows of the release have the letters in the list, too
        texts = [str(text).strip() for text in value]
        own = [_LETTERED.match(text) for text in texts]
        if all(m is not None and m[1] == LETTERS[i] for i, m in enumerate(own)):
            texts = [t[m.end() :].strip() for t, m in zip(texts, own, strict=True) if m]
    else:
        raise UserError(f"{row.where}: 'options' is a {type(value).__name__}; give a list or text")
    if not 2 <= len(texts) <= len(LETTERS) or not all(texts):
        raise UserError(
            f"{row.where}: 'options' holds {texts}; give two or more that say something"
        )
    return tuple(texts)


def _answer(row: Row, options: tuple[str, ...]) -> str:
    text = text_of(row, ("answer",))
    if not options:
        return text
    letters = LETTERS[: len(options)]
    if (said := _ANSWER.match(text)) and said[1] in letters:
        told = options[letters.index(said[1])]
        if said[2] is None or _same(said[2], told):
            return said[1]
        raise UserError(
            f"{row.where}: 'answer' is {text[:60]!r}, but option {said[1]} is {told[:60]!r}; make "
            "them agree"
        )
    if fits := [letter for letter, o in zip(letters, options, strict=True) if _same(o, text)]:
        return fits[0]
    raise UserError(
        f"{row.where}: 'answer' is {text[:60]!r}, none of the options {', '.join(letters)}; give "
        "the letter or the text of one"
    )


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def _content(row: Row) -> dict[str, Any]:
    value = row.values.get("content")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, dict):
        raise UserError(f"{row.where}: 'content' is no object; give one with a 'source'")
    return value


def _context(row: Row, task: Task, content: dict[str, Any]) -> str:
    """What the question is asked of, as the authors' prompts show it."""
    if task == "table_reasoning":
        return usable(content.get("table"), "'content.table'", row)
    if task == "paper_review":
        return usable(content.get("paper"), "'content.paper'", row)
    if task == "logical_reasoning":
        value = content.get("context")
        return usable(value, "'content.context'", row) if value else ""
    if task == "context_understanding":
        value = content.get("context")
        passages = value.get("contexts") if isinstance(value, dict) else value
        if isinstance(passages, str):
            return usable(passages, "'content.context'", row)
        if not isinstance(passages, list | tuple) or not passages:
            raise UserError(f"{row.where}: 'content.context.contexts' holds no passages; give some")
        return "\n".join(usable(p, "'content.context.contexts'", row) for p in passages)
    return ""


def tests_of(row: Row, content: dict[str, Any]) -> CodeTests | None:
    """The public tests of a code row; None where there are none.

    Raises:
        UserError: they are not of a form that is known.
    """
    if context := content.get("code_context"):
        return CodeTests("ds1000", context=usable(context, "'content.code_context'", row))
    value = content.get("public_test_cases")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise UserError(
                f"{row.where}: 'content.public_test_cases' is not JSON ({error}); give a list"
            ) from error
    if not value:
        return None
    cases, kinds = [], set()
    for i, case in enumerate(value if isinstance(value, list) else [value]):
        fields = case if isinstance(case, dict) else {}
        texts = [fields.get(name) for name in ("input", "output")]
        if not all(isinstance(text, str) for text in texts):
            raise UserError(
                f"{row.where}: content.public_test_cases[{i}] has no texts 'input' and 'output'"
                "; give both"
            )
        cases.append(TestCase(*cast("list[str]", texts)))
        kinds.add(fields.get("testtype", "stdin"))
    if len(kinds) > 1 or not kinds <= {"stdin", "functional"}:
        raise UserError(
            f"{row.where}: 'testtype' of its tests is {', '.join(sorted(map(str, kinds)))}; give "
            "stdin or functional, one for all"
        )
    return CodeTests(kinds.pop(), tuple(cases))
