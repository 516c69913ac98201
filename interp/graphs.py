"""Steps of decoding from CUDA graphs: a step started by one call instead of a thousand.

A model of 8 billion parameters needs some 5 ms of an H100 for a step, and its host 30 ms to start
the step's kernels one by one. Static steps (`interp.decoding`) have the same shapes until columns
are added or sequences dropped, so the second of them is recorded and the following ones replayed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from faithscope.interp.decoding import Decode
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.memory import is_out_of_memory
from faithscope.interp.placement import devices_of, is_offloaded

WORTH = 3
"""Fewest steps yet to come for which a step is recorded: recording takes as long as a step."""


def reason_against(model: LoadedModel) -> str | None:
    """Why the steps of a model are not recorded; None if they can be."""
    if model.device.type != "cuda":
        return f"there are none on {model.device.type}"
    if len(devices_of(model.hf)) > 1 or is_offloaded(model.hf):
        return "the model is on several devices"
    return None


class Steps:
    """Runs the steps of one group of sequences."""

    def __init__(
        self, model: LoadedModel, state: Decode, forward: Callable[[Tensor], Tensor]
    ) -> None:
        """
        Args:
            forward: from the (B,) newest tokens to (B, V) logits; whatever else it depends on is a
                tensor that `state.advance` changes in place.
        """
        self._model, self._state, self._forward = model, state, forward
        self._graph: torch.cuda.CUDAGraph | None = None
        self._layout = -1
        self._tokens = self._logits = torch.empty(0)

    def __call__(self, tokens: Tensor, left: int) -> Tensor:
        """(B, V) logits after the newest tokens, which the next call may overwrite.

        Args:
            left: most steps that may come after this one.
        """
        self._state.advance()
        reason = self._model.graph_reason
        if self._state.has_edits:
            reason = reason or self._model.graph_edit_reason
        if reason is not None:
            return self._forward(tokens)
        if self._layout != self._state.layout:
            # the first step of a layout also makes what its steps share
            self._graph, self._layout = None, self._state.layout
            return self._forward(tokens)
        if self._graph is None and (left < WORTH or not self._recorded(tokens)):
            return self._forward(tokens)
        assert self._graph is not None
        self._tokens.copy_(tokens)
        self._graph.replay()
        return self._logits

    def _recorded(self, tokens: Tensor) -> bool:
        """Whether a step could be recorded; a model whose forward cannot be is not tried again."""
        self._tokens = tokens.to(self._model.device, copy=True)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._logits = self._forward(self._tokens)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            reason = " ".join(str(error).split())[:200]
            self._model.graph_reason = f"a step cannot be recorded: {reason}"
            # a mask of a recording that failed was never computed
            self._state.forget()
            return False
        self._graph = graph
        return True
