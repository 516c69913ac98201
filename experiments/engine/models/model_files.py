"""The files of a model that tell what its forwards cost, as far as they are at hand; no weights are
read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from faithscope.experiments.engine.models.at_hand import is_of_hub
from faithscope.interp.documents import json_of
from faithscope.interp.schemes import SCHEMES
from faithscope.interp.sources import PACKAGED, converted
from faithscope.probes.probe import Size

CHARACTERS_PER_TOKEN = 4
"""Guess of a token's length where the model's tokenizer is not at hand."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model that tell what its forwards cost."""

    folder: Path | None

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The model's config, of its text part; empty if it is not at hand, or damaged, which
        loading the model says."""
        path = self.folder and self.folder / "config.json"
        if not path or not path.is_file():
            return {}
        try:
            values = json_of(path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return values.get("text_config", values) if isinstance(values, dict) else {}

    def size(self, **of_trace: int) -> Size:
        """The size of a trace and this model; a guess where the model's config is not at hand."""
        c = self.config
        own = {
            "layers": c.get("num_hidden_layers", c.get("n_layer")),
            "heads": c.get("num_attention_heads", c.get("n_head")),
            "width": c.get("hidden_size", c.get("n_embd")),
        }
        return Size(**of_trace, **{name: int(x) for name, x in own.items() if x})

    @cached_property
    def _tokenizer(self) -> Any:
        path = self.folder and self.folder / "tokenizer.json"
        if not path or not path.is_file():
            return None
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(path))

    @property
    def counts(self) -> bool:
        """Whether texts are counted by the model's own tokenizer."""
        return self._tokenizer is not None

    def count(self, text: str) -> int:
        """Number of tokens of a text."""
        if self._tokenizer is None:
            return -(-len(text) // CHARACTERS_PER_TOKEN)
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def nodes(self, labels: Iterable[str], *, whole: bool) -> int:
        """Number of tokens that are run to score labels, each stretch once: all but the last of
        each, or all of each if what follows it is read too (`whole`), as it is of numbers."""
        if self._tokenizer is None:
            return sum(self.count(label) - 1 + whole for label in labels)
        ids = [self._tokenizer.encode(x, add_special_tokens=False).ids for x in labels]
        return len({tuple(x[:n]) for x in ids for n in range(1, len(x) + whole)})

    def token_bytes(self, bytes_per_number: int) -> int | None:
        """Bytes of the keys and values of one token; None without a config that tells."""
        c = self.config
        heads = c.get("num_attention_heads", c.get("n_head"))
        layers = c.get("num_hidden_layers", c.get("n_layer"))
        width = c.get("hidden_size", c.get("n_embd"))
        if not (heads and layers and width):
            return None
        of_head = c.get("head_dim") or width // heads
        return 2 * layers * (c.get("num_key_value_heads") or heads) * of_head * bytes_per_number

    @property
    def parameters(self) -> int | None:
        """Number of parameters, by the size of the weights' files; None if they are not at hand."""
        files = list(self.folder.glob("*.safetensors")) if self.folder else []
        stored = str(self.config.get("dtype", self.config.get("torch_dtype", "float32")))
        return sum(f.stat().st_size for f in files) // (4 if "32" in stored else 2) or None


@cache
def files_of(model: str) -> ModelFiles:
    """The files of a model by its name, as far as they are at hand."""
    scheme, _, rest = model.partition(":")
    if scheme == "bundled" and rest in PACKAGED:
        return ModelFiles(converted(rest))
    if scheme in SCHEMES:
        return ModelFiles(SCHEMES[scheme].locate(rest))
    path = Path(model).expanduser()
    if path.is_dir():
        return ModelFiles(path)
    if not is_of_hub(model):
        return ModelFiles(None)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        found = None  # loading says what is wrong with the name
    return ModelFiles(Path(found).parent if isinstance(found, str) else None)
