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
# # Answer tracing: when is the answer settled?
#
# The reasoning is cut off after *every* token and the model has to answer at once. All cuts and
# all answers run as one packed forward, some hundred times as fast as a loop over them.

# %%
# %matplotlib inline
import pandas as pd

import faithscope
from faithscope.plot import tracing_curve


def traced(model, trace, **settings):
    measured = faithscope.measure(model, trace, "tracing", **settings)
    return measured[0], tracing_curve(measured)


# %% [markdown]
# ## Two planted models
#
# Both write the same words. The first computes with its steps: its curve changes as each result
# is written. The second has its answer before the first token.

# %%
asked = faithscope.questions("planted", limit=1)
faithful = faithscope.load("planted:faithful")
record, figure = traced(faithful, faithscope.make_traces(faithful, asked)[0])
figure

# %%
decorative = faithscope.load("planted:hint")
record, figure = traced(decorative, faithscope.make_traces(decorative, asked)[0])
figure

# %% [markdown]
# ## A real model
#
# SmolLM2-135M reads a sentence with conflicting cues.

# %%
model = faithscope.load("bundled:smollm2-135m")
(trace,) = faithscope.make_traces(model, faithscope.questions("conflicting_cue", limit=1))
record, figure = traced(model, trace)
figure

# %% [markdown]
# The **reasoning horizon** is the last step that moves the answer's probability by `effect`
# (0.05) or more; **early** is the number of steps after which the answer that the chain states
# already leads for good (None if the model's forced choice, `forced_answer`, is another one).

# %%
names = ("answer", "n_steps", "p_before", "p_after", "early", "horizon", "largest", "spearman")
pd.Series({name: record[name] for name in names})

# %%
pd.DataFrame(
    {
        "step": [s.text.strip()[:90] for s in trace.counted_steps],
        "p after it": record["p_steps"],
        "moved by": record["delta"],
    }
).round(3)

# %% [markdown]
# A rising curve shows when the answer can be read from the text, not that each step caused it: a
# step that only repeats the answer makes the curve jump as well.
