"""Natural-language autoencoders of a tiny model, laid out as the released checkpoints are."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import torch
import yaml
from safetensors.torch import save_file

from faithscope.interp.model import Model

PROMPT = "What is <concept>{injection_char}</concept>?"
TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% endfor %}\nWell: "


def checkpoints(model: Model, folder: Path) -> tuple[Path, Path]:
    """A verbaliser of the model's first layer, and a reconstructor, both the model itself."""
    tokenizer = copy(model.tokenizer)
    tokenizer.chat_template = tokenizer.chat_template or TEMPLATE
    (marker,) = model.encode("x")
    message = [{"role": "user", "content": PROMPT.replace("{injection_char}", "x")}]
    ids = tokenizer.apply_chat_template(
        message, tokenize=True, add_generation_prompt=True, return_dict=False
    )
    (at,) = [i for i, token in enumerate(ids) if token == marker]
    width = model.hf.config.hidden_size
    told = {
        "kind": "nla_model",
        "d_model": width,
        "extraction": {"injection_scale": 3.0, "layer_index": 0},
        "tokens": {
            "injection_char": "x",
            "injection_token_id": marker,
            "injection_left_neighbor_id": ids[at - 1],
            "injection_right_neighbor_id": ids[at + 1],
        },
        "prompt_templates": {"av": PROMPT},
    }
    back = told | {"prompt_templates": {"ar": "Text: {explanation} End"}}
    av, ar = folder / "av", folder / "ar"
    for path, meta in ((av, told), (ar, back)):
        model.hf.save_pretrained(path)
        tokenizer.save_pretrained(path)
        (path / "nla_meta.yaml").write_text(yaml.safe_dump(meta))
    torch.manual_seed(0)
    save_file({"weight": torch.randn(width, width)}, ar / "value_head.safetensors")
    return av, ar
