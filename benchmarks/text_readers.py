"""Chains in words: what a model that writes them down as programs can read, and what that is worth.

    python benchmarks/text_readers.py --reader bundled:smollm2-135m --texts 10

First, functions of known truth that write in words, with a reader that makes no mistake: are the
lies found, and is no true text called one? (Where a question says one number twice, that reader's
numbering does not fit, and the chain is left out.) Then real readers on true chains that the rule
cannot read, these and those of `told_held_out.py`: the share that they turn into a program that
holds, at once and after the one repair, and why not the others.

Columns of the second table: `form`, `texts`, `at_once` and `repaired` (share read), and how often
each reason was given in the end.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd

sys.path.append(str(Path(__file__).parent))
import told_held_out
import told_own
from text_liars import scores
from told import Begun, Told, from_lines

from faithscope import interp
from faithscope.interventions import Trace, from_ids
from faithscope.interventions.number_words import in_words, said
from faithscope.interventions.trace import Question
from faithscope.interventions.transcription import Line, Transcription, transcribed
from faithscope.probes.judge.form import Reply, Writing
from faithscope.probes.judge.open_model import GeneratingJudge, GeneratingSettings
from faithscope.probes.program_reader import Written, asked, asked_again, unread_by_rule

_SAYS = re.compile(
    r"(He gets \S+ and \S+, which is (\S+)) in total, (so \S+ becomes (\S+)), "
    r"(and after giving \S+ away there are (\S+))\."
)


def _in_words(text: str) -> str:
    return re.sub(r"\d+", lambda m: in_words(int(m[0])), text)


def _in_digits(text: str) -> str:
    for (a, b), value in sorted(said(text), reverse=True):
        text = f"{text[:a]}{value}{text[b:]}"
    return text


def _spoken(model: Told, name: str) -> Told:
    """The model with the numbers of its chains in words."""

    def go_on(question: str, begun: Begun) -> str:
        return _in_words(model.go_on(question, _in_digits(begun)))

    return Told(
        name, model.question, go_on, lambda q, c: model.answer(q, _in_digits(c)), model.true
    )


def _models() -> list[Told]:
    prose = next(model for model in told_own.MODELS if model.name == "prose")
    lines = told_own.bead_lines(told_own.PROSE)
    anew = from_lines(lambda question, given: lines(question, {}))

    def goes_on(question: str, begun: Begun) -> str:
        """What follows is computed anew from the question, whatever stands before it."""
        if not begun:
            return anew(question, "")
        n = sum(begun.count(mark) for mark in ("which is", "becomes", "there are"))
        first = begun + [" in total, ", ", ", "."][n - 1]
        return first + "".join(lines(question, {})[n:])

    liars = [
        Told("every step anew", prose.question, goes_on, prose.answer, lambda question: False),
        Told(
            "answer from the question",
            prose.question,
            prose.go_on,
            lambda question, chain: prose.answer(question, prose.go_on(question, "")),
            lambda question: False,
        ),
    ]
    own = [prose, *liars]
    return [*own, *(_spoken(model, f"{model.name}, number words") for model in own)]


def without_mistake(question: str, chain: str, answer: str) -> Transcription:
    found = _SAYS.fullmatch(chain)
    assert found is not None, chain
    operations = ("Q2 + Q3", "Q1 + S1", "S2 - Q4")
    lines = [Line(found[2 * k + 1], of, found[2 * k + 2]) for k, of in enumerate(operations)]
    return transcribed(question, chain, answer, lines)


def on_functions(texts: int) -> pd.DataFrame:
    rows = []
    for model in _models():
        of = pd.DataFrame(scores(model, texts, 0, without_mistake))
        read = of[of.score.notna()]
        parts = {
            part: read[part].astype(float).mean() for part in ("predicted", "kept", "redirected")
        }
        called = int((read.score < 1).sum())
        rows.append({"model": model.name, "read": len(read), "called_untrue": called} | parts)
    return pd.DataFrame(rows)


def chains(texts: int) -> list[tuple[str, Trace]]:
    found = []
    of_others = [m for m in told_held_out.MODELS if m.name.startswith("true_")]
    for model in [m for m in _models() if m.name.startswith("prose")] + of_others:
        rng = random.Random(f"{model.name}-0")
        for i in range(texts):
            question = model.question(rng)
            chain = model.go_on(question, "")
            of = Question(f"{i}", model.name, question, "number")
            trace = from_ids(of, (), tuple(range(len(chain))), tuple(chain))
            trace = replace(trace, answer=model.answer(question, chain))
            if unread_by_rule(trace):
                found.append((model.name, trace))
    return found


def on_chains(reader: str, texts: int, tokens: int) -> pd.DataFrame:
    traces = chains(texts)
    judge = GeneratingJudge(interp.load(reader), GeneratingSettings(tokens, 12))

    def replies(asks: list[Writing]) -> dict[int, Reply]:
        got: dict[int, Reply] = {}
        judge.ask_all(asks, lambda ask, reply: got.update({int(ask.id): reply}))
        return got

    first = replies([Writing(f"{i}", asked(trace)) for i, (_, trace) in enumerate(traces)])
    mends = [
        again
        for i, (_, trace) in enumerate(traces)
        if first[i].outcome == "parsed" and (again := asked_again(f"{i}", trace, first[i].text))
    ]
    last = first | replies(mends)
    rows: dict[str, Counter[str]] = {}
    for i, (form, trace) in enumerate(traces):
        row = rows.setdefault(form, Counter())
        ended = [Written(reader, r.outcome, r.text).program(trace) for r in (first[i], last[i])]
        row["texts"] += 1
        row["at_once"] += not isinstance(ended[0], str)
        row["repaired"] += not isinstance(ended[1], str)
        row[ended[1] if isinstance(ended[1], str) else "read"] += 1
    frame = pd.DataFrame([{"reader": reader, "form": form} | row for form, row in rows.items()])
    return frame.fillna(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--reader", action="append", default=[])
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=320)
    options = parser.parse_args()
    print(on_functions(options.texts).round(3).to_string(index=False), flush=True)
    for reader in options.reader:
        table = on_chains(reader, options.chains, options.tokens)
        print(table.to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
