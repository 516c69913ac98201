"""The plan of a run over traces: its units, which of them are done, and the estimated use of API
models. It reads no weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.data.answers import ANSWERS
from faithscope.experiments.data.given.chat import CHAT
from faithscope.experiments.data.given.encode import provenance
from faithscope.experiments.data.given.question_of_chain import QuestionOfChain, question_of_chain
from faithscope.experiments.data.given.rows import ROWS
from faithscope.experiments.data.given.steps import stretches
from faithscope.experiments.data.question_groups import (
    GROUP,
    Asked,
    Grouping,
    asked_of,
    grouped,
    groups_read,
)
from faithscope.experiments.data.statements import CUT_ANSWERS
from faithscope.experiments.data.tasks import LoadSettings, Task, get_task
from faithscope.experiments.data.tasks.sources.gold import ANSWER, GOLD
from faithscope.experiments.data.tasks.sources.rows import files_read
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.models.fingerprint import fingerprint
from faithscope.experiments.engine.models.model_files import files_of
from faithscope.experiments.engine.models.prices import cost_lines
from faithscope.experiments.engine.plan import RunPlan
from faithscope.experiments.engine.planfile import is_finished, missing
from faithscope.experiments.engine.tallies.input_report import (
    NO_LIMIT,
    InputReport,
    Truncation,
    truncated_by,
)
from faithscope.experiments.engine.tallies.reasons import (
    EMPTY_CHAIN,
    FEW_STEPS,
    min_chars_that_helps,
)
from faithscope.experiments.engine.traces import writers
from faithscope.experiments.engine.traces.config import TracesConfig, fits
from faithscope.experiments.engine.traces.forecast import (
    calls_of,
    disk_lines,
    size_of,
    without_tokens,
    work_lines,
)
from faithscope.experiments.engine.traces.given import UNREAD, cuts_of, groups_of, unread_text
from faithscope.experiments.engine.traces.hours import hours_lines
from faithscope.experiments.engine.traces.sections import DataConfig
from faithscope.experiments.engine.traces.units import (
    TRACE,
    Item,
    api_decides,
    known_exclusion,
    words,
)
from faithscope.experiments.engine.units import API_REPLIES, Key, UnitIds, versions
from faithscope.interventions.segment import LEAST_STEPS, SEGMENTATION
from faithscope.interventions.trace import GivenUncued, Origin, Question, Trace
from faithscope.probes import PROBES
from faithscope.probes.cues import PARTNER
from faithscope.probes.probe import GUESS, Size
from faithscope.probes.screening import SCREENING
from faithscope.probes.settings import ModelFacts, Settings

if TYPE_CHECKING:
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store
    from faithscope.experiments.engine.traces.work import TraceWork


_PLAIN = ("planted:", "bundled:smollm2", API)
_TEMPLATES = ("chat_template.jinja", "tokenizer_config.json")
_MARKS = re.compile(r"think|thought|reason|channel|to=self|\[unused1", re.IGNORECASE)
"""Pattern of words of which every mark of reasoning contains one."""


def surely_plain(model: str) -> bool:
    """Whether a model is known, before it is loaded, to mark no reasoning: by its name, or since
    its folder has a template without such marks."""
    folder = Path(model).expanduser()
    files = [folder / name for name in _TEMPLATES if (folder / name).is_file()]
    if model.startswith(_PLAIN):
        return True
    return bool(files) and not any(_MARKS.search(f.read_text("utf-8", "replace")) for f in files)


_SHAPE = (("num_hidden_layers", "n_layer"), ("hidden_size", "n_embd"))
"""Keys of a model's config, the second of some families: number of layers, and width."""


