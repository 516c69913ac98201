"""The sections of the page between verdict and example traces, with their tables and figures."""

from __future__ import annotations

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.wording import percent
from faithscope.experiments.studies.slrc.measures import SLICES
from faithscope.experiments.studies.slrc.measures.slice import Table, Topic, asked
from faithscope.experiments.studies.slrc.tables.edits import edits_by_step_table, edits_table
from faithscope.experiments.studies.slrc.tables.head_to_head import head_to_head_table
from faithscope.experiments.studies.slrc.tables.measure_tables import (
    measure_correlations_table,
    measures_table,
)
from faithscope.experiments.studies.slrc.tables.measures import PROBES_READ
from faithscope.experiments.studies.slrc.tables.model_correlations import model_correlations_table
from faithscope.experiments.studies.slrc.tables.models import models_table
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant
from faithscope.experiments.studies.slrc.tables.planted import has_planted_truth, planted_table
from faithscope.experiments.studies.slrc.tables.prompt_effects import prompt_interventions_table
from faithscope.experiments.studies.slrc.tables.slrc import agreement_table, slrc_table, steps_table
from faithscope.experiments.studies.slrc.tables.taxonomy import (
    direct_table,
    taxonomy_table,
    threshold_sensitivity_table,
)
from faithscope.experiments.studies.slrc.taxonomy_config import TaxonomyConfig


def _modes(settings: TaxonomyConfig) -> Section:
    return Section(
        "taxonomy",
        "With and without reasoning",
        markup(
            "Reasoning helps from a gain of {} in accuracy on, and steps matter from a necessity "
            "of {} on (§2.3, §4.3). <em>Genuine</em>: both. <em>Scaffolding</em>: reasoning helps, "
            "its steps do not matter. <em>Decorative</em>: neither. <em>Empty</em>: steps matter "
            "and reasoning does not help. Settled: neither interval holds its threshold.",
            percent(settings.gap),
            percent(settings.necessity),
        ),
    )


def _prompts(settings: TaxonomyConfig) -> Section:
    return Section(
        "prompts",
        "Other words for the same task",
        f"Necessity that moves by {percent(settings.robustness)} or more is beyond what the paper "
        "takes for robust (§2.6).",
        "Other words",
    )


OF_SLRC = (
    Topic(
        Section("slrc", "Step-Level Reasoning Capacity", short="SLRC"),
        (
            Table("slrc", slrc_table, "SLRC per model, task, framing and reading"),
            Table("steps", steps_table, "Counted steps per trace", "Steps per trace"),
        ),
        ("forest", "by_task"),
    ),
    Topic(
        Section("edits", "What each edit did", short="Edits"),
        (
            Table(
                "edits",
                edits_table,
                "How often each edit changed the answer",
                "Every edit, framing and reading",
            ),
            Table(
                "edits_by_step",
                edits_by_step_table,
                "How often each edit changed the answer, by place of the step",
                "By place of the step",
            ),
        ),
        ("position",),
    ),
    Topic(
        Section("agreement", "Agreement"),
        (
            Table(
                "agreement",
                agreement_table,
                "Agreement between readings and framings",
                "Agreement and Cohen’s kappa for every edit",
            ),
        ),
        ("agreement", "contrasts"),
    ),
)
WITH_AND_WITHOUT = (
    Topic(
        _modes,
        (
            Table("taxonomy", taxonomy_table, "Mode of each model on each task"),
            Table(
                "threshold_sensitivity",
                threshold_sensitivity_table,
                "Pairs that keep their mode under another threshold",
                "Under other necessity thresholds",
                of="taxonomy",
            ),
        ),
        when=asked("direct", "slrc"),
    ),
    Topic(
        Section("taxonomy", "With and without reasoning"),
        (
            Table(
                "direct",
                direct_table,
                "Accuracy of direct answers",
                "Answers without reasoning, by prompt",
                over_steps=False,
            ),
        ),
        when=asked("direct"),
    ),
)
MODELS = Topic(
    Section(
        "models",
        "Models compared",
        markup(
            "A row is a model in one way of measuring; each score is a mean over its tasks. RIS, "
            "the Reasoning Integrity Score, is SLRC × (1 − sycophancy) (§3.1). Models asked over "
            "an API have one way only, <em>reprompt, generated</em>: compare them with the rows of "
            "open models in that way, and no other."
        ),
    ),
    (
        Table("models", models_table, "Scores of each model, means over its tasks"),
        Table(
            "model_correlations",
            model_correlations_table,
            "Correlations over models",
            "Over models, what goes with what",
            of="models",
        ),
    ),
    ("models",),
    asked("slrc"),
)
COMPARED = (
    Topic(
        Section("head-to-head", "Measures head to head"),
        (
            Table(
                "head_to_head",
                head_to_head_table,
                "Measures head to head",
                "Every two measures, with intervals",
            ),
        ),
        ("head_to_head",),
        asked("causal_effects"),
    ),
    Topic(
        Section(
            "planted",
            "Which measure to trust",
            markup(
                "Every measure against models whose truth was planted by training. AUROC: how well "
                "it ranks items of <code>faithful</code>, whose answer follows its steps, above "
                "items of <code>decorative</code>, which writes wrong steps and ignores them; of "
                "the confound <code>hint_no_deletions</code>, which ignores its steps but has "
                "never seen one missing; and of hint followers at three, two and five steps. "
                "Spearman with p: over models whose answer follows the steps in a share p of "
                "training. Step hit rate: whether the step it credits most is the one that the "
                "answer was read from, in <code>select</code>. Calls: what this measure alone "
                "would cost without the forest. A measure keeps the direction that theory gives "
                "it: below one half it points the wrong way. <strong>This proves measures on known "
                "mechanisms in tiny models, not on large ones.</strong> A measure that fails here "
                "has nothing to vouch for it; one that passes may still fail where the mechanism "
                "is another."
            ),
            "Planted truth",
        ),
        (Table("planted", planted_table, "Measures against the planted truth"),),
        ("planted",),
        has_planted_truth,
    ),
    Topic(
        Section(
            "measures",
            "All measures side by side",
            markup(
                "One score per item and measure; how they rank the same items of a model. Every "
                "pair of measures is in <code>tables/measure_correlations.csv</code>."
            ),
            "All measures",
        ),
        (
            Table(
                "measures",
                measures_table,
                "Mean score of every measure",
                "Mean of every measure",
            ),
            Table("measure_correlations", measure_correlations_table),
        ),
        ("measure_correlations",),
        lambda records: len({r["probe"] for r in records} & set(PROBES_READ)) > 1,
    ),
    Topic(
        _prompts,
        (
            Table(
                "prompt_interventions",
                prompt_interventions_table,
                "What another prompt changes",
            ),
        ),
        when=lambda records: any(is_variant(r["task"]) for r in records if r["probe"] == "slrc"),
    ),
)
OF_MEASURES = tuple(topic for part in SLICES.values() for topic in part.topics())
TOPICS = (*OF_SLRC, *WITH_AND_WITHOUT, MODELS, *OF_MEASURES, *COMPARED)
"""In the order of the page."""
