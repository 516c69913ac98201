"""The forest's peers give the same logits, and depth-first reuse runs no token twice."""

from __future__ import annotations

import forest as bench
import torch
from tiny_models import tiny

from faithscope.interp.forest import Forest


def test_every_way_gives_the_logits_of_the_plain_one() -> None:
    model = tiny("llama")
    sequences = bench.probe_set(3, 120)["full"]
    expected = bench.naive(model, sequences)
    for name, way in bench.METHODS.items():
        assert torch.allclose(way(model, sequences), expected, atol=1e-4), name
    # one branch is the beginning of another, and one occurs twice
    sequences += [sequences[0][:50], sequences[1]]
    found = bench.depth_first(model, sequences)
    assert torch.allclose(found, bench.naive(model, sequences), atol=1e-4)


def test_depth_first_runs_every_token_of_the_trie_once(monkeypatch) -> None:
    model = tiny("llama")
    sequences = bench.probe_set(3, 120)["full"]
    run: list[int] = []
    plain = model.hf.forward

    def counting(ids: torch.Tensor, **more: object) -> object:
        run.append(ids.shape[1])
        return plain(ids, **more)

    monkeypatch.setattr(model.hf, "forward", counting)
    bench.depth_first(model, sequences)
    # equal probes ask for their last token again
    again = len(sequences) - len({tuple(s) for s in sequences})
    assert sum(run) == len(Forest.of(sequences)) + again
    assert len(run) == len(sequences)
