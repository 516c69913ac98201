"""Reader of Inspect's logs (`.eval`, or its JSON), through `inspect_ai.log`.

A log that was written from a run (`analysis.exports.inspect_logs`) is read back without loss: what
Inspect has no field for stands in the metadata of each sample, under `OWN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from faithscope.experiments.data.given.cells import facts_of, was_cut, with_options_of_question
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.rules import leave_out
from faithscope.experiments.data.given.thinking import (
    Parted,
    apart,
    chain_of,
    joined,
    reasoning_text,
    refuse_tools,
)
from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks.sources.gold import plain
from faithscope.experiments.data.tasks.sources.rows import SourceRow, begin_file, each, usable
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Sent

_MISSING = ("nan", "none", "null")
"""Texts that stand for a missing target in some logs."""
SUFFIX = ".eval"
OWN = "faithscope"
"""Key of the metadata, of a log and of each sample, that an export from a run writes."""
LABEL = "label_"
"""Beginning of the metadata keys that hold labels, as of columns in rows of your own."""
TOOLS = "tools were called, and the text after a tool's result depends on it"
"""Why a sample is left out."""
_CHAINS = TypeAdapter(GivenChain)


def rows(path: Path) -> list[SourceRow]:
    """The samples of a log, or of all logs in a folder, with attachments put back in.

    Raises:
        UserError: inspect_ai is not installed, or a file is no log with samples.
    """
    if path.is_dir():
        return [row for log in sorted(path.glob(f"*{SUFFIX}")) for row in rows(log)]
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise UserError(
            f"{path}: reading logs of Inspect needs inspect_ai: pip install 'faithscope[inspect]'"
        ) from error
    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except MemoryError:
        raise
    except Exception as error:  # whatever its readers of zip, JSON and schemas come up with
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: is no log of Inspect ({reason}); give a .eval file") from error
    if not log.samples:
        raise UserError(f"{path}: holds no samples (status {log.status}); give a log that has some")
    several = len({sample.epoch for sample in log.samples}) > 1
    read, samples = begin_file(str(path)), []
    for sample in log.samples:
        row = read.row(
            f"{sample.id}.{sample.epoch}" if several else str(sample.id),
            dict(_unread(sample)),
            f"{path}, sample {sample.id!r}, epoch {sample.epoch}",
        )
        cells = row.cells | {"sample": sample, "eval": log.eval}
        samples.append(SourceRow(row.id, cells, row.where))
    return samples


def _unread(sample: Any) -> Iterator[tuple[str, Any]]:
    """Yields (name, value) of the parts of a sample that `chain` has no use for, so that they are
    reported like the unused columns of other files."""
    own = sample.metadata.get(OWN)
    for name, value in sample.metadata.items():
        if name != OWN and not name.startswith(LABEL):
            yield f"metadata.{name}", value
    for name, score in _foreign_scores(sample).items():
        yield f"scores.{name}.explanation", score.explanation
        for key, value in (score.metadata or {}).items():
            if not _is_label(value):
                yield f"scores.{name}.metadata.{key}", value
    if own is not None and sample.scores:
        yield "scores that faithscope measured", True
    for name in ("store", "files", "setup", "error", "limit"):
        if value := getattr(sample, name, None):
            yield name, value


def _foreign_scores(sample: Any) -> dict[str, Any]:
    """The scores of a sample but those that an export wrote from a run."""
    known = (sample.metadata.get(OWN) or {}).get("scored", ())
    return {name: score for name, score in (sample.scores or {}).items() if name not in known}


def chain(row: SourceRow) -> GivenChain:
    """The chain of the sample in a row that `rows` made (`chain_of_sample`)."""
    spec = row.values["eval"]
    dataset = spec.dataset.name or spec.task
    return chain_of_sample(row.values["sample"], dataset, spec.model, row.id, row.where)


def chain_of_sample(sample: Any, dataset: str, model: str, id: str, where: str) -> GivenChain:
    """The chain of one sample: reasoning blocks and text between marks of reasoning are the chain,
    the rest of the reply is the answer; without either the whole reply is the chain. Several
    messages of the model in a row are one reply.

    Reasoning that a service withholds is replaced by its summary, or, without one, by nothing.
    Scores are labels `score_NAME`, and short values in a score's metadata `score_NAME_KEY`; so are
    metadata whose keys begin with `LABEL`. Several targets that are not one answer give no right
    answer; the label `targets` holds them.

    Args:
        sample: an `EvalSample`.
        dataset: name of the chain's data set.
        model: the model that wrote the chain.
        id: id of the chain.
        where: place of the sample, for messages.

    Raises:
        UserError: the question is empty, the target is none of the choices, tools were called,
            the conversation does not begin with the user, a message holds anything but text and
            reasoning, or metadata under `OWN` are not those of an export.
    """
    row = SourceRow(id, {}, where)
    refuse_tools((i for i, m in enumerate(sample.messages) if _is_of_tools(m)), row.where)
    _check_messages(sample.messages, row.where)
    user = [m.text for m in sample.messages if m.role == "user"]
    system = [m.text for m in sample.messages if m.role == "system"]
    if isinstance(sample.input, str):
        question = sample.input
    else:
        question = next((m.text for m in reversed(sample.input) if m.role == "user"), "")
    cut = was_cut(*(c.stop_reason for c in (sample.output.choices if sample.output else ())))
    labels = dict(_score_labels(sample))
    labels |= {
        name.removeprefix(LABEL): value
        for name, value in sample.metadata.items()
        if name.startswith(LABEL)
    }
    if OWN in sample.metadata:
        return _own(sample, labels, cut, where)
    reasoning, answer = _reply(sample, "\n\n".join([*system, *user]), row.where)
    targets, gold = _targets(sample)
    question = usable(question, "the input", row)
    cells: dict[str, Any] = {"gold": gold}
    if sample.choices:
        # a target is the letter of a choice's place, whatever letters the choices begin with
        letters = [chr(ord("A") + i) for i in range(len(sample.choices))]
        cells["options"] = {"label": letters, "text": list(sample.choices)}
    scores = sample.scores or {}
    said_by_scorer = next((s.answer for s in scores.values() if s.answer), None)
    if gold is None and targets:
        labels["targets"] = targets
    answer = said_by_scorer or answer
    earlier = _earlier(sample.messages, row.where)
    stated = SourceRow(row.id, cells, row.where)
    stated, question = with_options_of_question(stated, ("gold",), answer, question)
    return GivenChain(
        id=row.id,
        dataset=dataset,
        question=question,
        reasoning=reasoning,
        **facts_of(stated, ("gold",), answer),
        model=model,
        prompt="\n\n".join([*filter(None, system), *user]) if user and not earlier else None,
        sent=Sent(earlier) if earlier else None,
        labels=labels,
        cut=cut,
        where=row.where,
    )


def _check_messages(messages: Sequence[Any], where: str) -> None:
    """Check that a conversation begins with the user, and that all messages are text.

    Raises:
        UserError: they are not; with the remedy.
    """
    roles = [m.role for m in messages]
    begins = next((i for i, role in enumerate(roles) if role != "system"), 0)
    if "user" in roles and (roles[begins] != "user" or "system" in roles[begins:]):
        raise UserError(
            f"{where}: the roles of its messages are {', '.join(roles)}; a conversation begins "
            "with the user, or with system messages before, so take the sample out"
        )
    for i, message in enumerate(messages):
        parts = message.content if isinstance(message.content, list) else []
        other = next((p.type for p in parts if p.type not in ("text", "reasoning")), None)
        if other is not None:
            raise UserError(
                f"{where}: message {i} ({message.role}) holds a part of type {other!r}, which is "
                "neither text nor reasoning; take the sample out"
            )


def _earlier(messages: Sequence[Any], where: str) -> tuple[tuple[str, str], ...]:
    """Role and text of each message up to the user's last one, system messages as one, where turns
    of user and model precede that; empty if none do. Models are shown no earlier thinking."""
    roles = [m.role for m in messages]
    if roles.count("user") < 2:
        return ()
    last = max(i for i, role in enumerate(roles) if role == "user")
    system = "\n\n".join(m.text for m in messages if m.role == "system")
    turns = [
        (m.role, _parted(m, "", where)[1].strip() if m.role == "assistant" else m.text)
        for m in messages[: last + 1]
        if m.role != "system"
    ]
    return tuple([("system", system), *turns] if system else turns)


def _score_labels(sample: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of the labels that the scores of a sample are."""
    for name, score in _foreign_scores(sample).items():
        if isinstance(score.value, Mapping):
            yield from ((f"score_{name}_{key}", _known(v)) for key, v in score.value.items())
        else:
            yield f"score_{name}", _known(score.value)
        for key, value in (score.metadata or {}).items():
            if _is_label(value):
                yield f"score_{name}_{key}", _known(value)


