"""The units of work of a run over traces, which of them are done, and what those that ask models
behind APIs would use. Reads no weights."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.data.answers import ANSWERS
from faithscope.experiments.data.given.asked import Asked, asked_about
from faithscope.experiments.data.given.reading import AUTO
from faithscope.experiments.data.tasks import LoadSettings, Task, get_task
from faithscope.experiments.engine.fingerprint import fingerprint
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.models.prices import prices_of
from faithscope.experiments.engine.planfile import StoredPlan, is_finished, missing
from faithscope.experiments.engine.traces.config import TracesConfig, fits
from faithscope.experiments.engine.traces.given import UNREAD, read_given, unread_text
from faithscope.experiments.engine.traces.units import TRACE, Item, api_decides, words
from faithscope.experiments.engine.units import API_REPLIES, UnitIds, versions
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.interventions.segment import SEGMENTATION
from faithscope.interventions.trace import Question
from faithscope.probes import PROBES
from faithscope.probes.probe import GUESS

if TYPE_CHECKING:
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store
    from faithscope.experiments.engine.traces.work import TraceWork


@dataclass(frozen=True)
class Plan:
    """Every item of a run, in the order it is worked on."""

    config: TracesConfig
    items: tuple[Item, ...]
    chains: str = ""
    """Where they were written elsewhere, from what and how many."""
    unread: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(writer, task) -> chains that are left out because their writer is no model of the run."""

    def of(self, model: str) -> list[Item]:
        return [i for i in self.items if i.model == model]

    def stored(self) -> StoredPlan:
        """What of it is kept in the run folder."""
        return StoredPlan.of(self.items, self.config.generation.batch_size)

    def summary(self) -> str:
        """What a run would do, for `--dry-run`."""
        config = self.config
        index = Index.of(config.run_dir)
        lines = [f"run folder  {config.run_dir}", f"probes      {', '.join(config.probes)}"]
        if self.chains:
            lines.append(f"chains      {self.chains}")
        lines += [
            f"left out    {n} by {writer or 'an unknown writer'} on {task}: not in model.name"
            for (writer, task), n in self.unread.items()
        ]
        lines.append("")
        traces_to = "traces to write" if config.traces.path is None else "traces to encode"
        header = ("model", "task", "items", traces_to, "items to probe", "branches, about")
        table = []
        for model, task in dict.fromkeys((i.model, i.task) for i in self.items):
            items = [i for i in self.items if (i.model, i.task) == (model, task)]
            traces = sum(not index.is_done(i.key(TRACE), i.units[TRACE]) for i in items)
            probes = sum(not is_finished(index, i) for i in items)
            of_model = config.of(model)
            of_probes = {p: PROBES[p].calls(GUESS, of_model.settings(p)) for p in of_model.probes}
            branches = sum(
                of_probes[p] for i in items if not is_finished(index, i) for p in i.probes
            )
            table.append((model, task, len(items), traces, probes, branches))
        lines += columns([header, *table, total(table)])
        lines += ["", f"branches are estimated at {GUESS.steps} steps per trace"]
        lines += api_lines(config, self.items, index)
        return "\n".join(lines)

    @property
    def prepares(self) -> str:
        """Nothing: the units are what the run is for."""
        return ""

    def write_inputs(self, store: Store) -> None:
        """Keep how many chains are left out; the questions are in the traces."""
        path = store.run_dir / UNREAD
        with store.shared():
            if self.unread:
                write_atomically(make_folder(path.parent) / path.name, unread_text(self.unread))
            else:
                path.unlink(missing_ok=True)

    def work(self, store: Store, shard: Shard) -> TraceWork:
        # it brings torch, which a dry run need not wait for
        from faithscope.experiments.engine.traces.work import TraceWork

        size = self.config.generation.batch_size
        own_batches = {m: shard.mine(self.of(m), size) for m in self.config.model.name}
        return TraceWork(self.config, own_batches, store)


