"""Given chains of a run over traces: from files and folders, and from folders of other runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from faithscope.experiments.data.given import reading
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.columns import Columns
from faithscope.experiments.data.given.reading import (
    AUTO,
    READERS,
    RUN_FOLDER,
    Chains,
    read_chains,
)
from faithscope.experiments.data.given.rules import ReadingRules
from faithscope.experiments.data.question_groups import Asked, Grouping, grouped
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.experiments.engine.folder import existing_run, has_records
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.tallies.input_report import InputReport, Truncation
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Counterfactual, Sent
from faithscope.probes import PROBES


def _rows(path: Path) -> list[SourceRow]:
    index = counted(existing_run(path))
    units = sorted(index.each(("trace",)), key=lambda unit: unit.key)
    groups = InputReport.of(path).groups

    def values(record: Mapping[str, Any]) -> dict[str, Any]:
        group = groups.get(record["dataset"], {}).get(str(record["item"]), "")
        return {**record, "group": group}

    return [
        SourceRow(str(r["item"]), values(r), f"{path}, trace of {r['item']} by {r['model']}")
        for unit in units
        for r in unit.records
    ]


def _chain(row: SourceRow) -> GivenChain:
    record = row.values
    question, given = record["question"], record["origin"].get("given")
    sent, r_prime, sample = map(question.get, ("sent", "counterfactual", "sample"))
    options = question["options"]
    # a stretch too short to be a step of its own stays text between steps
    steps = [s for s in record["steps"] if s["counted"] and s["text"].strip()]
    chain = GivenChain(
        # a chain under a cue has the cue's name after the sample
        id=row.id if sample is None else re.sub(rf"#{re.escape(sample)}(?=/|$)", "", row.id),
        sample=sample,
        dataset=question["dataset"],
        question=question["text"],
        kind=question["kind"] if given is None else given["kind"],
        options=None if options is None else tuple(options),
        gold=question["gold"],
        candidates=tuple(question.get("candidates", ())),
        reasoning="".join(record["pieces"]),
        ids=tuple(record.get("reasoning_ids", ())),
        steps=tuple((s["chars"][0], s["chars"][1]) for s in steps),
        answer=record["answer"],
        model=record["model"] if given is None else given["model"],
        prompt=None if given is None else given["prompt"],
        task=question["task"],
        **_of_pair(question.get("of_pair")),
        sent=sent and _sent(**sent),
        counterfactual=r_prime and Counterfactual(*r_prime),
        labels={} if given is None else given["labels"],
        step_labels={} if given is None else _step_labels(given, steps),
        cut=record.get("finish") == "length",
        prefilled=sum(map(len, record["pieces"][: record["origin"].get("prefilled", 0)])),
        where=row.where,
        group=record.get("group", ""),
    )
    if given is None:
        return chain
    # runs of earlier versions have fewer fields
    paired = replace(chain, **{n: given[n] for n in _OF_PAIRS if given.get(n)})
    if (plain := given.get("uncued")) is None:
        return paired
    alone = {
        "steps": None,
        "ids": (),
        "step_labels": {},
        "labels": {},
        "prefilled": 0,
        "condition": "uncued",
    }
    told = {name: plain[name] for name in ("prompt", "reasoning", "answer")}
    return replace(paired, uncued=replace(chain, pair=paired.pair, **alone, **told))


def _sent(prompt: Any, prefix: str) -> Sent:
    messages = prompt is not None and not isinstance(prompt, str)
    return Sent(tuple((role, text) for role, text in prompt) if messages else prompt, prefix)


def _of_pair(of_pair: Mapping[str, Any] | None) -> dict[str, Any]:
    if of_pair is None:
        return {}
    return {
        "pair": of_pair["name"],
        "condition": "reversed" if of_pair["reversed"] else "forward",
    }


_OF_PAIRS = ("cue", "cue_target", "cue_name", "cue_mention", "pair", "condition")


def _step_labels(
    given: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Any, ...]]:
    return {
        name: tuple(of_steps[s["index"]] for s in steps)
        for name, of_steps in given["step_labels"].items()
    }


def _cued_rows(path: Path) -> list[SourceRow]:
    """A row for each chain that a measure of a run wrote under a cue, with the record of its
    trace."""
    index = counted(existing_run(path))
    traces = {(str(row.values["model"]), row.id): row for row in _rows(path)}
    rows = []
    for unit in sorted(index.each(tuple(PROBES)), key=lambda unit: unit.key):
        for r in unit.records:
            if r.get("cue_text") and r.get("reasoning"):
                of = traces[str(r["model"]), str(r["item"])]
                where = f"{path}, {r['item']} with cue {r['cue']} by {r['model']}"
                rows.append(SourceRow(f"{r['item']}/{r['cue']}", {**of.values, "cued": r}, where))
    if not rows:
        raise UserError(
            f"{path}: holds no chains under cues, as measures that put cues keep them since they "
            "keep the cue's text; give traces.format: run for the chains of its models"
        )
    return rows


def _cued_chain(row: SourceRow) -> GivenChain:
    """A chain under a cue. Labels tell what the run found of it: whether the answer is that of the
    cue (`followed`), whether words of the reasoning mention it (`mentions_cue`), and whether the
    model says that it used it (`says_so`)."""
    cued = row.values["cued"]
    verdict = {"yes": True, "no": False}.get(str(cued.get("judge_generated")).lower())
    found = {"followed": cued["switched"], "mentions_cue": cued["words"], "says_so": verdict}
    plain = _chain(row)
    return replace(
        plain,
        reasoning=cued["reasoning"],
        ids=(),
        steps=None,
        step_labels={},
        answer=cued["answer"],
        prompt=cued["cued_prompt"],
        labels={name: value for name, value in found.items() if value is not None},
        cut=bool(cued["cut"]),
        prefilled=0,
        cue=cued["cue_text"],
        cue_target=cued["option"],
        cue_name=cued["cue"],
    )


CUED = Reader(
    "cued",
    "the chains that another run over traces wrote under cues, by its folder",
    lambda row: False,
    lambda rows: map(_cued_chain, rows),
    _cued_rows,
)
RUN = Reader(
    RUN_FOLDER,
    "the folder of another run over traces: what its models wrote, in its steps",
    lambda row: False,
    lambda rows: map(_chain, rows),
    _rows,
    lambda path: path.is_dir() and has_records(path),
)
ALL = (*READERS, RUN, CUED)
UNREAD = "benchmark/unread.json"
"""File in the run folder with the number of chains of each writer and task that no model reads."""
format_problem = partial(reading.format_problem, readers=ALL)


def read_given(
    source: Path | Sequence[Mapping[str, Any]],
    format: str = AUTO,
    limit: int | None = None,
    writers: Mapping[str, str] | None = None,
    seed: int = 0,
    columns: Columns | None = None,
    rules: ReadingRules | None = None,
    edits: Path | None = None,
) -> Chains:
    """The chains of a file, a folder, a run folder, or given rows.

    Raises:
        UserError: as for `read_chains`; or a run folder holds no traces.
    """
    how = {"columns": columns, "rules": rules, "edits": edits}
    return read_chains(source, format, limit, ALL, writers=writers, seed=seed, **how)


def groups_of(chains: Chains) -> Grouping:
    """The groups of given chains; those of a run folder have the groups that they have there."""
    asked = [
        Asked(c.id, c.dataset, "\n".join([c.question, *sorted(c.options or ())]), c.group)
        for c in chains.chains
    ]
    key = "the run that wrote them" if chains.format == RUN_FOLDER else "traces.group"
    return grouped(asked, key, chains=True)


def cuts_of(chains: Chains, limit: int | None) -> list[Truncation]:
    """The cut that `traces.limit` makes, if any."""
    if len(chains.chains) == chains.total:
        return []
    key = f"traces.limit={limit}"
    what = f"chains of {chains.file}"
    return [Truncation(what, len(chains.chains), chains.total, key, "traces.limit=null")]


def unread_text(unread: Mapping[tuple[str, str], int]) -> str:
    """Content of the file `UNREAD`."""
    rows = [{"writer": w, "task": task, "n": n} for (w, task), n in unread.items()]
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


def unread_of(run_dir: Path) -> dict[tuple[str, str], int]:
    """(writer, task) -> number of chains that no model of the run reads; empty if all are read."""
    path = run_dir / UNREAD
    rows = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return {(row["writer"], row["task"]): row["n"] for row in rows}
