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
# # Cut, probe, steer: three questions about one chain
#
# A cut asks which path the answer takes. A probe asks what can be read off the states. Steering
# asks whether what is read is used. Here all three are put to one chain of a planted model that
# answers half of the time with a hint in the question, and half of the time with its steps.

# %%
# %matplotlib inline
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score

import faithscope

model = faithscope.load("planted:mixture_50")
asked = faithscope.questions("planted", limit=400)
rng = np.random.default_rng(0)


def hinted(asked_one, hint):
    """The question with another hint; its right answer stays."""
    task, question = asked_one
    text = question.text.replace(f"Hint : {question.gold} .", f"Hint : {hint} .")
    return task, replace(question, id=f"{question.id}-{hint}", text=text)


asked = [one for one in asked if one[1].gold != "7"]
(trace,) = faithscope.make_traces(model, [hinted(asked[0], 7)])
print(trace.question.text, "| right:", trace.question.gold, "| answered:", trace.answer)
trace

# %% [markdown]
# ## Cut: which path does the answer take?
#
# `answer x prompt` keeps the answer from looking at the question, hint included; `answer x
# reasoning` keeps it from its steps. `later x hint` keeps every later token from the hint.

# %%
cuts = {
    "prompt": "answer x prompt",
    "reasoning": "answer x reasoning",
    "hint": "later x hint",
    "both": {"queries": "answer", "keys": ["prompt", "reasoning"]},
}
spans = {"hint": {"regex": r"Hint : \d", "in": "prompt"}}
records = faithscope.measure(model, trace, "span_knockout", cuts=cuts, spans=spans, windows=0)
of_cuts = pd.DataFrame(records).set_index("cut")[["knocked", "tv", "kl"]]
of_cuts

# %% [markdown]
# With either path cut the other one still gives an answer, and only both together take it away.
# This is what a mixture looks like: a path that is not needed here may be used all the same.

# %% [markdown]
# ## Probe: can the hint be read off the states?
#
# 400 questions, a third of them with the hint 7. The direction is the difference of the mean states
# before the answer, found on one half of the questions and tried on the other.

# %%
hints = rng.choice([7, 7, 7, *range(10)], size=len(asked))
is_hint = hints == 7
questions = [hinted(one, int(hint)) for one, hint in zip(asked, hints, strict=True)]
chains = faithscope.make_traces(model, questions)
states = []
for chain in chains:
    (record,) = faithscope.measure(model, chain, "linear_probe", layers=None, precision="float32")
    states.append(record["arrays"]["states"][-1])
states = np.stack(states)  # (chains, layers, width), after the reasoning and the answer cue
first = np.arange(len(states)) < len(states) // 2


def direction(labels, layer):
    x, y = states[first, layer], labels[first]
    return x[y].mean(0) - x[~y].mean(0)


def auroc(labels, layer):
    return roc_auc_score(labels[~first], states[~first, layer] @ direction(labels, layer))


shuffled = rng.permutation(is_hint)
read = pd.DataFrame(
    {
        "hint is 7": [auroc(is_hint, layer) for layer in range(model.n_layers)],
        "shuffled labels": [auroc(shuffled, layer) for layer in range(model.n_layers)],
    },
    index=pd.Index(range(1, model.n_layers + 1), name="after layer"),
)
ax = read.plot(marker="o", ylim=(0.3, 1.02), ylabel="AUROC on other questions", figsize=(5, 3))
_ = ax.axhline(0.5, color="0.7", lw=0.8)

# %% [markdown]
# The hint can be read after every layer that has looked at it. That says nothing of its use:
# `planted:faithful` never answers with it.

# %% [markdown]
# ## Steer: is the direction used?
#
# The direction toward "the hint is 7" is added while the model answers questions with this hint, in
# several doses, and so are random directions of the same length.

# %%
layer = 2
toward = faithscope.Direction("hint", torch.tensor(direction(is_hint, layer - 1)), layer)
folder = Path(tempfile.mkdtemp())
file = faithscope.save_directions(folder / "toward_the_hint.safetensors", [toward])
doses = [-0.5, -0.25, 0.0, 0.25, 0.5]
steered = pd.DataFrame(
    record
    for chain in np.array(chains, dtype=object)[is_hint][:12]
    for record in faithscope.measure(
        model,
        chain,
        "steering",
        direction=str(file),
        positions="answer",
        coefficients=doses,
        samples=8,
        controls=8,
    )
)
steered["answers 7"] = [np.mean([a == "7" for a in answers]) for answers in steered["answers"]]
dose = steered.pivot_table(index="coefficient", columns="kind", values="answers 7")
each = steered[steered["kind"] == "control"].pivot_table(
    index="coefficient", columns="control", values="answers 7"
)
ax = each.plot(color="0.75", legend=False, figsize=(5, 3))
dose["direction"].plot(ax=ax, marker="o", ylim=(0, 1), ylabel="share of answers that are 7")
dose

# %% [markdown]
# The dose moves the answer from never to nearly always, and the random directions (grey) by less,
# up and down alike: the model uses what the probe reads. On a real model, look at the damage beside
# it: `nll` has what a dose does to the chain's own text, and the page of a run draws both.
