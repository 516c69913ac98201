"""Natural-language autoencoders: activations put into words, and words turned back into them.

Source: Fraser-Taliente et al. 2026 (Natural Language Autoencoders Produce Unsupervised Explanations
of LLM Activations, transformer-circuits.pub/2026/nla); the layout of checkpoints is that of
`kitft/natural_language_autoencoders`, the code is our own. A verbaliser is a language model that
reads a vector as the embedding of one token of a fixed prompt and writes what it stands for; a
reconstructor is one of the first layers of the base model with a linear head, which reads that text
and gives a vector. Both hold all that their use depends on in `nla_meta.yaml`.

The vector is the stream after block K of the base model, counted from 0 (`extraction.layer_index`),
which is our layer K + 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from faithscope.interp import hub
from faithscope.interp.documents import yaml_of
from faithscope.interp.errors import UserError

SIDECAR, HEAD = "nla_meta.yaml", "value_head.safetensors"
_EXPLANATION = re.compile(r"<explanation>\s*(.*?)\s*(?:</explanation>|$)", re.DOTALL)
_NORMS = ("norm", "final_layernorm", "ln_f")
"""Names of a model's last norm, by architecture."""


class Description(NamedTuple):
    """What a verbaliser wrote of a vector."""

    text: str
    """The explanation, without its tags; all of the text if it has none."""
    cut: bool
    """Whether the text reached its limit before its end."""


@dataclass(frozen=True, eq=False)
class Verbaliser:
    """A loaded verbaliser."""

    hf: Any
    tokenizer: Any
    ids: tuple[int, ...]
    """The prompt, with the token that stands for the vector."""
    place: int
    """Index in `ids` of that token."""
    scale: float | None
    """L2 norm that a vector is given; None leaves it as it is."""
    layer: int | None
    """Layer of the base model whose stream it reads, from 1; None if its files do not say."""

    @property
    def width(self) -> int:
        return self.hf.get_input_embeddings().weight.shape[1]

    @torch.inference_mode()
    def describe(
        self, vectors: Float[Tensor, "N D"], max_new_tokens: int, batch: int = 16
    ) -> list[Description]:
        """The greedy description of every vector.

        Raises:
            UserError: the vectors have another width than the model.
            FloatingPointError: a vector is not finite.
        """
        if vectors.shape[1] != self.width:
            raise UserError(
                f"the verbaliser reads vectors of {self.width:,} numbers, and the model's states "
                f"have {vectors.shape[1]:,}; name the verbaliser of this model"
            )
        if not torch.isfinite(vectors).all():
            raise FloatingPointError("an activation is not finite")
        table = self.hf.get_input_embeddings()
        device = table.weight.device
        prompt = table(torch.tensor([self.ids], device=device))
        end = self.tokenizer.eos_token_id
        made = []
        for some in vectors.split(batch):
            embeds = prompt.repeat(len(some), 1, 1)
            embeds[:, self.place] = _scaled(some.to(device), self.scale).to(embeds.dtype)
            ids = self.hf.generate(
                inputs_embeds=embeds,
                attention_mask=torch.ones(embeds.shape[:2], dtype=torch.long, device=device),
                max_new_tokens=max_new_tokens,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                pad_token_id=end,
            )
            made += [self._read(row) for row in ids.tolist()]
        return made

    def _read(self, ids: Sequence[int]) -> Description:
        stops = {*_listed(self.hf.generation_config.eos_token_id), self.tokenizer.eos_token_id}
        end = next((i for i, token in enumerate(ids) if token in stops), None)
        text = self.tokenizer.decode(ids[:end], skip_special_tokens=False)
        found = _EXPLANATION.search(text)
        return Description((found.group(1) if found else text).strip(), end is None)


@dataclass(frozen=True, eq=False)
class Reconstructor:
    """A loaded reconstructor: the first layers of the base model, and a linear head."""

    hf: Any
    tokenizer: Any
    head: Float[Tensor, "D D"]
    template: str

    @torch.inference_mode()
    def reconstruct(self, texts: Sequence[str]) -> Float[Tensor, "N D"]:
        """The vector that every text stands for, on the CPU in float32."""
        made = []
        for text in texts:
            ids = self.tokenizer(self.template.format(explanation=text))["input_ids"]
            at = torch.tensor([ids], device=self.head.device)
            state = self.hf.model(input_ids=at, use_cache=False).last_hidden_state[0, -1]
            made.append((self.head @ state.to(self.head.dtype)).float().cpu())
        return torch.stack(made)


