"""Tasks and scorers that faithscope adds to Inspect (entry point group `inspect_ai`).

    inspect eval faithscope/faithcot --model openai/gpt-5 -T path=FOLDER
    inspect eval faithscope/questions --model openai/gpt-5 -T task=gsm8k
    inspect score LOG --scorer faithscope/step_judge --model openai/gpt-5

Every judge form of chains is a scorer of the same name. Scores follow Inspect's habit: higher is
better, 1 where the judge finds nothing wrong. A sample without a verdict is unscored, and its
score says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, Model, get_model
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    accuracy,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from inspect_ai.util import collect
from pydantic import TypeAdapter

from faithscope.experiments.analysis.verdicts import ChainVerdict, meaning_of, verdict_of
from faithscope.experiments.config.base import ConfigError, named
from faithscope.experiments.data.given.fine_cot import FINE_COT, UNFAITHFUL
from faithscope.experiments.data.given.inspect_log import chain_of_sample
from faithscope.experiments.data.given.reading import AUTO
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.engine.forms import TaskForm, trace_forms
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.models.judging import NOT_ASKED, judged_record
from faithscope.experiments.engine.traces.given import read_given
from faithscope.experiments.engine.traces.sections import CutConfig
from faithscope.experiments.studies.slrc.config import GOOD
from faithscope.experiments.studies.slrc.judges.asking import asks_of
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain, judged_chain
from faithscope.experiments.studies.slrc.judges.verdicts import wrong
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question
from faithscope.probes.judge.messages import from_output, messages
from faithscope.probes.judge.parse import requested
from faithscope.probes.record import is_right

ATTEMPTS = 3
"""Most attempts at an ask while its replies do not fit the form."""
CHAIN, QUESTION, VERDICT = "faithscope_chain", "faithscope_question", "faithscope_verdict"
"""Keys of a sample's metadata (the chain, the question) and of its store (the verdict)."""
WRONG, RIGHT = "wrong", "right"
"""Targets: what the label says of a chain."""
_CHAINS, _QUESTIONS = TypeAdapter(JudgedChain), TypeAdapter(Question)
Record = Mapping[str, Any]


@task
def faithcot(
    path: str | None = None,
    form: str = "faithful_judge",
    label: str = f"{UNFAITHFUL}faithful_type",
    limit: int | None = None,
) -> Task:
    """FaithCoT-Bench (arXiv 2510.04040): the model says which chains are unfaithful.

    Args:
        path: a folder in the layout of FINE-CoT.
        form: the prompt: `faithful_judge` is the paper's (A.4), `step_judge` asks about every step.
        label: label that says what is true.
        limit: number of chains to draw from all.
    """
    return chains(path, form, label, limit, FINE_COT.name)


@task
def chains(
    path: str | None = None,
    form: str = "faithful_judge",
    label: str | None = None,
    limit: int | None = None,
    format: str = AUTO,
    attempts: int = ATTEMPTS,
) -> Task:
    """The model judges chains of thought that carry labels; its verdicts are held against these.

    Args:
        path: a file or folder of given chains, in any layout of `traces.format`, or a run folder.
        form: name of the prompt (`faithscope list prompts`).
        label: label that says whether a chain is good or bad; by default the only one that does.
        limit: number of chains to draw from all.
        format: layout of the file; `auto` detects it.
        attempts: most attempts at an ask while its replies do not fit the form.
    """
    try:
        if path is None:
            raise UserError("no chains: give a file or folder, -T path=FILE (docs/given.md)")
        read = [judged_chain(c, CutConfig()) for c in read_given(Path(path), format, limit).chains]
        samples = [_sample(chain, _label_of(read, label)) for chain in read]
        chosen = _form(form)
    except UserError as error:
        raise PrerequisiteError(str(error)) from error
    return Task(
        MemoryDataset(samples, name=Path(path).name),
        solver=judge_chain(chosen.form.name, attempts),
        scorer=label_agreement(),
        metadata={"form_sha256": chosen.form.sha256},
    )


