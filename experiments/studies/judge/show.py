"""Views of one given chain on page and terminal: its steps, its labels, and all judgements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from faithscope.experiments.analysis.item_view import (
    narrowed,
    print_item,
    print_records,
    reply_block,
)
from faithscope.experiments.analysis.page import Block, Fold, Step, Steps, Verbatim
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.studies.judge.chains import JudgedChain
from faithscope.experiments.studies.judge.results import JudgeResults, results
from faithscope.experiments.studies.judge.verdicts import wrong
from faithscope.probes.record import Record


def show_item(
    run_dir: str | Path,
    item: str,
    model: str | None = None,
    task: str | None = None,
    console: Console | None = None,
) -> None:
    """Print all that a run holds of a chain: its steps and labels, prompts, replies, verdicts.

    Args:
        model, task: only this judge; only this form.

    Raises:
        UserError: no such chain, judge or form in the run, with what was probably meant.
    """
    console = console or Console()
    read = results(load_run(run_dir))
    keys = [key for key in read.run.index if key[0] in READINGS]
    keys.sort(key=lambda k: (model_order(k[1]), k[2], k[3], k[0]))
    keys = narrowed(keys, "judgements", item, model, task)
    for name in dict.fromkeys(key[3] for key in keys):
        print_item(console, chain_block(read, read.chains[name]))
        for key in (k for k in keys if k[3] == name):
            print_records(console, read.run.index, key, judgement_block)


def chain_block(read: JudgeResults, chain: JudgedChain) -> Fold:
    """A chain with what judges and labels say of each of its steps."""
    said = {
        i: [row for row in read.steps if (row["item"], row["step"]) == (chain.id, i)]
        for i in chain.places
    }
    shown = []
    for i, text in enumerate(chain.steps):
        flags = [row["flag"] for row in said.get(i, []) if row["flag"] is not None]
        level = (
            "unknown" if not flags else "all" if all(flags) else "some" if any(flags) else "none"
        )
        by = f"flagged by {sum(flags)} of {len(flags)} judgements" if flags else "not judged"
        blocks: list[Block] = [f"{by}."]
        for name, of_steps in chain.step_labels.items():
            if of_steps[i] is not None:
                blocks.append(f"Its label {name} is {of_steps[i]}.")
        mark = {"all": "●", "some": "◐", "none": "○", "unknown": "·"}[level]
        number = i if chain.counted[i] else None
        shown.append(Step(text, number, level, mark, by, by, blocks=blocks))
    writer = f" · {chain.model}" if chain.model else ""
    labels = "; ".join(f"{name}: {value}" for name, value in _told(read, chain))
    blocks = [Verbatim(chain.question), Steps(shown)]
    if chain.answer is not None:
        blocks.append(Verbatim(f"Answer: {chain.answer}"))
    blocks.append(f"Its labels are {labels}." if labels else "It has no labels.")
    return Fold(f"{chain.id}{writer}", blocks, "printed")


def _told(read: JudgeResults, chain: JudgedChain) -> Iterator[tuple[str, str]]:
    for name, value in chain.labels.items():
        is_wrong = wrong(name, value, read.config.good)
        meaning = "" if is_wrong is None else " (wrong)" if is_wrong else " (all is well)"
        yield name, f"{value}{meaning}"


def judgement_block(record: Record) -> Fold:
    """One judgement with its prompt and reply, and the judge's probability of each verdict."""
    parts = [record["judge"], record["variant"], READINGS[record["probe"]], record["item"]]
    if record["step"] is not None:
        parts.append(f"step {record['step']}")
    chances = "   ".join(f"{x:.3f}" for x in record["probabilities"][:12])
    return reply_block(record, parts, chances and f"{chances}\nmass {record['mass']:.3g}")