@dataclass(frozen=True)
class TracePlan(RunPlan[TracesConfig, Item]):
    """Plan of all questions that models of the run are asked, or chains that they read."""

    chains: str = ""
    """Source and number of given chains, in words; empty if models write here."""
    unread: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(writer, task) -> number of chains left out because their writer is no model of the run."""

    @property
    def batch_size(self) -> int:
        return self.config.generation.batch_size

    def lines(self, index: Index) -> list[str]:
        config = self.config
        lines = [f"probes      {', '.join(config.probes)}"]
        if (n := config.steps.sample) is not None:
            able = [p for p in config.probes if PROBES[p].samples_steps]
            whole = [p for p in config.probes if not PROBES[p].samples_steps]
            rest = f"; all steps by {', '.join(whole)}" if whole else ""
            k = config.steps.screen
            how = "at random" if k is None else f"{k} by estimated effect and {n - k} at random"
            lines.append(f"steps       at most {n} of a chain, {how}, by {', '.join(able)}{rest}")
        lines += writers.lines(config)
        if self.chains:
            lines.append(f"chains      {self.chains}")
        traces_to = "traces to write" if config.traces.path is None else "traces to encode"
        header = ("model", "task", "items", traces_to, "items to probe", "branches, about")
        table = []
        for model, task in dict.fromkeys((i.model, i.task) for i in self.items):
            items = [i for i in self.items if (i.model, i.task) == (model, task)]
            traces = sum(not index.is_done(i.key(TRACE), i.units[TRACE]) for i in items)
            left = [i for i in items if not is_finished(index, i)]
            of_model = config.of(model)
            # probes known to be left out are not counted
            taken = [[p for p in i.probes if not self._without(i, p)] for i in left]
            branches = sum(
                calls_of(p, self.size(item), of_model.settings(p), config.steps.sample)
                for item, probes in zip(left, taken, strict=True)
                for p in probes
            )
            left = [i for i, probes in zip(left, taken, strict=True) if probes]
            table.append((model, task, len(items), traces, len(left), branches))
        lines += ["", *columns([header, *table, total(table)])]
        pending = [
            (i, self.size(i) if i.given else files_of(i.model).size())
            for i in self.items
            if not is_finished(index, i)
        ]
        hours = hours_lines(config, pending, self._without, self._most_tokens)
        if not self.chains:
            guesses = [(i, files_of(i.model).size()) for i in self.items]
            return [
                *lines,
                "",
                f"branches are estimated at {GUESS.steps} steps per trace",
                *disk_lines(config, guesses),
                *hours,
                *api_lines(config, self.items, index),
            ]
        sizes = [
            (i, self.size(i))
            for i in self.items
            if not i.model.startswith(API)
            and not all(self._without(i, probe) for probe in i.probes)
        ]
        return [
            *lines,
            *work_lines(config, sizes, self._without),
            *disk_lines(config, sizes, self._without),
            *hours,
            *api_lines(config, self.items, index),
        ]

    def _most_tokens(self, model: str) -> int:
        """The most tokens of a chain that a model writes."""
        # Not at the top: it brings transformers, which a finished run need not wait for.
        from faithscope.experiments.data.traces import PLAIN_TOKENS, THINKING_TOKENS

        usual = PLAIN_TOKENS if surely_plain(model) else THINKING_TOKENS
        return self.config.generation.max_new_tokens or usual

    def size(self, item: Item) -> Size:
        """The size of an item's trace: of a given chain its own, else a guess."""
        if item.given is None:
            return GUESS
        unit, given = item.units[TRACE], item.given
        if unit not in self._known_sizes:
            asked = item.of, item.question, given.prompt
            self._known_sizes[unit] = size_of(item.model, *asked, self._parts(item), given.answer)
        return self._known_sizes[unit]

    def known_exclusions(self) -> Mapping[Key, str]:
        """Unit of a given chain -> why it will measure nothing: the chain has too few steps, the
        kind of its answers is unknown, or the probe leaves it out before it asks the model
        anything, such as a chain by another writer."""
        return {
            item.key(stage): reason
            for item in self.items
            for stage in item.units
            if (reason := self._without(item, stage))
        }

    def readers(self) -> str:
        by = [i.given.chain.model for i in self.items if i.given is not None]
        writers = [w or "an unknown writer" for w in dict.fromkeys(by)]
        if not writers:
            return ""
        more = f" and {len(writers) - 3} more" if len(writers) > 3 else ""
        models = ", ".join(self.config.model.name)
        return (
            f"the chains are by {', '.join(writers[:3])}{more}, and are read by {models}, the "
            "default of this config (model.name)"
        )

    def remedies(self) -> Mapping[str, str]:
        least = self.config.steps.min_chars
        return {FEW_STEPS: min_chars_that_helps(self._short.values(), least)}

    def _without(self, item: Item, stage: str) -> str | None:
        if item.given is None:
            return None
        concerned = stage == TRACE or TRACE in item.needs(stage)
        if concerned and (short := self._short.get(item.units[TRACE])) is not None:
            return FEW_STEPS if "".join(short).strip() else EMPTY_CHAIN
        if stage == TRACE:
            return None
        if item.given.chain.condition == "uncued" and "cues" in PROBES[stage].words:
            return PARTNER
        key = item.units[stage]
        if key not in self._known_reasons:
            settings = self.config.of(item.model).settings(stage)
            reason = known_exclusion(item, stage, settings, self.given_trace(item))
            is_mended = reason in self.config.mends(stage)
            self._known_reasons[key] = None if is_mended else reason
        return self._known_reasons[key]

    def given_trace(self, item: Item) -> Trace:
        """The trace of a given chain without ids, each stretch as one token."""
        assert item.given is not None
        unit, chain = item.units[TRACE], item.given.chain
        if unit not in self._known_traces:
            trace = without_tokens(item.question, self._parts(item), item.given.answer)
            plain = item.given.uncued
            uncued = plain and GivenUncued(
                plain.prompt, (), plain.chain.reasoning, (), plain.answer
            )
            given = provenance(item.given, (), uncued)
            origin = Origin(item.model, prefilled=int(chain.prefilled > 0), given=given)
            finish = "length" if chain.cut else "stop"
            self._known_traces[unit] = replace(trace, origin=origin, finish=finish)
        return self._known_traces[unit]

    @cached_property
    def _known_reasons(self) -> dict[str, str | None]:
        return {}

    @cached_property
    def _known_traces(self) -> dict[str, Trace]:
        return {}

    @cached_property
    def _short(self) -> dict[str, list[str]]:
        """Unit of a trace -> stretches of its chain, for given chains with too few steps."""
        parts = {i.units[TRACE]: self._parts(i) for i in self.items if i.given is not None}
        return {
            unit: [text for text, _ in of_chain]
            for unit, of_chain in parts.items()
            if sum(counted for _, counted in of_chain) < LEAST_STEPS
        }

    def _parts(self, item: Item) -> list[tuple[str, bool]]:
        """(text, whether it counts as a step) of all stretches of a given chain."""
        assert item.given is not None
        plain = surely_plain(item.model)
        key = (item.given.sha256, plain)
        if key not in self._known_parts:
            cut = stretches(item.given.chain, self.config.steps, strip=plain)
            self._known_parts[key] = cut
        return self._known_parts[key]

    @cached_property
    def _known_sizes(self) -> dict[str, Size]:
        return {}

    @cached_property
    def _known_parts(self) -> dict[tuple[str, bool], list[tuple[str, bool]]]:
        return {}

    def inputs(self) -> dict[str, str | None]:
        """The run folder's input file: numbers of chains left out. Questions are in the traces."""
        return {UNREAD: unread_text(self.unread) if self.unread else None}

    def work(self, store: Store, shard: Shard) -> TraceWork:
        # it imports torch, which a dry run need not wait for
        from faithscope.experiments.engine.traces.work import TraceWork

        return TraceWork(self.config, self.batches(self.config.model.name, shard), store)


