"""Rewriting of steps by a model so that they no longer follow: the benchmark as the paper makes it.

The rewrites are units of the run folder like any other, so that a writer that was stopped goes
on; once all are there, the benchmark is saved, and judged in the same run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from faithscope.experiments.config.base import expanded
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.judges import decides, writing_as
from faithscope.experiments.engine.plan import given_up_on, still_asked
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.studies.c2faith.benchmark.build import Basis
from faithscope.experiments.studies.c2faith.benchmark.items import causal_item
from faithscope.experiments.studies.c2faith.benchmark.rewrites import (
    Refused,
    Request,
    causal_by_replies,
    rewrite_of,
    rewrite_requests,
)
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.inside import DATASET
from faithscope.experiments.studies.c2faith.prompts import acausal_prompt
from faithscope.probes.judge.form import Reply, Writing
from faithscope.probes.record import head

STAGE, TASK = "acausal", "c2_acausal"


@dataclass(frozen=True)
class Rewrite(Planned):
    """One step put to the writer."""

    model: str
    ask: Writing
    units: dict[str, str]
    task: str = TASK

    @property
    def draw(self) -> int:
        """Number of the draw among the rewritings of the step, from 1."""
        return self.ask.draw

    @property
    def item(self) -> str:
        return self.ask.id


@dataclass(frozen=True)
class Unwritten:
    """Requests that the writer has still to answer before a benchmark is whole."""

    items: tuple[Rewrite, ...]
    given_up: Mapping[str, str]
    """Id -> reason, for the requests that are not made again."""
    expected: Benchmark
    """Benchmark to plan the judging by: each step stands for its own rewrite, which is about as
    long, and none is refused."""
    draw: int
    """Number of the draw that all these requests are of, from 1."""


def most_draws(config: C2FaithConfig, saved: Benchmark | None = None) -> int:
    """Most times that one step is asked for.

    At temperature 0 the same would come again. A benchmark that was made before a step could be
    asked for more than once stays as it is.
    """
    if config.perturb.temperature == 0:
        return 1
    if saved is not None and "draws" not in saved.made_of.get("replacement", {}):
        return 1
    return config.perturb.draws


def rewrites(
    config: C2FaithConfig, requests: Sequence[Request], draw: int = 1
) -> tuple[Rewrite, ...]:
    """Units of the writer, for one draw."""
    writer = config.perturb.writer
    assert writer is not None
    how = writing_as(config.judge, config.perturb.temperature)
    ids = UnitIds(**decides(writer, how, config.seed))
    of_draw = "" if draw == 1 else f".draw{draw}"
    asks = [Writing(f"{r.id}{of_draw}", r.prompt, draw=draw) for r in requests]
    return tuple(Rewrite(writer, a, {STAGE: ids.of(prompt=a.prompt, ask=a.id)}) for a in asks)


def written(
    config: C2FaithConfig, basis: Basis, index: Index, saved: Benchmark | None
) -> Benchmark | Unwritten:
    """The benchmark, if every step is rewritten; else the requests that are pending.

    Args:
        saved: what the run folder has already. It is taken where the rewrites that it was made of
            are not at hand, as in a folder of merged parts.
    """
    p, writer = config.perturb, str(config.perturb.writer)
    prompt = acausal_prompt(expanded(config.prompts))
    requests = rewrite_requests(basis.chains, basis.settings, prompt, p.seen)
    draws = most_draws(config, saved)
    by = {"by": "llm", "author": writer}
    how = {"prompt_sha256": prompt.sha256, "seen": p.seen, "temperature": p.temperature}
    # a benchmark from before a step could be asked for again says nothing of draws
    how |= {"draws": draws} if draws > 1 else {}

    def made(replies: dict[str, str], failed: dict[str, str]) -> Benchmark:
        causal = causal_by_replies(basis.chains, requests, replies, writer, failed)
        return basis.benchmark(*causal, by | how)

    def expected(lost: Collection[str]) -> Benchmark:
        whole = [(r.chain, r.target) for r in requests if r.id not in lost]
        causal = (causal_item(c, at, c.steps[at], "llm", writer) for c, at in whole)
        return replace(basis, sources=()).benchmark(tuple(causal), (), by)

    wanted, replies, failed = requests, dict[str, str](), dict[str, str]()
    for draw in range(1, draws + 1):
        items = rewrites(config, wanted, draw)
        given_up = given_up_on(index, items)
        if still_asked(index, items, given_up):
            if saved is None:
                lost = {r.id for r, i in zip(wanted, items, strict=True) if i.item in given_up}
                return Unwritten(items, given_up, expected(lost | failed.keys()), draw)
            # a difference is reported before anything is asked and paid for
            return saved if saved.made_of == (now := made({}, {})).made_of else now
        whole = [(r, i) for r, i in zip(wanted, items, strict=True) if i.item not in given_up]
        records = {r.id: index.records(i.key(STAGE))[0] for r, i in whole}
        replies |= {name: record["text"] for name, record in records.items()}
        for request, item in zip(wanted, items, strict=True):
            if item.item in given_up:
                failed[request.id] = given_up[item.item]
                # an earlier reply that was refused is no reason any more
                replies.pop(request.id, None)
        # a request that is too long for the writer is so every time
        wanted = [
            r
            for r, _ in whole
            if records[r.id]["outcome"] != "overflow"
            and isinstance(rewrite_of(r, replies[r.id]), Refused)
        ]
        if not wanted:
            break
    return made(replies, failed)


def rewrite_record(item: Rewrite, reply: Reply, seed: int) -> dict[str, Any]:
    """Record of what the writer was asked and what it wrote; a refusal counts as text that is no
    rewrite."""
    return {
        **head(
            dataset=DATASET,
            task=TASK,
            item=item.item.removesuffix(f".draw{item.draw}"),
            model=None,
            probe=STAGE,
            seed=seed,
        ),
        "writer": item.model,
        "draw": item.draw,
        "outcome": reply.outcome,
        "asked": item.ask.prompt,
        "text": reply.text if reply.outcome == "parsed" else "",
        "problem": reply.problem,
        **asdict(reply.usage),
        "served": reply.served,
    }