def plan(config: TracesConfig) -> Plan:
    """Load the questions and name every unit.

    Raises:
        ConfigError: data that cannot be read, or holds no question.
        UserError: a file of given chains that cannot be read, or a row that does not fit.
    """
    if config.traces.path is not None:
        return _given(config)
    questions = {task: _questions(config, get_task(task)) for task in config.tasks}
    weights = {model: fingerprint(model, config.model.revision) for model in config.model.name}
    traces = {
        m: UnitIds(**_asked(config, m), model=m, weights=weights[m]) for m in config.model.name
    }
    probes = {m: _probe_ids(config.of(m)) for m in config.model.name}
    limits = {name: config.settings(name).limit for name in config.probes}
    items = [
        _item(traces[model], _within(probes[model], limits, n), model, get_task(task), question)
        for model, task in config.pairs
        for n, question in enumerate(questions[task], start=1)
    ]
    return Plan(config, tuple(items))


def _given(config: TracesConfig) -> Plan:
    """The plan of chains that were written elsewhere."""
    t = config.traces
    path = Path(str(t.path)).expanduser()
    read = read_given(path, t.format, t.limit, t.writers, config.seed)
    told = [asked_about(c, read.file, read.format, t.task, t.kind) for c in read.chains]
    items = []
    for model in config.model.name:
        able = [asked for asked in told if fits(model, asked.task.name)]
        if not able:
            raise ConfigError(
                [f"model.name: {model!r} can read none of the chains of {t.path}; take it out"]
            )
        weights = fingerprint(model, config.model.revision)
        traces = UnitIds(**_asked(config, model), model=model, weights=weights)
        probes = _probe_ids(config.of(model))
        limits = {name: config.settings(name).limit for name in config.probes}
        n: Counter[str] = Counter()
        for asked in able:
            if t.read_by == "writer" and asked.chain.model != model:
                continue
            n[asked.task.name] += 1
            of_item = _within(probes, limits, n[asked.task.name])
            items.append(_item(traces, of_item, model, asked.task, asked.question, asked))
    if t.format == AUTO:
        print(f"note: traces.path: {read.file} is read as {read.format}", file=sys.stderr)
    what = f"{len(told)} of {read.file}, read as {read.format}"
    unread = Counter(
        (asked.chain.model, asked.task.name)
        for asked in told
        if t.read_by == "writer" and asked.chain.model not in config.model.name
    )
    if not items:
        writers = ", ".join(dict.fromkeys(w or "an unknown writer" for w, _ in unread))
        raise ConfigError(
            [
                f"traces.read_by: {t.path} has chains by {writers}, and none by a model of "
                f"model.name ({', '.join(config.model.name)}); name one of these models, say which "
                "of them is which writer (traces.writers: {WRITER: MODEL}), or let others read "
                "(traces.read_by: all)"
            ]
        )
    return Plan(config, tuple(items), what, unread)


def _asked(config: TracesConfig, model: str) -> dict[str, Any]:
    """What the config says that determines every trace of a model."""
    rules = {"version": SEGMENTATION, **config.steps.model_dump()}
    steps = {"schema": SCHEMA, "steps": rules, **versions(answers=ANSWERS)}
    if config.traces.path is not None:
        held = {k: v for k, v in config.model.model_dump().items() if k != "name"}
        return steps | {"held": held, "seed": config.seed}
    if model.startswith(API):
        return steps | {"api": api_decides(config)}
    return steps | {
        "held": {k: v for k, v in config.model.model_dump().items() if k != "name"},
        "generation": config.generation.decides(),
        "seed": config.seed,
    }


def _probe_ids(config: TracesConfig) -> dict[str, UnitIds]:
    return {
        name: UnitIds(
            probe=name,
            settings=config.settings(name).decides(),
            **versions(measure=PROBES[name].version),
        )
        for name in config.probes
    }


def _within(
    probes: dict[str, UnitIds], limits: dict[str, int | None], n: int
) -> dict[str, UnitIds]:
    """Those of the probes that are asked of the n-th item of a task."""
    return {name: ids for name, ids in probes.items() if n <= (limits[name] or n)}


