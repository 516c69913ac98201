"""Reading a model's text takes time proportional to its length, whatever the text is.

Readers are found by their type: every function of the product that asks for one text. Measured in
CPU time of this thread, which a busy machine does not lengthen: a text four times as long takes at
most `LIMIT` times as long (2.6 a doubling), while a quadratic reader takes up to sixteen times.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import faithscope
from faithscope.experiments.data import answers, choices, numbers
from faithscope.experiments.extras.counterfactuals import construction
from faithscope.experiments.studies.c2faith.benchmark import features
from faithscope.experiments.studies.rfeval import pairs
from faithscope.experiments.studies.rfeval.judging import stances, stepwise
from faithscope.experiments.studies.rfeval.subjects import parsing
from faithscope.experiments.studies.rfeval.tables import texts
from faithscope.interp import plain
from faithscope.interventions import calculation, conclusion, corrupt, function_of, swaps
from faithscope.interventions.segment import segment, units
from faithscope.probes import assent, framing
from faithscope.probes.judge import parse

LIMIT = 2.6**2
ENOUGH, LONGEST = 0.005, 200_000
"""Seconds that can be measured reliably, and the length of the longest text."""
TEXTS = {"text", "line", "reply", "written", "step", "plain", "words", "template", "answer", "rest"}
"""Names of parameters that are texts of models or of users' files."""
BOUNDED = {"_parsed", "say", "to_stderr", "_loaded", "_pairs"}
"""Functions of one text that print it, or that are called for short texts or our own alone."""


def of_one_text() -> dict[str, Callable[[str], Any]]:
    """Every function of the product that asks for one text and nothing else, by its place."""
    found: dict[str, Callable[[str], Any]] = {}
    for module in modules():
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            parameters = inspect.signature(function).parameters.values()
            asked = [p for p in parameters if p.default is inspect.Parameter.empty]
            is_text = len(asked) == 1 and asked[0].annotation == "str" and asked[0].name in TEXTS
            if is_text and name not in BOUNDED:
                found[f"{module.__name__.removeprefix('faithscope.')}.{name}"] = function
    return found


def modules() -> Iterator[ModuleType]:
    for room in faithscope.__path__:
        for folder, folders, files in os.walk(room, followlinks=True):
            folders[:] = sorted({*folders} - {"docs", "__pycache__", "extras"})
            for file in sorted(files):
                path = Path(folder, file).relative_to(Path(room).parent).with_suffix("")
                if file.endswith(".py") and path.name != "__main__":
                    with suppress(ImportError):  # parts that need packages which are not installed
                        yield importlib.import_module(
                            ".".join(path.parts).removesuffix(".__init__")
                        )


def readers() -> dict[str, Callable[[str], Any]]:
    """Name -> reader of a text that asks for more than the text, or is found at two depths."""
    options = SimpleNamespace(
        **{"id": "i", "task": "table_reasoning", "letters": ("A", "B"), "answer": "A"},
        naming="letters",
        options=("supports", "refutes"),
    )
    free = SimpleNamespace(id="i", task="mathematics", letters=(), options=(), answer="18")

    def pieces(text: str) -> list[str]:
        return [text[i : i + 4] for i in range(0, len(text), 4)]

    def drawn(swap: Callable[..., Iterator[Any]], *more: Any) -> Callable[[str], Any]:
        return lambda t: list(swap(t, random.Random(1), *more))

    return {
        "last_label": lambda t: answers.last_label(t, ["positive", "negative"]),
        "last_category": lambda t: answers.last_category(t, ["World", "Sports"]),
        "last_number": answers.last_number,
        "first_number": answers.first_number,
        "last_choice": lambda t: choices.last_choice(t, 5),
        "first_choice": lambda t: choices.first_choice(t, 5),
        "find_numbers": numbers.find_numbers,
        "canonical_number": numbers.canonical_number,
        "behind_a_cue": lambda t: framing._first_answer(answers.last_number, "So ", t, False),
        "assents": assent.assents,
        "thinking": parse.strip_thinking,
        "object": parse.find_object,
        "quoted": lambda t: parse._stands_in(t, {"score": 1, "why": ""}),
        "sentences": lambda t: units(t, "sentences"),
        "list": lambda t: units(t, "numbered"),
        "paragraphs": lambda t: units(t, "paragraphs"),
        "thoughts": lambda t: units(t, "thoughts"),
        "function": function_of,
        "steps": lambda t: segment(pieces(t)),
        "conclusion": lambda t: conclusion.split_conclusion(pieces(t)),
        "calculations": calculation.calculations,
        "wrong_alone": calculation.is_wrong_alone,
        "miscalculation": lambda t: calculation.miscalculation(t, 1),
        "corruption": lambda t: corrupt.corruption(t, 1),
        "numeric": drawn(swaps.numeric_swaps, 1),
        "operators": drawn(swaps.operator_swaps),
        "comparators": drawn(swaps.comparator_flips),
        "output": parsing.parse_output,
        "output_without_marks": lambda t: parsing.parse_output(t, "unmarked"),
        "output_as_released": lambda t: parsing.parse_output(t, "written", True, True),
        "stance": lambda t: stances.stance_of_answer(options, t),
        "free_stance": lambda t: stances.stance_of_answer(free, t),
        "counterfactual": lambda t: construction.with_counterfactual(free, t),
        "code": lambda t: pairs.code_of(parsing.Output("", t, t, "complete")),
        "reasoning_steps": stepwise.split_steps,
        "step_reward": texts.step_reward,
        "math_density": features.math_symbol_density,
        "passwords": plain.without_passwords,
        "cell": plain.as_cell,
    }


