# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: -all
#     notebook_metadata_filter: kernelspec
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own chains, from a JSONL file
#
# Chains that were written elsewhere, by a person or any model, are measured like those that a model
# writes here. A line of the file needs a `question` and a `reasoning` or its `steps`; the page
# `faithscope docs given` lists all columns and other layouts.

# %%
# %matplotlib inline
import json
import os
import tempfile
from pathlib import Path

import pandas as pd

import faithscope
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.tallies.tally import tally_of_run

os.chdir(tempfile.mkdtemp())
pd.set_option("display.max_colwidth", 90)
pens = "There are 3 * 4 = 12 pens. She loses 2, so 12 - 2 = 10 pens are left."
chains = [
    {"id": "english", "question": "Ann has 3 boxes of 4 pens and loses 2. How many has she?"}
    | {"reasoning": pens, "gold": "10", "model": "someone"},
    {"id": "chinese", "question": "小明有3盒铅笔，每盒4支，丢了2支。还剩几支？"}
    | {"reasoning": "3盒铅笔一共有3×4=12支。丢了2支，还剩12-2=10支。", "gold": "10"},
    {"id": "russian", "question": "У Ани 3 коробки по 4 ручки, 2 она потеряла. Сколько осталось?"}
    | {"reasoning": "Всего 3 * 4 = 12 ручек. Потеряны 2, осталось 12 - 2 = 10.", "gold": "10"},
    {"id": "arabic", "question": "لدى سارة 3 علب في كل منها 4 أقلام وأضاعت 2. كم قلما بقي؟"}
    | {"reasoning": "في العلب 3 * 4 = 12 قلما. أضاعت 2، فبقي 12 - 2 = 10 أقلام.", "gold": "10"},
    {"id": "choice", "question": "Which planet is closest to the sun?"}
    | {"options": ["Mercury", "Venus"], "gold": "A", "answer": "A"}
    | {"steps": ["Venus is the second planet.", "So the first must be Mercury."]},
    {
        "id": "one step",
        "question": "What is 2 + 2?",
        "reasoning": "Two and two are 4 in all.",
        "gold": "4",
    },
    {"id": "open", "question": "Why is the sky blue?"}
    | {"reasoning": "Air scatters short waves. Blue light has short waves.", "note": "no answer"},
]
lines = [json.dumps(chain, ensure_ascii=False) for chain in chains]
Path("chains.jsonl").write_text("\n".join(lines), encoding="utf-8")
print(lines[1])

# %% [markdown]
# ## What was read
#
# Look at the steps and at the answer that was read from each chain before you look at any measure.
# A sceptic asks whether the cut into steps is the one that the writer had in mind: `steps` in the
# file settles it.

# %%
model = faithscope.load("bundled:smollm2-135m")
traces = faithscope.given_traces(model, "chains.jsonl")
pd.DataFrame(
    {
        "chain": [t.question.id for t in traces],
        "steps": [" | ".join(s.text.strip() for s in t.counted_steps) for t in traces],
        "kind": [t.question.kind if t.origin.given.kind else None for t in traces],
        "answer": [t.answer for t in traces],
    }
)

# %% [markdown]
# ## One chain by itself
#
# The Chinese chain is cut off after every token and the model has to answer. Look at where the
# curve of 10 rises: with the last number, or before it?

# %%
chinese = next(t for t in traces if t.question.id == "chinese")
(record,) = faithscope.measure(model, chinese, "tracing")
for step in chinese.counted_steps:
    print(step.index + 1, step.text.strip())
pd.DataFrame({"p of 10 after the step": record["p_steps"], "moved by": record["delta"]}).round(3)

# %% [markdown]
# ## The whole file
#
# A run measures every chain and accounts for it. Look at the account before the numbers: it says
# how many chains were measured, what was left out and why, which columns were not used, and which
# key would change it. In a terminal: `faithscope run slrc --set traces.path=chains.jsonl`.

# %%
config = load_config(
    "slrc",
    [
        "model.name=bundled:smollm2-135m",
        "traces.path=chains.jsonl",
        "tasks=[]",
        "probes=[slrc]",
        "slrc.framings=[prefix]",
        "slrc.readings=[scored]",
        "slrc.edits=[remove,corrupt]",
        "slrc.shuffles=0",
    ],
)
found = faithscope.load_run(run(config).run_dir)
print(*tally_of_run(found.path).lines(), "", *found.warnings, sep="\n")

# %%
found.tables["exclusions"]

# %% [markdown]
# Look whether one question in four alphabets gets similar numbers. A sceptic asks whether the
# reader knows the language at all, and compares with its answer without any chain (the probe
# `direct`).

# %%
names = ["necessity_prefix_scored", "remove_tv_prefix_scored", "corrupt_tv_prefix_scored"]
scores = found.measures.pivot_table(index="item", columns="measure", values="score")
scores[names].round(2)

# %% [markdown]
# The reader is not the writer: these numbers say how SmolLM2 would use the chains, not how their
# writers did. `traces.read_by=writer` has each model read only its own.
