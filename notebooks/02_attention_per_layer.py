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
# # Attention to the reasoning, layer by layer
#
# Where does the model look when it is about to answer? And where does any other token look, in any
# layer and head? Only the rows that are asked for are computed.

# %%
# %matplotlib inline
import ipywidgets
import pandas as pd

import faithscope
from faithscope.experiments.data.traces import TraceSettings
from faithscope.interp import Branch
from faithscope.plot import (
    pattern_map,
    step_map,
    token_view,
)

model = faithscope.load("bundled:smollm2-135m")
short = TraceSettings(max_new_tokens=100)
(trace,) = faithscope.make_traces(model, faithscope.questions("conflicting_cue", limit=1), short)
print(trace.question.text)
print(trace.reasoning_text)

# %% [markdown]
# ## The answer's attention, layer × step
#
# The map shows the share of the answering token's attention on each step, averaged over the heads
# of a layer. Look for layers that differ from their neighbours. A sceptic asks how much of a bright
# step is its length: long steps have more tokens to attend to.

# %%
(record,) = faithscope.measure(model, trace, "attention", shuffles=1)
by_step = record["arrays"]["steps"]  # (layers, heads, steps)
step_map(trace, by_step.mean(axis=1), label="share of attention")

# %% [markdown]
# And where does the rest go? Most of it goes to the first token, a sink that means nothing.

# %%
shares = ("question", "template", "real", "answer_prefix", "first_token")
pd.Series({name: record[name] for name in shares}).rename({"real": "reasoning"}).round(3)

# %% [markdown]
# ## Which heads?
#
# The heads that read the reasoning most, and **receiver heads**: heads whose attention per token is
# concentrated on few steps (kurtosis over steps, as in *Thought Anchors*). A sceptic looks at how
# many steps there are: over five steps the kurtosis cannot exceed 0.25, and many heads reach that,
# so that this table tells something about long chains only.

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
# ## Any layer, any head, any query token
#
# `rows=True` with every position asked gives the whole token × token patterns. Left: all queries of
# one head, with the chosen one as a line. Right: the tokens that this query attends to most. Here
# the query is the last token, and the head is the one that reads the reasoning most.

# %%
ids = (*trace.prompt_ids, *trace.reasoning_ids, *model.encode("\nSo the sentiment is"))
read = model.run([Branch(ids, ask=tuple(range(len(ids))))], rows=True, logits=False).branches[0]
patterns = read.pattern.float().cpu().numpy()  # (layers, heads, queries, tokens)
pieces = model.pieces(ids)


def look(layer: int, head: int, query: int):
    return pattern_map(pieces, patterns[layer - 1, head], query)


layer, head = record["reader_layer"][0], record["reader_head"][0]
look(layer, head, len(ids) - 1)

# %% [markdown]
# A token in the middle of the reasoning, in the same head. Does the head follow what the token
# says, or does it look the same distance back from everywhere (a diagonal), or at the first token
# (a column)?

# %%
middle = len(trace.prompt_ids) + len(trace.reasoning_ids) // 2
look(layer, head, middle)

# %% [markdown]
# In a running notebook, drag the sliders: layer, head, and the query token.


# %%
def slider(value: int, least: int, most: int):
    return ipywidgets.IntSlider(value=value, min=least, max=most, continuous_update=False)


n_layers, n_heads, n_tokens, _ = patterns.shape
_ = ipywidgets.interact(
    look,
    layer=slider(layer, 1, n_layers),
    head=slider(head, 0, n_heads - 1),
    query=slider(n_tokens - 1, 0, n_tokens - 1),
)

# %% [markdown]
# And hover over the text to read the share of each token; a click opens another layer. Layers are
# counted from 1 and heads from 0, here as in every table. The view needs no network and no kernel.

# %%
start = len(trace.prompt_ids)
reasoning = patterns[::5, :, -1, start : start + len(trace.reasoning_ids)].mean(axis=1)
token_view(
    model.pieces(trace.reasoning_ids),
    reasoning.T,
    [f"layer {i + 1}" for i in range(0, model.n_layers, 5)],
    title="What the last token attends to in the reasoning",
    unit="share of its attention, mean over heads",
)

# %% [markdown]
# High attention to the reasoning is no proof that it is used. `06_real_against_shuffled` asks
# whether it depends on what the steps say, and `04_patching_and_knockout` cuts the edges.
