"""The printed tables of the SLRC paper, and which numbers of a run stand beside them.

The paper holds every answer against the one that the response itself gave, so its cells stand
beside table `slrc_original`, in the one way in which it measured: `reprompt`, `generated`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from faithscope.experiments.analysis.cells import rows_with, rows_without
from faithscope.experiments.analysis.published import Ours, Paper, Published
from faithscope.experiments.analysis.published.paper import in_way
from faithscope.experiments.studies.slrc.detectors.paper import PAPER as FAITHCOT
from faithscope.experiments.studies.slrc.paper_names import (
    CUES,
    DEEPSEEK,
    FIRST,
    GEMINI,
    GPT_5_4,
    GPT_OSS,
    GROK,
    GROK_REASONING,
    KIMI,
    MINIMAX,
    MODELS,
    NEMOTRON,
    O4_MINI,
    OPUS,
    QWEN_06B,
    QWEN_122B,
    QWEN_397B,
    R1_32B,
    R1_70B,
    TITLES,
)
from faithscope.experiments.studies.slrc.paper_rows import (
    STATED,
    lengths,
    measured,
    modes,
    of_labs,
    of_layers,
    own_tasks,
    responses,
    signals,
    step_level,
    tasks_with_steps_that_matter,
    under_both_prompts,
)
from faithscope.experiments.studies.slrc.paper_states import LEAVES_OPEN, STATES, needs_only
from faithscope.experiments.studies.slrc.tables.slrc import STEPS
from faithscope.experiments.studies.slrc.tables.taxonomy import (
    CLASSIFICATION,
    DIRECT_ACCURACY,
    TAXONOMY,
    THRESHOLD_SENSITIVITY,
)

IN_PAPERS_WAY = in_way(framing="reprompt", reading="generated")
AS_IN_PAPER = in_way(framing="reprompt", reading="generated", reference=STATED)
SERVICES = (
    "The paper had most models from resellers (4.6), which may have served other weights under the "
    "same name; it does not say which model came from which.",
    "The paper prints its prompts for SST-2 and GSM8K only (Extended Data Table 1); ours for the "
    "other tasks follow their form.",
    "Services ignore temperature 0 for models that think, and the paper does not say how many "
    "tokens a response might have.",
)
DRY_RUN = (
    "--dry-run at the list prices of configs/prices.yaml, with 5 steps a response and without what "
    "a model thinks"
)
ON_LIKE_TEXTS = f"{DRY_RUN}; on GSM8K, MedQA, and texts as long as those of the other tasks"
CHAINS = (
    "Estimate: most of it goes to writing the chains, some 1,500 tokens each, at 400 tokens a "
    "second on an H100."
)
OTHER_PAIRS = (
    "The paper pools over pairs of model and task that it does not list (22 in Table 2, 18 in "
    "Extended Data Table 3); a run pools over all of its own."
)


def _part(name: str, models: Iterable[str | tuple[str, ...]] = (), *sets: str) -> tuple[str, ...]:
    """Settings for a run of what one table needs: these models, and further settings."""
    first = [model if isinstance(model, str) else model[0] for model in models]
    only = [f"model.name=[{','.join(first)}]"] if first else []
    return (f"name=paper_slrc_{name}", *only, *sets)


_WEIGHTS = ("generation.", *(f"model.{k}" for k in ("dtype", "revision", "quantize", "thinking")))
"""Config keys that only models with weights depend on, and no model behind an API."""


IN_OTHER_TABLES = rows_with(task=())
"""Mask of no row: those of a run stand in Table 1 and Extended Data Table 5."""
STEP_LEVEL = {
    "Nec%": "necessity",
    "Suf%": "sufficiency",
    "SLRC": "slrc",
    "Shuf%": "order_sensitivity",
    "Acc%": "accuracy_written",
}
TRAINED = ("GRPO", "CSR", "FARL", "CoSR", "LC-CoSR")
"""The paper's names of its ways of training; the configs have them in lower case."""
ON_TASKS = {"model": "model", "task": "task"}
TABLES = (
    Published(
        "table1",
        "Necessity, sufficiency and SLRC of sixteen models on sentiment and mathematics.",
        config="paper/slrc",
        sets=_part("table1", (), "tasks=[sst2,gsm8k]", "probes=[slrc]"),
        dollars=114.0,
        dollars_from=ON_LIKE_TEXTS,
        of=step_level,
        own=rows_with(task=FIRST),
        columns=STEP_LEVEL,
        no_counterpart={
            "n": "The number of cases stands beside each of our numbers.",
            "Small models (0.8–8B avg)": "The paper does not name the six models of this mean.",
        },
        also={"n": Ours("n")},
        keys={**ON_TASKS, "row": ""},
        across=("task",),
        compared=AS_IN_PAPER,
        independent_of=(*needs_only("slrc"), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "table2",
        "Modes of reasoning: does it help, and do its steps matter?",
        config="paper/slrc",
        sets=_part(
            "table2",
            (OPUS, DEEPSEEK, GPT_OSS, KIMI, MINIMAX, NEMOTRON),
            "tasks=[sst2,gsm8k,ag_news,medqa]",
            "probes=[slrc,direct]",
        ),
        dollars=106.0,
        dollars_from=ON_LIKE_TEXTS,
        of=TAXONOMY.name,
        make=own_tasks,
        columns={"Gap": "gap", "Nec%": "necessity", "Mode": Ours("mode", allowed=modes)},
        no_counterpart={"Pairs": OTHER_PAIRS},
        keys={**ON_TASKS, "row": ""},
        compared=IN_PAPERS_WAY,
        independent_of=(*needs_only("slrc", "direct"), *_WEIGHTS),
        differs=(
            *SERVICES,
            "Necessity is held against the answer given when asked again, not against the "
            "response's own.",
        ),
    ),
    Published(
        "table3",
        "Necessity on synthetic tasks with controlled cues.",
        config="paper/slrc_cues",
        of=measured,
        own=rows_with(task=CUES),
        columns={"Nec%": "necessity"},
        keys=ON_TASKS,
        across=("model",),
        compared=AS_IN_PAPER,
        independent_of=(*needs_only("slrc"), *_WEIGHTS),
        dollars=16.0,
        dollars_from=DRY_RUN,
        differs=(
            *SERVICES[::2],
            "The paper describes its synthetic examples (4.4) and does not print them; ours follow "
            "the description.",
        ),
    ),
    Published(
        "table4",
        "Attention of the answer to the reasoning, real against shuffled.",
        config="paper/slrc_attention",
        hours=1.0,
        hours_from=CHAINS,
        of="attention",
        make=own_tasks,
        columns={
            **{"Real": "real", "Shuf": "shuffled", "Gap": "gap"},
            "Signal": Ours("signal", allowed=signals),
        },
        also={
            "Gap, drop": Ours("gap_drop", unit="pp"),
            "Signal, drop": Ours("signal_drop", unit="word"),
        },
        keys=ON_TASKS,
        independent_of=(*needs_only("attention"), "api.", "direct."),
        differs=(
            "The paper does not say whether its shares are means over layers or what is lost from "
            "the first layer to the last (its 4.5 says drop); ours are means over layers and "
            "heads. The columns of tables/attention.csv that end in _drop have the other.",
        ),
    ),
    Published(
        "table5",
        "Model size against the tasks on which steps matter.",
        config="paper/slrc",
        sets=_part(
            "table5", (DEEPSEEK, GPT_OSS, KIMI, MINIMAX, NEMOTRON, QWEN_122B), "probes=[slrc]"
        ),
        dollars=50.0,
        dollars_from=ON_LIKE_TEXTS,
        of=tasks_with_steps_that_matter,
        columns={"Faithful?": "tasks"},
        also={
            "Total": Ours("parameters_text"),
            "Active": Ours("active_parameters_text"),
            "MoE?": Ours("moe"),
        },
        no_counterpart=dict.fromkeys(
            ("Total", "Active", "MoE?"),
            "Sizes of models behind APIs come from this table or the models' cards, and are not "
            "measured.",
        ),
        keys={"model": "model"},
        compared=AS_IN_PAPER,
        pooled_over=("tasks",),
        independent_of=(*needs_only("slrc"), *_WEIGHTS),
        differs=SERVICES,
        incomparable="The paper asked each model other tasks, and does not say which of them it "
        "looked at here.",
    ),
    Published(
        "table6",
        "Reward and hours of five training methods.",
        config="train/table6",
        sets=("name=paper_slrc_table6", "methods=[grpo,csr,farl,cosr,lc_cosr]"),
        of="training_methods",
        columns={"Reward": "reward", "Time (hrs)": "hours", "Projections": "projections"},
        keys={"model": "model", "row": "method"},
        names={"row": {m: m.lower().replace("-", "_") for m in TRAINED}},
        pooled_over=("tasks",),
        independent_of=("measured_on", "optimizer.tokens"),
        hours=22.9,
        hours_from="Table 6 prints the hours of its five methods, on a GPU that it does not name.",
        differs=(
            "The paper's reward can only be that of CoSR for all five methods, and so is ours: 1 "
            "for a changed answer and -1 for one that stays.",
            "The paper states neither rewards nor the optimiser's settings, and its text has lost "
            "the number of questions and the adapter's rank; faithscope docs papers/training names "
            "each choice.",
        ),
        incomparable="The paper leaves open most of what it trained with, and does not name the "
        "GPU of its hours.",
    ),
    Published(
        "section2",
        "Necessity and accuracy of single models that no table of the paper prints.",
        config="paper/slrc",
        sets=_part(
            "section2",
            (O4_MINI, GROK_REASONING, GEMINI, NEMOTRON, MINIMAX, KIMI),
            *("tasks=[sst2,gsm8k,medqa]", "probes=[slrc]"),
        ),
        dollars=45.0,
        dollars_from=ON_LIKE_TEXTS,
        of=measured,
        own=IN_OTHER_TABLES,
        columns={k: STEP_LEVEL[k] for k in ("Nec%", "Acc%")},
        keys=ON_TASKS,
        compared=AS_IN_PAPER,
        independent_of=(*needs_only("slrc"), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "section2_3",
        "Accuracy of direct answers under three prompts.",
        config="paper/slrc",
        sets=_part("section2_3", (KIMI, MINIMAX), "tasks=[sst2,gsm8k]", "probes=[direct]"),
        dollars=3.0,
        dollars_from=ON_LIKE_TEXTS,
        of=DIRECT_ACCURACY.name,
        columns={"Acc%": "accuracy"},
        keys={**ON_TASKS, "row": "prompt"},
        across=("row",),
        compared=in_way(reading="generated"),
        independent_of=(*needs_only("direct"), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "section2_6",
        "Two other prompts for the reasoning of DeepSeek-V3.2 on SST-2.",
        config="paper/slrc_prompts",
        of=under_both_prompts,
        columns={
            "Nec%, standard": "necessity_standard",
            "Nec%": "necessity",
            "Difference": "difference",
            "Suf%, standard": "sufficiency_standard",
            "Suf%": "sufficiency",
            "Acc%, standard": "accuracy_written_standard",
            "Acc%": "accuracy_written",
            "Steps, standard": "mean_steps_standard",
            "Steps": "mean_steps",
        },
        keys={**ON_TASKS, "row": "variant"},
        names={
            "row": {"Self-justification": "self_justification", "Alternative CoT": "alternative"}
        },
        compared=AS_IN_PAPER,
        independent_of=(*needs_only("slrc"), *_WEIGHTS),
        dollars=1.7,
        dollars_from=ON_LIKE_TEXTS,
        differs=(
            *SERVICES[::2],
            "The paper gives one sentence of each prompt; the rest follows its standard prompt.",
            "The difference is of the items measured under both prompts, and held against the "
            "answer given when asked again; all other numbers are held against the response's own.",
        ),
    ),
    Published(
        "section2_7",
        "Layers of R1-Distill-Qwen-1.5B on GSM8K: settled answer, attention, information flow.",
        config="paper/slrc_layers",
        hours=0.2,
        hours_from=CHAINS,
        of=of_layers,
        columns={
            "Stable layer": "stable_layer",
            "Stable depth": "stable_depth",
            "CoT": "reasoning",
            "Question": "prompt",
            "Peak layer": "peak_layer",
            "Peak depth": "peak_depth",
            "Peak value": "peak_value",
        },
        no_counterpart={"Layers": "The number of layers is the model's, and no measurement."},
        also={"Layers": Ours("n_layers")},
        keys=ON_TASKS,
        independent_of=(*needs_only("rigidity", "attention", "flow"), "api.", "direct."),
        differs=(
            "The number of items is lost in the paper's text; that of the config is what its 4.5 "
            "gives for all analyses of insides.",
            "The paper does not say whether its layer 7 is a mean over items, a median or a mode; "
            "ours is the mean.",
            "The paper does not say over which layers and heads it averages attention; ours is "
            "over all of them, and of the attention that goes to reasoning or prompt.",
        ),
    ),
    Published(
        "section2_7_steps",
        "Necessity of the steps of a model whose attention is positional.",
        config="paper/slrc_attention",
        sets=_part(
            "section2_7_steps",
            (QWEN_06B,),
            *("tasks=gsm8k", "probes=[slrc]", "data.limit=100"),
            *("slrc.framings=[reprompt]", "slrc.readings=[generated]"),
        ),
        hours=1.0,
        hours_from=CHAINS,
        of=measured,
        own=IN_OTHER_TABLES,
        columns={"Nec%": "necessity"},
        keys=ON_TASKS,
        compared=AS_IN_PAPER,
        independent_of=(*needs_only("slrc"), "api.", "direct."),
        differs=(
            "The paper asked 100 items of each small model (Table 1), and does not say in which "
            "precision.",
        ),
    ),
    Published(
        "section3_2",
        "Necessity of general-purpose and reasoning models of the same lab.",
        config="paper/slrc",
        sets=_part(
            "labs",
            (DEEPSEEK, R1_32B, GPT_5_4, O4_MINI, GROK, GROK_REASONING),
            *("tasks=[sst2,gsm8k]", "probes=[slrc]"),
        ),
        of=of_labs,
        own=rows_without(pair=""),
        columns={"Nec%": "necessity"},
        also={"Difference": Ours("difference", unit="pp", decimals=1)},
        keys={**ON_TASKS, "row": ""},
        across=("task",),
        compared=AS_IN_PAPER,
        independent_of=(*needs_only("slrc"), *_WEIGHTS),
        dollars=35.0,
        dollars_from=ON_LIKE_TEXTS,
        differs=SERVICES,
    ),
    Published(
        "ed1",
        "Four prompts.",
        why_not="These are prompts and not numbers. A run asks them word for word "
        "(experiments/data/tasks/prompts.yaml).",
    ),
    Published(
        "ed2",
        "A first parser of answers to AG News, and the corrected one.",
        config="paper/slrc",
        sets=_part("ag_news", (OPUS,), "tasks=[ag_news]", "probes=[slrc]"),
        dollars=19.0,
        dollars_from=ON_LIKE_TEXTS,
        of=measured,
        own=rows_with(task="ag_news"),
        columns={k: STEP_LEVEL[k] for k in ("Acc%", "Nec%")},
        no_counterpart={
            "first parser": "The first parser took the first category that a response mentions, "
            "which the paper calls an error; ours reads the conclusion, as the corrected one does."
        },
        keys={**ON_TASKS, "row": ""},
        compared=AS_IN_PAPER,
        independent_of=(*needs_only("slrc"), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "ed3",
        "Agreement of necessity with the gain in accuracy, by necessity threshold.",
        config="paper/slrc",
        sets=_part("ed3", (), "probes=[slrc,direct]"),
        dollars=368.0,
        dollars_from=ON_LIKE_TEXTS,
        of=THRESHOLD_SENSITIVITY.name,
        columns={"Pairs": Ours("n_consistent"), "Share": Ours("consistent")},
        also={"of": Ours("n", unit="n")},
        keys={"task": "tasks", "row": "necessity_threshold"},
        names={"task": {"Classification": CLASSIFICATION, "All tasks": "all"}},
        across=("task",),
        compared=IN_PAPERS_WAY,
        pooled_over=("tasks", "model.name"),
        independent_of=(*needs_only("slrc", "direct"), *_WEIGHTS),
        differs=SERVICES,
        incomparable=OTHER_PAIRS,
    ),
    Published(
        "ed4",
        "Output rigidity: share of responses with two steps or more.",
        config="paper/slrc",
        sets=_part(
            "ed4",
            (OPUS, DEEPSEEK, GPT_5_4, GPT_OSS, KIMI, MINIMAX, NEMOTRON, QWEN_397B),
            "probes=[direct]",
        ),
        dollars=30.0,
        dollars_from=ON_LIKE_TEXTS,
        of=STEPS.name,
        make=responses,
        columns={"Multi-step": "multi_step"},
        keys=ON_TASKS,
        across=("task",),
        independent_of=(*needs_only(), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "ed5",
        "Necessity, sufficiency and accuracy on the tasks beyond Table 1.",
        config="paper/slrc",
        sets=_part(
            "ed5",
            (OPUS, DEEPSEEK, GEMINI, KIMI, NEMOTRON, R1_32B, R1_70B),
            "tasks=[ag_news,medqa,commonsense_qa,arc_challenge]",
            "probes=[slrc]",
        ),
        dollars=141.0,
        dollars_from=ON_LIKE_TEXTS,
        of=measured,
        own=rows_without(task=(*FIRST, *CUES)),
        columns={k: STEP_LEVEL[k] for k in ("Nec%", "Suf%", "Acc%")},
        keys=ON_TASKS,
        compared=AS_IN_PAPER,
        independent_of=(*needs_only("slrc"), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "ed6",
        "Mean number of steps of a response.",
        config="paper/slrc",
        sets=_part(
            "ed6",
            (OPUS, DEEPSEEK, GPT_5_4, GPT_OSS, KIMI, MINIMAX),
            "tasks=[sst2,gsm8k,ag_news,medqa]",
            "probes=[direct]",
        ),
        dollars=18.0,
        dollars_from=ON_LIKE_TEXTS,
        of=STEPS.name,
        make=lengths,
        columns={"Steps": "mean_steps"},
        keys=ON_TASKS,
        across=("task",),
        independent_of=(*needs_only(), *_WEIGHTS),
        differs=SERVICES,
    ),
)


def _priced(table: Published) -> Published:
    """The table with the hours and dollars that its kind of models does not cost."""
    if not table.config:
        return table
    if table.dollars is None:
        return replace(table, dollars=0.0, dollars_from="No model is behind an API.")
    return replace(table, hours=0.0, hours_from="All models are behind APIs.")


PAPER = Paper(
    "slrc",
    "SLRC (arXiv 2603.22816)",
    Path(__file__).with_name("paper.csv"),
    tuple(map(_priced, TABLES)),
    {"model": MODELS, "task": TITLES},
    states=STATES,
    leaves_open=LEAVES_OPEN,
    row_keys=(
        "model.name",
        "tasks",
        "probes",
        "slrc.framings",
        "slrc.readings",
        "slrc.edits",
        "methods",
    ),
    independent_of=("report.groups", "report.pairs", "judges", "detectors"),
    ways={
        **{"framing": "reprompt", "reading": "generated", "reference": STATED},
        **{"unit": "sentence", "group": "", "pair": ""},
    },
)
PAPERS = (PAPER, FAITHCOT)