def _of_right_answers(items: Sequence[Item], columns: Sequence[str]) -> tuple[str, ...]:
    """Notes on the number of questions with a known right answer, for each task that lacks some.

    Args:
        columns: columns of which one may hold the right answer; empty if the layout has none.
    """
    golds = {(i.task, i.question.id): i.question.gold for i in items}
    where = f"; it is read from {', '.join(columns)}" if columns else ""
    notes = []
    for task in dict.fromkeys(task for task, _ in golds):
        known = [gold is not None for (of, _), gold in golds.items() if of == task]
        if not all(known):
            count = f"the right answer is known of {sum(known):,} of {len(known):,} questions"
            unread = sum(
                i.given is not None and i.given.kind is None and bool(i.given.chain.gold)
                for i in items
                if i.task == task
            )
            why = f"; {unread:,} are in the file, but the kind of the answers is not known"
            of = why if unread else where
            notes.append(f"{task}: {count}{of}")
    return tuple(notes)


def plan(config: TracesConfig) -> TracePlan:
    """Load the questions and name every unit.

    Raises:
        ConfigError: data cannot be read, or holds no question.
        UserError: a file of given chains cannot be read, or a row does not fit.
    """
    if config.traces.path is not None:
        return _given(config)
    cuts: list[Truncation] = []
    questions, groups = questions_of(config, cuts, config.generation.samples)
    sent = [q.id for of in questions.values() for q in of if q.sent is not None]
    if sent and (closed := next((m for m in config.model.name if m.startswith(API)), None)):
        raise ConfigError(
            [
                f"model.name: {closed!r} is behind an API, which renders prompts itself, and "
                f"question {sent[0]!r} has a prompt as it was sent (prompt_raw, assistant_prefix); "
                "take the model out, or these columns"
            ]
        )
    names = {model: _Names(config, model) for model in config.model.name}
    items = [
        names[model].item(get_task(task), question)
        for model, task in config.pairs
        for question in questions[task]
    ]
    _check_fit(config, items)
    notes = (*_of_right_answers(items, (ANSWER, *GOLD)), *groups.notes)
    input_report = InputReport(tuple(cuts), notes=notes, groups=groups.of)
    return TracePlan(config, tuple(items), input_report=input_report)


