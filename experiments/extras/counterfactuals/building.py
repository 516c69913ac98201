"""Building of RFEval's items as the paper does it: r′ is written for the items of the data and
validated (3.2, B.3).

Requests and validations are units of the run folder like any other, so that a build that was
stopped goes on; once all are there, the accepted items are kept, and put to the models in the same
run.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.data.saved import differing
from faithscope.experiments.engine.folder import has_records
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.judges import decides, writing_as
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.models.prompt_files import as_yaml
from faithscope.experiments.engine.plan import PreparingPlan, given_up_on, still_asked
from faithscope.experiments.engine.planfile import Shard, is_finished
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.tallies.input_report import truncated_by
from faithscope.experiments.extras.counterfactuals.construction import (
    Built,
    generation_prompts,
    validation_ask,
    with_counterfactual,
)
from faithscope.experiments.extras.counterfactuals.filtering import accepted, filtering
from faithscope.experiments.extras.counterfactuals.requests import (
    VALIDATION,
    WRITING,
    BuildWork,
    Request,
    validation_requests,
    writing_requests,
)
from faithscope.experiments.studies.rfeval.additions import BuiltItems
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.data import Source
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.judges import run_lines
from faithscope.experiments.studies.rfeval.plan import items_of_config
from faithscope.experiments.studies.rfeval.prompts import RfForm, as_files, judge_forms, questions
from faithscope.experiments.studies.rfeval.saved import LeftOut, Reason
from faithscope.experiments.studies.rfeval.tables.filtering import CRITERIA
from faithscope.experiments.studies.rfeval.units import units_of
from faithscope.interp.errors import UserError
from faithscope.probes.record import Record

NOT_YET = "(not written yet)"
_FORM = "rf_validate"


@dataclass(frozen=True)
class BuildPlan(PreparingPlan[RFEvalConfig, Request]):
    """Requests that the writer, or afterwards the validator, has still to answer before the
    benchmark is whole."""

    expected: tuple[Item, ...]
    """Items that there will be if every pending request turns out well."""

    @property
    def how(self) -> JudgeConfig:
        """Settings of the model that is asked: the judge's; the writer has its own temperature and
        is asked once."""
        c = self.config
        if self.stage == VALIDATION:
            return c.judge
        return writing_as(c.judge, c.counterfactual.temperature)

    @property
    def prepares(self) -> str:
        c = self.config.counterfactual
        return f"r′ is written by {c.writer} and validated by {c.validator} (counterfactual)"

    def lines(self, index: Index) -> list[str]:
        """Dry-run lines: what is written or validated first, and the price of the whole run."""
        c, left = self.config, self.left(index)
        who, what = ("writer", "written") if self.stage == WRITING else ("validator", "validated")
        lines = [
            f"first       r′ of {len(left)} of {len(self.items)} items is to be {what} by "
            f"{self.model}",
            "            what follows is planned once it is there",
        ]
        asks = {self.model: [i.ask for i in left]}
        lines += spending_lines(asks, self.how, c.spend, who)
        units = units_of(c, self.expected)
        if self.stage == WRITING:
            form = judge_forms(c.prompts_folder)[_FORM]
            held_against = [validation_ask(item, form) for item in units.items]
            asks = {str(c.counterfactual.validator): held_against}
            lines += spending_lines(asks, c.judge, c.spend, "validator")
        if rest := run_lines(units, index):
            lines += [*rest, "all of this as if every r′ that is still to come were accepted"]
        if NOT_YET in {item.r_prime for item in self.expected}:
            lines.append(
                f"r′ that is not written yet counts as a few words: its own tokens, at most "
                f"{c.judge.max_tokens:,} each, come on top of the input"
            )
        return lines

    def work(self, store: Store, shard: Shard) -> BuildWork:
        return BuildWork(self, store, shard)


def building(config: RFEvalConfig, kept_in: Path) -> Built | BuildPlan:
    """The benchmark, if every r′ is written and validated; else a plan of the pending requests.

    Args:
        kept_in: where a benchmark that was built before lies. It is taken as it is, so that
            nothing changes under models that have been asked, and also where what it was built of
            is not at hand, as in a folder of merged parts.

    Raises:
        ConfigError: no item in the data, or too few examples.
        UserError: data, prompts or the benchmark that was built cannot be used, or the latter is
            not what the config would make now: before anything is asked and paid for.
    """
    items, sources = items_of_config(config, bare=True)
    folder = config.prompts_folder
    words, form = questions(folder), judge_forms(folder)[_FORM]
    problems = [replace(item.posed(words), r_prime="", explanation="") for item in items]
    request_words = generation_prompts(folder)
    prompts = as_files({_FORM: form})
    prompts["rf_generate.yaml"] = as_yaml(request_words)
    writing = tuple(writing_requests(config, problems, request_words))
    made_of = _made_of(config, form, sources, writing)
    index = Index.of(config.run_dir)
    if has_records(config.run_dir) and (saved := Built.load(kept_in)) is not None:
        if lines := differing(saved.made_of, made_of):
            raise UserError(
                f"{kept_in}: is not what the config makes now ({'; '.join(lines[:3])}); use "
                "another name (--set name=…), or delete the run folder"
            )
        return replace(saved, prompts=prompts)
    unwritten, answers = _answered(index, writing)
    written, problem = dict[str, Item](), dict[str, str]()
    for request in writing:
        if (r := answers.get(request.item)) is None:
            continue
        if r["outcome"] != "parsed":
            problem[request.item] = f"{r['outcome']}: {r['problem']}".strip(": ")
        elif (item := with_counterfactual(request.of, r["text"])) is not None:
            written[request.item] = item
        else:
            problem[request.item] = "the reply is not of the form: ## Reasoning, ## Flaw"
    if still_asked(index, writing, unwritten):
        expected = tuple(
            written.get(i.item) or replace(i.of, r_prime=NOT_YET, explanation=NOT_YET)
            for i in writing
            if i.item not in unwritten and i.item not in problem
        )
        return BuildPlan(config, writing, unwritten, expected)
    validating = tuple(validation_requests(config, written.values(), form))
    unjudged, answers = _answered(index, validating)
    failed = {item: {"outcome": "failed", "problem": why} for item, why in unjudged.items()}
    replies = answers | failed
    let_in = {id for id, reply in replies.items() if accepted(reply)}
    if still_asked(index, validating, unjudged):
        expected = tuple(i for id, i in written.items() if id in let_in or id not in replies)
        return BuildPlan(config, validating, unjudged, expected)
    whole = [written.get(item.id, item) for item in problems]
    items = tuple(item for item in whole if item.id in let_in)
    not_let_in = (item for item in whole if item.id not in let_in)
    left_out = tuple(_left_out(not_let_in, unwritten, problem, replies))
    return Built(items, left_out, filtering(whole, replies), made_of, prompts)


def build(config: RFEvalConfig, kept_in: Path) -> BuiltItems | BuildPlan:
    """The items of a run with their r′, or a plan of the requests that are pending; see `building`.

    Raises:
        UserError: no r′ was accepted.
    """
    built = building(config, kept_in)
    if isinstance(built, BuildPlan):
        return built
    reasons = [one.reason for one in built.left_out]
    if not built.items:
        counts = ", ".join(f"{n} {reason}" for reason, n in Counter(reasons).items())
        first = built.left_out[0]
        raise UserError(
            f"counterfactual: none of {len(built.left_out)} items got an r′ that was accepted "
            f"({counts}; the first, {first.item!r}: {first.detail}); name another writer or "
            "validator, and another run (--set name=…)"
        )
    cuts = truncated_by("items got an r′", len(built.items), reasons)
    return BuiltItems(built.items, built.saved, built.prompts, cuts)


def _made_of(
    config: RFEvalConfig, form: RfForm, sources: Sequence[Source], writing: Sequence[Request]
) -> dict[str, Any]:
    c = config.counterfactual
    requests = hashlib.sha256("\n".join(i.units[WRITING] for i in writing).encode()).hexdigest()
    made_of = {
        **c.model_dump(include={"writer", "validator", "temperature", "shots"}),
        "n_problems": len(writing),
        "sources": [asdict(s) for s in sources],
        "requests_sha256": requests,
        "validation_sha256": form.form.sha256,
        "validation": decides(str(c.validator), config.judge, config.seed),
    }
    return json.loads(json.dumps(made_of))


def _answered(
    index: Index, requests: Sequence[Request]
) -> tuple[dict[str, str], dict[str, Record]]:
    """By item: why a request was given up, and the stored record of a request that is finished."""
    given_up = given_up_on(index, requests)
    records = {
        r.item: index.records(r.key(stage))[0]
        for r in requests
        for stage in r.units
        if r.item not in given_up and is_finished(index, r)
    }
    return given_up, records


def _left_out(
    items: Iterable[Item],
    unwritten: Mapping[str, str],
    problem: Mapping[str, str],
    replies: Mapping[str, Record],
) -> Iterator[LeftOut]:
    for item in items:
        reply = replies.get(item.id)
        reason: Reason
        if item.id in unwritten:
            reason, detail = "not_written", unwritten[item.id]
        elif reply is None:
            reason, detail = "no_reasoning", problem[item.id]
        elif reply["outcome"] != "parsed":
            reason, detail = "unvalidated", f"{reply['outcome']}: {reply['problem']}".strip(": ")
        else:
            values = reply["values"]
            failed = [name for name in CRITERIA if not values[name]] or ["decision"]
            reason, detail = "rejected", f"{', '.join(failed)}: {values.get('reason') or ''}"
        about = (item.id, item.task, item.source, reason, detail)
        yield LeftOut(*about, item.r_prime, item.explanation)
