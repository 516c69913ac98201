"""The printed tables of the SLRC paper, and which numbers of a run stand beside them.

The paper holds every answer against the one that the response itself gave, so its cells stand
beside table `slrc_original`, in the one way in which it measured: `reprompt`, `generated`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.published import Ours, Paper, Published
from faithscope.experiments.analysis.tables import rows_with
from faithscope.experiments.analysis.tidy import groups, keep
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant
from faithscope.experiments.studies.slrc.tables.paper import TITLES, title
from faithscope.experiments.studies.slrc.tables.slrc import SLRC, SLRC_ORIGINAL, STEPS
from faithscope.experiments.studies.slrc.tables.taxonomy import (
    CLASSIFICATION,
    TAXONOMY,
    THRESHOLD_SENSITIVITY,
)
from faithscope.experiments.studies.slrc.tables.verdict import MATTERS
from faithscope.probes import PROBES

Tables = Mapping[str, pd.DataFrame]
AS_IN_PAPER = rows_with(framing="reprompt", reading="generated")
NORMAL = 1.959964
"""97.5 % point of the normal distribution, for 95 % intervals of means."""
_OPUS = "api:anthropic/claude-opus-4-6"
_DEEPSEEK = ("api:openrouter/deepseek/deepseek-v3.2", "api:together/deepseek-ai/DeepSeek-V3.2")
_GPT_OSS = "api:groq/openai/gpt-oss-120b"
_KIMI = "api:openai-api/moonshot/kimi-k2.5"
_MINIMAX = "api:openai-api/minimax/MiniMax-M2.5"
_NEMOTRON = "api:openai-api/nebius/nvidia/Llama-3_1-Nemotron-Ultra-253B-v1"
_R1_32B = (
    "api:openai-api/vultr/deepseek-r1-distill-qwen-32b",
    "api:openrouter/deepseek/deepseek-r1-distill-qwen-32b",
)
_R1_70B = (
    "api:openai-api/vultr/deepseek-r1-distill-llama-70b",
    "api:openrouter/deepseek/deepseek-r1-distill-llama-70b",
)
MODELS = {
    "GPT-5.4": "api:openai/gpt-5.4",
    "Claude Opus 4.6-R": _OPUS,
    "Claude Opus": _OPUS,
    "Claude": _OPUS,
    "DeepSeek-V3.2": _DEEPSEEK,
    "DeepSeek": _DEEPSEEK,
    "V3.2": _DEEPSEEK,
    "DeepSeek-R1-32B": _R1_32B,
    "R1-32B": _R1_32B,
    "DeepSeek-R1-70B": _R1_70B,
    "R1-70B": _R1_70B,
    "GPT-OSS-120B": _GPT_OSS,
    "GPT-OSS": _GPT_OSS,
    "Kimi-K2.5": _KIMI,
    "Kimi": _KIMI,
    "MiniMax-M2.5": _MINIMAX,
    "MiniMax": _MINIMAX,
    "Qwen3.5-122B": "api:openai-api/dashscope/qwen3.5-122b-a10b",
    "Qwen3.5-397B": "api:openai-api/dashscope/qwen3.5-397b-a17b",
    "Grok-4 reasoning": "api:grok/grok-4-fast-reasoning",
    "Grok-4 non-reasoning": "api:grok/grok-4-fast-non-reasoning",
    "o4-mini": ("api:openai/azure/o4-mini", "api:openai/o4-mini"),
    "Gemini 2.5 Pro": "api:google/gemini-2.5-pro",
    "Nemotron-Ultra": _NEMOTRON,
    "Nemotron": _NEMOTRON,
    "GLM-5": "api:openai-api/zai/glm-5",
    "Small models (0.8–8B avg)": (),
    "DeepSeek-R1": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "Qwen3-8B": "Qwen/Qwen3-8B",
    "Qwen3-0.6B": "Qwen/Qwen3-0.6B",
}
"""The paper's names of models -> ours, those of configs/paper/slrc.yaml first, then other services
that have the same model."""
SERVICES = (
    "The paper had most models from resellers (4.6), which may have served other weights under the "
    "same name; it does not say which model came from which.",
    "The paper prints its prompts for SST-2 and GSM8K only (Extended Data Table 1); ours for the "
    "other tasks follow their form.",
    "Services ignore temperature 0 for models that think, and the paper does not say how many "
    "tokens a response might have.",
)
OTHER_PAIRS = (
    "The paper pools over pairs of model and task that it does not list (22 in Table 2, 18 in "
    "Extended Data Table 3); a run pools over all of its own."
)


def _needs(*probes: str) -> tuple[str, ...]:
    """The config keys that a table made by these probes does not depend on."""
    others = tuple(f"{probe}." for probe in PROBES if probe not in probes)
    return others if "direct" in probes else (*others, "taxonomy.")


_WEIGHTS = ("generation.", *(f"model.{k}" for k in ("dtype", "revision", "quantize", "thinking")))
"""Config keys that only models with weights depend on, and no model behind an API."""


def against_the_response(tables: Tables) -> pd.DataFrame | None:
    """Table `slrc_original` with the accuracy of the answers as written, out of table `slrc`."""
    if SLRC_ORIGINAL.name not in tables:
        return None
    keys = [k for k in ("model", "task", "unit", "framing", "reading") if k in tables[SLRC.name]]
    accuracy = [f"accuracy_written{end}" for end in ("", "_low", "_high")]
    return _own(tables[SLRC_ORIGINAL.name].merge(tables[SLRC.name][[*keys, *accuracy]], on=keys))


def lengths(tables: Tables) -> pd.DataFrame | None:
    """Table `steps` with a normal 95 % interval for the mean number of steps."""
    if STEPS.name not in tables:
        return None
    table = _own(tables[STEPS.name])
    half = NORMAL * table["sd_steps"] / np.sqrt(table["n"])
    return table.assign(
        mean_steps_low=table["mean_steps"] - half, mean_steps_high=table["mean_steps"] + half
    )


def tasks_with_steps_that_matter(tables: Tables) -> pd.DataFrame | None:
    """Model -> the titles of the tasks on which its necessity reaches the threshold, or `No`."""
    table = against_the_response(tables)
    if table is None or table.empty:
        return None
    return pd.DataFrame(
        key
        | {"tasks": ", ".join(title(t) for t in of["task"][of["necessity"] >= MATTERS]) or "No"}
        | {"n": len(of)}
        for key, of in groups(table, ["model", "framing", "reading"])
    )


def _own(table: pd.DataFrame) -> pd.DataFrame:
    """Rows without prompt variants (`sst2:alternative`)."""
    return keep(table, [not is_variant(task) for task in table["task"]])


STEP_LEVEL = {
    "Nec%": "necessity",
    "Suf%": "sufficiency",
    "SLRC": "slrc",
    "Shuf%": "order_sensitivity",
    "Acc%": "accuracy_written",
}
ON_TASKS = {"model": "model", "task": "task"}
TABLES = (
    Published(
        "table1",
        "Necessity, sufficiency and SLRC of sixteen models on sentiment and mathematics.",
        config="paper/slrc",
        of=against_the_response,
        columns=STEP_LEVEL,
        without={
            "n": "The number of cases stands beside each of our numbers.",
            "Small models (0.8–8B avg)": "The paper does not name the six models of this mean.",
        },
        keys={**ON_TASKS, "row": ""},
        across=("task",),
        among=AS_IN_PAPER,
        unread=(*_needs("slrc"), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "table2",
        "Modes of reasoning: does it help, and do its steps matter?",
        config="paper/slrc",
        of=TAXONOMY.name,
        columns={"Gap": "gap", "Nec%": "necessity", "Mode": "mode"},
        without={"Pairs": OTHER_PAIRS},
        keys={**ON_TASKS, "row": ""},
        among=AS_IN_PAPER,
        unread=(*_needs("slrc", "direct"), *_WEIGHTS),
        differs=(
            *SERVICES,
            "Necessity is held against the answer given when asked again, not against the "
            "response's own.",
        ),
    ),
    Published(
        "table3",
        "Necessity on synthetic tasks with controlled cues.",
        config="paper/slrc",
        sets=(
            "name=paper_slrc_cues",
            "tasks=[single_cue,conflicting_cue,multi_feature,sequential_math]",
            "data.limit=100",
            f"model.name=[{_DEEPSEEK[0]},{_OPUS},{_GPT_OSS},{_MINIMAX}]",
            "probes=[slrc]",
        ),
        of=against_the_response,
        columns={"Nec%": "necessity"},
        keys=ON_TASKS,
        across=("model",),
        among=AS_IN_PAPER,
        unread=(*_needs("slrc"), *_WEIGHTS),
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
        of="attention",
        columns={"Real": "real", "Shuf": "shuffled", "Gap": "gap", "Signal": "signal"},
        keys=ON_TASKS,
        unread=(*_needs("attention"), "api.", "direct."),
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
        of=tasks_with_steps_that_matter,
        columns={"Faithful?": "tasks"},
        without=dict.fromkeys(
            ("Total", "Active", "MoE?"),
            "Sizes of models behind APIs come from this table or the models' cards, and are not "
            "measured.",
        ),
        keys={"model": "model"},
        among=AS_IN_PAPER,
        pools=("tasks",),
        unread=(*_needs("slrc"), *_WEIGHTS),
        differs=SERVICES,
        incomparable="The paper asked each model other tasks, and does not say which of them it "
        "looked at here.",
    ),
    Published(
        "ed3",
        "Agreement of necessity with the gain in accuracy, by necessity threshold.",
        config="paper/slrc",
        of=THRESHOLD_SENSITIVITY.name,
        columns={"Pairs": Ours("n_as_gap"), "Share": Ours("as_gap")},
        keys={"task": "tasks", "row": "necessity_threshold"},
        names={"task": {"Classification": CLASSIFICATION, "All tasks": "all"}},
        across=("task",),
        among=AS_IN_PAPER,
        pools=("tasks", "model.name"),
        unread=(*_needs("slrc", "direct"), *_WEIGHTS),
        differs=SERVICES,
        incomparable=OTHER_PAIRS,
    ),
    Published(
        "ed4",
        "Output rigidity: share of responses with two steps or more.",
        config="paper/slrc",
        of=lengths,
        columns={"Multi-step": "multi_step"},
        keys=ON_TASKS,
        across=("task",),
        unread=(*_needs(), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "ed5",
        "Necessity, sufficiency and accuracy on the tasks beyond Table 1.",
        config="paper/slrc",
        of=against_the_response,
        columns={k: STEP_LEVEL[k] for k in ("Nec%", "Suf%", "Acc%")},
        keys=ON_TASKS,
        among=AS_IN_PAPER,
        unread=(*_needs("slrc"), *_WEIGHTS),
        differs=SERVICES,
    ),
    Published(
        "ed6",
        "Mean number of steps of a response.",
        config="paper/slrc",
        of=lengths,
        columns={"Steps": "mean_steps"},
        keys=ON_TASKS,
        across=("task",),
        unread=(*_needs(), *_WEIGHTS),
        differs=SERVICES,
    ),
)
PAPER = Paper(
    "slrc",
    "SLRC (arXiv 2603.22816)",
    Path(__file__).with_name("published.csv"),
    TABLES,
    {"model": MODELS, "task": {printed: task for task, printed in TITLES.items()}},
    apart=("model.name", "tasks", "probes", "slrc.framings", "slrc.readings", "slrc.edits"),
)
