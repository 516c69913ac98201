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
# ---

# %% [markdown]
# # Attention to the reasoning, layer by layer
#
# Where does the model look when it is about to answer? The attention rows of that one token are
# read in every layer and head, in one plain forward; full attention patterns are never computed.

# %%
# %matplotlib inline
import ipywidgets
import pandas as pd

import faithscope
from faithscope.experiments.studies.slrc.figures.item_figures import step_map, token_view
from faithscope.interp import Branch

model = faithscope.load("bundled:smollm2-135m")
(trace,) = faithscope.make_traces(model, faithscope.questions("conflicting_cue", limit=1))
print(trace.question.text)
print(trace.reasoning_text)

# %% [markdown]
# ## Real against shuffled
#
# The steps are shuffled into other orders, with the same ids and length, in one pack. The attention
# of a head that reads what the steps *say* should change; that of a head that goes by position
# should not. `gap` is real minus shuffled.

# %%
(record,) = faithscope.measure(model, trace, "attention", shuffles=3)
shares = ("real", "shuffled", "gap", "question", "template", "first_token", "answer_prefix")
pd.Series({name: record[name] for name in shares}).round(3)

# %% [markdown]
# ## Layer × step
#
# The map shows the share of the answering token's attention on each step, averaged over the heads
# of a layer.

# %%
by_step = record["arrays"]["steps"]  # (layers, heads, steps)
step_map(trace, by_step.mean(axis=1), label="share of attention")

# %% [markdown]
# The attention on each step in one layer, head by head: drag the slider.


# %%
def heads(layer: int):
    return step_map(trace, by_step[layer - 1], label="share of attention", rows="head", first_row=0)


ipywidgets.interact(heads, layer=ipywidgets.IntSlider(value=20, min=1, max=len(by_step)))

# %% [markdown]
# ## Receiver heads
#
# Receiver heads are heads whose attention per token is concentrated on few steps (kurtosis over
# steps, as in *Thought Anchors*). The other table has the heads that read the reasoning most.

# %%
pd.DataFrame(
    {
        "reads most: layer": record["reader_layer"],
        "head": record["reader_head"],
        "share": record["reader_value"],
        "most peaked: layer": record["receiver_layer"],
        "head ": record["receiver_head"],
        "kurtosis": record["receiver_value"],
    }
).round(3)

# %% [markdown]
# ## Token by token
#
# `model.run(..., rows=True)` returns the attention rows of the last token as
# (layers, heads, positions). Hover over a layer below to colour the reasoning by its attention,
# averaged over heads. The view needs no network.

# %%
ids = (*trace.prompt_ids, *trace.reasoning_ids, *model.encode("\nSo the sentiment is"))
row = model.run([Branch(ids)], rows=True).branches[0].rows[0]
start = len(trace.prompt_ids)
reasoning = row[:, :, start : start + len(trace.reasoning_ids)].mean(dim=1).float()
layers = range(0, model.n_layers, 5)
token_view(
    model.pieces(trace.reasoning_ids),
    reasoning[list(layers)].T.numpy(),
    [f"layer {i + 1}" for i in layers],
)

# %% [markdown]
# High attention to the reasoning is no proof that it is used: on planted models the gap
# does not separate the faithful from the decorative one (`05_compare_measures`). Cutting attention
# edges does: `04_patching_and_knockout`.
