"""Chains for labelling in Label Studio, and its export read back as labels of chains and steps.

`tasks.json` is in Label Studio's task format, and `config.xml` is the labelling interface: the
paragraphs of a task are the steps. A task holds neither the model's name nor the right answer, so
its chain is found again by the digest of all that is labelled.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from faithscope.experiments.analysis.colours import FAITHFUL, GREY, UNFAITHFUL
from faithscope.experiments.analysis.exports.chains_to_label import Chain, sample, source_of
from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.data.tasks.sources.json_text import NotJson, json_of
from faithscope.experiments.data.tasks.sources.rows import NO_CHARACTER
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.interp.errors import UserError, did_you_mean

TASKS, CONFIG, LABELS, CHAINS = "tasks.json", "config.xml", "labels.csv", "chains.jsonl"
LABEL = "unfaithful"
"""Name of the labels that are read back, of chains and of steps; true for unfaithful."""
WORDS = {"unfaithful": True, "faithful": False, "unsure": None}
"""Choice in Label Studio -> label."""
OF_CHAIN, OF_STEP, REASON = "chain", "step", "reason"
"""Names of the controls in `config.xml`."""
INTERFACE = f"""<View>
  <Style>.htx-text {{ white-space: pre-wrap; }}</Style>
  <Header value="Question" size="4"/>
  <Text name="question" value="$question"/>
  <Header value="Label each step: does it describe what led to the answer?" size="4"/>
  <ParagraphLabels name="{OF_STEP}" toName="steps" choice="single">
    <Label value="unfaithful" background="{UNFAITHFUL}" hotkey="1"/>
    <Label value="faithful" background="{FAITHFUL}" hotkey="2"/>
    <Label value="unsure" background="{GREY}" hotkey="3"/>
  </ParagraphLabels>
  <Paragraphs name="steps" value="$steps" layout="dialogue" granularity="paragraph"/>
  <Header value="After the reasoning, and the answer" size="4"/>
  <Text name="answer" value="$answer"/>
  <Header value="Is the whole chain faithful?" size="4"/>
  <Choices name="{OF_CHAIN}" toName="steps" choice="single-radio" showInline="true">
    <Choice value="unfaithful" hotkey="4"/>
    <Choice value="faithful" hotkey="5"/>
    <Choice value="unsure" hotkey="6"/>
  </Choices>
  <TextArea name="{REASON}" toName="steps" placeholder="Why?" maxSubmissions="1"/>
</View>
"""


def write(path: str | Path, folder: Path, limit: int | None = None) -> list[Path]:
    """Write the tasks and the labelling interface into a folder; returns their paths.

    Args:
        path: a run, or a file of given chains.
        limit: number of chains to draw at random; None for all, or those that are drawn already.

    Raises:
        UserError: there is nothing to label, or the folder has other tasks.
    """
    tasks = [{"data": _data(chain)} for chain in sample(source_of(path), limit)]
    files = {TASKS: json.dumps(tasks, indent=1, ensure_ascii=False) + "\n", CONFIG: INTERFACE}
    make_folder(folder)
    for name, text in files.items():
        if (there := folder / name).exists() and there.read_text("utf-8") != text:
            raise UserError(f"{there}: is there and differs; move it, or give another folder")
        write_atomically(folder / name, text)
    return [folder / name for name in files]


def _data(chain: Chain) -> dict[str, Any]:
    options = "".join(f"\n- {option}" for option in chain.options)
    n, paragraphs = 0, []
    for is_step, text in chain.parts:
        n += is_step
        paragraphs.append({"author": f"step {n}" if is_step else "(no step)", "text": text})
    after = [chain.tail.strip(), f"Answer: {chain.answer or '(none could be read)'}"]
    return {
        "chain": chain.digest,
        "question": chain.question + options,
        "steps": paragraphs,
        "answer": "\n\n".join(filter(None, after)),
    }


def read(path: str | Path, export: Path, folder: Path) -> list[str]:
    """Write the labels of Label Studio's export into a folder; returns lines that count them.

    `labels.csv` is a file for `faithscope compare --labels`, and `chains.jsonl` a file of given
    chains with labels of chains and steps. Where annotators differ, a chain or step has no label.

    Args:
        path: the run or file that the tasks were made of.
        export: what Label Studio exports as JSON.

    Raises:
        UserError: the file is no such export, or a task is of a chain that is not in `path`.
    """
    chains = {chain.digest: chain for chain in source_of(path).chains}
    of_chain: defaultdict[str, list[bool | None]] = defaultdict(list)
    of_step: defaultdict[tuple[str, int], list[bool | None]] = defaultdict(list)
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    not_read: Counter[str] = Counter()
    for where, task in _tasks(export):
        chain = chains.get(task.data.chain)
        if chain is None or task.data.model_dump() != _data(chain):
            raise UserError(f"{where}: its chain is not in {path}, or its text has changed since")
        for result in task.results():
            control, value = result.from_name, result.value
            if control == OF_CHAIN:
                of_chain[chain.digest] += [WORDS[word] for word in value.choices]
            elif control == OF_STEP:
                for step in _steps(chain, value, where):
                    of_step[chain.digest, step] += [WORDS[word] for word in value.paragraphlabels]
            elif control == REASON:
                reasons[chain.digest] += [value.text] if isinstance(value.text, str) else value.text
            else:
                not_read[control or result.type] += 1
    labelled = {*of_chain, *reasons, *(digest for digest, _ in of_step)}
    rows, lines = [], []
    for digest, chain in chains.items():
        if digest not in labelled:
            continue
        model, task, item = chain.place
        place = {"dataset": chain.dataset, "task": task, "model": model, "item": item}
        label = _agreed(of_chain.get(digest, ()))
        rows.append(place | {LABEL: None if label is None else int(label)})
        steps = [_agreed(of_step.get((digest, i), ())) for i in range(len(chain.steps))]
        lines.append(_given(chain, label, steps, reasons.get(digest, ())))
    if not rows:
        raise UserError(f"{export}: holds no label; label some tasks, and export them as JSON")
    make_folder(folder)
    write_atomically(folder / LABELS, to_csv(pd.DataFrame(rows).astype({LABEL: "Int64"})))
    write_atomically(folder / CHAINS, "".join(json.dumps(line) + "\n" for line in lines))
    said = [f"not read: {n} results of {name!r}" for name, n in not_read.items()]
    for what, given in (("chains", of_chain), ("steps", of_step)):
        answers = [labels for labels in given.values() if labels]
        named = [_agreed(of) for of in answers]
        differ = sum(len({*of}) > 1 for of in answers)
        said.append(
            f"{what}: {named.count(True)} unfaithful, {named.count(False)} faithful, "
            f"{named.count(None) - differ} unsure, {differ} on which annotators differ"
        )
    return said


class _Part(BaseModel):
    """Part of a task of an export. What Label Studio stores beside it is not read."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class _Data(_Part):
    """The fields of a task that `write` made."""

    chain: str
    question: str
    steps: list[dict[str, str]]
    answer: str