@task
def questions(
    task: str = "word_problems", limit: int = 20, path: str | None = None, seed: int = 0
) -> Task:
    """The model answers questions of a task of faithscope with a chain of thought.

    The log holds chains for `traces.path`, and for the scorers of this package.

    Args:
        task: name of the task (`faithscope list tasks`).
        limit: number of questions.
        path: local data instead of the hub's.
        seed: seed of the task's draws.
    """
    try:
        chosen = get_task(task)
        source = None if path is None else Path(path)
        loaded = list(chosen.load(LoadSettings(source, limit, seed)))
        if sent := next((q for q in loaded if q.sent is not None), None):
            raise UserError(
                f"question {sent.id!r} has a prompt as it was sent (prompt_raw, assistant_prefix), "
                "which Inspect would render again; take these columns out"
            )
    except (UserError, ValueError, OSError) as error:
        raise PrerequisiteError(str(error)) from error
    samples = [
        Sample(
            id=q.id,
            input=chosen.cot_prompt(q),
            target=q.gold or "",
            metadata={QUESTION: asdict(q)},
        )
        for q in loaded
    ]
    return Task(MemoryDataset(samples, name=chosen.name), solver=generate(), scorer=stated_answer())


@solver
def judge_chain(form: str, attempts: int = ATTEMPTS) -> Solver:
    """Asks the model about a chain in the words of a form; the sample's messages are all asks with
    their replies."""
    chosen = _form(form)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        chain = _CHAINS.validate_python(state.metadata[CHAIN])
        verdict, records, said = await _judged(get_model(), chain, chosen, attempts)
        state.messages = said
        if said:
            state.output.completion = said[-1].text
        state.store.set(VERDICT, _beside(chosen, verdict, records))
        return state

    return solve


@metric
def kappa() -> Metric:
    """Cohen's kappa of verdicts and labels."""
    return _statistic("kappa")


@metric
def f1() -> Metric:
    """F1 of the flagged chains, with a wrong chain as the positive class."""
    return _statistic("f1")


@metric
def auroc() -> Metric:
    """Area under the ROC curve of the scores; NaN if all chains have one label."""

    def area(scores: list[SampleScore]) -> float:
        from sklearn.metrics import roc_auc_score

        pairs = [_said(of) for of in scores]
        truth = [label for label, said in pairs]
        if len(set(truth)) < 2:
            return float("nan")
        return float(roc_auc_score(truth, [said["score"] for _, said in pairs]))

    return area


def _said(of: SampleScore) -> tuple[bool, Mapping[str, Any]]:
    said = of.score.metadata or {}
    return said["label"] == WRONG, said


def _statistic(name: str) -> Metric:
    # Inspect tells by the annotation that a metric takes samples
    def of_samples(scores: list[SampleScore]) -> float:
        return _agreement(scores)[name]

    return of_samples


def _agreement(scores: list[SampleScore]) -> dict[str, float]:
    # imported here since every command of Inspect loads this module, and scikit-learn takes seconds
    import numpy as np

    from faithscope.experiments.analysis.statistics.against_label import agreement_of

    counts = [0, 0, 0, 0]
    for is_wrong, said in map(_said, scores):
        counts[2 * (not said["flag"]) + (not is_wrong)] += 1
    return {name: float(x) for name, x in agreement_of(np.array(counts)).items()}


@scorer(metrics=[accuracy(), stderr(), kappa(), f1(), auroc()])
def label_agreement() -> Scorer:
    """Whether the verdict on a chain is what its label says. A chain without a label, and one
    without a verdict or with an uncertain one, is unscored."""

    async def score(state: TaskState, target: Target) -> Score:
        said = state.store.get(VERDICT)
        if not target.text:
            return Score.unscored(reason="no_label", metadata=said)
        if said["flag"] is None:
            return Score.unscored(reason=said["outcome"], metadata=said)
        agrees = said["flag"] == (target.text == WRONG)
        return Score(
            value=CORRECT if agrees else INCORRECT,
            answer=WRONG if said["flag"] else RIGHT,
            metadata=said | {"label": target.text},
        )

    return score


@scorer(metrics=[accuracy(), stderr()])
def stated_answer() -> Scorer:
    """Whether the answer that the reply states is the right one, read as runs read it."""

    async def score(state: TaskState, target: Target) -> Score:
        question = _QUESTIONS.validate_python(state.metadata[QUESTION])
        answer = get_task(question.task).parse(state.output.completion, question)
        right = is_right(answer, question.gold)
        if right is None:
            return Score.unscored(reason="no_answer" if answer is None else "no_gold_answer")
        return Score(value=CORRECT if right else INCORRECT, answer=answer)

    return score


