"""Decoding over a shared trunk on a device writes what decoding of rows writes on a CPU."""

from __future__ import annotations

import emulated_devices
import pytest
import torch
from tiny_configs import byte_tokenizer
from tiny_models import random_weights

from faithscope.interp import decoding
from faithscope.interp.edits import Knockout
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model

TRUNK = tuple(range(40, 100))
PROMPTS = [(*TRUNK, *range(i, 2 * i + 1)) for i in range(6)]
LIMITS = [9, 3, 20, 5, 14, 4]


def on(device: str, family: str) -> Model:
    hf = random_weights(family).to(torch.device(device))
    return wrap(hf, byte_tokenizer(), name=family, verify_model=False)


@pytest.mark.parametrize("family", ["llama", "mistral", "gpt2"])
def test_shared_decoding_writes_what_rows_write(family: str, monkeypatch):
    emulated_devices.require()
    monkeypatch.setattr(decoding, "BLOCK", 8)
    blocks = []
    init = decoding.Shared.__init__
    monkeypatch.setattr(
        decoding.Shared,
        "__init__",
        lambda self, *args, **options: (blocks.append(self), init(self, *args, **options))[1],
    )
    cut = Knockout(queries=(62, None), keys=(2, 50), heads=(0, 2))
    edits = [(cut,), (), (cut,), (), (), ()]

    def written(model: Model):
        free = model.generate(PROMPTS, LIMITS, end_ids=frozenset())
        under = model.ask(PROMPTS, None, 6, edits=edits)
        return [*free, *(a.generated for a in under)]

    on_device = written(on("emulated:0", family))
    assert len(blocks) == 2
    on_cpu = written(on("cpu", family))
    assert len(blocks) == 2, "a CPU decodes rows"
    for a, b in zip(on_device, on_cpu, strict=True):
        assert (a.ids, a.finish) == (b.ids, b.finish)
        assert a.gaps == pytest.approx(b.gaps, abs=1e-3)


def test_sequences_that_share_little_are_decoded_as_rows():
    emulated_devices.require()
    cache = KeyValues(200)
    cache.write(0, 0, *torch.zeros(2, 1, 2, 200, 8, device="emulated:0"))
    assert not decoding.Shared.serves(cache, [range(100), range(100, 200)])
    assert decoding.Shared.serves(
        cache, [range(100), [*range(99), 150], [*range(98), 160], [*range(97), 7]]
    )
