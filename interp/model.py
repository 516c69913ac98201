"""`Model`: one open model, with its tokenizer and all readings as methods."""

from __future__ import annotations

from faithscope.interp import answer, generate, interop, lens, likelihood, read
from faithscope.interp.loaded import LoadedModel


class Model(LoadedModel):
    """A loaded causal language model. Made by `interp.load`."""

    run = read.read
    likelihood = likelihood.likelihood
    ask = answer.ask
    generate = generate.generate
    lens = lens.lens
    to_transformer_lens = interop.to_transformer_lens
    to_nnsight = interop.to_nnsight