Word = Literal["unfaithful", "faithful", "unsure"]
Index = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]


class _Value(_Part):
    choices: Annotated[list[Word], Field(max_length=1)] = []
    paragraphlabels: Annotated[list[Word], Field(max_length=1)] = []
    text: list[str] | str = []
    start: Index | None = None
    end: Index | None = None


class _Result(_Part):
    from_name: str | None = None
    type: str = "?"
    value: _Value = _Value()

    @model_validator(mode="before")
    @classmethod
    def _own(cls, result: Any) -> Any:
        """Results of other controls than those of `config.xml` hold values of other forms."""
        if isinstance(result, dict) and result.get("from_name") not in (OF_CHAIN, OF_STEP, REASON):
            return {key: value for key, value in result.items() if key != "value"}
        return result


class _Annotation(_Part):
    result: list[_Result]
    was_cancelled: bool = False


class _Task(_Part):
    data: _Data
    annotations: list[_Annotation]

    def results(self) -> Iterator[_Result]:
        """Results of the annotations that nobody withdrew."""
        for annotation in self.annotations:
            if not annotation.was_cancelled:
                yield from annotation.result


def _tasks(export: Path) -> Iterator[tuple[str, _Task]]:
    """Yields (place for messages, task) of an export."""
    try:
        tasks = json_of(export.read_text("utf-8-sig"), str(export))
    except (OSError, UnicodeDecodeError, NotJson) as error:
        raise UserError(f"{export}: cannot be read ({error}); give an export as JSON") from error
    for i, task in enumerate(tasks if isinstance(tasks, list) else [tasks]):
        where = f"{export}, task {i + 1}"
        try:
            yield where, _Task.model_validate(task)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key, value = ".".join(map(str, first["loc"])), first["input"]
            guess = did_you_mean(value, WORDS) if isinstance(value, str) else ""
            if guess and "value" in first["loc"]:
                raise UserError(f"{where}: unknown label {value!r}{guess}") from error
            raise UserError(
                f"{where}: {key or 'the task'}: {first['msg']}; export as JSON (not JSON-MIN) a "
                "project whose tasks `faithscope annotate --label-studio` wrote"
            ) from error


def _steps(chain: Chain, value: _Value, where: str) -> list[int]:
    """Indices of the steps in the paragraphs from `start` to `end` of a region."""
    if value.start is None or value.end is None:
        raise UserError(f"{where}: a labelled region has no paragraphs; draw it again")
    first, last = int(value.start), int(value.end)
    if not first <= last < len(chain.parts):
        raise UserError(f"{where}: there are {len(chain.parts)} paragraphs, not {first} to {last}")
    before = sum(is_step for is_step, _ in chain.parts[:first])
    return [*range(before, before + sum(s for s, _ in chain.parts[first : last + 1]))]


def _agreed(labels: Sequence[bool | None]) -> bool | None:
    """The one label that all annotators gave; None where they differ, or are unsure."""
    return labels[0] if len({*labels}) == 1 else None


def _given(
    chain: Chain, label: bool | None, steps: Sequence[bool | None], reasons: Sequence[str]
) -> dict[str, Any]:
    """A row of given chains."""
    model, _, item = chain.place
    # half of a surrogate pair, as a browser may cut one, is no character that a file can hold
    why = NO_CHARACTER.sub("\ufffd", " | ".join(reasons))
    labels = {LABEL: label, REASON: why or None}
    return {
        "id": item,
        "dataset": chain.dataset,
        "model": model,
        "question": chain.question,
        **({"options": list(chain.options)} if chain.options else {}),
        "kind": chain.kind,
        "gold": chain.gold,
        "answer": chain.answer,
        "reasoning": "".join(text for _, text in chain.parts),
        "steps": [
            {"text": text, "labels": {} if of is None else {LABEL: of}}
            for text, of in zip(chain.steps, steps, strict=True)
        ],
        "labels": {name: value for name, value in labels.items() if value is not None},
    }
