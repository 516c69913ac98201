"""Parameter counts: experts that a token is not sent to are idle."""

import pytest
from tiny_models import tiny

from faithscope.interp.size import size_of


def routed(hf) -> int:
    return sum(p.numel() for name, p in hf.named_parameters() if ".experts." in name)


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma3"])
def test_a_dense_model_uses_all_it_has(family):
    hf = tiny(family).hf
    size = size_of(hf)
    assert size.total == size.active == sum(p.numel() for p in hf.parameters())


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe", "gpt_oss"])
def test_two_of_four_experts_leave_half_of_them_idle(family):
    hf = tiny(family).hf
    size = size_of(hf)
    assert routed(hf) > 0
    assert size.total - size.active == routed(hf) // 2
