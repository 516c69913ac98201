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
# # Open a finished run from its folder
#
# A run on a GPU or a cluster ends in a folder. Copy the folder to any machine: `load_run` opens it
# without the model, without its data and without a GPU, also while the run is still going.
#
# To have such a folder here, a small run is made first. The rest of the notebook reads the folder
# alone.

# %%
# %matplotlib inline
import os
import tempfile

import numpy as np
from matplotlib import pyplot as plt

import faithscope
from faithscope.experiments.analysis.colours import AMOUNT, colour_map
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run

os.chdir(tempfile.mkdtemp())
config = load_config(
    "slrc",
    [
        "name=from-the-cluster",
        "model.name=[planted:faithful,planted:hint]",
        "tasks=[planted]",
        "data.limit=8",
        "probes=[slrc,attention]",
        "slrc.framings=[prefix]",
        "slrc.regenerate_tokens=32",
        "report.bootstrap=200",
    ],
)
folder = run(config).run_dir
print(*sorted(p.name for p in folder.glob("[!.]*")), sep="\n")

# %% [markdown]
# ## What was measured, and what was left out
#
# The last line of a cell shows the run: the account of its items first, then frames, then all
# tables. Read the account before any number; a sceptic asks which items are missing, and whether
# they are missing at random.

# %%
found = faithscope.load_run("runs/from-the-cluster")
found

# %% [markdown]
# ## On what, and with which settings
#
# The resolved config has every setting, including those that nobody gave. `warnings` are those of
# the page: cut chains, few items, mixed devices.

# %%
print("models:", found.config.model.name, "· seed:", found.config.seed)
print("probes:", found.config.probes, "· edits:", found.config.slrc.edits)
print("warnings:", *(found.warnings or ["none"]), sep="\n")

# %% [markdown]
# ## Frames
#
# A frame is tidy, and begins with the eight keys on which any two runs join. `columns` says what a
# column means.

# %%
scores = found.measures
names = ["necessity_prefix_scored", "regenerate_prefix_scored", "attention_gap"]
chosen = scores[scores["measure"].isin(names)]
chosen.pivot_table(index="model", columns="measure", values="score", aggfunc=["mean", "count"])

# %%
meanings = found.columns("measures")
print(*(f"{name}: {text}" for name, text in meanings.items() if text), sep="\n")

# %% [markdown]
# ## Tables
#
# `table(name)` has the headings, units and meanings of the page; `tables[name]` is the same as a
# DataFrame, with intervals. Look at the width of the intervals: eight items.

# %%
found.table("edits")

# %% [markdown]
# ## Arrays
#
# What is too long for a frame is stored as arrays, one item at a time: per layer, head or token.
# The docstring of the probe gives the shapes. Here the share of the answer's attention on the
# steps, by layer (counted from 1) and head (counted from 0), averaged over the items of each model.

# %%
by_model = {}
for (model, _, _), arrays in found.arrays("attention"):
    by_model.setdefault(model, []).append(arrays["steps"].sum(axis=-1))  # (layers, heads)
figure, axes = plt.subplots(1, len(by_model), figsize=(8, 2.6), layout="constrained", sharey=True)
for ax, (model, shares) in zip(axes, by_model.items(), strict=True):
    look = {"cmap": colour_map(AMOUNT), "aspect": "auto", "origin": "lower"}
    drawn = ax.imshow(np.mean(shares, axis=0), vmin=0, vmax=1, **look)
    ax.set(title=model, xlabel="head", xticks=range(4))
    ax.set_yticks(range(3), ["1", "2", "3"])
axes[0].set_ylabel("layer")
figure.colorbar(drawn, ax=axes, label="share of attention on the steps")
plt.show()

# %% [markdown]
# ## One item
#
# `faithscope show runs/from-the-cluster ITEM` prints one item with its steps in a terminal, and
# `report.html` opens in a browser without a network. For a frame, filter by the key `item`.

# %%
item = found.steps["item"].iloc[0]
of_item = found.steps.query("item == @item and reading == 'scored'")
of_item[["model", "position", "necessary", "regenerate_flips", "corrupted_text"]]