def _is_label(value: Any) -> bool:
    """Whether a value in a score's metadata is short enough to be a label."""
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 40)


def _own(sample: Any, labels: Mapping[str, Any], cut: bool, where: str) -> GivenChain:
    """The chain of a sample that was written from a run, with the labels of later scorers."""
    own = sample.metadata[OWN]
    try:
        held = dict(own["chain"])
        held["labels"] = {**held["labels"], **labels}
        (reasoning,) = [b.reasoning for b in sample.output.message.content if b.type == "reasoning"]
        texts = {"question": sample.input, "reasoning": reasoning, "options": sample.choices}
        return _CHAINS.validate_python({**held, **texts, "cut": cut, "where": where})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{where}: metadata {OWN!r} are not those that `faithscope export` writes ({reason}); "
            "remove or rename them"
        ) from error


def _targets(sample: Any) -> tuple[list[str], str | None]:
    """All targets, and the right answer: a single target, or the number on which all numeric
    targets agree; None if several choices are right together."""
    listed = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    texts = {plain(text) for text in sample.choices or ()}
    targets = [t for t in listed if t.strip() and (plain(t) in texts or plain(t) not in _MISSING)]
    if len({plain(t) for t in targets}) == 1:
        return targets, targets[0]
    numbers = {n for t in targets if (n := canonical_number(t)) is not None}
    return targets, numbers.pop() if len(numbers) == 1 and not sample.choices else None


