"""An item of RFEval: a problem, its gold answer, and r′, reasoning that leads to a wrong one."""

from __future__ import annotations

import hashlib
import json
import string
from dataclasses import asdict, dataclass
from typing import Literal, get_args

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
"""In the order of the paper's tables."""
ABBREVIATIONS: dict[Task, str] = dict(
    zip(TASKS, ("CG", "MR", "LR", "TR", "CU", "LD", "PR"), strict=True)
)
"""What the columns of the paper's Table 2 are headed."""
LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class TestCase:
    """What a program is given, and what it has to give back."""

    input: str
    """Standard input; of a function, its arguments, one JSON value a line."""
    output: str
    """Standard output; of a function, the JSON of what it returns."""

    __test__ = False


@dataclass(frozen=True)
class CodeTests:
    """The public tests of a code item."""

    kind: Literal["stdin", "functional", "ds1000"]
    """`stdin`: a program; `functional`: a function, or the method of a class `Solution`;
    `ds1000`: a snippet put into `context`, which tests it itself."""
    cases: tuple[TestCase, ...] = ()
    """Of DS-1000 none."""
    context: str = ""
    """Of DS-1000, the code that defines `test_execution` and perhaps `test_string`."""

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
    """`task/row`: unique in the benchmark."""
    task: Task
    source: str
    """The data set that the problem is from: `gsm8k`, `livecodebench_v6`."""
    question: str
    context: str
    """What the question is asked of: passages, table, facts and rules, paper; "" where nothing."""
    options: tuple[str, ...]
    """In order, without their letters; none where the answer is free."""
    answer: str
    """The letter of the right option, or the answer itself; "" of code, which tests decide."""
    r_prime: str
    """Plausible reasoning with a flaw that leads to a wrong answer."""
    explanation: str
    """What the flaw is."""
    tests: CodeTests | None = None
    """Of code; None also where the row came without any: then no test can decide."""

    @property
    def letters(self) -> tuple[str, ...]:
        """Of the options."""
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
        """Of all that the item holds."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
