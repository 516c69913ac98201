"""The judge forms and reference forms that the config of a run names."""

from __future__ import annotations

from collections.abc import Mapping

from faithscope.experiments.config.base import ConfigError, expanded, named
from faithscope.experiments.studies.c2faith.benchmark.items import Settings
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.prompts import TaskForm, judge_forms


def forms_of(config: C2FaithConfig) -> dict[str, TaskForm]:
    """The forms that judges are asked in a run, by name; a form of the reference is refused.

    Raises:
        ConfigError: a name without a form, or a form that only the reference is asked.
    """
    asked = named("forms", "form", config.forms, judge_forms(expanded(config.prompts)))
    for name, form in asked.items():
        if form.task == "coverage_reference":
            raise ConfigError([f"forms: {name!r} is asked of the reference; name one in reference"])
    return asked


def reference_forms(config: C2FaithConfig, forms: Mapping[str, TaskForm]) -> dict[str, TaskForm]:
    """Scale -> the form by which the reference rates it; none without a reference.

    Raises:
        ConfigError: a scale that is asked about has no reference form, or several.
    """
    if config.reference is None:
        return {}
    of_task = judge_forms(expanded(config.prompts)).values()
    known = [form for form in of_task if form.task == "coverage_reference"]
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
    """Settings by which the chains of a run are perturbed."""
    p = config.perturb
    return Settings(config.seed, p.low, p.high, tuple(p.levels), tuple(p.rules))
