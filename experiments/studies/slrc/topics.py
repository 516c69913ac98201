"""Sections of the page of a run over traces, between verdict and examples: texts, tables,
figures."""

from __future__ import annotations

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Section, Terms
from faithscope.experiments.numerals import percent
from faithscope.experiments.studies.slrc.config import TaxonomyConfig
from faithscope.experiments.studies.slrc.measure_report import Topic, asked
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.branch_frame import NECESSITY, SUFFICIENCY
from faithscope.experiments.studies.slrc.tables.edits import (
    EDITS_BY_FUNCTION,
    EDITS_BY_STEP,
    EDITS_TABLE,
)
from faithscope.experiments.studies.slrc.tables.groups import MODEL_GROUPS
from faithscope.experiments.studies.slrc.tables.measures import (
    HEAD_TO_HEAD,
    MEANS_OF_MEASURES,
    MEASURE_CORRELATIONS,
    PROBES_READ,
)
from faithscope.experiments.studies.slrc.tables.models import MODEL_CORRELATIONS, MODELS
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant
from faithscope.experiments.studies.slrc.tables.pairs import MODEL_PAIRS, PROMPT_INTERVENTIONS
from faithscope.experiments.studies.slrc.tables.planted import PLANTED, has_planted_truth
from faithscope.experiments.studies.slrc.tables.planted_models import (
    PLANTED_MODELS,
    has_faithful_and_other,
)
from faithscope.experiments.studies.slrc.tables.question_rates import QUESTION_RATES
from faithscope.experiments.studies.slrc.tables.reversed import REVERSED
from faithscope.experiments.studies.slrc.tables.slrc import (
    AGREEMENT,
    ORDER_SENSITIVITY,
    SLRC,
    SLRC_ORIGINAL,
    STEPS,
)
from faithscope.experiments.studies.slrc.tables.taxonomy import (
    DIRECT_ACCURACY,
    TAXONOMY,
    THRESHOLD_SENSITIVITY,
)
from faithscope.experiments.studies.slrc.words import RESTS_ON


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
        (SLRC, SLRC_ORIGINAL, STEPS),
        ("forest", "by_task"),
    ),
    Topic(
        Section("edits", "What each edit did", short="Edits"),
        (EDITS_TABLE, EDITS_BY_STEP, EDITS_BY_FUNCTION),
        ("position",),
    ),
    Topic(Section("agreement", "Agreement"), (AGREEMENT,), ("agreement", "contrasts")),
)
WITH_AND_WITHOUT = (
    Topic(_modes, (TAXONOMY, THRESHOLD_SENSITIVITY), when=asked("direct", "slrc")),
    Topic(
        Section("taxonomy", "With and without reasoning"),
        (DIRECT_ACCURACY,),
        when=asked("direct"),
        over_steps=False,
    ),
)
OF_QUESTIONS = Topic(
    Section(
        "questions",
        "Samples of a question",
        "Each question was answered several times: how often an outcome is true, question by "
        "question. Samples of one question are one unit of every interval on this page.",
    ),
    (QUESTION_RATES,),
    when=lambda frames: frames.sampled,
    over_steps=False,
)
COMPARED_MODELS = Topic(
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
    (MODELS, MODEL_CORRELATIONS),
    ("models",),
    asked("slrc"),
)
GROUPS = Section(
    "groups",
    "Groups and pairs of models",
    "Each model of a group counts once; a pair is compared on the items that both models have. The "
    "config names them (report.groups, report.pairs).",
    "Groups of models",
)
COMPARED = (
    Topic(GROUPS, (MODEL_GROUPS,), when=asked("slrc"), configured=lambda how: bool(how.groups)),
    Topic(GROUPS, (MODEL_PAIRS,), when=asked("slrc"), configured=lambda how: bool(how.pairs)),
    Topic(
        Section("head-to-head", "Measures head to head"),
        (HEAD_TO_HEAD,),
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
                "<code>silent_step</code>, <code>false_source</code> and "
                "<code>wrong_operation</code> rely on their steps as <code>faithful</code> does, "
                "but their text leaves out an operation, names the hint as a source that they do "
                "not follow, or names an operation that they do not carry out: a measure of "
                "<em>reliance</em> is not expected to tell them apart (one half), one of "
                "<em>faithfulness</em> may be. <code>half_silent</code> leaves out an operation "
                "on half of its items, which are compared with its others. AUROC of steps: true "
                "sentences of such a text against its untrue ones. False alarms and "
                "detected: what a measure's own rule, fixed beforehand, calls unfaithful. "
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
        (PLANTED,),
        ("planted",),
        has_planted_truth,
    ),
    Topic(
        Section(
            "planted_models",
            "Every planted model",
            markup(
                "How each measure tells the untrue texts of one planted model from true ones: "
                "those of the faithful model with the same seed of weights and number of "
                "sentences, or, of a model whose texts are true on some items, its own."
            ),
            "Planted models",
        ),
        (PLANTED_MODELS,),
        when=has_faithful_and_other,
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
        (MEANS_OF_MEASURES, MEASURE_CORRELATIONS),
        ("measure_correlations",),
        lambda frames: len(frames.probes & set(PROBES_READ)) > 1,
    ),
    Topic(
        _prompts,
        (PROMPT_INTERVENTIONS,),
        when=lambda frames: any(map(is_variant, frames.tasks("slrc"))),
    ),
)
OF_MEASURES = tuple(topic for part in REPORTS.values() for topic in part.topics())
OF_REVERSED = Topic(
    Section(
        "reversed",
        "Reversed questions",
        "“Is X larger than Y?” and “Is Y larger than X?” cannot both be answered Yes, or both No. "
        "Where a model does so, each of its two texts gives reasons for an answer that it does not "
        "rest on alone (Arcuschin et al. 2025).",
    ),
    (REVERSED,),
    over_steps=False,
)
TOPICS = (
    *(*OF_SLRC, *WITH_AND_WITHOUT, OF_QUESTIONS, COMPARED_MODELS),
    *(*OF_MEASURES, OF_REVERSED, *COMPARED),
)
"""All topics in the order of the page."""

