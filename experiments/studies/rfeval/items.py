"""An item of RFEval (problem, gold answer, and r′, which leads to a wrong one), made of a row."""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, cast, get_args

from faithscope.experiments.data.tasks.sources.gold import right_letter
from faithscope.experiments.data.tasks.sources.json_text import NotJson, json_of
from faithscope.experiments.data.tasks.sources.options import has_options, options_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow, has, text_of, usable
from faithscope.interp.errors import UserError, did_you_mean

Task = Literal[
    "code_generation",
    "mathematical_reasoning",
    "logical_reasoning",
    "table_reasoning",
    "context_understanding",
    "legal_decision",
    "paper_review",
]
TASKS: tuple[Task, ...] = get_args(Task)
"""All tasks, in the order of the paper's tables."""
ABBREVIATIONS: dict[Task, str] = dict(
    zip(TASKS, ("CG", "MR", "LR", "TR", "CU", "LD", "PR"), strict=True)
)
"""Task -> heading of its column in the paper's Table 2."""
Condition = Literal["baseline", "intervened"]
"""The two outputs of a pair: the model's own output, and the output under r′."""
CONDITIONS: tuple[Condition, ...] = ("baseline", "intervened")
LETTERS = string.ascii_uppercase
Naming = Literal["letters", "paper"]
"""`letters`: every option by its letter, as the authors' released code has it; `paper`: by a word
where Table 15 has words. True and false of logical reasoning are "correct" and "incorrect", as
there; other options are called what the data call them, in lower case ("supports", "refutes" for
Table 15's "supported", "rebutted"), and no item has its "maybe"."""


@dataclass(frozen=True)
class TestCase:
    """Input of a program, and the output that it has to give."""

    input: str
    """Standard input; for a function, its arguments, one JSON value a line."""
    output: str
    """Standard output; for a function, the JSON of what it returns."""

    __test__ = False


@dataclass(frozen=True)
class CodeTests:
    """The public tests of a code item."""

    kind: Literal["stdin", "functional", "ds1000"]
    """Kind of the tests. `stdin`: a program; `functional`: a function, or the method of a class
    `Solution`; `ds1000`: a snippet put into `context`, which tests it itself."""
    cases: tuple[TestCase, ...] = ()
    """Test cases; a DS-1000 item has none."""
    context: str = ""
    """Code of a DS-1000 item that defines `test_execution` and perhaps `test_string`."""
    reference: str = ""
    """Solution that comes with a DS-1000 item, "" if there is none: a test that refuses it decides
    nothing."""

    def __post_init__(self) -> None:
        if (self.kind == "ds1000") == bool(self.cases) or (self.kind == "ds1000") != bool(
            self.context
        ):
            raise ValueError(
                f"tests of kind {self.kind!r}: with {len(self.cases)} cases and "
                f"{'a' if self.context else 'no'} context; DS-1000 has a context alone, any other "
                "kind cases alone"
            )