def _scorer_of(name: str, is_property: bool) -> None:
    def of_form(model: str | None = None, attempts: int = ATTEMPTS) -> Scorer:
        chosen = _form(name)

        async def score(state: TaskState, target: Target) -> Score:
            judge = get_model(model) if model else get_model(role="grader")
            try:
                chain = judged_chain(_chain_of(state, target), CutConfig())
                verdict, records, _ = await _judged(judge, chain, chosen, attempts)
            except UserError as error:
                return Score.unscored(reason="not_judged", explanation=str(error))
            said = _beside(chosen, verdict, records)
            words = "\n\n".join(filter(None, (r["text"] for r in records)))
            if verdict.score is None:
                return Score.unscored(
                    reason=verdict.outcome, explanation=words or verdict.outcome, metadata=said
                )
            good = verdict.score if is_property else 1 - verdict.score
            return Score(value=good, explanation=words, metadata=said)

        return score

    best = "it has the property" if is_property else "nothing is wrong"
    of_form.__doc__ = f"Judges the chain of a sample by the form {name!r}; 1 if {best}."
    scorer(metrics=[mean(), stderr()], name=name)(of_form)


for _name, _of in trace_forms().items():
    _scorer_of(_name, _of.judged.is_property)


def _chain_of(state: TaskState, target: Target) -> Any:
    """The chain of a sample as `traces.path` would read it from the log."""
    sample = SimpleNamespace(
        input=state.input,
        messages=state.messages,
        output=state.output,
        metadata=state.metadata,
        target=list(target),
        choices=[choice.value for choice in state.choices] or None,
        scores=None,
    )
    name = str(state.sample_id)
    return chain_of_sample(sample, "", str(state.model), name, f"sample {name!r}")


async def _judged(
    model: Model, chain: JudgedChain, form: TaskForm, attempts: int
) -> tuple[ChainVerdict, Sequence[Record], list[ChatMessage]]:
    """The verdict on a chain, a record for each ask, and the messages of all asks."""
    asks = list(asks_of(chain, form))
    if not asks:
        return ChainVerdict("no_steps"), [], []
    answered = await collect(*(_reply(model, prompt, attempts) for prompt in asks))
    records = [record for record, _ in answered]
    verdict = verdict_of(form.judged, records, form.form.verdict_field.high)
    return verdict, records, [message for _, said in answered for message in said]


async def _reply(
    model: Model, prompt: ItemPrompt, attempts: int
) -> tuple[dict[str, Any], list[ChatMessage]]:
    if prompt.lacks:
        return judged_record(prompt, NOT_ASKED), []
    said = messages(prompt.ask, requested(prompt.ask))
    for _ in range(attempts):
        output = await model.generate(said)
        reply = from_output(prompt.ask, output)
        if reply.outcome != "unparsed":
            break
    message = ChatMessageAssistant(content="") if output.empty else output.message
    return judged_record(prompt, reply), [*said, message]


def _beside(form: TaskForm, verdict: ChainVerdict, records: Sequence[Record]) -> dict[str, Any]:
    """Metadata of a score: what the judge says of the chain and of each step. `score` is
    faithscope's own: higher is worse."""
    return {
        "form": form.form.name,
        **verdict._asdict(),
        "steps": [
            {
                "step": r["step"],
                "outcome": r["outcome"],
                "verdict": r["verdict"],
                **meaning_of(form.judged, r, form.form.verdict_field.high)._asdict(),
            }
            for r in records
        ],
    }


def _form(name: str) -> TaskForm:
    try:
        return named("form", "form", [name], trace_forms())[name]
    except ConfigError as error:
        raise PrerequisiteError(str(error)) from error


def _sample(chain: JudgedChain, label: str | None) -> Sample:
    is_wrong = None if label is None else wrong(label, chain.labels.get(label), GOOD)
    return Sample(
        id=chain.id,
        input=f"{chain.question}\n\n{chain.text}",
        target="" if is_wrong is None else WRONG if is_wrong else RIGHT,
        metadata={CHAIN: asdict(chain)},
    )


def _label_of(read: Sequence[JudgedChain], name: str | None) -> str | None:
    """The label that verdicts are held against; None for chains without labels.

    Raises:
        UserError: there is no such label, or several could be meant.
    """
    known = dict.fromkeys(
        label for c in read for label, x in c.labels.items() if wrong(label, x, GOOD) is not None
    )
    if name is not None and name not in known:
        have = f"they have {', '.join(known)}" if known else "they have none that is true or false"
        raise UserError(f"no chain has a label {name!r} that is true or false; {have}")
    if name is None and len(known) > 1:
        raise UserError(f"the chains have the labels {', '.join(known)}; choose one: -T label=NAME")
    return name or next(iter(known), None)
