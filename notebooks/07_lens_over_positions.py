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
# # The lens: layer × token, and the path of one answer
#
# The **logit lens** reads the residual stream after a layer as if it were the last one: the model's
# own final norm, then its unembedding. It shows which token each layer would write next.

# %%
# %matplotlib inline
import pandas as pd
from matplotlib import pyplot as plt

import faithscope
from faithscope import interventions
from faithscope.interp import Branch

model = faithscope.load("bundled:smollm2-135m")
chain = {
    "question": "Ann has 3 boxes of 4 pens. She loses 2 pens. How many pens does she have?",
    "steps": ["3 boxes of 4 pens are 3 * 4 = 12 pens.", "She loses 2, so 12 - 2 = 10 are left."],
    "gold": "10",
    "answer": "10",
}
(trace,) = faithscope.given_traces(model, [chain])

# %% [markdown]
# ## Layer × token
#
# Choose positions: here the last tokens of the reasoning. Each cell has the two likeliest next
# tokens by the lens, with the probability of the first. Read a column from the bottom row (last
# layer, the model's own prediction) upwards: how early does it appear? A sceptic asks whether the
# lens is fair to early layers, which were not trained to be read in this way.

# %%
ids = (*trace.prompt_ids, *trace.reasoning_ids)
positions = range(len(ids) - 11, len(ids) - 3)
read = model.run([Branch(ids, ask=tuple(positions))], residuals=True).branches[0]
p = model.lens(read.residuals).softmax(-1)  # (positions, layers + 1, vocabulary), embeddings first
top = p.topk(2)


def cell(position: int, layer: int) -> str:
    first, second = (model.decode([i]) for i in top.indices[position, layer].tolist())
    return f"{first!r} {top.values[position, layer, 0]:.2f} · {second!r}"


pieces = model.pieces(ids)
layers = [1, 5, 10, 15, 20, 23, 25, 26, 27, 28, 29, 30]
pd.DataFrame(
    [[cell(k, layer) for k in range(len(positions))] for layer in layers],
    index=pd.Index(layers, name="after layer"),
    columns=[f"{i} {pieces[i]!r}" for i in positions],
)

# %% [markdown]
# ## One answer along the text
#
# How probable is the digit 1, with which the answer 10 begins, after every layer and at every token
# of the reasoning? Bright columns are places where it comes next. The sceptic's question: is a
# bright column more than copying? 12 begins with the same digit.

# %%
start = len(trace.prompt_ids)
everywhere = tuple(range(start - 1, len(ids)))
streams = model.run([Branch(ids, ask=everywhere)], residuals=True).branches[0].residuals
token = model.encode("10")[0]
path = model.lens(streams).softmax(-1)[:, 1:, token].T.cpu().numpy()  # (layers, positions)
figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
drawn = ax.imshow(
    path, aspect="auto", origin="lower", vmin=0, extent=(-0.5, len(everywhere) - 0.5, 0.5, 30.5)
)
labels = [pieces[i].replace("\n", "⏎") for i in everywhere]
ax.set_xticks(range(len(labels)), labels, rotation=90, fontsize=7)
ax.set(xlabel="token that the lens is read at", ylabel="after layer")
figure.colorbar(drawn, ax=ax, label=f"p of {model.decode([token])!r} as next token", pad=0.01)
plt.show()

# %% [markdown]
# ## When would it answer?
#
# The second step is cut off after some of its tokens and the model has to answer at once. The probe
# `rigidity` reads the lens at that place: `stable layer` is the first layer from which the lens'
# likeliest token stays the same. If that token is a blank, the layer tells nothing about the
# answer, so look at `token` first, then at the probabilities.

# %%
rows = []
begin, end = trace.steps[1].tokens
for kept in range(begin + 2, end + 1, 3):
    cut = interventions.truncate_after_token(trace, kept)
    (record,) = faithscope.measure(model, cut, "rigidity")
    p = faithscope.score_answer(model, cut, ["10", "12", "14", "9"])
    rows.append(
        {
            "reasoning ends in": cut.reasoning_text[-24:],
            "token": repr(record["final_token"]),
            "stable layer": record["stable_layer"],
            **{f"p({answer})": probability for answer, probability in p.items()},
        }
    )
pd.DataFrame(rows).round(3)

# %% [markdown]
# The lens is a reading, not a cause: that a layer holds the answer does not show that later layers
# use it. `04_patching_and_knockout` writes to the model instead, and `rigidity.tuned_lens` takes a
# lens that was trained for early layers.
