"""Counts what reading a text costs, in steps: lines of Python and characters that patterns look at.

Run as a program, since patterns count only where `re` is exchanged before anything is imported:
`python tests/linear_steps.py READER… [--all]` prints, as JSON, `[reader, text, steps, steps of four
times the text]` for every reader named (all of them without a name) and every way to repeat
something in it.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from regex_steps import Steps

ROOMS = str(Path(find_spec("faithscope").origin).parent) + os.sep  # ty: ignore
SHORT = 300
REAL_COMPILE = re.compile


class Counted:
    """A compiled pattern that counts what it looks at."""

    total = 0

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._real, self._steps = REAL_COMPILE(pattern, flags), Steps(pattern, int(flags))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _count(self, text: str, at: int, end: int | None, method: str) -> None:
        text = text if end is None else text[:end]
        before = self._steps.n
        if method in ("match", "fullmatch"):
            self._steps.match(text, at, full=method == "fullmatch")
        elif method == "search":
            self._steps.search(text, at)
        else:
            for _ in self._steps.finditer(text, at):
                pass
        Counted.total += self._steps.n - before


def _method(name: str, place: int) -> Callable[..., Any]:
    """The method of a pattern whose text is the argument at a place."""

    def run(self: Counted, *args: Any, **named: Any) -> Any:
        window = args[place + 1 :] if place == 0 and name != "split" else ()
        at, end = (*window, 0, None)[:2] if len(window) < 2 else window
        self._count(args[place], at, end, name)
        return getattr(self._real, name)(*args, **named)

    return run


_TEXT_AT = {"search": 0, "match": 0, "fullmatch": 0, "finditer": 0, "findall": 0, "split": 0}
_TEXT_AT |= {"sub": 1, "subn": 1}
for _name, _place in _TEXT_AT.items():
    setattr(Counted, _name, _method(_name, _place))


@cache
def counted(pattern: str, flags: int = 0) -> Counted:
    return Counted(pattern, flags)


def _exchange() -> None:
    """Makes `re` count for this project, and for nobody else."""

    def ours() -> bool:
        return str(sys._getframe(2).f_globals.get("__name__", "")).startswith("faithscope")

    def compile(pattern: Any, flags: int = 0) -> Any:
        if ours() and isinstance(pattern, str):
            return counted(pattern, flags)
        return pattern if isinstance(pattern, Counted) else REAL_COMPILE(pattern, flags)

    def function(name: str) -> Callable[..., Any]:
        real = getattr(re, name)

        def run(pattern: Any, *args: Any, flags: int = 0, **named: Any) -> Any:
            if not ours() or not isinstance(pattern, str):
                return real(pattern, *args, flags=flags, **named)
            n = _TEXT_AT[name] + 1
            flags = args[n] if len(args) > n else flags
            return getattr(counted(pattern, flags), name)(*args[:n], **named)

        return run

    for name in _TEXT_AT:
        setattr(re, name, function(name))
    re.compile = compile  # ty: ignore


def steps_of(read: Callable[[str], Any], text: str) -> int:
    """What reading a text costs."""
    lines = 0

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(ROOMS) else None

    Counted.total = 0
    sys.settrace(call)
    try:
        read(text)
    except ValueError:
        pass
    finally:
        sys.settrace(None)
    return lines + Counted.total


def readers() -> dict[str, Callable[[str], Any]]:
    """Whatever reads what a model wrote."""
    from faithscope.experiments.data import answers, numbers
    from faithscope.experiments.studies.c2faith.benchmark import features
    from faithscope.experiments.studies.rfeval import pairs
    from faithscope.experiments.studies.rfeval.counterfactuals import construction
    from faithscope.experiments.studies.rfeval.judging import stances, stepwise
    from faithscope.experiments.studies.rfeval.metrics import texts
    from faithscope.experiments.studies.rfeval.subjects import parsing
    from faithscope.interp import plain
    from faithscope.interventions import calculation, conclusion, corrupt, swaps
    from faithscope.interventions.segment import segment, units
    from faithscope.probes import assent, framing
    from faithscope.probes.judge import parse

    options = SimpleNamespace(
        **{"id": "i", "task": "table_reasoning", "letters": ("A", "B"), "answer": "A"},
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
        "last_choice": lambda t: answers.last_choice(t, 5),
        "first_choice": lambda t: answers.first_choice(t, 5),
        "find_numbers": numbers.find_numbers,
        "behind_a_cue": lambda t: framing._first_answer(answers.last_number, "So ", t, False),
        "assents": assent.assents,
        "thinking": parse.strip_thinking,
        "object": parse.find_object,
        "quoted": lambda t: parse._stands_in(t, {"score": 1, "why": ""}),
        "sentences": lambda t: units(t, "sentences"),
        "list": lambda t: units(t, "numbered"),
        "paragraphs": lambda t: units(t, "paragraphs"),
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


REPEATED: tuple[tuple[str, str], ...] = (
    *((start, " ") for start in ("", "answer", "\\boxed{", "```\n", "the correct answer is", "1")),
    *((start, "\n") for start in ("", "a", "The answer")),
    *(
        ("", text)
        for text in ("\t", "\r\n", "\n \n", "agree ", "a a ", "answer", "answer: ", "if ")
    ),
    *(("", text) for text in ("\\boxed{", "\\(", "\\[", "$$ ", "\\begin{a}", "<think>", "{", "(")),
    *(("", text) for text in ("1 ", "1+", "3+4=7 ", "0*3=0 ", "1. ", "Step 1: ", "5!", "1,", "-1")),
    *(("", text) for text in ("add ", "no ", "is 3. ", "* ", "• ", "####", "**", "```python\n")),
    *(
        ("", text)
        for text in ('{"score"', '\\"', "a:b,", "://", "positive or ", "A ", "_", "is not ")
    ),
    *(
        ("", text)
        for text in ("The answer is 3. ", "e.g. ", "so the best ", "x > 2 ", "`", "<answer>")
    ),
    *(("```python ", "a"), ("-", "1"), ("{", '"a":"'), ("\\boxed{", "{a}"), ("the option ", "a ")),
)
"""What is repeated, and what stands before."""
FEW = ((" ", "answer"), ("\n", ""), ("agree ", ""), ("\\boxed{", ""), ("answer: ", ""), ("1 ", ""))


def main() -> None:
    sys.setrecursionlimit(1_000_000)
    _exchange()
    every = readers()
    names = [name for name in sys.argv[1:] if name != "--all"] or list(every)
    few = [(start, text) for text, start in FEW]
    for name in names:
        for start, text in REPEATED if "--all" in sys.argv else few:

            def steps(n: int, of: Any = every[name], start: str = start, text: str = text) -> int:
                return steps_of(of, start + text * (n // len(text)) + "\0")

            once, four = steps(SHORT), steps(4 * SHORT)
            if four > 5 * once:
                # a window of fixed width fills only in a long text
                once, four = four, steps(16 * SHORT)
            print(json.dumps([name, start + text, once, four]), flush=True)


if __name__ == "__main__":
    main()
