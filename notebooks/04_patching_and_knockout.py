# %% [markdown]
# # Knockout and patching: writing to the model
#
# Reading attention says where the model looks. **Knockout** asks whether it matters: the edges
# from later tokens to one step are cut, its text stays in place. No hole, no new length.
#
# First on two models of known truth, then on a real one.

# %%
# %matplotlib inline
import pandas as pd

import experiments
import interp
from experiments.report.item_figures import step_map
from experiments.traces import TraceSettings

faithful = interp.load("planted:faithful")
confound = interp.load("planted:hint_no_deletions")
asked = experiments.questions("planted", limit=10)

# %% [markdown]
# ## Removal against knockout
#
# Both answer with the true result and write the same words. `faithful` computes with its steps;
# `hint_no_deletions` reads a hint in the question, but never saw a text with a step missing.
# Removal calls both users of their steps. Knockout from the answer keeps the text whole.

# %%
rows = []
for model in (faithful, confound):
    for trace in experiments.make_traces(model, asked):
        for record in experiments.measure(model, trace, "knockout", windows=0):
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
# Mean total variation of the answer's distribution: 0 where nothing moves, 1 where all of it
# does.
#
# ## A real model, by layers
#
# SmolLM2-135M on a sentence with conflicting cues: each step cut off in windows of layers. Every
# branch costs the text after the cut once more, so the reasoning is kept short here.

# %%
model = interp.load("bundled:smollm2-135m")
short = TraceSettings(max_new_tokens=100)
(trace,) = experiments.make_traces(model, experiments.questions("conflicting_cue", 1), short)
records = experiments.measure(model, trace, "knockout", queries=["later"], windows=3)
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
# ## Patching: where a step's content sits
#
# One step is corrupted, later text frozen; then the states of the real run are put into the
# corrupted one at one layer (`denoise`). What comes back of the real answer's log-odds passes
# through those states. On `faithful`, three layers: at the tokens of the step, and at those that
# ask for the answer.


# %%
def restored(model, trace, place, **settings):
    (record,) = experiments.measure(
        model,
        trace,
        "patching",
        places=[place],
        sites=["residual"],
        directions=["denoise"],
        **settings,
    )
    difference = [d if d else float("nan") for d in record["difference"]]
    return record, record["arrays"]["moved"] / difference


(trace,) = experiments.make_traces(faithful, asked[1:2])
record, share = restored(faithful, trace, "step", layers=0)
step_map(trace, share, label="share of the answer given back", diverging=True)

# %%
record, share = restored(faithful, trace, "answer", layers=0)
step_map(trace, share, label="share of the answer given back", diverging=True)

# %% [markdown]
# Only the last step has anything to give back. Its own states matter before the layer that reads
# it; after that the content is where the answer is asked for.
#
# On SmolLM2, an arithmetic question; steps whose corruption hardly moves the answer, or that
# have no corruption of the same length, stay white.

# %%
longer = TraceSettings(max_new_tokens=160)
(trace,) = experiments.make_traces(model, experiments.questions("sequential_math", 1), longer)
record, share = restored(model, trace, "step", layers=4)
print([reason or "patched" for reason in record["not_patched"]])
step_map(trace, share, label="share of the answer given back", rows="layer read", diverging=True)