def _given(config: TracesConfig) -> TracePlan:
    """The plan of a run over given chains."""
    t = config.traces
    read = t.read(config.seed)
    told = [question_of_chain(c, read.file, read.format, t.task, t.kind) for c in read.chains]
    items = []
    for model in config.model.name:
        able = [asked for asked in told if fits(model, asked.task.name)]
        if not able:
            raise ConfigError(
                [f"model.name: {model!r} can read none of the chains of {t.path}; take it out"]
            )
        names = _Names(config, model)
        items += [
            names.item(asked.task, asked.question, asked)
            for asked in able
            if t.read_by == "all" or asked.chain.model == model
        ]
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
    _check_fit(config, items)
    cuts = cuts_of(read, t.limit)
    samples = [why for why, n in read.left_out.items() for _ in range(n)]
    cuts += truncated_by(f"samples of {read.file}", read.total, samples)
    for (writer, task), n in unread.items():
        chains = f"chains by {writer or 'an unknown writer'} on {task}"
        why = "traces.read_by=writer, and no model of model.name wrote them"
        cuts.append(Truncation(chains, 0, n, why, "traces.read_by=all"))
    named = GOLD if read.format in (ROWS.name, CHAT.name) else ()
    groups = groups_of(read)
    notes = (*_of_right_answers(items, named), *read.notes, *groups.notes)
    input_report = InputReport(tuple(cuts), notes=notes, groups=groups.of)
    return TracePlan(config, tuple(items), what, unread, input_report=input_report)


def _check_fit(config: TracesConfig, items: Sequence[Item]) -> None:
    """
    Raises:
        ConfigError: the settings of a probe do not fit a model or a question that it is to measure.
    """
    settings = {probe: config.settings(probe) for probe in config.probes}
    chains = [item.given.chain for item in items if item.given is not None]
    labels: dict[str, set[Any]] = {}
    for name, of in ((n, x) for chain in chains for n, x in chain.step_labels.items()):
        labels.setdefault(name, set()).update(str(x) for x in of if x is not None)
    for probe, of in settings.items():
        if problem := of.misfit_of_chains(labels, any(chain.cue for chain in chains)):
            raise ConfigError([f"{probe}.{problem}"])
    # a model's files are looked up for settings that depend on them alone: torch may come with them
    asks = {p for p, of in settings.items() if type(of).misfit_with is not Settings.misfit_with}
    for model in dict.fromkeys(item.model for item in items):
        for probe in (p for p in config.of(model).probes if p in asks):
            if problem := settings[probe].misfit_with(_facts(config, model)):
                raise ConfigError([f"{probe}.{problem}"])
    for item in items:
        # a task with cues in its own language takes no others
        for probe in () if item.of.cues else item.probes:
            if problem := settings[probe].misfit_of(item.question):
                key = f"{probe}.{problem}"
                where = "" if item.given is None else f"{item.given.chain.where}: "
                raise ConfigError([f"{where}{key}"])


def _facts(config: TracesConfig, model: str) -> ModelFacts:
    """The facts about a model that are known before its weights are read."""
    of, quantised = files_of(model).config, config.model.quantize is not None
    layers, width = (of.get(a, of.get(b)) for a, b in _SHAPE)
    return ModelFacts(model, layers, width, quantised)


