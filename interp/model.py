"""`Model`: one open model, with its tokenizer and all readings as methods."""

from __future__ import annotations

from html import escape

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

    def __repr__(self) -> str:
        kind = type(self.hf).__name__
        dtype = str(self.hf.dtype).removeprefix("torch.")
        size = f"{self.hf.num_parameters():,} parameters, {self.structure.n_layers} layers, {dtype}"
        return f"Model({self.name!r}: {kind}, {size} on {self.device})"

    def _repr_html_(self) -> str:
        checks = "".join(f"<li>{escape(line)}</li>" for line in self.checks)
        return f"<code>{escape(repr(self))}</code><ul>{checks}</ul>"
