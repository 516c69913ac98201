"""Checks of labels and directions that a config names, before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from faithscope.experiments.analysis.statistics.label_probes import class_of, is_label
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.engine.models.model_files import files_of
from faithscope.experiments.engine.traces.units import Item
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.judges.asking import JudgedUnits
from faithscope.experiments.studies.slrc.label_probes.run_labels import DETECTOR, names_of
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.label_settings import ReadsLabels


def check_labels(config: RunConfig, items: Sequence[Item], judged: JudgedUnits) -> None:
    """Check the labels, and the file of directions, that the probes of a config name.

    Labels of other measures and of judges are known by name alone, those of given chains by their
    values.

    Raises:
        ConfigError: there is no label of a name, one that came with chains has one value or is of
            too few, or the directions cannot be read by a model of the run.
    """
    problems = []
    for probe in config.probes:
        settings = config.settings(probe)
        if not isinstance(settings, ReadsLabels):
            continue
        of = {i.given.sha256: i.given.chain for i in items if i.given and probe in i.units}
        chains = list(of.values())
        columns = dict.fromkeys(name for c in chains for name in c.labels)
        of_steps = dict.fromkeys(name for c in chains for name in c.step_labels)
        known, known_steps = names_of(config.probes, judged, columns, of_steps)
        for key, names, there in (
            ("labels", settings.labels, known),
            ("step_labels", settings.step_labels, known_steps),
        ):
            for name in names:
                of_detector = config.detectors is not None and name.startswith(f"{DETECTOR}.")
                if name not in there and not of_detector:
                    guess = did_you_mean(name, there) or f"; there are {', '.join(there)}"
                    problems.append(f"{probe}.{key}: this run has no label {name!r}{guess}")
        for name in (n for n in settings.labels if n in columns):
            values = [c.labels.get(name) for c in chains]
            problems += _of_values(f"{probe}.labels", name, "chains", values, settings)
        for name in (n for n in settings.step_labels if n in of_steps):
            values = [x for c in chains for x in c.step_labels.get(name, ())]
            problems += _of_values(f"{probe}.step_labels", name, "steps", values, settings)
        if settings.apply is not None:
            problems += _of_directions(f"{probe}.apply", settings, config.model.name)
    if problems:
        raise ConfigError(problems)


def _of_values(
    key: str, name: str, what: str, values: Iterable[Any], settings: ReadsLabels
) -> Iterator[str]:
    known = [x for x in values if is_label(x)]
    classes = {class_of(x) for x in known}
    if len(classes) == 1:
        (only,) = classes
        yield (
            f"{key}: label {name!r} has one value, {only}, on all {len(known)} {what} that have "
            "it; give a label that differs, or chains of both kinds"
        )
    elif len(known) < settings.min_items:
        section = key.partition(".")[0]
        yield (
            f"{key}: label {name!r} is known of {len(known)} {what}, fewer than "
            f"{section}.min_items={settings.min_items}; give more, or a lower least number"
        )


def _of_directions(key: str, settings: ReadsLabels, models: Sequence[str]) -> Iterator[str]:
    # not at the top: it imports torch, which a dry run need not wait for
    from faithscope.interp.directions import load_directions

    assert settings.apply is not None
    try:
        directions = load_directions(Path(settings.apply))
    except UserError as error:
        yield f"{key}: {error}"
        return
    made = {str(m) for d in directions if (m := d.about.get("model")) is not None}
    any_model = f"{key.partition('.')[0]}.apply_to_any_model=true"
    for model in models:
        if made and model not in made and not settings.apply_to_any_model:
            yield (
                f"{key}: the directions of {settings.apply} are of {', '.join(sorted(made))}, and "
                f"this run has the model {model!r}; set {any_model} to read them all the same"
            )
            continue
        width = files_of(model).config.get("hidden_size")
        widths = {len(d.vector) for d in directions}
        if width is not None and width not in widths:
            has = ", ".join(map(str, sorted(widths)))
            yield (
                f"{key}: the directions of {settings.apply} have {has} numbers, and the states of "
                f"{model!r} {width}; take directions of a model of this width"
            )
