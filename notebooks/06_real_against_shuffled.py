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
# # Real against shuffled attention, layer by layer
#
# Does the answer attend to what the steps *say*, or only to where they stand? The steps are
# shuffled, with the same ids and length, and the attention of the answering token is read again.
# This is section 2.7 of SLRC (arXiv 2603.22816), over several items and with intervals.

# %%
# %matplotlib inline
import os
import tempfile

import numpy as np
import pandas as pd

import faithscope
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.measures.attention import attention_picture
from faithscope.probes.attention import REGIONS

os.chdir(tempfile.mkdtemp())

# %% [markdown]
# One run measures three models: two planted twins, of which one answers from its steps and the
# other from a hint, and SmolLM2-135M. `faithscope run slrc --set probes=[attention]` does so in a
# terminal. A sceptic asks for more items: eight per model only show the method.

# %%
config = load_config(
    "slrc",
    [
        "model.name=[planted:faithful,planted:hint,bundled:smollm2-135m]",
        "tasks=[planted,word_problems]",
        "data.limit=8",
        "generation.max_new_tokens=112",
        "steps.segmentation=sentences",
        "probes=[attention]",
    ],
)
found = faithscope.load_run(run(config).run_dir)
columns = ["model", "task", "n", "real", "shuffled", "gap", "gap_low", "gap_high", "signal"]
found.tables["attention"][columns].round(3)

# %% [markdown]
# ## The curves
#
# Look at the gap (green): is its interval above zero, and in which layers? The sceptic's question
# is about the twins: if the gap of the model that ignores its steps looks like that of the model
# that uses them, then a gap says little about use.

# %%
attention_picture(found.tables["attention_by_layer"]).figure

# %% [markdown]
# ## Which heads?
#
# A mean over heads hides single heads. The heads of SmolLM2 with the greatest gap are chosen on one
# half of the items and read on the other half: of 270 heads the best one is partly luck, and the
# second column is free of that luck.

# %%
gaps = {}
for (model, _, item), arrays in found.arrays("attention"):
    reasoning = arrays["regions"][..., REGIONS.index("reasoning")]
    gaps.setdefault(model, {})[item] = reasoning - arrays["shuffled"].mean(axis=0)
of_smollm = np.stack(list(gaps["bundled:smollm2-135m"].values()))  # (items, layers, heads)
chosen_on, read_on = of_smollm[::2].mean(axis=0), of_smollm[1::2].mean(axis=0)
best = np.argsort(-chosen_on, axis=None)[:6]
layer, head = np.unravel_index(best, chosen_on.shape)
pd.DataFrame(
    {
        "layer": layer + 1,
        "head": head,
        "gap where chosen": chosen_on[layer, head],
        "gap on the other items": read_on[layer, head],
    }
).round(3)

# %% [markdown]
# Attention that depends on the order of the steps is no proof of use: on planted models the gap
# does not separate a user of its steps from its twin (`05_compare_measures`). Cutting the edges
# tests use (`04_patching_and_knockout`).
