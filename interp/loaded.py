"""`LoadedModel`: one open model in memory, with its tokenizer, structure and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from faithscope.interp.backends import Backend
from faithscope.interp.formats import ReasoningFormat
from faithscope.interp.hook_names import Place
from faithscope.interp.language import Speaks
from faithscope.interp.number_ends import NumberEnds
from faithscope.interp.packed import Packed
from faithscope.interp.placement import device_of
from faithscope.interp.structure import Structure


@dataclass
class LoadedModel(Speaks):
    """A causal language model in memory; the argument of every function that runs a model."""

    name: str
    hf: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    structure: Structure
    format: ReasoningFormat
    end_ids: frozenset[int]
    revision: str | None = None
    files: Path | None = None
    """Folder of its weights; None of those that the hub's cache holds, or memory alone."""
    adapter: Mapping[str, str] | None = None
    """What tells an adapter, its base model and their versions from others (`interp.adapted`)."""
    tree_reason: str | None = None
    """Why the packed forest cannot serve this model; None if it can."""
    flex_reason: str | None = "not tried"
    """Why packs are not run under FlexAttention; None if those large enough are."""
    flex_cut_reason: str | None = "not tried"
    """Why packs with knockouts are not run under FlexAttention where others are; None if they
    are. They are not where the model is loaded without checks."""
    graph_reason: str | None = "not tried"
    """Why steps of decoding are not replayed from CUDA graphs; None if they are."""
    graph_edit_reason: str | None = "not tried"
    """Why steps under edits are not replayed where others are; None if they are. They are not where
    the model is loaded without checks."""
    packed: Packed | None = None
    """Linear layers whose weights are packed for steps of decoding on a CPU; None for no such."""
    writer: Backend | None = None
    """Backend that writes what this model is to write (answers, continuations), but for texts under
    edits; None if they are written here."""
    token_budget: int = 32_768
    """Most trie tokens whose keys and values are held at once."""
    chunk: int = 1_024
    """Most tokens in one forward."""
    checks: tuple[str, ...] = ()
    """Results of the checks at load, one line per check."""
    cautions: tuple[str, ...] = ()
    """Cautions for a reader of this model's numbers, one line each; a run's page shows them."""

    @property
    def device(self) -> torch.device:
        """The device that token ids go to, and on which all readings of the model lie."""
        device = device_of(self.hf.get_input_embeddings())
        assert device is not None
        return device

    @property
    def dtype(self) -> str:
        return str(self.hf.dtype).removeprefix("torch.")

    @property
    def n_layers(self) -> int:
        return self.structure.n_layers

    def hook_names(self) -> dict[str, Place]:
        """TransformerLens' names of this model's sites, with site and layer of each; patches,
        steering and states take them as well."""
        return self.structure.hook_names()

    @property
    def supports_tree(self) -> bool:
        return self.tree_reason is None

    @property
    def max_positions(self) -> int | None:
        return getattr(self.hf.config.get_text_config(), "max_position_embeddings", None)

    @property
    def n_ids(self) -> int:
        """Number of token ids that the model knows, V; its tokenizer may name fewer."""
        return self.hf.get_input_embeddings().weight.shape[0]  # pyright: ignore

    @cached_property
    def number_ends(self) -> NumberEnds:
        """The next tokens that would turn a number just written into another number."""
        return NumberEnds.of(self, min(self.n_ids, len(self.tokenizer)))