@lru_cache(maxsize=1)
def load_verbaliser(name: str, dtype: str, device: str) -> Verbaliser:
    """The verbaliser in a folder, or of a name on the hub; it stays loaded.

    Args:
        dtype: name of a dtype of torch.

    Raises:
        UserError: it cannot be had, has no `nla_meta.yaml`, or its tokenizer does not write the
            prompt that this file says.
    """
    folder, meta = _opened(name)
    tokens = _part(meta, "tokens", folder)
    template = _template(meta, ("av", "actor"), folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    try:
        char, marker = str(tokens["injection_char"]), int(tokens["injection_token_id"])
        around = tuple(int(tokens[f"injection_{side}_neighbor_id"]) for side in ("left", "right"))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{folder / SIDECAR}: tokens has no usable {error}") from None
    message = [{"role": "user", "content": template.replace("{injection_char}", char)}]
    ids = tokenizer.apply_chat_template(
        message, tokenize=True, add_generation_prompt=True, return_dict=False
    )
    places = [
        i for i in range(1, len(ids) - 1) if ids[i] == marker and (ids[i - 1], ids[i + 1]) == around
    ]
    if len(places) != 1:
        raise UserError(
            f"{folder}: the prompt of {SIDECAR} has the token {marker} between {around[0]} and "
            f"{around[1]} {len(places)} times, not once; the tokenizer is not the one that the "
            "verbaliser was trained with"
        )
    extraction = meta.get("extraction") or {}
    return Verbaliser(
        _weights(folder, dtype, device),
        tokenizer,
        tuple(ids),
        places[0],
        _scale(extraction.get("injection_scale", "sqrt_d_model"), meta, folder),
        _layer(meta),
    )


@lru_cache(maxsize=1)
def load_reconstructor(name: str, dtype: str, device: str) -> Reconstructor:
    """The reconstructor in a folder, or of a name on the hub; it stays loaded.

    Raises:
        UserError: it cannot be had, has no `nla_meta.yaml` or no head, or no last norm is found.
    """
    folder, meta = _opened(name)
    if not (folder / HEAD).is_file():
        raise UserError(f"{folder}: has no {HEAD}; give the reconstructor, not the verbaliser")
    template = _template(meta, ("ar", "critic"), folder)
    hf = _weights(folder, dtype, device)
    norm = next((n for n in _NORMS if hasattr(hf.model, n)), None)
    if norm is None:
        raise UserError(f"{folder}: {type(hf).__name__} has no last norm of a known name")
    setattr(hf.model, norm, torch.nn.Identity())
    head = load_file(folder / HEAD)["weight"].to(device, hf.dtype)
    return Reconstructor(hf, AutoTokenizer.from_pretrained(folder), head, template)


def cosines(one: Float[Tensor, "N D"], other: Float[Tensor, "N D"]) -> list[float]:
    """The cosine of every pair of rows."""
    both = one.float().cpu(), other.float().cpu()
    return torch.nn.functional.cosine_similarity(*both, dim=1).tolist()


def _opened(name: str) -> tuple[Path, dict[str, Any]]:
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = hub.bring(name)
    try:
        meta = yaml_of((folder / SIDECAR).read_text("utf-8"))
    except OSError:
        raise UserError(
            f"{name}: has no {SIDECAR}, so it is no natural-language autoencoder; those that were "
            "released are kitft/nla-…-av (verbalisers) and -ar (reconstructors)"
        ) from None
    if not isinstance(meta, dict):
        raise UserError(f"{folder / SIDECAR}: is no mapping; fetch the checkpoint anew")
    return folder, meta


def _part(meta: dict[str, Any], key: str, folder: Path) -> dict[str, Any]:
    part = meta.get(key)
    if not isinstance(part, dict):
        raise UserError(f"{folder / SIDECAR}: has no {key}; fetch the checkpoint anew")
    return part


def _template(meta: dict[str, Any], names: Sequence[str], folder: Path) -> str:
    templates = _part(meta, "prompt_templates", folder)
    found = next((templates[name] for name in names if name in templates), None)
    if not isinstance(found, str):
        raise UserError(
            f"{folder / SIDECAR}: prompt_templates has no {names[0]}; a verbaliser has av, a "
            "reconstructor ar: the other one may have been given"
        )
    return found


def _layer(meta: dict[str, Any]) -> int | None:
    """Our number of the layer, one more than that of the block whose output it is."""
    index = (meta.get("extraction") or {}).get("layer_index")
    return index + 1 if isinstance(index, int) else None


def _scale(raw: Any, meta: dict[str, Any], folder: Path) -> float | None:
    if raw in (None, "raw", "none"):
        return None
    try:
        return math.sqrt(meta["d_model"]) if raw == "sqrt_d_model" else float(raw)
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{folder / SIDECAR}: injection_scale {raw!r} is no number") from None


def _scaled(vectors: Float[Tensor, "N D"], scale: float | None) -> Float[Tensor, "N D"]:
    vectors = vectors.float()
    if scale is None:
        return vectors
    return vectors * (scale / vectors.norm(dim=-1, keepdim=True).clamp_min(1e-12))


def _weights(folder: Path, dtype: str, device: str) -> Any:
    hf: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    return hf.to(device).eval()


def _listed(ids: int | Sequence[int] | None) -> Sequence[int]:
    return () if ids is None else (ids,) if isinstance(ids, int) else ids
