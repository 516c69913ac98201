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
# # A long chain, measured on some of its steps
#
# A model such as DeepSeek-R1 writes hundreds of paragraphs, and turns within them ("Wait, …").
# Removing each step takes a forward for each; answer tracing reads the whole chain in a few. Here a
# think block of some twenty steps is cut into thoughts, traced as a whole, and edited where a cheap
# estimate says that it matters, and at a few random places that stand for the rest.

# %%
# %matplotlib inline
import json
import os
import tempfile
from pathlib import Path

import faithscope
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.traces import TraceSettings
from faithscope.experiments.engine.run import run
from faithscope.interventions import function_of
from faithscope.plot import tracing_curve

os.chdir(tempfile.mkdtemp())
numbers = [7, 4, 9, 2, 6, 8, 3, 5, 1, 9, 6, 2, 7, 4, 8, 5]
total = 0
paragraphs = [
    "Okay, so the problem asks for the sum of these numbers.",
    "First, I need to go along.",
]
for place, number in enumerate(numbers, start=1):
    line = f"Next comes {number}: {total} + {number} = {total + number}."
    total += number
    if place % 4 == 0:
        line += f" Wait, let me double-check: {place} numbers make {total}, which matches."
    paragraphs.append(line)
paragraphs.append("So that is the whole list, and nothing is left to add.")
chain = {
    "id": "sum",
    "question": f"What is {' + '.join(map(str, numbers))}?",
    "reasoning": "\n\n".join(paragraphs),
    "gold": str(total),
    "answer": str(total),
}
size = Path("long.jsonl").write_text(json.dumps(chain))
print(len(paragraphs), "paragraphs,", size, "characters")

# %% [markdown]
# ## Thoughts, and what each does
#
# A thought is a paragraph, cut where the text turns. Its function is read from its words by rule:
# these rules know English, and know nothing of whether a check really checks.

# %%
model = faithscope.load("bundled:smollm2-135m")
cut = TraceSettings(segmentation="thoughts")
(trace,) = faithscope.given_traces(model, "long.jsonl", settings=cut)
print(len(trace.reasoning_ids), "tokens,", len(trace.counted_steps), "thoughts")
for step in trace.counted_steps[:8]:
    print(f"{function_of(step.text):>9}  {step.text.strip()}")

# %% [markdown]
# ## The whole chain, traced
#
# The model has to answer after every 24th token and at the end of each step. Look at where the
# curve of the right answer leaves the floor. A sceptic asks whether it rises because the sum is
# done, or because the last number of the text is always the best guess.

# %%
(record,) = faithscope.measure(model, trace, "tracing", every=24)
print(record["n_cuts"], "cuts")
tracing_curve(trace, record)

# %% [markdown]
# ## Edits of some of the steps
#
# `steps.screen` removes three steps of the largest estimated effect, and the rest of `steps.sample`
# at random. `inclusion` is the probability with which a step was drawn: 1 for those that the
# estimate chose. A table over steps counts each step by its inverse, so that it is right on average
# for all steps, however good the estimate is.

# %%
config = load_config(
    "slrc",
    [
        "model.name=bundled:smollm2-135m",
        "traces.path=long.jsonl",
        "tasks=[]",
        "steps.segmentation=thoughts",
        "steps.sample=8",
        "steps.screen=3",
        "probes=[slrc]",
        "slrc.framings=[prefix]",
        "slrc.readings=[scored]",
        "slrc.edits=[remove]",
        "slrc.shuffles=0",
        "report.bootstrap=50",
    ],
)
found = faithscope.load_run(run(config).run_dir)
moved = found.branches.query("edit == 'remove'")[["position", "total_variation"]]
steps = found.steps[["position", "inclusion", "removed", "text"]].merge(moved, on="position")
steps.dropna(subset=["inclusion"]).round(3)

# %% [markdown]
# The same edits, by what the step does. One chain is an illustration: a row of one edit says
# nothing, and has no interval.

# %%
by_function = found.tables["edits_by_function"].query("edit == 'remove'")
by_function[["function", "n_edits", "flip_rate", "total_variation"]].round(3)

# %% [markdown]
# Removing an early sum that later lines state anew moves little. A chain of 8,000 tokens on a GPU
# takes the same two calls; `faithscope docs long_chains` says what estimates are worth, and
# `--dry-run` what a chain costs.