def _asked(config: TracesConfig, model: str) -> dict[str, Any]:
    """The settings of the config that determine every trace of a model."""
    rules = {"version": SEGMENTATION, **config.steps.model_dump(exclude={"sample"})}
    steps = {"schema": SCHEMA, "steps": rules, **versions(answers=ANSWERS)}
    given = config.traces.path is not None
    rule = {} if given else versions(cut_answers=CUT_ANSWERS)
    if model.startswith(API) and not given:
        return steps | rule | {"api": api_decides(config)}
    written = {} if given else {"generation": writers.writing(config).decides()} | rule
    # stated marks are part of a unit's id; without them units keep the ids of earlier versions
    unstated = {"marks"} if config.model.marks is None else set()
    held = config.model.model_dump(exclude={"name"} | unstated)
    return steps | {"held": held, "seed": config.seed} | written


class AsksTasks(Protocol):
    """A config of a run that asks the questions of tasks."""

    @property
    def tasks(self) -> Sequence[str]: ...
    @property
    def data(self) -> DataConfig: ...
    @property
    def seed(self) -> int: ...


def questions_of(
    config: AsksTasks, cuts: list[Truncation], samples: int = 1
) -> tuple[dict[str, list[Question]], Grouping]:
    """The questions of each task, and their groups; the rows that a limit leaves out are reported
    in `cuts`. Questions that a task makes itself are drawn one by one, and independent.

    Args:
        samples: number of samples of each question, which are one group.

    Raises:
        ConfigError: data cannot be read, holds no question, holds one id twice, or has no column of
            groups that the config names.
    """
    used: set[Path] = set()
    read = {task: _questions(config, get_task(task), cuts, used, samples) for task in config.tasks}
    asked = [a for _, of in read.values() for a in of]
    if config.data.group is not None and all(a.group is None for a in asked):
        raise ConfigError(
            [f"data.group: none of the tasks {', '.join(read)} reads rows; leave it out"]
        )
    if (path := config.data.path) and not used:
        many = path if isinstance(path, Mapping) else {"own": path}
        paths, asks = [*many.values()], [*many]
        raise ConfigError(
            [
                f"data.path: none of the tasks {', '.join(read)} reads {', '.join(paths)}, so that "
                f"nothing of it would be asked; --set tasks=[{','.join(asks)}] asks what is there"
            ]
        )
    return {task: questions for task, (questions, _) in read.items()}, grouped(asked, GROUP)


@dataclass(frozen=True)
class _Noting(LoadSettings):
    """Settings that note a path which a task asks for."""

    noted: set[Path] = field(default_factory=set)

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name == "path" and value is not None:
            self.noted.add(value)
        return value


def _questions(
    config: AsksTasks, task: Task, cuts: list[Truncation], used: set[Path], samples: int
) -> tuple[list[Question], list[Asked]]:
    """The questions of a task; and these with their groups, if they were read from rows or are
    sampled several times. A path that the task asks for is added to `used`."""
    settings = _Noting(
        path=config.data.path_of(task.name),
        limit=config.data.limit_of(task.name),
        seed=config.seed,
        split=config.data.split,
        noted=used,
    )
    try:
        column = config.data.group_of(task.name)
        with files_read(column) as files:
            questions = list(task.load(settings))
        groups: Mapping[str, str | None] = {}
        if column is not None and (files or isinstance(config.data.group, Mapping)):
            groups = groups_read(files, [q.id for q in questions], column, GROUP)
    except (ValueError, OSError) as error:
        lines = [" ".join(line.split()) for line in str(error).splitlines()]
        name = f"task {task.name!r}"
        lines[:1] = [line if name in line else f"{name}: {line}" for line in lines[:1]]
        raise ConfigError(lines) from error
    if not questions:
        raise ConfigError([f"task {task.name!r}: no questions; check data.path and data.split"])
    rows = sum(file.rows for file in files)
    if settings.limit is not None and rows > len(questions):
        what = f"rows of {', '.join(dict.fromkeys(file.name for file in files))}"
        key = f"data.limit={settings.limit}"
        cuts.append(Truncation(what, len(questions), rows, f"{task.name}, {key}", NO_LIMIT))
    twice = [q for q, n in Counter(q.id for q in questions).items() if n > 1]
    if twice:
        raise ConfigError([f"task {task.name!r}: two questions have the id {twice[0]!r}"])
    if samples == 1:
        return questions, [asked_of(q, groups.get(q.id)) for q in questions if files]
    sampled = [q.sampled(str(k)) for q in questions for k in range(samples)]
    # questions that a task makes itself are of no group but their own
    of = {q.id: groups.get(q.asked_id, None if files else "") for q in sampled}
    return sampled, [asked_of(q, of[q.id]) for q in sampled]


