"""What a run's config names to be asked: judge forms, the reference's, texts put into chains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.studies.c2faith.benchmark.injection import Injection, injections
from faithscope.experiments.studies.c2faith.benchmark.items import Settings
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.prompts import TaskForm, judge_forms
from faithscope.interp.errors import did_you_mean


def forms_of(config: C2FaithConfig) -> dict[str, TaskForm]:
    """The forms of a run by name; those that the reference is asked among them.

    Raises:
        ConfigError: a name without a form, or no reference form for a scale.
    """
    folder = None if config.prompts is None else Path(config.prompts).expanduser()
    known = judge_forms(folder)
    asked: dict[str, TaskForm] = {}
    for name in config.forms:
        if name not in known:
            guess = did_you_mean(name, known) or f"; known: {', '.join(known)}"
            raise ConfigError([f"forms: unknown form {name!r}{guess}"])
        if known[name].task == "coverage_reference":
            raise ConfigError([f"forms: {name!r} is asked of the reference; name one in reference"])
        asked[name] = known[name]
    return asked


def injections_of(config: C2FaithConfig) -> list[Injection]:
    """The texts that a run puts into chains, in the order of its config.

    Raises:
        ConfigError: a name without a text.
        UserError: a file of texts that cannot be used.
    """
    path = config.injection.texts
    known = injections(None if path is None else Path(path).expanduser())
    for name in config.injection.kinds:
        if name not in known:
            guess = did_you_mean(name, known) or f"; known: {', '.join(known)}"
            raise ConfigError([f"injection.kinds: unknown injection {name!r}{guess}"])
    return [known[name] for name in config.injection.kinds]


def reference_forms(config: C2FaithConfig, forms: Mapping[str, TaskForm]) -> dict[str, TaskForm]:
    """Scale -> the form by which the reference rates it; none without a reference.

    Raises:
        ConfigError: a scale that is asked about has no reference form, or several.
    """
    if config.reference is None:
        return {}
    folder = None if config.prompts is None else Path(config.prompts).expanduser()
    known = [f for f in judge_forms(folder).values() if f.task == "coverage_reference"]
    form_of_scale = {}
    for scale in dict.fromkeys(f.scale for f in forms.values() if f.task == "coverage"):
        of_scale = [f for f in known if f.scale == scale]
        if not of_scale:
            raise ConfigError([f"reference: there is no reference form of scale {scale}"])
        if len(of_scale) > 1:
            names = " and ".join(repr(f.form.name) for f in of_scale)
            raise ConfigError(
                [
                    f"reference: {names} are both reference forms of scale {scale}; leave one of "
                    f"them in {config.prompts}"
                ]
            )
        form_of_scale[scale] = of_scale[0]
    return form_of_scale


def settings_of(config: C2FaithConfig) -> Settings:
    """How the chains of a run are perturbed."""
    p = config.perturb
    return Settings(config.seed, p.low, p.high, tuple(p.levels), tuple(p.rules))
