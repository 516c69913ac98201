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
# # A first look: does the model use the reasoning it writes?
#
# Two tiny models write the same words. The answer of one follows its steps, the answer of the
# other follows a hint in the question; they were trained to do so
# (`experiments/data/planted/README.md`). Then a real model is measured in the same way.

# %%
import pandas as pd

import faithscope
from faithscope import interventions
from faithscope.experiments.studies.slrc.tables.measures import all_scores

faithful, decorative = faithscope.load("planted:faithful"), faithscope.load("planted:hint")

# %% [markdown]
# A **trace** is a question, the reasoning as token ids, its steps, and the answer.

# %%
asked = faithscope.questions("planted", limit=8)
traces = {m.name: faithscope.make_traces(m, asked) for m in (faithful, decorative)}
for made in traces.values():
    print(made[1].question.text)
    for step in made[1].steps:
        print(f"   {step.index + 1}. {step.text.strip()}")
    print("  ", made[1].tail_text.strip(), "\n")

# %% [markdown]
# ## One edit by hand
#
# An **intervention** returns a new trace, in which every token that it does not edit keeps its
# id. Here the last step is removed, or changed to claim another result, and the model is asked
# again: how probable is each answer now?

# %%
rows = []
for model in (faithful, decorative):
    trace = traces[model.name][1]
    last = len(trace.steps) - 1
    edited = {
        "as written": trace,
        "last step removed": interventions.remove_step(trace, last),
        "last step corrupted": interventions.corrupt_step(
            trace, last, 0, model.encode, model.pieces
        ),
    }
    for what, version in edited.items():
        p = faithscope.score_answer(model, version)
        best = max(p, key=p.__getitem__)
        rows.append({"model": model.name, "reasoning": what, "answer": best, "p": p[best]})
pd.DataFrame(rows).round(3)

# %% [markdown]
# ## The measures of SLRC
#
# `faithscope.measure` runs any probe that a config can name on one trace and returns its
# records. All branches of the item run as one packed forward.

# %%
records = [
    record
    for model in (faithful, decorative)
    for trace in traces[model.name]
    for record in faithscope.measure(
        model, trace, "slrc", framings=["prefix"], readings=["scored"], regenerate_tokens=32
    )
]
scores = all_scores(records)  # one number per item and measure
names = ["necessity_prefix_scored", "sufficiency_prefix_scored", "regenerate_prefix_scored"]
scores[scores["measure"].isin(names)].pivot_table(
    index="model", columns="measure", values="score", sort=False
).round(2)

# %% [markdown]
# **Necessity**: the share of steps whose removal changes the answer. **Sufficiency**: the share
# of steps that give the answer on their own. **Regenerate**: the share of steps whose corruption
# leads to another answer if the model continues by itself. The faithful model needs all of its
# steps, but removal sees only the last one: the next step still states what the removed one said.
#
# ## A real model
#
# SmolLM2-135M reads a sentence with conflicting cues. Any causal model of Hugging Face can be
# used instead: `faithscope.load("Qwen/Qwen3-8B", dtype="bfloat16")`.

# %%
model = faithscope.load("bundled:smollm2-135m")
(trace,) = faithscope.make_traces(model, faithscope.questions("conflicting_cue", limit=1))
print(trace.question.text, "\n")
for step in trace.counted_steps:
    print(f"{step.index + 1:>2}. {step.text.strip()}")
print("\nanswer:", trace.answer, "· right:", trace.question.gold)

# %%
before = faithscope.score_answer(model, trace)
rows = []
for step in trace.counted_steps:
    after = faithscope.score_answer(model, interventions.remove_step(trace, step.index))
    moved = sum(abs(after[a] - before[a]) for a in before) / 2
    flips = max(after, key=after.__getitem__) != max(before, key=before.__getitem__)
    rows.append({"step": step.text.strip()[:80], "total variation": moved, "flips": flips})
pd.DataFrame(rows).round(3)

# %% [markdown]
# One item proves nothing: `faithscope run slrc` measures many, resumes after a kill and
# writes tables, figures and a page; `faithscope.load_run(folder)` opens its frames.
# `05_compare_measures` shows which measure to trust for what.
