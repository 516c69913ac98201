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
# # Which measure to trust? All measures on planted models
#
# Every probe is run on the same items of three tiny models that write the same words. One answers
# from its steps, one from a hint in the question, and the third also from the hint, but it never
# saw a text with a missing step in training and changes its answer when a step is deleted. A valid
# measure ranks the first model above the others.
#
# `faithscope run planted` does this for all planted models, with intervals; here a few
# items are enough to see the pattern.

# %%
# %matplotlib inline
import tempfile

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.metrics import roc_auc_score

import faithscope
from faithscope.experiments.analysis.colours import BLUE, GREY, ORANGE, SIGN, colour_map
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.tables.measures import MEASURES

FAITHFUL, HINT, CONFOUND = "planted:faithful", "planted:hint", "planted:hint_no_deletions"
folder = tempfile.mkdtemp()
config = RunConfig.model_validate(
    {
        "name": "compare",
        "out": folder,
        "model": {"name": [FAITHFUL, HINT, CONFOUND]},
        "tasks": ["planted"],
        "data": {"limit": 8},
        "probes": ["slrc", "attention", "rigidity", "flow", "tracing", "information", "knockout"],
        "slrc": {"framings": ["prefix"], "regenerate_tokens": 32},
        "report": {"bootstrap": 50},
    }
)
outcome = run(config)
found = faithscope.load_run(outcome.run_dir)

# %% [markdown]
# The table has one row per model, item and measure; `found.items`, `.steps`, `.tracing` … hold the
# underlying numbers.

# %%
scores = found.measures
print(len(scores), "scores of", scores["measure"].nunique(), "measures")
scores.head()

# %% [markdown]
# ## Does it tell a faithful model from a decorative one, and from the confound?
#
# AUROC over items is 1 if always right, 0.5 by chance, 0 if always wrong. A measure's direction is
# set by its theory (`MEASURES[name].higher_is_faithful`), and never reversed afterwards.


# %%
def auroc(of_measure: pd.DataFrame, against: str) -> float:
    pair = of_measure[of_measure["model"].isin([FAITHFUL, against])]
    (name,) = pair["measure"].unique()
    sign = 1 if MEASURES[name].higher_is_faithful else -1
    return float(roc_auc_score(pair["model"] == FAITHFUL, sign * pair["score"]))


rows = [
    {
        "measure": name,
        "family": MEASURES[name].family,
        "against decorative": auroc(of, HINT),
        "against confound": auroc(of, CONFOUND),
    }
    for name, of in scores.groupby("measure", sort=False)
    if of["model"].nunique() == 3
]
table = pd.DataFrame(rows).set_index("measure")
table.sort_values(["against confound", "against decorative"], ascending=False).round(2)

# %%
figure, ax = plt.subplots(figsize=(8, 0.19 * len(table) + 0.8), layout="constrained")
ordered = table.sort_values("against confound")
places = range(len(ordered))
ax.axvline(0.5, color=GREY, lw=0.6, ls=":")
hollow = {"ms": 9, "fillstyle": "none", "color": BLUE}
ax.plot(ordered["against decorative"], places, "o", label="against decorative", **hollow)
ax.plot(ordered["against confound"], places, "s", color=ORANGE, label="against confound", ms=4)
ax.set_yticks(places, ordered.index, fontsize=7)
ax.set_ylim(-0.7, len(ordered) - 0.3)
ax.set(xlabel="AUROC", xlim=(-0.03, 1.03))
ax.legend(frameon=False, loc="upper left")
plt.show()

# %% [markdown]
# Removal is misled by the confound; edits that keep the text's form are not. Attention and
# similarity of internal states say little about use.
#
# ## Do measures agree with each other, item by item?
#
# The map shows rank correlations (Spearman) over the eight items of the faithful model, for the
# measures that vary there: green where two rank the items alike, purple the opposite way. Eight
# items show a pattern and prove none.

# %%
wide = scores[scores["model"] == FAITHFUL].pivot(index="item", columns="measure", values="score")
wide = wide.loc[:, wide.nunique() > 1]
rho = wide.corr(method="spearman", min_periods=6)
figure, ax = plt.subplots(figsize=(8, 7), layout="constrained")
drawn = ax.imshow(np.asarray(rho), cmap=colour_map(SIGN), vmin=-1, vmax=1)
ax.set_xticks(range(len(rho)), rho.columns, rotation=90, fontsize=6)
ax.set_yticks(range(len(rho)), rho.columns, fontsize=6)
figure.colorbar(drawn, ax=ax, label="Spearman’s rank correlation", shrink=0.6)
plt.show()

# %% [markdown]
# Within one model measures agree inside a family (removal, knockout) but hardly between families,
# even if each separates the models: a measure that separates models need not rank items.
#
# These are known mechanisms in tiny models. Failing here is a reason for distrust; passing is no
# guarantee for a large model.
