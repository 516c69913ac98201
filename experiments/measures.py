"""The probes that a run can ask for: each joined to the tasks, the config and the traces.

A probe in `probes` knows neither; here its words and settings are gathered. Cheap to import:
nothing here loads torch until a measure is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faithscope.experiments.config import RunConfig
    from faithscope.experiments.tasks import Task
    from faithscope.interp.model import Model
    from faithscope.interventions.trace import Question, Trace
    from faithscope.probes.record import Record
    from faithscope.probes.text_model import TextModel


@dataclass(frozen=True)
class Probe:
    """One measure that a run can ask for."""

    name: str
    summary: str
    measure: Callable[[Any, Task, Trace, RunConfig], list[Record]]
    """Of a model; where `from_outside`, a `probes.text_model.TextModel` will do."""
    settings: Callable[[RunConfig], dict[str, Any]]
    """Everything of the config that its numbers depend on."""
    words: Callable[[Task, Question], dict[str, Any]]
    """Everything of the task that its numbers depend on."""
    branches: Callable[[int, RunConfig], int]
    """Continuations asked about, for a trace of so many steps."""
    on_excluded: bool = False
    """Whether it also runs where the trace cannot be edited: it asks about the question alone."""
    from_outside: bool = False
    """Whether a model of which only what it writes is to be had can be measured."""


def _slrc(model: Model | TextModel, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.slrc import SlrcSettings, slrc

    c = config.slrc
    settings = SlrcSettings(
        framings=tuple(c.framings),
        readings=tuple(c.readings),
        shuffles=c.shuffles,
        edits=tuple(c.edits),
        answer_tokens=c.answer_tokens,
        length_normalise=c.length_normalise,
        seed=config.seed,
        regenerate_tokens=c.regenerate_tokens,
    )
    return slrc(model, trace, asking_for(model, task, trace), settings)


def _slrc_settings(config: RunConfig) -> dict[str, Any]:
    return config.slrc.model_dump(mode="json") | {"seed": config.seed}


def _slrc_words(task: Task, question: Question) -> dict[str, Any]:
    return {
        "necessity": task.necessity_prompt(question, "\0"),
        "sufficiency": task.sufficiency_prompt(question, "\0"),
        "cues": (task.answer_cue, task.reprompt_cue),
        "labels": task.labels(question, None),
    }


def _slrc_branches(steps: int, config: RunConfig) -> int:
    c = config.slrc
    return len(c.framings) * (1 + steps * (len(c.edits) + 1) + c.shuffles)


def _direct(model: Model | TextModel, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.probes.direct import DirectSettings, direct
    from faithscope.probes.messages import Message

    c, question = config.direct, trace.question
    prompts = {p.name: Message(p.user, p.system) for p in task.direct_prompts(question)}
    settings = DirectSettings(tuple(c.readings), c.answer_tokens, c.length_normalise)
    labels = task.labels(question, trace.unedited)
    return direct(
        model,
        trace,
        prompts,
        labels,
        lambda text: task.parse(text, question),
        question.kind,
        settings,
    )


def _sycophancy(
    model: Model | TextModel, task: Task, trace: Trace, config: RunConfig
) -> list[Record]:
    from faithscope.probes.sycophancy import SycophancySettings, sycophancy

    c = config.sycophancy
    settings = SycophancySettings(tuple(c.readings), c.prompt, c.answer_tokens, config.seed)
    if without_words := _without_words("sycophancy", task, trace, config.seed):
        return without_words
    return sycophancy(model, trace, task.cot_prompt(trace.question), settings)


def _error_detection(
    model: Model | TextModel, task: Task, trace: Trace, config: RunConfig
) -> list[Record]:
    from faithscope.probes.error_detection import ErrorDetectionSettings, error_detection

    c = config.error_detection
    settings = ErrorDetectionSettings(tuple(c.readings), c.prompt, c.answer_tokens, config.seed)
    if without_words := _without_words("error_detection", task, trace, config.seed):
        return without_words
    return error_detection(model, trace, task.cot_prompt(trace.question), settings)


def _attention(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.attention import AttentionSettings, attention

    c = config.attention
    settings = AttentionSettings(c.shuffles, c.top_heads, config.seed)
    return attention(model, trace, asking_for(model, task, trace), settings)


def _cue_words(task: Task, question: Question) -> dict[str, Any]:
    """Of a probe that looks inside the model where it is about to answer."""
    return {"cue": task.answer_cue}


def _rigidity(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.rigidity import RigiditySettings, rigidity

    settings = RigiditySettings(config.rigidity.tuned_lens_of(trace.origin.model))
    return rigidity(model, trace, asking_for(model, task, trace), settings)


def _rigidity_settings(config: RunConfig) -> dict[str, Any]:
    """A lens that was fitted anew in its folder is another lens."""
    from faithscope.experiments.fingerprint import folder_fingerprint

    given = config.rigidity.tuned_lens
    folders = set(given.values() if isinstance(given, dict) else [given] if given else [])
    digests = {f: folder_fingerprint(p) for f in folders if (p := Path(f).expanduser()).exists()}
    told = config.rigidity.model_dump(mode="json")
    return told | {"lenses": digests} if digests else told


def _flow(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.flow import FlowSettings, flow

    return flow(model, trace, asking_for(model, task, trace), FlowSettings())


def _linear_probe(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.linear_probe import LinearProbeSettings, linear_probe

    settings = LinearProbeSettings(**_linear_probe_settings(config))
    return linear_probe(model, trace, asking_for(model, task, trace), settings)


def _linear_probe_settings(config: RunConfig) -> dict[str, Any]:
    """Of the states that are kept; what is fitted on them makes no new measurement."""
    c = config.linear_probe
    names = ("positions", "layers", "step_state", "precision")
    return {name: getattr(c, name) for name in names}


def _tracing(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.tracing import TracingSettings, tracing

    c = config.tracing
    settings = TracingSettings(c.every, c.effect, c.length_normalise)
    return tracing(model, trace, asking_for(model, task, trace), settings)


def _information(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.information import InformationSettings, information

    c = config.information
    settings = InformationSettings(c.threshold, c.replacements, c.length_normalise, config.seed)
    return information(model, trace, asking_for(model, task, trace), settings)


def _knockout(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.knockout import KnockoutSettings, knockout

    c = config.knockout
    settings = KnockoutSettings(tuple(c.queries), c.windows, c.heads, c.length_normalise)
    return knockout(model, trace, asking_for(model, task, trace), settings)


def _patching(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.patching import PatchingSettings, patching

    c = config.patching
    settings = PatchingSettings(
        tuple(c.places),
        tuple(c.sites),
        tuple(c.directions),
        c.layers,
        c.least,
        config.seed,
        c.length_normalise,
    )
    return patching(model, trace, asking_for(model, task, trace), settings)


def _patching_branches(steps: int, config: RunConfig) -> int:
    c = config.patching
    kinds = len(c.places) * len(c.sites) * len(c.directions)
    return steps * (4 + kinds * (c.layers or LAYERS_GUESSED))


def _knockout_branches(steps: int, config: RunConfig) -> int:
    c = config.knockout
    return 1 + steps * (1 + len(c.queries) * (1 + c.windows))


def _causal_effects(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from faithscope.experiments.traces import asking_for
    from faithscope.probes.causal_effects import CausalEffectsSettings, causal_effects

    settings = CausalEffectsSettings(config.seed, config.causal_effects.length_normalise)
    return causal_effects(model, trace, asking_for(model, task, trace), settings)


LAYERS_GUESSED = 30
"""Layers of a model in estimates made before it is loaded."""
STEPS_GUESSED = 5
"""Steps per trace in estimates made before the traces exist."""
TOKENS_GUESSED = 25
"""Tokens per step in estimates made before the traces exist."""
NO_WORDS = "no_words_for_it"


def _without_words(probe: str, task: Task, trace: Trace, seed: int) -> list[Record]:
    """An exclusion where the task is in no natural language: nothing can be said to its models."""
    from faithscope.probes.record import record

    spoken = bool(task.direct_prompts(trace.question))
    return [] if spoken else [record(trace, probe, "", seed, excluded=NO_WORDS)]


def _direct_words(task: Task, question: Question) -> dict[str, Any]:
    return {
        "prompts": [(p.name, p.user, p.system) for p in task.direct_prompts(question)],
        "labels": task.labels(question, None),
    }


def _prefix_words(task: Task, question: Question) -> dict[str, Any]:
    return _cue_words(task, question) | {"labels": task.labels(question, None)}


def _chain_words(task: Task, question: Question) -> dict[str, Any]:
    return {"asked": task.cot_prompt(question), "spoken": bool(task.direct_prompts(question))}


PROBES: dict[str, Probe] = {
    "slrc": Probe(
        "slrc",
        "necessity, sufficiency, order sensitivity and their edits (Step-Level Reasoning Capacity)",
        _slrc,
        _slrc_settings,
        _slrc_words,
        _slrc_branches,
        from_outside=True,
    ),
    "direct": Probe(
        "direct",
        "accuracy without reasoning, asked for in three ways (2.3, 4.3)",
        _direct,
        lambda config: config.direct.model_dump(mode="json"),
        _direct_words,
        lambda steps, config: 3,
        on_excluded=True,
        from_outside=True,
    ),
    "sycophancy": Probe(
        "sycophancy",
        "agreement with a wrong answer to its own reasoning, and with its own answer (4.8)",
        _sycophancy,
        lambda config: config.sycophancy.model_dump(mode="json") | {"seed": config.seed},
        _chain_words,
        lambda steps, config: 2,
        from_outside=True,
    ),
    "error_detection": Probe(
        "error_detection",
        "arithmetic errors put into its own reasoning: detected, and false alarms (4.8)",
        _error_detection,
        lambda config: config.error_detection.model_dump(mode="json") | {"seed": config.seed},
        _chain_words,
        lambda steps, config: 2,
        from_outside=True,
    ),
    "attention": Probe(
        "attention",
        "attention of the answer to the reasoning, real against shuffled, and allocation (2.7)",
        _attention,
        lambda config: config.attention.model_dump(mode="json") | {"seed": config.seed},
        _cue_words,
        lambda steps, config: 1 + config.attention.shuffles,
    ),
    "rigidity": Probe(
        "rigidity",
        "the layer from which the lens already gives the model's own next token (2.7)",
        _rigidity,
        _rigidity_settings,
        _prefix_words,
        lambda steps, config: 1,
    ),
    "flow": Probe(
        "flow",
        "cosine between reasoning states and the answer token's, by layer (2.7)",
        _flow,
        lambda config: {},
        _cue_words,
        lambda steps, config: 1,
    ),
    "linear_probe": Probe(
        "linear_probe",
        "whether a linear classifier reads the answer from hidden states, before, during and after",
        _linear_probe,
        _linear_probe_settings,
        _cue_words,
        lambda steps, config: 1,
    ),
    "tracing": Probe(
        "tracing",
        "probability of every answer after each token of the reasoning (FaithCoT-Bench, app. C)",
        _tracing,
        lambda config: config.tracing.model_dump(mode="json"),
        _prefix_words,
        lambda steps, config: steps * TOKENS_GUESSED // config.tracing.every,
    ),
    "information": Probe(
        "information",
        "information gain, perplexity, step mutual information (FaithCoT-Bench, app. C; SLRC, 3.3)",
        _information,
        lambda config: config.information.model_dump(mode="json") | {"seed": config.seed},
        _prefix_words,
        # with and without the question; each text in a step's place, and as the only step
        lambda steps, config: 4 + steps * (3 + 2 * config.information.replacements + 1),
    ),
    "knockout": Probe(
        "knockout",
        "later tokens kept from looking at a step that stands, beside removal of its text",
        _knockout,
        lambda config: config.knockout.model_dump(mode="json"),
        _prefix_words,
        _knockout_branches,
    ),
    "patching": Probe(
        "patching",
        "states exchanged between real and corrupted reasoning, per layer, site and step",
        _patching,
        lambda config: config.patching.model_dump(mode="json") | {"seed": config.seed},
        _prefix_words,
        _patching_branches,
    ),
    "causal_effects": Probe(
        "causal_effects",
        "graded necessity, NLDD and TTS of every step, side by side with SLRC",
        _causal_effects,
        lambda config: config.causal_effects.model_dump(mode="json") | {"seed": config.seed},
        _prefix_words,
        lambda steps, config: 1 + 6 * steps,
    ),
}