READERS = readers()
REPEATED: tuple[tuple[str, str], ...] = (
    *(
        ("", text)
        for text in ("\\frac{", "\\sqrt{1}", "1 000", "2 hours ", "x > 1 ", "1万", "$1k", "(1")
    ),
    *(
        ("", text)
        for text in ("Answer: A or ", "So A, ", "Wait, ", "would be A if ", "A. \n", "答案是1")
    ),
    *(
        (start, " ")
        for start in (
            "",
            "answer",
            "\\boxed{",
            "```\n",
            "the correct answer is",
            "1",
            "1 +",
            "=",
            "x^",
        )
    ),
    *((start, "\n") for start in ("", "a", "The answer")),
    *(
        ("", text)
        for text in ("\t", "\r\n", "\n \n", "agree ", "a a ", "answer", "answer: ", "if ")
    ),
    *(("", text) for text in ("\\boxed{", "\\(", "\\[", "$$ ", "\\begin{a}", "<think>", "{", "(")),
    *(("", text) for text in ("1 ", "1+", "3+4=7 ", "0*3=0 ", "1. ", "Step 1: ", "5!", "1,", "-1")),
    *(("", text) for text in ("add ", "no ", "is 3. ", "* ", "• ", "####", "**", "```python\n")),
    *(("", text) for text in ("so, ", "Hmm. ", "Wait. ", "Okay so ")),
    *(
        ("", text)
        for text in ('{"score"', '\\"', "a:b,", "://", "positive or ", "A ", "_", "is not ")
    ),
    *(
        ("", text)
        for text in ("The answer is 3. ", "e.g. ", "so the best ", "x > 2 ", "`", "<answer>")
    ),
    *(("```python ", "a"), ("-", "1"), ("{", '"a":"'), ("\\boxed{", "{a}"), ("the option ", "a ")),
    *(("\\boxed{", "x = 1\n"), ("\\boxed{", "A, "), ("#### ", "x = 1\n"), ("</athi", "thought")),
    *(("", text) for text in ("x = 1\n", "T - 18 ", "<b>", "<answer>1", "B or ", "(1,", "1, - ")),
)
"""(beginning, repeated text) pairs that could make a reader slow."""
FEW = (("answer", " "), ("", "\n"), ("", "agree "), ("", "\\boxed{"), ("", "answer: "), ("", "1 "))


def seconds(read: Callable[[str], Any], text: str) -> float:
    gc.disable()  # what it takes grows with all that the tests hold
    began = time.thread_time()
    with suppress(Exception):  # a text may be none of a reader's
        read(text)
    taken = time.thread_time() - began
    gc.enable()
    return taken


def growth(read: Callable[[str], Any], start: str, repeated: str, tries: int = 4) -> float:
    """Ratio of reading times of a text and one a quarter as long; the least of `tries`. It is 0 if
    the longest text takes no time that could be told from noise."""

    def text(n: int) -> str:
        return start + repeated * (n // len(repeated)) + "\0"

    n = 2_000  # more than the windows in which readers look around a place
    while 4 * n < LONGEST and min(seconds(read, text(n)), seconds(read, text(n))) < ENOUGH:
        n *= 2
    found = float("inf")
    for _ in range(tries):
        long = seconds(read, text(4 * n))
        found = min(found, long / max(seconds(read, text(n)), 1e-6) if long > ENOUGH else 0)
        if found <= LIMIT:
            break
        # no text comes twice, of which an answer might be kept; longer ones, since a text that just
        # outgrows a processor's cache takes more than its share
        n = n * 3 // 2 + len(repeated)
    return found


@pytest.mark.parametrize("texts", [FEW, pytest.param(REPEATED, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
@pytest.mark.in_time(14)
def test_reading_takes_linear_time(name: str, texts: tuple[tuple[str, str], ...]) -> None:
    measured = {start + text: growth(READERS[name], start, text) for start, text in texts}
    assert {text: times for text, times in measured.items() if times > LIMIT} == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_function_of_a_text_takes_linear_time(part: int) -> None:
    found = of_one_text()
    assert len(found) > 100
    slow = {
        f"{name}: {start + text!r}": times
        for name, read in list(found.items())[part::8]
        for start, text in REPEATED
        if (times := growth(read, start, text)) > LIMIT
    }
    assert slow == {}


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "linear"), [("a*b", False), ("(?<!a)a*+b", True)])
def test_what_is_quadratic_is_told_from_what_is_not(pattern: str, linear: bool) -> None:
    assert (growth(re.compile(pattern).findall, "", "a") <= LIMIT) is linear