@dataclass(frozen=True)
class Item:
    """A problem with its counterfactual reasoning (RFEval, appendix B.5)."""

    id: str
    """Id of the form `task/row`, unique in the benchmark."""
    task: Task
    source: str
    """The data set that the problem is from: `gsm8k`, `livecodebench_v6`."""
    question: str
    context: str
    """Material of the question: passages, table, facts and rules, paper; "" if there is none."""
    options: tuple[str, ...]
    """Options in order, without their letters; empty if the answer is free."""
    answer: str
    """The letter of the right option, or the answer itself; "" for code, which tests decide."""
    r_prime: str
    """Plausible reasoning with a flaw that leads to a wrong answer."""
    explanation: str
    """Description of the flaw in r′."""
    tests: CodeTests | None = None
    """Tests of a code item; None for other tasks, and for code without any, which no test can
    decide."""
    template: str = field(default="", compare=False)
    """Text with places for the problem, in which a run puts it to models; "" until it is posed."""
    naming: Naming = field(default="letters", compare=False)
    """Naming of the options among the stances in a run."""

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of the options, in order."""
        return tuple(LETTERS[: len(self.options)])

    @property
    def lettered(self) -> str:
        """The options as the paper shows them: `A: yes`, one a line."""
        return "\n".join(
            f"{letter}: {option}" for letter, option in zip(self.letters, self.options, strict=True)
        )

    @property
    def gold(self) -> str:
        """The right answer as the data set writes it: `A: yes`, `42`; "" of code."""
        if not self.options:
            return self.answer
        return f"{self.answer}: {self.options[LETTERS.index(self.answer)]}"

    @property
    def sha256(self) -> str:
        """Hash of all that the item's row holds, but for the solution by which its test is
        checked."""
        values = asdict(self)
        del values["template"], values["naming"]
        if self.tests is not None:
            del values["tests"]["reference"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def posed(self, words: Mapping[str, str], naming: Naming = "letters") -> Item:
        """The item with the question template and the naming of a run.

        Args:
            words: template of a question by task (`prompts.questions`).
        """
        bare = self.task == "mathematical_reasoning" and self.options
        template = words[f"{self.task}_options" if bare else self.task]
        return replace(self, template=template, naming=naming)

    @property
    def asked(self) -> str:
        """The problem as a run puts it: what models are asked, and judges shown.

        Raises:
            ValueError: the item is not posed.
        """
        if not self.template:
            raise ValueError(f"item {self.id!r} is not posed; call `posed` with a run's questions")
        values = {"question": self.question, "context": self.context, "options": self.lettered}
        return self.template.format(**values).strip()


def item_of(row: SourceRow, task: Task | None = None, bare: bool = False) -> Item:
    """Makes the item of one row of the data.

    Args:
        task: the file's task, where rows do not say theirs.
        bare: whether it may lack r′, which is then to be written: "".

    Raises:
        UserError: a field is missing or cannot be used; names row, field, value and remedy.
    """
    name = text_of(row, ("task",)) if has(row, "task") or task is None else task
    if name not in TASKS:
        guess = did_you_mean(name, TASKS) or f"; there are {', '.join(TASKS)}"
        raise UserError(f"{row.where}: unknown task {name!r}{guess}")
    task, content = cast("Task", name), _content(row)
    is_code = task == "code_generation"
    options = options_of(row) if has_options(row) else None
    answer = "" if is_code else text_of(row, ("answer",))
    number = usable(row.values["id"], "'id'", row) if has(row, "id") else row.id
    return Item(
        f"{task}/{number}",
        task,
        usable(content.get("source"), "'content.source'", row),
        text_of(row, ("question",)),
        _context(row, task, content),
        () if options is None else options.texts,
        answer if options is None or is_code else right_letter(options, {"answer": answer}, row),
        text_of(row, ("r_prime",)) if has(row, "r_prime") or not bare else "",
        text_of(row, ("explanation",)) if has(row, "explanation") else "",
        _tests(row, content) if is_code else None,
    )


def _content(row: SourceRow) -> dict[str, Any]:
    value = _parsed(row.values.get("content"), f"{row.where}: 'content'")
    if not isinstance(value, dict):
        raise UserError(f"{row.where}: 'content' is no object; give one with a 'source'")
    return value


def _parsed(value: Any, where: str) -> Any:
    """Reads a cell that may be JSON text; gives None for a text that is no JSON."""
    try:
        return json_of(value, where) if isinstance(value, str) else value
    except NotJson:
        return None


def _context(row: SourceRow, task: Task, content: dict[str, Any]) -> str:
    """Material of the question, as the authors' prompts show it."""
    if task in ("table_reasoning", "paper_review"):
        name = "table" if task == "table_reasoning" else "paper"
        return usable(content.get(name), f"'content.{name}'", row)
    value = content.get("context")
    if task == "logical_reasoning":
        return usable(value, "'content.context'", row) if value else ""
    if task != "context_understanding":
        return ""
    passages = value.get("contexts") if isinstance(value, dict) else value
    if isinstance(passages, str):
        return usable(passages, "'content.context'", row)
    if not isinstance(passages, list | tuple) or not passages:
        raise UserError(f"{row.where}: 'content.context.contexts' holds no passages; give some")
    return "\n".join(usable(p, "'content.context.contexts'", row) for p in passages)


def _tests(row: SourceRow, content: dict[str, Any]) -> CodeTests | None:
    """The public tests of a code row; None where there are none."""
    if context := content.get("code_context"):
        solution = content.get("reference_code")
        return CodeTests(
            "ds1000",
            context=usable(context, "'content.code_context'", row),
            reference=solution if isinstance(solution, str) else "",
        )
    where, given = f"{row.where}: 'content.public_test_cases'", content.get("public_test_cases")
    if not (cases := _parsed(given, where)):
        if given and cases is None:
            raise UserError(f"{where} is not JSON; give a list")
        return None
    if not isinstance(cases, list) or not all(
        isinstance(case, dict) and isinstance(case.get(name), str)
        for case in cases
        for name in ("input", "output")
    ):
        raise UserError(f"{where} holds a test without texts 'input' and 'output'; give both")
    kinds = {case.get("testtype", "stdin") for case in cases}
    if len(kinds) > 1 or not kinds <= {"stdin", "functional"}:
        raise UserError(
            f"{where}: 'testtype' is {', '.join(sorted(map(str, kinds)))}; give stdin or "
            "functional, one for all"
        )
    return CodeTests(kinds.pop(), tuple(TestCase(c["input"], c["output"]) for c in cases))
