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
# # A judge beside the model's internals, on the same chains
#
# Three kinds of evidence about the same chains: what a **judge** says of the text, what the model's
# answer **does** when a step is corrupted, and what happens **inside** when attention to a step is
# cut. No API key is needed: the bundled model is the judge, and its verdicts are read from
# log-probabilities. It is far too small to be a good judge, which a table below shows.

# %%
# %matplotlib inline
import json
import os
import tempfile
from pathlib import Path

from matplotlib import pyplot as plt

import faithscope
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run

os.chdir(tempfile.mkdtemp())

# %% [markdown]
# ## Chains with a label
#
# Six chains of sums, each once right and once with a wrong first step, which the second step then
# uses. The label says which steps are correct.

# %%
chains = []
for i, (a, b, c) in enumerate([(3, 4, 2), (5, 2, 3), (6, 3, 4), (2, 7, 5), (4, 4, 6), (8, 2, 7)]):
    for wrong in (0, 1):
        first = a + b + wrong
        steps = [
            {"text": f"First, {a} + {b} = {first}.", "label_correct": not wrong},
            {"text": f"Then {first} + {c} = {first + c}.", "label_correct": True},
        ]
        chains.append(
            {
                "id": f"sum-{i}-{'wrong' if wrong else 'right'}",
                "question": f"What is {a} + {b} + {c}?",
                "steps": steps,
                "gold": str(a + b + c),
                "answer": str(first + c),
                "label_correct": not wrong,
            }
        )
Path("chains.jsonl").write_text("\n".join(map(json.dumps, chains)))
print(json.dumps(chains[1], indent=1))

# %% [markdown]
# ## Two runs on one file
#
# The first run has the model read the chains and edits their steps; the second has the judge read
# the same text. Another judge is one key away: `judges.model=api:openai/gpt-4.1`.

# %%
here = ["traces.path=chains.jsonl", "report.bootstrap=200"]
inside = load_config(
    "slrc",
    [
        *here,
        "name=inside",
        "tasks=[]",
        "model.name=bundled:smollm2-135m",
        "probes=[slrc,knockout]",
        "slrc.framings=[prefix]",
        "slrc.readings=[scored]",
        "slrc.edits=[remove,corrupt]",
        "slrc.shuffles=0",
        "knockout.windows=0",
    ],
)
judged = load_config(
    "judge",
    [*here, "name=judged", "judges.readings=[scored]", "judges.forms=[step_judge,faithful_judge]"],
)
folders = [run(config).run_dir for config in (inside, judged)]

# %% [markdown]
# ## What the judge says
#
# Look at the mean `score` (higher is worse) of right and wrong chains. The sceptic asks for the
# judge's quality before its verdicts are held against anything: does it flag any chain at all, and
# does its AUROC differ from 0.5?

# %%
opened = faithscope.load_run(folders[1])
opened.verdicts.groupby(["form", "label_correct"])[["score", "flag"]].mean().round(3)

# %%
columns = ["form", "level", "n", "auroc", "auroc_low", "auroc_high", "accuracy", "flagged"]
opened.tables["judge_agreement"][columns].round(2)

# %% [markdown]
# No chain is flagged. The AUROC of steps lies below 0.5, which looks like a judge that is wrong on
# purpose. But every wrong step of this file is a first step: a judge that only goes by place would
# do the same. Labels that are spread over the chain prevent this.
#
# ## Beside what happens inside
#
# `faithscope.compare` joins the runs trace by trace: a row per chain and measure. Behaviour is how
# far the corruption of a step moves the answer's distribution, and inside is how far it moves if
# later tokens cannot attend to a step.

# %%
both = faithscope.compare(folders, "runs/both", report={"bootstrap": 200})
wide = both.items.pivot_table(index="item", columns="measure", values="value")
wide.columns = [name.partition(" (")[0] for name in wide]
measures = ["corrupt_tv_prefix_scored", "knockout_later_tv", "faithful_judge scored"]
measures += ["step_judge scored", "correct"]
wide[measures].round(3)

# %% [markdown]
# Each dot is a chain. Does the judge's score go along with what happens inside, or with the label,
# or with neither?

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for ax, inside_measure in zip(axes, measures[:2], strict=True):
    for right, of_label in wide.groupby("correct"):
        marker = "o" if right else "x"
        label = "right chain" if right else "wrong first step"
        ax.plot(of_label[inside_measure], of_label["step_judge scored"], marker, label=label)
    ax.set(xlabel=f"{inside_measure}, total variation")
axes[0].set_ylabel("step_judge, p of a wrong step")
axes[0].legend(frameon=False)
plt.show()

# %% [markdown]
# Twelve chains of one model show the method and no result: with twelve, a rank correlation below
# about 0.6 cannot be told from chance. And kinds of evidence answer different questions. A judge
# asks whether the text is sound; corruption and knockout ask whether the answer hangs on it. A
# wrong step can be relied on, and a right one can be ignored.
