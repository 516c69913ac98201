"""Does `interchange` tell texts that describe their model from texts that do not?

    python benchmarks/text_liars.py --out text_liars.csv

Models are functions whose truth is known: those of `told_own.py` and `told_forms.py`, by the author
of the measure, and those of `told_held_out.py`, `told_third.py`, `told_fourth.py` and
`told_fifth.py`, by four authors who had seen `told.py` and nothing of the measure. Version 2 of the
measure was scored on the second author's once, version 3 on the third's, versions 3 and 4 on the
fourth's, and version 5 on the fifth's; whoever wrote version 5 knew all but the last. Version 6 was
written with all of these known; those of `told_sixth.py` are of its own author, who wrote them
after it was fixed and scored it on them once. Version 7 was scored once on those of a seventh, who
had seen `told.py` and nothing of the measure. A row is a model, or all liars or all honest models
of an author. The texts of a model are a run of their own, over which the rule of `program_verdict`
is applied.

Columns:
    texts, lies     chains, and those that do not describe how the answer came about
    read            share of the chains that the rule reads as a program
    found           share of the read lies that are called untrue
    false_alarms    share of the read true texts that are called untrue
    not_judged      share of the read texts that fail, of which the run cannot say whether untrue
    fails           share of the read lies (of an honest model, its true texts) with a score below 1
    PART            mean share of the part over the read lies (of an honest model, its true texts)
    auroc           of the score, lies against the true texts of all honest models of the author
    low, high       95 % interval over models: all models of an author drawn with replacement
    alterations     mean number a text
    left            share of them that are evidence
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

sys.path.append(str(Path(__file__).parent))
import told_forms
from told import Told

from faithscope.interventions import NotExecutable, Program, program_of, segment
from faithscope.interventions.alterations import Alteration, alterations
from faithscope.probes.program_evidence import PARTS, Reply, evidence
from faithscope.probes.program_verdict import untrue

AUTHORS = {
    "own": "told_own",
    "second": "told_held_out",
    "third": "told_third",
    "fourth": "told_fourth",
    "fifth": "told_fifth",
    "sixth": "told_sixth",
    "seventh": "told_seventh",
}
"""Author -> module with their models."""


def models_of(author: str) -> list[Told]:
    models = import_module(AUTHORS[author]).MODELS
    return [*models, *told_forms.MODELS] if author == "own" else list(models)


def scores(
    model: Told, texts: int, seed: int, read: Callable[[str, str, str], Program] = program_of
) -> list[dict]:
    """One row per text.

    Args:
        read: (question, chain, answer) -> the program of the chain.
    """
    rng = random.Random(f"{model.name}-{seed}")
    rows = [_score(model, model.question(rng), f"{seed}-{i}", read) for i in range(texts)]
    measured = [row for row in rows if "replies" in row]
    for row, called in zip(measured, untrue([row.pop("replies") for row in measured]), strict=True):
        row["untrue"] = called
    return rows


def _score(model: Told, question: str, seed: str, read: Callable[[str, str, str], Program]) -> dict:
    chain = model.go_on(question, "")
    row = {"model": model.name, "true": model.true(question)}
    answer = model.answer(question, chain)
    try:
        program = read(question, chain, answer)
    except NotExecutable as error:
        return row | {"excluded": error.reason}
    steps = [step.chars for step in segment(list(chain))]
    altered = alterations(program, question, chain, steps, seed)
    found = evidence(program, chain, altered, [_reply(model, one) for one in altered])
    if found.score is None:
        return row | {"excluded": "result_in_prose" if found.unread else "nothing_that_it_can_do"}
    parts = {part: found.share(part) for part in PARTS}
    replies = [(o.part, o.share, o.excuse) for o in found.outcomes]
    row |= parts | {"score": found.score, "left": found.left, "alterations": len(altered)}
    return row | {"replies": replies}


def _reply(model: Told, one: Alteration) -> Reply:
    """No answer where the function cannot read the altered question."""
    try:
        text = one.chain if one.whole else model.go_on(one.question, one.chain or "")
        return Reply(model.answer(one.question, text or ""), text or "")
    except (ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError):
        return Reply(None)


def table(models: Sequence[Told], texts: int, seed: int, author: str) -> pd.DataFrame:
    frame = pd.DataFrame([row for model in models for row in scores(model, texts, seed)])
    honest = {model.name for model in models if frame[frame.model == model.name].true.all()}
    lines = [
        _line(of, frame, author, name, name in honest)
        for name, of in frame.groupby("model", sort=False)
    ]
    is_honest = frame["model"].isin(list(honest))
    for name, of in (
        ("all liars", frame.loc[~is_honest]),
        ("all honest models", frame.loc[is_honest]),
    ):
        line = _line(of, frame, author, name, name == "all honest models")
        lines.append(line | _interval(of, frame.loc[is_honest], name, seed))
    return pd.DataFrame(lines)


def _line(of: Any, frame: Any, author: str, name: Any, honest: bool) -> dict:
    read = of[of.score.notna()]
    lies, true = read[~read.true], read[read.true]
    shown = true if honest else lies
    honest_ones = frame[frame.true & frame.score.notna()]
    return {
        "author": author,
        "model": name,
        "texts": len(of),
        "lies": int((~of.true).sum()),
        "read": len(read) / len(of),
        "found": _called(lies),
        "false_alarms": _called(true),
        "not_judged": read.untrue.isna().mean(),
        "fails": (shown.score < 1).mean(),
        **{part: shown[part].astype(float).mean() for part in PARTS},
        "auroc": _auroc(lies.score, honest_ones.score) if len(lies) else None,
        "alterations": read.alterations.mean(),
        "left": read.left.mean(),
    }


def _called(of: Any) -> float | None:
    return float((of.untrue == True).mean()) if len(of) else None  # noqa: E712


def _auroc(lies: pd.Series, true: pd.Series) -> float:
    return float(roc_auc_score([1] * len(lies) + [0] * len(true), [*-lies, *-true]))


def _interval(of: Any, honest: Any, name: str, seed: int) -> dict:
    """Over models drawn with replacement: of the AUROC of all liars, of false alarms."""
    rng = np.random.default_rng(seed)

    def drawn(frame: Any) -> Any:
        groups = [g for _, g in frame[frame.score.notna()].groupby("model")]
        return pd.concat([groups[i] for i in rng.integers(len(groups), size=len(groups))])

    values = []
    for _ in range(500):
        true = drawn(honest)
        if name == "all honest models":
            values.append(_called(true))
        else:
            lies = drawn(of)
            values.append(_auroc(lies[~lies.true].score, true[true.true].score))
    low, high = np.percentile(values, [2.5, 97.5])
    return {"low": low, "high": high}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--author", action="append", choices=AUTHORS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen = {a: models_of(a) for a in options.author or AUTHORS}
    frame = pd.concat([table(m, options.texts, options.seed, a) for a, m in chosen.items()])
    frame = frame.round(3)
    print(frame.to_string(index=False))
    if options.out:
        frame.to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
