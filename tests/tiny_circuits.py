"""Stand-ins for circuit-tracer: files of graphs as it writes them, and a package of its name.

Names, arguments and the order of nodes are those of decoderesearch/circuit-tracer, commit
4bb8c0ea10bde09727e14565ec8469656880da53 (18 April 2026, version 0.4.1); `old` is the layout of
safety-research/circuit-tracer, commit d797c824c0ffe3a0274071e32d92962a36656212 (11 June 2025).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch

PACKAGE = '''
"""circuit-tracer with neither model nor transcoders: its folder of transcoders has the answers."""
import json
from pathlib import Path
from typing import Any, NamedTuple
import torch

class LogitTarget(NamedTuple):
    token_str: str
    vocab_idx: int

class UnifiedConfig:
    pass

class ReplacementModel:
    @classmethod
    def from_pretrained(cls, model_name: str, transcoder_set: str, backend="transformerlens",
                        device=None, dtype=torch.float32, lazy_encoder=False, lazy_decoder=True,
                        **kwargs):
        print("Loaded pretrained model", model_name)
        model = cls()
        model.told = json.loads((Path(transcoder_set) / "told.json").read_text())
        return model

class Graph:
    def to_pt(self, path: str):
        torch.save(vars(self), path)

def attribute(prompt, model, *, attribution_targets=None, max_n_logits=10,
              desired_logit_prob=0.95, batch_size=512, max_feature_nodes=None, offload=None,
              verbose=False, update_interval=4):
    (target,) = attribution_targets.tolist()
    told = model.told
    if told["fails"]:
        raise RuntimeError("CUDA out of memory")
    n = len(prompt)
    graph = Graph()
    graph.input_string = "text"
    graph.input_tokens = prompt
    graph.logit_targets = [LogitTarget("x", target)]
    graph.logit_probabilities = torch.tensor([told["probability"]])
    graph.active_features = torch.tensor([[0, n - 1, 0], [0, told["at"], 5], [0, n - 1, 7]])
    graph.selected_features = torch.tensor([1, 2])
    graph.activation_values = torch.ones(3)
    graph.cfg = UnifiedConfig()
    graph.cfg.n_layers = 1
    graph.scan = "made/transcoders"
    graph.vocab_size = 99
    matrix = torch.zeros(2 + 2 * n + 1, 2 + 2 * n + 1)
    matrix[0, 2 + n] = 5.0        # the first token, to the feature at `at`
    matrix[1, 2 + told["at"]] = 1.0   # the error at `at`, to the feature at the last token
    matrix[-1, 0], matrix[-1, 1] = -3.0, 1.0
    graph.adjacency_matrix = matrix
    return graph
'''


class Made(NamedTuple):
    """A graph that is written to a file: effects as (target node, source node) -> effect."""

    tokens: Sequence[int]
    features: Sequence[tuple[int, int]]
    """Layer and position of each."""
    n_layers: int
    targets: Sequence[int]
    probabilities: Sequence[float]
    effects: dict[tuple[int, int], float]

    def error(self, layer: int, at: int) -> int:
        return len(self.features) + layer * len(self.tokens) + at

    def embedding(self, at: int) -> int:
        return self.error(self.n_layers, at)

    def logit(self, i: int) -> int:
        return self.embedding(len(self.tokens)) + i

    def matrix(self) -> torch.Tensor:
        size = self.logit(len(self.targets))
        matrix = torch.zeros(size, size)
        for edge, effect in self.effects.items():
            matrix[edge] = effect
        return matrix

    def write(self, path: Path, old: bool = False, **changes: Any) -> Path:
        """The graph as a file, with an active feature before them all that is not selected."""
        active = torch.tensor([(0, 0, 9), *((layer, at, 4) for layer, at in self.features)])
        file = {
            "input_string": "text",
            "adjacency_matrix": self.matrix(),
            "active_features": active,
            "logit_probabilities": torch.tensor(self.probabilities),
            "input_tokens": torch.tensor(self.tokens),
            "selected_features": torch.arange(1, len(active)),
            "activation_values": torch.ones(len(active)),
            "scan": ["made/0", "made/1"] if old else "made/transcoders",
        }
        with pytest.MonkeyPatch.context() as patch:
            if old:
                name = "HookedTransformerConfig"
                config = _class(patch, f"transformer_lens.{name}", name)
                file |= {"logit_tokens": torch.tensor(self.targets)}
            else:
                config = _class(patch, "circuit_tracer.utils.tl_nnsight_mapping", "UnifiedConfig")
                targets = _target(patch)
                file |= {"vocab_size": 99, "logit_targets": [targets("x", i) for i in self.targets]}
            file["cfg"] = config()
            file["cfg"].n_layers, file["cfg"].dtype = self.n_layers, torch.float32
            torch.save(file | changes, path)
        return path


def _class(patch: pytest.MonkeyPatch, module: str, name: str) -> Any:
    return _placed(patch, type(name, (), {}), module, name)


class _LogitTarget(NamedTuple):
    token_str: str
    vocab_idx: int


def _target(patch: pytest.MonkeyPatch) -> Any:
    made = type("LogitTarget", (_LogitTarget,), {})
    return _placed(patch, made, "circuit_tracer.attribution.targets", "LogitTarget")


def _placed(patch: pytest.MonkeyPatch, made: Any, module: str, name: str) -> Any:
    """A class as one of a module that is there only while a file is written."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        path = ".".join(parts[:i])
        patch.setitem(sys.modules, path, sys.modules.get(path, ModuleType(path)))
    made.__module__, made.__qualname__ = module, name
    patch.setattr(sys.modules[module], name, made, raising=False)
    return made