class _Names:
    """Maker of the ids of one model's units: hashes of all that decides the result."""

    def __init__(self, config: TracesConfig, model: str) -> None:
        self.model = model
        weights = fingerprint(model, config.model.revision)
        self.traces = UnitIds(**_asked(config, model), model=model, weights=weights)
        of_model = config.of(model)
        settings = {name: of_model.settings(name) for name in of_model.probes}
        self.limits = {name: of.limit for name, of in settings.items()}
        drawn = config.steps.sample
        sample: dict[str, Any] = {}
        if drawn is not None:
            # records without inclusion probabilities, of an earlier version, are measured again
            sample = {"sample": drawn, "seed_of_sample": config.seed, "inclusion": True}
        if config.steps.screen is not None:
            sample |= {"screen": config.steps.screen, "screening": SCREENING}
        self.probes = {
            name: UnitIds(
                probe=name,
                settings=of.decides(),
                **writers.writing(config).decides_of_probes(),
                **(sample if PROBES[name].samples_steps else {}),
                **versions(measure=PROBES[name].version),
            )
            for name, of in settings.items()
        }
        self.n = Counter[str]()
        """Number of items of each task so far."""

    def item(self, task: Task, question: Question, given: QuestionOfChain | None = None) -> Item:
        """The next item of a task; a probe with a limit measures only the first items."""
        self.n[task.name] += 1
        n = self.n[task.name]
        if given is None:
            begun = {"reply_prefix": task.reply_prefix} if task.reply_prefix else {}
            about = {"prompt": task.cot_prompt(question), **begun}
        else:
            about = {"prompt": given.prompt, "chain": given.sha256}
        trace = self.traces.of(question=question.decides, **about)
        of_probes = {
            name: ids.of(trace=trace, words=words(name, task, question))
            for name, ids in self.probes.items()
            if n <= (self.limits[name] or n)
        }
        return Item(self.model, task, question, {TRACE: trace, **of_probes}, given)


ANSWER_TOKENS = 60
"""Guessed tokens of a reply to a probe: some replies are a word, those to "Do you agree?" a
paragraph. Thinking comes on top, often hundreds of tokens."""


def api_lines(config: TracesConfig, items: Sequence[Item], index: Index) -> list[str]:
    """Lines of a table of calls, tokens and dollars, a row per API model; none without API models.

    Traces are not written yet, so their lengths and numbers of edits are guesses; a model's
    thinking before an answer comes on top.
    """
    from faithscope.probes.judge.form import Usage
    from faithscope.probes.judge.spend import tokens_of

    # replies stored before a stop are not asked again, even if their probe is still pending
    stored = Counter(
        (model, task, item.rpartition(" ")[0])
        for (_, model, task, item), _ in index.places((API_REPLIES,))
    )
    reasoning, usage = GUESS.steps * GUESS.tokens, {}
    for model in (m for m in config.model.name if m.startswith(API)):
        of_model = config.of(model)
        calls = put = written = 0
        for item in (i for i in items if i.model == model):
            lacking = missing(index, item)
            direct = item.of.direct_prompts(item.question)
            prompt = tokens_of([item.of.cot_prompt(item.question)])
            longest = max(prompt, *(tokens_of([p.user, p.system or ""]) for p in direct), 0)
            asked = {p: PROBES[p].calls(GUESS, of_model.settings(p)) for p in item.probes}
            whole = sum(asked[p] for p in lacking if p in asked)
            have = stored[model, item.task, item.item]
            asks = min(whole, max(0, sum(asked.values()) - have))
            quoted = GUESS.tokens * sum(
                PROBES[p].quotes(GUESS, of_model.settings(p)) for p in lacking if p in asked
            )
            to_write = TRACE in lacking and item.given is None
            calls += asks + to_write
            put += asks * longest + prompt * to_write
            put += round(quoted * asks / whole) if whole else 0
            written += asks * ANSWER_TOKENS + reasoning * to_write
        usage[model] = Usage(calls, put, written)
    header = ("model", "calls, about", "input tokens", "output tokens", "dollars, about")
    thinking = "without what a model thinks before it answers"
    return cost_lines(usage, config.spend, header, thinking)
