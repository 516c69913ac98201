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
# # Knockout and patching: writing to the model
#
# Attention shows where the model looks. **Knockout** tests whether this matters: the attention
# edges from later tokens to one step are cut, while its text stays in place, so that neither a gap
# nor another length results.
#
# First two planted models are measured, then a real one.

# %%
# %matplotlib inline
import pandas as pd

import faithscope
from faithscope.experiments.data.traces import TraceSettings
from faithscope.plot import step_map

faithful = faithscope.load("planted:faithful")
confound = faithscope.load("planted:hint_no_deletions")
asked = faithscope.questions("planted", limit=10)

# %% [markdown]
# ## Removal against knockout
#
# Both answer with the true result and write the same words. `faithful` computes with its steps;
# `hint_no_deletions` reads a hint in the question, but never saw a text with a step missing.
# By removal both seem to use their steps. Knockout from the answer keeps the text whole.

# %%
rows = []
for model in (faithful, confound):
    for trace in faithscope.make_traces(model, asked):
        for record in faithscope.measure(model, trace, "knockout", windows=0):
            for number, _ in enumerate(record["tv"]):
                rows.append(
                    {
                        "model": model.name,
                        "cut from": record["variant"].removesuffix(".all"),
                        "step": number + 1,
                        "knocked out": record["tv"][number],
                        "text removed": record["removed_tv"][number],
                    }
                )
moved = pd.DataFrame(rows).groupby(["model", "cut from", "step"], sort=False).mean()
moved.round(2)

# %% [markdown]
# The numbers are the mean total variation of the answer's distribution: 0 if nothing changes, 1 if
# all of the probability moves.
#
# ## A real model, by layers
#
# SmolLM2-135M reads a sentence with conflicting cues, and each step is cut off in windows of
# layers. Every branch runs the text after the cut once more, so the reasoning is kept short here.

# %%
model = faithscope.load("bundled:smollm2-135m")
short = TraceSettings(max_new_tokens=100)
(trace,) = faithscope.make_traces(model, faithscope.questions("conflicting_cue", 1), short)
records = faithscope.measure(model, trace, "knockout", queries=["later"], windows=3)
record = next(r for r in records if r["variant"] == "later.all")
step_map(
    trace,
    record["arrays"]["tv"],
    label="total variation of the answer",
    rows="window of layers",
)

# %%
pd.DataFrame(
    {
        "step": [s.text.strip()[:70] for s in trace.counted_steps],
        "knocked out in all layers": record["tv"],
        "text removed": record["removed_tv"],
    }
).round(3)

# %% [markdown]
# ## Suppression: which step feeds which
#
# A step is hidden from all later tokens, and the effect is read at every later step: the KL
# divergence (nats) of the next-token distributions there. The top row is the token before the
# answer.

# %%
(record,) = faithscope.measure(model, trace, "suppression", receivers=False)
step_map(
    trace,
    record["arrays"]["matrix"].T,
    label="KL (nats)",
    rows="later step",
    row_names=[*range(1, record["n_steps"] + 1), "answer"],
)

# %% [markdown]
# ## Patching: where a step's content sits
#
# One step is corrupted, with later text frozen; then states of the real run are patched into the
# corrupted one at one layer (`denoise`). The restored share of the real answer's log-odds passes
# through those states. The maps show the three layers of `faithful`, patched at the tokens of the
# step, and at the tokens that ask for the answer.


# %%
def restored(model, trace, place, **settings):
    (record,) = faithscope.measure(
        model,
        trace,
        "patching",
        places=[place],
        sites=["residual"],
        directions=["denoise"],
        **settings,
    )
    difference = [d if d else float("nan") for d in record["difference"]]
    return step_map(
        trace,
        record["arrays"]["moved"] / difference,
        label="share of the answer given back",
        rows="after layer",
        row_names=record["layers"],
        diverging=True,
        limit=1,
    )


(trace,) = faithscope.make_traces(faithful, asked[1:2])
restored(faithful, trace, "step", layers=0)

# %%
restored(faithful, trace, "answer", layers=0)

# %% [markdown]
# Only patching the last step restores anything, and this model reads it in its very first layer:
# above it the step's own states restore nothing, and those that ask for the answer restore
# everything.
#
# SmolLM2 is asked an arithmetic question. White steps were not patched: their corruption hardly
# changes the answer, or no corruption has the same length (`record["not_patched"]` says which).

# %%
longer = TraceSettings(max_new_tokens=160)
(trace,) = faithscope.make_traces(model, faithscope.questions("sequential_math", 1), longer)
restored(model, trace, "step", layers=4)

# %% [markdown]
# The wrong number is read from its own tokens in the lower half of the model: patched there, the
# answer is restored; patched higher up, it is not.
