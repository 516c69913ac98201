"""Functions for notebooks: questions of a task, given chains and any probe of a trace, without a
config or a run folder."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.data.given.columns import Columns
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import AUTO
from faithscope.experiments.data.given.rules import GoldIs, ReadingRules
from faithscope.experiments.data.tasks import LoadSettings, Task, get_task
from faithscope.experiments.data.traces import TraceSettings, asking_for, exclusion
from faithscope.experiments.engine.tallies.reasons import FEW_STEPS, min_chars_that_helps
from faithscope.experiments.engine.traces.config import probe_problem
from faithscope.experiments.engine.traces.given import read_given
from faithscope.experiments.engine.traces.measured import Measured
from faithscope.experiments.engine.traces.units import unanswerable
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.marks import StatedMarks, marks_problem
from faithscope.interventions import MIN_CHARS, NotWritable
from faithscope.interventions.trace import AnswerKind, Question, Trace
from faithscope.probes import PROBES, Settings
from faithscope.probes.insertions import Insertion, Where, injected
from faithscope.probes.probe import OtherChain
from faithscope.probes.settings import ModelFacts

if TYPE_CHECKING:
    from faithscope.interp.language import Speaks
    from faithscope.interp.model import Model


def questions(
    task: Task | str, limit: int, *, seed: int = 0, path: str | Path | None = None
) -> list[tuple[Task, Question]]:
    """The first questions of a task, as `make_traces` takes them.

    Args:
        limit: number of questions.
        seed: seed of the task's draws.
        path: local data instead of the hub's, like `data.path` in a config.

    Raises:
        UserError, ValueError, OSError: there is no such task, or its data cannot be read.
    """
    chosen = get_task(task) if isinstance(task, str) else task
    settings = LoadSettings(Path(path) if path is not None else None, limit, seed)
    return [(chosen, question) for question in chosen.load(settings)]


def given_traces(
    model: Speaks,
    source: str | Path | Sequence[Mapping[str, Any]],
    *,
    format: str = AUTO,
    limit: int | None = None,
    task: str | None = None,
    kind: AnswerKind | None = None,
    columns: Columns | None = None,
    marks: StatedMarks | None = None,
    options: Sequence[str] = (),
    edits: str | Path | None = None,
    gold_is: GoldIs | None = None,
    settings: TraceSettings | None = None,
) -> list[Trace]:
    """Chains that were written elsewhere, as traces of a model that reads them.

    Each trace has its provenance and labels in `trace.origin.given`.

    Args:
        source: a file, a folder, the folder of a run, or rows (`faithscope docs given`).
        format: the file layout; `auto` detects it by the columns.
        limit: number of chains, drawn from all with the seed of the settings.
        task: task whose words to use; by default the task named like a chain's data set, else
            `own`.
        kind: kind of the answers, if neither file nor task tells.
        columns: what the file's columns hold, as in a config's `traces.columns`:
            `{"question": "problem", "reasoning": "output.cot"}`.
        marks: marks around the reasoning in replies, as `traces.marks` in a config.
        options: options of every question, if the file has none, as `traces.options`.
        edits: a file of edits that were made elsewhere, as `traces.edits`.
        gold_is: how the right answer names an option, as `traces.gold_is` in a config.

    Raises:
        UserError: the file has no known layout or several, a row does not fit, or a text cannot be
            encoded by this model; the message names file, line, value and remedy.
    """
    settings = settings or TraceSettings()
    path = Path(source).expanduser() if isinstance(source, str) else source
    if marks is not None and (problem := marks_problem(marks)):
        raise UserError(problem)
    if gold_is is not None and gold_is not in get_args(GoldIs):
        raise UserError(f"gold_is {gold_is!r} is none of {', '.join(get_args(GoldIs))}; give one")
    rules = ReadingRules(marks, tuple(options), gold_is)
    of = None if edits is None else Path(edits).expanduser()
    read = read_given(
        path, format, limit, seed=settings.seed, columns=columns, rules=rules, edits=of
    )
    left_out = (f"{n:,} samples are left out: {why}" for why, n in read.left_out.items())
    for line in (*read.notes, *left_out):
        print(f"note: {read.file}: {line}", file=sys.stderr)
    return [
        given_trace(model, question_of_chain(c, read.file, read.format, task, kind), settings)
        for c in read.chains
    ]


def measure(
    model: Model,
    trace: Trace,
    probe: str,
    *,
    task: Task | str | None = None,
    seed: int = 0,
    others: Sequence[Trace] = (),
    **settings: Any,
) -> Measured:
    """The list of records of one probe of one trace, as a run would store them.

    Raw arrays (per layer, head, token) stand under `"arrays"` of a record, by name; the
    docstring of the probe gives their shapes.

    Args:
        probe: name of the probe, as in a config's `probes` (`faithscope list probes`).
        task: task whose words to ask in; by default the one that the question's dataset names.
        others: further chains of the model, for probes that need some (`scm`, `fur`); those about
            the trace's own question are left out.
        settings: what a config's section of the probe can hold, e.g. `shuffles=5`.

    Raises:
        UserError: a probe or setting is unknown, or a value is wrong.
        ValueError: a run would exclude the trace; the message says why.
    """
    _check_arguments(model, trace)
    if problem := probe_problem(probe):
        raise ConfigError([problem])
    if (reason := exclusion(trace)) and not PROBES[probe].on_excluded:
        raise ValueError(
            f"trace of {trace.question.id!r} cannot be probed ({reason}); {_remedy(trace, reason)}"
        )
    given = trace.origin.given
    if given is not None and unanswerable(probe, given.kind):
        raise ValueError(
            f"trace of {trace.question.id!r}: {probe!r} reads answers, and their kind is "
            "not known; give kind to `given_traces`"
        )
    chosen = get_task(task) if isinstance(task, str) else task or get_task(trace.question.task)
    kind = PROBES[probe].settings
    if afterwards := [name for name in settings if name in kind.afterwards()]:
        raise ConfigError(
            [f"probe {probe!r}: {afterwards[0]!r} is about the items of a run, not about one trace"]
        )
    seeded = {"seed": seed} if "seed" in kind.model_fields else {}
    asking = asking_for(model, chosen, trace)
    checked = _checked(kind, probe, settings | seeded)
    if problem := checked.misfit_with(ModelFacts.of(model)):
        raise ConfigError([f"{probe}.{problem}"])
    more = {"others": other_chains(trace, others)} if PROBES[probe].takes_others else {}
    return Measured(PROBES[probe].measure(model, trace, asking, checked, **more), trace)


def other_chains(trace: Trace, others: Iterable[Trace]) -> list[OtherChain]:
    """The chains of `others` that are about another question than `trace`."""
    found = []
    for other in others:
        question, given = other.question, other.origin.given
        if question.text != trace.question.text:
            asked = get_task(question.task).cot_prompt(question) if given is None else given.prompt
            found.append(OtherChain(question.id, asked, other.reasoning_text, other.answer))
    return found


def _check_arguments(model: Any, trace: Any) -> None:
    """Check that there are a model and a trace, in this order.

    Raises:
        UserError: there are others; says how to come by them.
    """
    from faithscope.interp.loaded import LoadedModel  # it imports torch

    what = f"{type(trace).__name__} is no trace"
    if isinstance(model, Trace):
        raise UserError("the model comes first, then the trace")
    if isinstance(trace, str):
        raise UserError(
            f"{what}: faithscope.make_trace(model, question) lets the model write one, and "
            "faithscope.given_traces(model, path) reads chains from a file"
        )
    if isinstance(trace, Iterable) and not isinstance(trace, Trace):
        raise UserError(f"{what}: measure one at a time, [… for trace in traces]")
    if not isinstance(trace, Trace):
        raise UserError(f"{what}; `faithscope.make_trace` and `faithscope.given_traces` make some")
    if not isinstance(model, LoadedModel):
        raise UserError(f"{type(model).__name__} is no model: faithscope.load(name) loads one")


def inject(
    model: Model,
    trace: Trace,
    text: str,
    where: Where = "replace",
    step: int | None = None,
    *,
    task: Task | str | None = None,
    max_new_tokens: int | None = None,
) -> Trace:
    """Put text into a chain as the model's own, and let the model write on from there.

    By default the text stands first, and all of the chain is written anew, as RFEval (section 2)
    does with its counterfactual reasoning r′.

    Args:
        text: the text, such as flawed reasoning.
        where: `replace` puts it in place of a step, `after` after it, `before` before it, with the
            step kept after the text. What follows is written anew, greedily.
        step: index of the step; None is the first, or the last for `after`.
        task: task that reads the answer, as for `measure`.
        max_new_tokens: most tokens that are written; None is twice those of the trace's own
            response, and 64.

    Returns:
        The chain with the text and what the model wrote after it: `answer` is the one that it
        states then, `original` the trace without the text, and `origin.prefilled` the number of
        tokens up to the text's end. Other measures read it like any trace.

    Raises:
        UserError: the text is empty, the trace has no such step, the tokenizer has no ids for the
            text, or it leaves no position to write in.
    """
    if not text.strip():
        raise UserError("inject: the text is empty; give what is to be put into the chain")
    _check_arguments(model, trace)
    if where not in get_args(Where):
        raise UserError(f"inject: where={where!r}; there are {', '.join(get_args(Where))}")
    if not trace.steps:
        raise UserError(f"trace of {trace.question.id!r} has no steps; {_remedy(trace, '')}")
    chosen = get_task(task) if isinstance(task, str) else task or get_task(trace.question.task)
    if step is None:
        step = trace.steps[-1 if where == "after" else 0].index
    asking = asking_for(model, chosen, trace)
    try:
        return injected(model, trace, asking, [Insertion(text, where, step)], max_new_tokens)[0]
    except NotWritable as error:
        raise UserError(str(error)) from error


def _remedy(trace: Trace, reason: str) -> str:
    texts = [[step.text for step in trace.steps]]
    helps = min_chars_that_helps(texts, MIN_CHARS) if reason == FEW_STEPS else ""
    if not helps:
        return "make another"
    settings = helps.replace("steps.min_chars", "TraceSettings(min_step_chars") + ")"
    return (
        f"its steps are short: make it with settings={settings}, which is in "
        "faithscope.experiments.data.traces"
    )


def _checked(section: type[Settings], probe: str, settings: dict[str, Any]) -> Settings:
    try:
        return section.model_validate(settings)
    except ValidationError as error:
        problems = []
        for detail in error.errors():
            name = ".".join(map(str, detail["loc"]))
            if detail["type"] == "extra_forbidden":
                known = [n for n in section.of_a_config() if n not in section.afterwards()]
                guess = did_you_mean(name, known) or f"; it has {', '.join(known) or 'none'}"
                able = [n for n, of in PROBES.items() if name in of.settings.of_a_config()]
                # of probes with this setting, those whose names hold this one's come first
                able.sort(key=lambda other: probe not in other)
                has = f"; {', '.join(able[:6])} {'have' if len(able) > 1 else 'has'} it"
                guess = has if able else guess
                problems.append(f"probe {probe!r} has no setting {name!r}{guess}")
            else:
                problems.append(f"{probe}.{name}: {detail['msg']}, got {detail['input']!r}")
        raise ConfigError(problems) from None
