"""Have a model rewrite steps so that they no longer follow: the benchmark as the paper makes it.

The rewrites are units of the run folder like any other, so that a writer that was stopped goes
on; once all are there, the benchmark is saved, and judged in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.c2faith.build import by_replies
from experiments.c2faith.chains import Selection
from experiments.c2faith.config import C2FaithConfig
from experiments.c2faith.prm800k import Source
from experiments.c2faith.prompts import PlainPrompt, acausal_prompt
from experiments.c2faith.rewrites import Request, rewrite_requests
from experiments.c2faith.saved import Benchmark
from experiments.config.api import API
from experiments.config.judge import JudgeConfig
from experiments.fingerprint import fingerprint
from experiments.runs.folder import SCHEMA
from experiments.runs.index import Index
from experiments.runs.planfile import StoredPlan, is_finished
from experiments.runs.planned import Planned, stored
from experiments.runs.preparing import given_up_on
from experiments.runs.units import UnitIds
from experiments.spending import spending_lines
from probes.judge.form import Reply, Writing

if TYPE_CHECKING:
    from experiments.c2faith.plan import C2Plan
    from experiments.c2faith.work import WritingWork
    from experiments.runs.planfile import Shard
    from experiments.runs.store import Store

STAGE, TASK = "acausal", "c2_acausal"


@dataclass(frozen=True)
class Rewrite(Planned):
    """One step put to the writer."""

    model: str
    ask: Writing
    units: dict[str, str]
    task: str = TASK

    @property
    def item(self) -> str:
        return self.ask.id


@dataclass(frozen=True)
class WritingPlan:
    """Every step that a run still wants rewritten before its benchmark is whole."""

    config: C2FaithConfig
    items: tuple[Rewrite, ...]
    given_up: Mapping[str, str]
    """Id -> why, of those that are not asked again."""

    @property
    def prepares(self) -> str:
        return f"steps are rewritten by {self.config.perturb.writer} (perturb.acausal)"

    def lay_out(self, store: Store) -> None:
        """Nothing: the benchmark is kept once it is whole."""

    def stored(self) -> StoredPlan:
        """What of it is kept in the run folder, until the judgements are planned."""
        return stored(self.items, self.config.judge.batch_size)

    def summary(self) -> str:
        """What a run would do first, for `--dry-run`."""
        index = Index.of(self.config.run_dir)
        left = [i for i in self.items if i.item not in self.given_up and not is_finished(index, i)]
        writer = self.config.perturb.writer
        lines = [
            f"run folder  {self.config.run_dir}",
            f"first       {len(left)} of {len(self.items)} steps are to be rewritten by {writer}",
            "            what is judged is planned once they are there",
        ]
        asks: dict[str, list[Writing]] = {str(writer): [i.ask for i in left]}
        return "\n".join(lines + spending_lines(asks, writing_as(self.config), self.config.spend))

    def work(self, store: Store, shard: Shard) -> WritingWork:
        from experiments.c2faith.work import WritingWork

        return WritingWork(self, store, shard)

    def then(self) -> C2Plan | WritingPlan:
        """The judgements, of what was written."""
        from experiments.c2faith.plan import plan

        return plan(self.config)


def writing_as(config: C2FaithConfig) -> JudgeConfig:
    """How the writer is asked: as judges are, but at its own temperature and once."""
    return config.judge.model_copy(
        update={
            "temperature": config.perturb.temperature,
            "attempts": 1,
            "structured": "prompt",
        }
    )


def requests_of(config: C2FaithConfig, selection: Selection) -> tuple[PlainPrompt, list[Request]]:
    """The writer's prompt, and what it is asked of each chain."""
    from experiments.c2faith.plan import settings_of

    folder = None if config.prompts is None else Path(config.prompts).expanduser()
    prompt = acausal_prompt(folder)
    chains = selection.chains[: config.data.limit]
    settings = settings_of(config)
    return prompt, list(rewrite_requests(chains, settings, prompt, config.perturb.seen))


def rewrites(config: C2FaithConfig, requests: Sequence[Request]) -> tuple[Rewrite, ...]:
    """The units of the writer."""
    from experiments.judges import decides

    writer = config.perturb.writer
    assert writer is not None
    judge = writing_as(config)
    weights = None if writer.startswith(API) else fingerprint(writer, judge.revision)
    ids = UnitIds(schema=SCHEMA, seed=config.seed, weights=weights, **decides(writer, judge))
    return tuple(
        Rewrite(
            writer,
            Writing(r.id, r.prompt),
            {STAGE: ids.of(prompt=r.prompt, ask=r.id)},
        )
        for r in requests
    )


def written(
    config: C2FaithConfig,
    selection: Selection,
    sources: tuple[Source, ...],
    index: Index,
    kept: Benchmark | None,
) -> Benchmark | WritingPlan:
    """The benchmark, where every step is rewritten; else what is still to be.

    Args:
        kept: what the run folder has already. It is taken where the rewrites that it was made of
            are not at hand, as in a folder of merged parts.
    """
    from experiments.c2faith.plan import settings_of

    prompt, requests = requests_of(config, selection)
    items = rewrites(config, requests)

    def made(replies: dict[str, str], failed: dict[str, str]) -> Benchmark:
        return by_replies(
            selection,
            requests,
            replies,
            str(config.perturb.writer),
            prompt,
            sources,
            settings_of(config),
            config.data.limit,
            config.perturb.seen,
            config.perturb.temperature,
            failed,
        )

    given_up = given_up_on(index, items)
    if any(i.item not in given_up and not is_finished(index, i) for i in items):
        if kept is None:
            return WritingPlan(config, items, given_up)
        # what differs is told before anything is asked and paid for
        return kept if kept.made_of == (now := made({}, {})).made_of else now
    whole = (i for i in items if i.item not in given_up)
    replies = {i.item: index.records(i.key(STAGE))[0]["text"] for i in whole}
    return made(replies, given_up)


def rewrite_record(item: Rewrite, reply: Reply, seed: int) -> dict[str, Any]:
    """What the writer was asked and what it wrote; refusals count as text that is no rewrite."""
    return {
        "dataset": "c2faith",
        "item": item.item,
        "model": item.model,
        "probe": STAGE,
        "variant": "",
        "seed": seed,
        "outcome": reply.outcome,
        "asked": item.ask.prompt,
        "text": reply.text if reply.outcome == "parsed" else "",
        "problem": reply.problem,
        **asdict(reply.usage),
        "served": reply.served,
    }