def _questions(config: TracesConfig, task: Task) -> list[Question]:
    settings = LoadSettings(
        path=config.data.path_of(task.name),
        limit=config.data.limit_of(task.name),
        seed=config.seed,
        split=config.data.split,
    )
    try:
        questions = list(task.load(settings))
    except (ValueError, OSError) as error:
        message = " ".join(str(error).split())
        name = f"task {task.name!r}"
        raise ConfigError([message if name in message else f"{name}: {message}"]) from error
    if not questions:
        raise ConfigError([f"task {task.name!r}: no questions; check data.path and data.split"])
    twice = [q for q, n in Counter(q.id for q in questions).items() if n > 1]
    if twice:
        raise ConfigError([f"task {task.name!r}: two questions have the id {twice[0]!r}"])
    return questions


def _item(
    traces: UnitIds,
    probes: dict[str, UnitIds],
    model: str,
    task: Task,
    question: Question,
    given: Asked | None = None,
) -> Item:
    if given is None:
        begun = {"reply_prefix": task.reply_prefix} if task.reply_prefix else {}
        trace = traces.of(question=vars(question), prompt=task.cot_prompt(question), **begun)
    else:
        trace = traces.of(question=vars(question), prompt=given.prompt, chain=given.sha256)
    of_probes = {
        name: ids.of(trace=trace, words=words(name, task, question)) for name, ids in probes.items()
    }
    return Item(model, task, question, {TRACE: trace, **of_probes}, given)


ANSWER_TOKENS = 60
"""Of a reply to a probe, a guess: some are a word, those to "Do you agree?" a paragraph. What a
model thinks first comes on top, often hundreds."""


def api_lines(config: TracesConfig, items: Sequence[Item], index: Index) -> list[str]:
    """A table of calls, tokens and dollars, a row per model; none where all models are here.

    Traces are not there yet, so that their lengths, and with them how many edits there are, are
    guesses; whatever a model thinks before it answers comes on top.
    """
    from faithscope.probes.judge.charges import CHARACTERS_PER_TOKEN, MESSAGE_TOKENS
    from faithscope.probes.judge.form import Usage
    from faithscope.probes.judge.spend import dated_note, price_of

    # what was answered before a stop is asked no more, though its probe is not taken yet
    stored = Counter(
        (model, task, item.rpartition(" ")[0])
        for (_, model, task, item), _ in index.places((API_REPLIES,))
    )
    prices = prices_of(config.spend)
    reasoning = GUESS.steps * GUESS.tokens
    table, notes = [], []
    for model in (m for m in config.model.name if m.startswith(API)):
        of_model = config.of(model)
        calls = put = written = 0
        for item in (i for i in items if i.model == model):
            lacking = missing(index, item)
            prompt = math.ceil(len(item.of.cot_prompt(item.question)) / CHARACTERS_PER_TOKEN)
            prompt += MESSAGE_TOKENS
            asked = {p: PROBES[p].calls(GUESS, of_model.settings(p)) for p in item.probes}
            whole = sum(asked[p] for p in lacking if p in asked)
            have = stored[model, item.task, item.item]
            asks = min(whole, max(0, sum(asked.values()) - have))
            quoted = GUESS.tokens * sum(
                PROBES[p].quotes(GUESS, of_model.settings(p)) for p in lacking if p in asked
            )
            to_write = TRACE in lacking and item.given is None
            calls += asks + to_write
            put += asks * prompt + prompt * to_write
            put += round(quoted * asks / whole) if whole else 0
            written += asks * ANSWER_TOKENS + reasoning * to_write
        price = price_of(model.removeprefix(API), prices)
        cost = "no price" if price is None else f"{price.of(Usage(calls, put, written)):.2f}"
        notes += dated_note(model.removeprefix(API), prices)
        table.append((model, f"{calls:,}", f"{put:,}", f"{written:,}", cost))
    if not table:
        return []
    header = ("model", "calls, about", "input tokens", "output tokens", "dollars, about")
    thinking = "without what a model thinks before it answers"
    return ["", *columns([header, *table]), thinking, *notes]
