"""Logs of Inspect (`.eval`, or its JSON), read through `inspect_ai.log`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faithscope.experiments.data.given.cells import facts_of, was_cut
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.thinking import apart
from faithscope.experiments.data.tasks.sources.rows import Row, usable
from faithscope.interp.errors import UserError


def rows(path: Path) -> list[Row]:
    """The samples of a log, attachments put back in.

    Raises:
        UserError: inspect_ai is not installed, or the file is no log with samples.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise UserError(
            f"{path}: reading logs of Inspect needs inspect_ai: pip install 'faithscope[judge]'"
        ) from error
    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except Exception as error:  # whatever its readers of zip, JSON and schemas come up with
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: is no log of Inspect ({reason}); give a .eval file") from error
    if not log.samples:
        raise UserError(f"{path}: holds no samples (status {log.status}); give a log that has some")
    several = len({sample.epoch for sample in log.samples}) > 1
    return [
        Row(
            f"{sample.id}.{sample.epoch}" if several else str(sample.id),
            {"sample": sample, "eval": log.eval},
            f"{path}, sample {sample.id!r}, epoch {sample.epoch}",
        )
        for sample in log.samples
    ]


def chain(row: Row) -> GivenChain:
    """One sample: reasoning blocks are the chain, what the model then said its answer; without
    blocks, think tags are looked for, and without those the whole reply is the chain.

    Reasoning that a service keeps to itself is its summary, or, without one, nothing. Scores are
    labels `score_NAME`.

    Raises:
        UserError: the question is empty, or the target is none of the choices.
    """
    sample, spec = row.values["sample"], row.values["eval"]
    thought, said = _reply(sample)
    reasoning, answer = (thought, said.strip() or None) if thought is not None else (said, None)
    user = [m.text for m in sample.messages if m.role == "user"]
    system = [m.text for m in sample.messages if m.role == "system"]
    if isinstance(sample.input, str):
        question = sample.input
    else:
        question = next((m.text for m in reversed(sample.input) if m.role == "user"), "")
    target = sample.target if isinstance(sample.target, str) else sample.target[0]
    cells: dict[str, Any] = {"gold": target}
    if sample.choices:
        cells["options"] = list(sample.choices)
    scores = sample.scores or {}
    said_by_scorer = next((s.answer for s in scores.values() if s.answer), None)
    return GivenChain(
        id=row.id,
        dataset=spec.dataset.name or spec.task,
        question=usable(question, "the input", row),
        reasoning=reasoning,
        **facts_of(Row(row.id, cells, row.where), ("gold",)),
        answer=said_by_scorer or answer,
        model=spec.model,
        prompt="\n\n".join([*filter(None, system), *user]) if len(user) == 1 else None,
        labels={f"score_{name}": score.value for name, score in scores.items()},
        cut=was_cut(*(c.stop_reason for c in (sample.output.choices if sample.output else ()))),
        where=row.where,
    )


def _reply(sample: Any) -> tuple[str | None, str]:
    """What was thought, where there is any, and what was said."""
    message = sample.output.message if sample.output and sample.output.choices else None
    if message is None:
        return None, ""
    if isinstance(message.content, str):
        return apart(message.content)
    blocks = [b for b in message.content if b.type == "reasoning"]
    texts = ((b.summary or "") if b.redacted else b.reasoning for b in blocks)
    return ("\n\n".join(filter(None, texts)), message.text) if blocks else apart(message.text)


INSPECT = Reader(
    "inspect",
    "logs of Inspect (.eval): reasoning blocks, targets and scores",
    lambda row: False,
    lambda rows: map(chain, rows),
    rows,
    lambda path: path.suffix == ".eval",
)
