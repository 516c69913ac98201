"""What judges are asked about chains: every form about every chain, in a unit for each judge and
reading of the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from faithscope.experiments.config.base import expanded, named
from faithscope.experiments.config.judge import Reading
from faithscope.experiments.data.tasks import get_task
from faithscope.experiments.engine.forms import TaskForm, form_at, own_path, trace_forms
from faithscope.experiments.engine.forms.lines import as_lines
from faithscope.experiments.engine.forms.own import CHAIN_PLACES
from faithscope.experiments.engine.forms.tasks import ChainView, ItemPrompt
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.models.hours import asking_lines
from faithscope.experiments.engine.models.judges import STAGES, check_stages, decides, stage_of
from faithscope.experiments.engine.models.judging import Judging
from faithscope.experiments.engine.planfile import Planned, missing
from faithscope.experiments.engine.traces.units import TRACE
from faithscope.experiments.engine.units import NOTHING_ASKED, Key, UnitIds
from faithscope.experiments.studies.slrc.config import JudgesConfig, RunConfig
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain, lettered, sent_text
from faithscope.experiments.studies.slrc.units import ChainItem, UnreadChain
from faithscope.interp.errors import UserError
from faithscope.interp.extensions import why_broken
from faithscope.interventions import Given, Origin, Trace, from_ids
from faithscope.interventions.trace import Question
from faithscope.probes.judge.form import Ask, Writing
from faithscope.probes.judge.template import Listed
from faithscope.probes.probe import GUESS

Item = ChainItem | UnreadChain
FORMS = "judges.forms"
"""The config key that names forms, for messages."""


class Asked(NamedTuple):
    """One judge with one form and one reading of the verdict."""

    reading: Reading
    judge: str
    form: str


def judged_stages(judges: JudgesConfig | None) -> dict[str, Asked]:
    """Stage of a unit -> who is asked what there, in the order of work; none without judges.

    Raises:
        ConfigError: two judges have the same stage.
    """
    if judges is None:
        return {}
    check_stages(judges.model, "judges.model")
    return {
        f"{stage_of(stage, judge)}.{form}": Asked(reading, judge, form)
        for judge in judges.model
        for reading, stage in STAGES.items()
        if reading in judges.readings_of(judge)
        for form in judges.form_names
    }


def forms_of(judges: JudgesConfig | None) -> dict[str, TaskForm]:
    """The forms that a config names, own ones among them, by name.

    Raises:
        ConfigError: there is no such form.
        UserError: the folder of prompts, a file there, or a form's own file cannot be used.
    """
    if judges is None:
        return {}
    paths = [path for entry in judges.forms if (path := own_path(entry))]
    forms = trace_forms(expanded(judges.prompts)) | {p.stem: form_at(p, FORMS) for p in paths}
    names = judges.form_names
    if problem := next(filter(None, (why_broken(f, "judge_forms") for f in names)), None):
        raise UserError(problem)
    return named(FORMS, "form", names, forms)


@dataclass(frozen=True)
class JudgedUnits:
    """The stages in which judges are asked, and the ids of their units."""

    config: RunConfig
    forms: Mapping[str, TaskForm]
    stages: Mapping[str, Asked]

    @classmethod
    def of(cls, config: RunConfig) -> JudgedUnits:
        """The units of a config's judges.

        Raises:
            ConfigError, UserError: as for `judged_stages` and `forms_of`.
        """
        return cls(config, forms_of(config.judges), judged_stages(config.judges))

    def ids(self, stage: str) -> UnitIds:
        """Ids of the units of a stage: hashes of all that decides a reply, besides the chain."""
        assert self.config.judges is not None
        reading, judge, form = self.stages[stage]
        settings = decides(judge, self.config.judges, self.config.seed)
        return UnitIds(**settings, reading=reading, form=self.forms[form].form.sha256)

    def of_traces(self, items: Iterable[ChainItem]) -> Iterator[ChainItem]:
        """The items with units for judges. A chain that several models read is judged once, as the
        first of them reads it."""
        ids, seen = {stage: self.ids(stage) for stage in self.stages}, set[str]()
        for item in items:
            chain = item.units[TRACE] if item.given is None else item.given.sha256
            if chain not in seen:
                trace = item.units[TRACE]
                item = item.with_units({s: of.of(trace=trace) for s, of in ids.items()})
            seen.add(chain)
            yield item

    def of_unread(self, chains: Iterable[JudgedChain]) -> Iterator[UnreadChain]:
        """Items of chains that no model of the run reads.

        Raises:
            UserError: the steps of a chain cannot be numbered.
        """
        ids = {stage: self.ids(stage) for stage in self.stages}
        for chain in chains:
            units = {}
            for stage, asked in self.stages.items():
                shown = [
                    (p.about["step"], p.ask.id, dict(p.ask.values), p.ask.high)
                    + ((p.ask.labels,) if p.ask.labels else ())
                    for p in asks_of(chain, self.forms[asked.form])
                ]
                units[stage] = ids[stage].of(asks=shown, chain=chain.sha256)
            yield UnreadChain(chain, units)

    @property
    def judging(self) -> Judging[Item]:
        """What every judge is asked about every item."""
        assert self.config.judges is not None
        stages: dict[str, dict[str, Reading]] = {judge: {} for judge in self.config.judges.model}
        for stage, asked in self.stages.items():
            stages[asked.judge][stage] = asked.reading
        return Judging(self.config.judges, self.config.seed, stages, self._asks, about_of)

    def _asks(self, index: Index, item: Item, judge: str, stage: str) -> Sequence[ItemPrompt]:
        trace = None if isinstance(item, UnreadChain) else trace_of(index, item)
        return self._prompts(item, trace, stage)

    def _prompts(self, item: Item, trace: Trace | None, stage: str) -> list[ItemPrompt]:
        asked = self.stages[stage]
        form = self.forms[asked.form]
        if isinstance(item, UnreadChain):
            prompts = list(asks_of(item.chain, form))
        else:
            assert trace is not None
            name = f"{item.model} {item.task} {item.item}"
            prompts = list(form.judged.asks(form.form, view_of(trace), name))
        return without_open(prompts) if asked.reading == "scored" else prompts

    def known_exclusions(self, items: Iterable[Item]) -> dict[Key, str]:
        """Unit -> why it will hold no verdict, as far as is known beforehand: the chain has no step
        to ask about, or nothing in a place of every prompt."""
        further = {*CHAIN_PLACES} - {"question", "cot", "steps"}
        asked = {s: self.forms[of.form].form for s, of in self.stages.items()}
        shown = [s for s, form in asked.items() if form.places & further or self._is_open(s)]
        reasons: dict[Key, str] = {}
        for item in items:
            if isinstance(item, UnreadChain) and not item.chain.places:
                reasons |= {item.key(stage): NOTHING_ASKED for stage in item.units}
                continue
            trace = None if isinstance(item, UnreadChain) else expected_trace(item)
            for stage in (s for s in shown if s in item.units):
                lacks = [p.lacks for p in self._prompts(item, trace, stage)]
                if lacks and all(lacks):
                    reasons[item.key(stage)] = f"no_{lacks[0]}"
        return reasons

    def _is_open(self, stage: str) -> bool:
        return self.forms[self.stages[stage].form].form.verdict_field.kind == "answer"

    def lines(
        self, index: Index, items: Sequence[Item], also: Mapping[str, list[Ask | Writing]]
    ) -> list[str]:
        """Dry-run lines on what judges are still to be asked, with the use of APIs.

        Args:
            also: judge -> what it is asked besides, such as edits of steps.
        """
        if self.config.judges is None:
            return []
        asks = {judge: list(also.get(judge, ())) for judge in self.config.judges.model}
        counts: dict[tuple[str, str], list[int]] = {}
        scored: dict[str, list[Ask | Writing]] = {judge: [] for judge in asks}
        for stage, (reading, judge, form) in self.stages.items():
            planned = [item for item in items if stage in item.units]
            pending = [
                prompt.ask
                for item in planned
                if stage in missing(index, item)
                for prompt in self._asks(index, item, judge, stage)
                if not prompt.lacks
            ]
            (scored if reading == "scored" else asks)[judge] += pending
            chains, left = counts.get((judge, form), (0, 0))
            counts[judge, form] = [max(chains, len(planned)), left + len(pending)]
        rows = [(*way, *n) for way, n in counts.items()]
        lines = columns([("judge", "form", "chains", "asks left"), *rows, total(rows)])
        written = [item for item in items if isinstance(item, ChainItem)]
        if guessed := sum(not index.is_done(i.key(TRACE), i.units[TRACE]) for i in written):
            lines.append(
                f"{guessed} chains are not written yet: taken for {GUESS.steps} steps of "
                f"{GUESS.tokens} tokens"
            )
        return ["", *lines, *asking_lines(asks, scored, self.config.judges, self.config.spend)]


def without_open(prompts: Sequence[ItemPrompt]) -> list[ItemPrompt]:
    """Prompts for the reading of log-probs, which is of listed verdicts: one whose answer would be
    written freely lacks a choice."""
    is_open = lambda ask: ask.writes(ask.form.verdict_field)  # noqa: E731
    return [p._replace(lacks=p.lacks or "choice") if is_open(p.ask) else p for p in prompts]


def about_of(item: Item) -> dict[str, Any]:
    """What the records about a chain are about: its dataset, task, item and model."""
    about = {"task": item.task, "item": item.item, "model": item.model or None}
    if isinstance(item, UnreadChain):
        return about | {"dataset": item.chain.dataset, "model": item.chain.model or None}
    return about | {"dataset": item.question.dataset}


def asks_of(chain: JudgedChain, form: TaskForm) -> Iterator[ItemPrompt]:
    """The asks of one form about one chain; none for a chain without a counted step.

    Raises:
        UserError: its steps cannot be numbered (localisation).
    """
    if not chain.places:
        return
    steps = [text.strip() for text in chain.steps]
    before = lambda i: as_lines(step for step in steps[:i] if step)  # noqa: E731
    values = {
        "question": chain.bare_question or chain.question,
        "options": Listed(chain.options),
        "prompt": chain.prompt,
        "cot": "".join(chain.steps).strip(),
        "steps": Listed(step for step in steps if step),
        "answer": chain.answer,
        "gold": chain.gold,
        "cue": chain.cue,
        "cue_target": chain.cue_target,
    }
    shown = ChainView(
        chain.question, steps, chain.places, chain.text, before, known(values), chain.answers
    )
    try:
        yield from form.judged.asks(form.form, shown, chain.id)
    except UserError as error:
        raise UserError(f"chain {chain.id!r}: {error}") from None


def trace_of(index: Index, item: Planned) -> Trace:
    """The stored trace of an item; in a dry run, where there is none yet, the expected one."""
    assert isinstance(item, ChainItem)
    if index.is_done(item.key(TRACE), item.units[TRACE]):
        # it loads transformers, which a finished run does without
        from faithscope.experiments.data.traces import to_trace

        return to_trace(index.records(item.key(TRACE))[0])
    return expected_trace(item)


def expected_trace(item: ChainItem) -> Trace:
    """A trace of typical size with all that is known of an item before its own is there."""
    step = "word " * GUESS.tokens
    text = "".join(f"Step {i}: {step}\n" for i in range(1, GUESS.steps + 1))
    trace = from_ids(item.question, (), tuple(range(len(text))), tuple(text))
    if (of := item.given) is None:
        return replace(trace, answer=ANY_ANSWER)
    cue = of.chain.cue, of.chain.cue_target
    given = Given(of.file, of.format, of.chain.model, of.sha256, of.kind, of.prompt, {}, {}, *cue)
    return replace(trace, answer=of.answer, origin=Origin(item.model, given=given))


ANY_ANSWER = "?"
"""Answer of a trace that is not written yet."""


def view_of(trace: Trace) -> ChainView:
    """A trace as judges are shown it: its steps as they were written, and the whole chain with its
    stated answer."""
    steps = {step.index: step for step in trace.counted_steps}
    before = lambda i: trace.reasoning_text[: steps[i].chars[0]].strip()  # noqa: E731
    texts = [step.text.strip() for step in trace.steps]
    whole = f"{trace.reasoning_text}{trace.tail_text}".strip()
    if trace.origin.given is not None and trace.answer is not None:
        # The reasoning of a given chain does not include the statement of the answer.
        whole = f"{whole}\n\nFinal Answer: {trace.answer}"
    question, given = trace.question, trace.origin.given
    values = {
        "question": question.text,
        "options": Listed(_options(question)),
        "prompt": prompt_of(trace),
        "cot": trace.reasoning_text.strip(),
        "steps": Listed(text for text in texts if text),
        "answer": trace.answer,
        "gold": question.gold,
        "cue": given and given.cue,
        "cue_target": given and given.cue_target,
    }
    answers = (question.labels or ()) if question.kind != "number" else ()
    return ChainView(
        shown_question(question), texts, list(steps), whole, before, known(values), answers
    )


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """The places that hold something; a blank text is no value."""
    return {name: value for name, value in values.items() if value and str(value).strip()}


def prompt_of(trace: Trace) -> str:
    """The prompt that a trace replies to: as it was sent, that of its file, or that of its task."""
    if sent := sent_text(trace.question.sent):
        return sent
    if trace.origin.given is not None:
        return trace.origin.given.prompt
    return get_task(trace.question.task).cot_prompt(trace.question)


def shown_question(question: Question) -> str:
    """Text of a question for judges and writers of edits, with lettered options."""
    return "\n".join((question.text, *(_options(question) if question.kind == "choice" else ())))


def _options(question: Question) -> Sequence[str]:
    """The options of a question as lines: lettered, or the words of a label."""
    options = question.options or ()
    return lettered(options) if question.kind == "choice" else options
