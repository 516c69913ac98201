"""Chat templates and weights that come with a model's files, and with which something is wrong."""

from __future__ import annotations

import copy

import pytest
import torch

from faithscope.interp import prompts
from faithscope.interp.errors import UserError
from faithscope.interp.loading import load, wrap
from faithscope.interp.model import Model

TEMPLATES = [
    ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "end"),
    ("{% for i in range(10 ** 12) %}{% endfor %}", "Range too big"),
    ("{{ 1 // 0 }}", "zero"),
]


@pytest.mark.parametrize(("template", "why"), TEMPLATES)
def test_a_template_that_does_not_end_or_fails_is_refused(
    llama: Model, monkeypatch: pytest.MonkeyPatch, template: str, why: str
) -> None:
    monkeypatch.setattr(prompts, "TEMPLATE_SECONDS", 0.5)
    monkeypatch.setattr(llama.tokenizer, "chat_template", template)
    with pytest.raises(UserError, match=f"chat template .*{why}"):
        llama.prompt("2 + 2?")


def test_weights_that_are_no_numbers_are_named(llama: Model) -> None:
    broken = copy.deepcopy(llama.hf)
    broken.get_parameter("model.layers.0.mlp.down_proj.weight").data[0] = torch.nan
    with pytest.raises(UserError, match=r"1 of its weights hold NaN .*layers\.0\.mlp\.down"):
        wrap(broken, llama.tokenizer, name="broken")


def test_no_weights_go_to_a_device_that_holds_none() -> None:
    with pytest.raises(UserError, match="device 'meta' holds no weights"):
        load("bundled:smollm2-135m", device="meta")
