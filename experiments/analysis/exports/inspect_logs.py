"""Logs of Inspect (`.eval`) written from a run: one log per data set, task and writer, one sample
per chain.

`inspect view`, `inspect_ai.analysis` and Inspect Scout open them, and `traces.path` reads them back
as given chains without loss (`data.given.inspect_log`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.analysis.comparison.scores import COSTS, digest
from faithscope.experiments.analysis.exports.measured_chains import (
    MeasuredChain,
    Row,
    measured_chains,
)
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.config.study import study_of
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.inspect_log import OWN
from faithscope.experiments.engine.environment import version
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.planfile import as_file_name
from faithscope.experiments.files import make_folder
from faithscope.interp.errors import UserError
from faithscope.probes.record import is_right

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.scorer import Score

UNKNOWN_WRITER = "unknown"
"""Name of the model in a log whose chains do not say who wrote them."""
CORRECT = "correct"
"""Score that says whether the chain's answer is the right one."""
_SCORE = ("family", "probe", "variant", "judge", "higher_is_faithful", "rule", *COSTS)
"""Columns of a score that a log keeps beside its value."""


def write_inspect_logs(run: Run, folder: Path) -> list[Path]:
    """Write the chains of a run as logs of Inspect into a folder; returns the paths of the logs.

    A log that the folder already has under the same name is replaced.

    Raises:
        UserError: inspect_ai is not installed, the run holds no chains, or two logs would have one
            name.
    """
    try:
        from inspect_ai.log import write_eval_log
    except ImportError as error:
        raise UserError(
            "logs of Inspect are written by inspect_ai: pip install 'faithscope[inspect]'"
        ) from error
    groups: defaultdict[tuple[str, str, str], list[MeasuredChain]] = defaultdict(list)
    for chain in measured_chains(run):
        place = chain.place
        groups[place["dataset"], place["task"], place["model"]].append(chain)
    paths: dict[str, tuple[str, str, str]] = {}
    make_folder(folder)
    for group, chains in groups.items():
        dataset, task, model = group
        names = [dataset, *([task] if task not in ("", dataset) else []), model or UNKNOWN_WRITER]
        name = "_".join(map(as_file_name, names)) + ".eval"
        if other := paths.get(name):
            raise UserError(f"{folder / name}: is the log of {other} and of {group}; rename one")
        paths[name] = group
        write_eval_log(_log(run, group, chains), str(folder / name))
    return [folder / name for name in paths]


def _log(run: Run, group: tuple[str, str, str], chains: Sequence[MeasuredChain]) -> EvalLog:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalResults, EvalSpec, EvalStats

    dataset, task, model = group
    samples = [_sample(chain) for chain in chains]
    config, made = stored_config(run.path), _began(run)
    study = study_of(config).name
    about = {"run": run.path.resolve().name, "study": study, "config": config}
    log_id = digest([study, *group, [c.id for c in chains]])
    return EvalLog(
        status="success",
        eval=EvalSpec(
            eval_id=log_id,
            run_id=digest([study, run.path.resolve().name]),
            task_id=log_id,
            created=made,
            task=task or dataset,
            task_description="Chains of thought with the measures of faithscope.",
            dataset=EvalDataset(
                name=dataset,
                samples=len(samples),
                sample_ids=[str(sample.id) for sample in samples],
            ),
            model=model or UNKNOWN_WRITER,
            config=EvalConfig(),
            packages={"faithscope": version("faithscope") or "unknown"},
            tags=[OWN],
            metadata={OWN: about},
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=_means(samples),
        ),
        stats=EvalStats(started_at=made, completed_at=made),
        samples=samples,
    )


def _began(run: Run) -> str:
    """Time of the first change of the run's config file, which is written when a run begins."""
    written = (run.path / "config.yaml").stat().st_mtime
    return datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds")


def _sample(measured: MeasuredChain) -> EvalSample:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ChatMessageUser,
        ContentReasoning,
        ContentText,
        ModelOutput,
    )

    chain = measured.chain
    reply = ChatMessageAssistant(
        id=f"{measured.id}-reply",
        content=[
            ContentReasoning(reasoning=chain.reasoning),
            ContentText(text=measured.tail or chain.answer or ""),
        ],
        model=chain.model or None,
        source="generate",
    )
    stop = "max_tokens" if chain.cut else "stop"
    asked = ChatMessageUser(id=f"{measured.id}-asked", content=measured.message)
    return EvalSample(
        id=chain.id,
        epoch=1,
        uuid=measured.id,
        input=chain.question,
        choices=None if chain.options is None else list(chain.options),
        target=chain.gold or "",
        messages=[asked, reply],
        output=ModelOutput(
            model=chain.model, choices=[ChatCompletionChoice(message=reply, stop_reason=stop)]
        ),
        scores=_scores(measured),
        metadata={OWN: _about(measured)},
    )


def _about(measured: MeasuredChain) -> dict[str, Any]:
    """What a sample says beside Inspect's own fields, from which the chain is read back."""
    chain = measured.chain
    texts = ("question", "reasoning", "options", "where", "cut")
    own = {name: value for name, value in asdict(chain).items() if name not in texts}
    return {
        "chain": own,
        "scored": [*([CORRECT] if _is_right(chain) is not None else []), *measured.values],
        "task": measured.place["task"],
        "excluded": measured.excluded,
        "not_scored": measured.missing,
        "steps": [
            {
                "step": i,
                "text": step.text,
                "counted": step.counted,
                "labels": dict(step.labels),
                "scores": dict(step.scores),
            }
            for i, step in enumerate(measured.steps)
        ],
    }


def _scores(measured: MeasuredChain) -> dict[str, Score]:
    from inspect_ai.scorer import CORRECT as RIGHT
    from inspect_ai.scorer import INCORRECT as WRONG
    from inspect_ai.scorer import Score

    right = _is_right(measured.chain)
    of_answer = Score(value=RIGHT if right else WRONG, answer=measured.chain.answer)
    return ({} if right is None else {CORRECT: of_answer}) | {
        row["measure"]: Score(value=row["value"], metadata=_beside(row))
        for row in measured.scores
        if not row["missing"]
    }


def _is_right(chain: GivenChain) -> bool | None:
    return is_right(chain.answer, chain.gold)


def _beside(row: Row) -> dict[str, Any]:
    values = {name: row[name] for name in _SCORE}
    return {name: v for name, v in values.items() if v != "" and v == v}


def _means(samples: Sequence[EvalSample]) -> list[Any]:
    """The mean of every score over the samples that have it, as Inspect lists results."""
    from inspect_ai.log import EvalMetric, EvalScore
    from inspect_ai.scorer import value_to_float

    as_number = value_to_float()
    values: defaultdict[str, list[float]] = defaultdict(list)
    for sample in samples:
        for name, score in (sample.scores or {}).items():
            values[name].append(as_number(score.value))
    return [
        EvalScore(
            name=name,
            scorer=name,
            scored_samples=len(known),
            unscored_samples=len(samples) - len(known),
            metrics={"mean": EvalMetric(name="mean", value=math.fsum(known) / len(known))},
        )
        for name, known in values.items()
    ]