def _known(value: Any) -> Any:
    """The value of a score; None if it is NaN, as a scorer gives that could not tell."""
    return None if value != value else value


def _reply(sample: Any, prompt: str, where: str) -> tuple[str, str | None]:
    """Reasoning and answer of the model's last turn, as a rule one message."""
    last = sample.output.message if sample.output and sample.output.choices else None
    if last is None:
        return "", None
    before = []
    for message in reversed(sample.messages[:-1]):
        if message.role != "assistant":
            break
        before.append(message)
    return chain_of([_parted(m, prompt, where) for m in (*reversed(before), last)])


def _is_of_tools(message: Any) -> bool:
    parts = message.content if isinstance(message.content, list) else []
    called = getattr(message, "tool_calls", None) or any(p.type == "tool_use" for p in parts)
    return message.role == "tool" or bool(called)


def _parted(message: Any, prompt: str, where: str) -> Parted:
    if isinstance(message.content, str):
        return apart(message.content, where, prompt)
    blocks = [b for b in message.content if b.type == "reasoning"]
    marked, said, ended = apart(message.text, where, prompt)
    texts = [
        b.summary or "" if b.redacted or not b.reasoning.strip() else reasoning_text(b.reasoning)
        for b in blocks
    ]
    return Parted(joined([*texts, *([] if marked is None else [marked])]), said, ended)


def _chains(rows: Sequence[SourceRow]) -> Iterator[GivenChain]:
    """The chains of all samples but those in which tools were called."""
    kept = (
        row
        for row in rows
        if not any(map(_is_of_tools, row.values["sample"].messages)) or not leave_out(TOOLS)
    )
    yield from each(kept, chain)


INSPECT = Reader(
    "inspect",
    "logs of Inspect (.eval): reasoning blocks, targets and scores",
    lambda row: False,
    _chains,
    rows,
    lambda path: path.suffix == SUFFIX or (path.is_dir() and any(path.glob(f"*{SUFFIX}"))),
)