VERDICT_NOTE = (
    "“Right as written” is of the answers that the chains state, “again” of those to the unedited "
    "reasoning, asked for again. Percentages: how often the edit changed the answer, with 95 % "
    "intervals; reasoning edited in "
    "its own place (prefix), answer generated, unless a row says otherwise. "
    f"{RESTS_ON}."
)
INSTRUMENT = {
    "absent": markup(
        "This run has no model whose truth is known. Add <code>planted:faithful</code> and "
        "<code>planted:hint</code> to see what the measures say of a model that uses its steps and "
        "of one that ignores them."
    ),
    "unasked": markup(
        "Nothing that was asked here tells whether planted models come out as planted: removing "
        "a step does not. Add <code>corrupt</code> and <code>regenerate</code> to "
        "<code>slrc.edits</code>, and <code>prefix</code> to <code>slrc.framings</code>."
    ),
    "passes": "Tiny models whose truth was planted by training come out as planted: the measures "
    "can tell a model that uses its steps from one that writes the same words and ignores them.",
    "passes_alone": markup(
        "The tiny models here whose truth was planted by training come out as planted. Whether the "
        "measures tell a model that uses its steps from one that ignores them takes one of either "
        "kind, <code>planted:faithful</code> and <code>planted:hint</code>."
    ),
    "few": "What there is of the tiny models whose truth was planted by training comes out as "
    "planted, but it is too little to show that the measures tell a model that uses its steps from "
    "one that ignores them. More items would tell (key data.limit).",
    "fails": "Tiny models whose truth was planted by training do not come out as planted. Do not "
    "trust the readings below before this is understood.",
}
READING = Section(
    "reading",
    "How to read it",
    "A step is a sentence, an item of a numbered list, or, in long reasoning with blank lines, a "
    "thought: a paragraph, cut where the text turns (“Wait, …”). A step that is used leaves a mark "
    "on the answer when it is disturbed; one that is decoration does not.",
    blocks=[
        Terms(
            {
                "Necessity": NECESSITY.meaning,
                "Sufficiency": SUFFICIENCY.meaning,
                "Order sensitivity": ORDER_SENSITIVITY.meaning,
                "SLRC": "Step-Level Reasoning Capacity, necessity × (1 − sufficiency), of these "
                "aggregates (§4.2). 0: the answer does not depend on any step, or any step gives "
                "it away; 1: every step is needed and none is enough.",
                "Routes implied": "The redundancy bound: with k independent routes to the answer, "
                "necessity is at most 1/k; so 1/necessity routes would explain this necessity "
                "without decoration (§3.3).",
                "Corrupted, frozen": "One step is made to say something else and the later steps "
                "stay. Credits only the steps that the answer is read from.",
                "Corrupted, written anew": "One step is made to say something else and the model "
                "goes on from there. Credits every step that the later ones build on.",
                "Control": "The step stays as it is, a remark that says nothing is put after it, "
                "and the model goes on from there. An answer that changes now changed because of "
                "the going on, not because of the step; what counts is how much more often a "
                "corrupted step changes it.",
                "Why removal can mislead": "A text with a hole may be unlike anything the model "
                "has met, and flip its answer for that reason alone; and later steps may restate "
                "what was removed. So removal is never read without the other two.",
                "All steps removed": "The answer is asked for without any reasoning. One step may "
                "change nothing because others say the same; only an answer that survives this, "
                "too, does without the text.",
                "Framing": markup(
                    "<em>Prefix</em>: the edited reasoning stands where the model wrote it, as its "
                    "own tokens. <em>Reprompt</em>: it is quoted in a new prompt, as one must with "
                    "a closed model."
                ),
                "Reading": markup(
                    "<em>Generated</em>: the greedy answer, parsed (§4.7). <em>Scored</em>: the "
                    "likeliest of the answer labels, by log-probability."
                ),
                "Total variation, log-odds drop": "How far an edit moves the distribution over "
                "the answer labels, where a flip says only whether it crossed the middle.",
                "Intervals": "95 %: Wilson’s for shares (§4.9), widened because the steps of one "
                "item are not independent; for SLRC combined of those of necessity and "
                "sufficiency or a bootstrap over items.",
            }
        )
    ],
)
UNITS = Section(
    "units",
    "Units of removal",
    "Some chains were cut into other units than those of other questions of the same task. Taking "
    "away a paragraph takes more than taking away a sentence, so no number below pools two units: "
    "each has rows of its own in the tables over steps, and a name of its own in figures and "
    "verdicts.",
)
TRACES = Section(
    "traces",
    "Some traces",
    "For each model and task, the item whose share of necessary steps is nearest to the mean; "
    "planted twins show the same question. A step’s colour says what its edit did to the answer, "
    "by the edit that the verdict rests on: the step corrupted and the rest rewritten, else "
    "corrupted with the rest frozen, else removed. A rewritten rest counts as a change only if a "
    "neutral remark in the same place does not change the answer as well. The marks at the right "
    "show every edit; open a step to see all answers.",
    "Traces",
)
NOTHING_MEASURED = markup(
    "Nothing was measured: no item got as far as its edits. See "
    '<a href="#exclusions">where the items went</a>.'
)
