"""Families as users load them: saved to disk, read by `interp.load`."""

import pytest
import torch
from tiny_models import CONFIGS, NO_TREE, tiny

import interp


@pytest.mark.parametrize("family", [*CONFIGS, *NO_TREE])
def test_a_family_loads_from_its_folder(family: str, tmp_path):
    # some families' tokenizer classes add tokens of their own
    made = tiny(family, vocab_size=300)
    made.hf.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    model = interp.load(str(tmp_path), dtype="float32", device="cpu")
    assert model.supports_tree == (family in CONFIGS)
    ids = tuple(range(2, 40))
    (read,) = model.run([interp.Branch(ids)]).branches
    with torch.inference_mode():
        plain = made.hf(torch.tensor([ids])).logits[0, -1:]
    assert float((read.logits - plain).abs().max()) < 1e-4
