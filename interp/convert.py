"""Conversion of a GGUF file, dequantised once into a folder that transformers loads.

transformers reads the weights and rebuilds the tokenizer from the file's metadata. What it leaves
out, and would make a model quietly wrong, is corrected here, or refused with the reason: the split
of text before byte-pair merges, the tokens that end a turn, and scaled RoPE.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.interp.errors import UserError

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

RECIPE = 1
"""Version of the conversion, part of the cache key: raise it when `convert`'s output changes."""

_DIGIT_SPLITS = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"}
"""`tokenizer.ggml.pre` of vocabularies that see digits one by one, then GPT-2's split."""

_GPT2_SPLITS = {"gpt-2", "phi-2", "olmo", "mpt", "jais"}

_TURN_ENDS = ("<|im_end|>", "<end_of_turn>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>")


def convert(gguf: Path, folder: Path) -> None:
    """Write `gguf` as config, float32 safetensors and tokenizer into the new `folder`.

    Weights are float32, as the arithmetic of quantised blocks gives them; bfloat16 would halve the
    disk space and round the weights a second time, even for a user who loads them as float32.

    Raises:
        UserError: the gguf package is missing, or the file cannot be read faithfully.
    """
    try:
        import gguf as _used_by_transformers  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"reading {gguf.name} needs the gguf package: pip install 'faithscope[bundled]'"
        ) from error
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.integrations.gguf.reader import read_gguf_metadata

    with _readable(gguf):
        stated, tensors = read_gguf_metadata(str(gguf))
    _refuse_scaled_rope(stated, tensors, gguf)
    split = _split(stated, gguf)
    # transformers draws three progress bars here, even into a log file
    with _readable(gguf), redirect_stderr(io.StringIO()):
        model = AutoModelForCausalLM.from_pretrained(
            str(gguf.parent),
            gguf_file=gguf.name,
            dtype=torch.float32,
            quantization_config=GgufConfig(dequantize=True),
        )
        tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    if split is not None:
        tokenizer.backend_tokenizer.pre_tokenizer = split
    if ends := _turn_ends(tokenizer, stated):
        model.generation_config.eos_token_id = ends
    if hasattr(model.config, "quantization_config"):
        delattr(model.config, "quantization_config")
    with redirect_stderr(io.StringIO()):
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _check_split(tokenizer, AutoTokenizer.from_pretrained(folder), gguf)


@contextmanager
def _readable(gguf: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise UserError(
            f"{gguf}: not a GGUF file that transformers can read "
            f"({type(error).__name__}: {error}); is it complete, and of a supported architecture?"
        ) from error


def _refuse_scaled_rope(stated: dict[str, Any], tensors: tuple[str, ...], gguf: Path) -> None:
    architecture = stated["general.architecture"]
    factors = [name for name in tensors if name.startswith(("rope_freqs", "rope_factors"))]
    scaling = stated.get(f"{architecture}.rope.scaling.type", "none")
    # transformers reads the RoPE scaling of gpt-oss, and of no other architecture
    if architecture != "gpt-oss" and (factors or scaling != "none"):
        raise UserError(
            f"{gguf}: its RoPE is scaled ({', '.join(factors) or scaling}), which transformers "
            "does not read from a GGUF file, so every position would be a little wrong; "
            "load the original repository instead"
        )


def _split(stated: dict[str, Any], gguf: Path) -> PreTokenizer | None:
    """The split of text before merging; None if transformers sets it right by itself.

    transformers knows some of the names that a file may state, and takes GPT-2's split for all
    others, SmolLM's among them: "\\n\\n1" would be two line breaks where the model writes one
    token.
    """
    from tokenizers import pre_tokenizers
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    name = stated.get("tokenizer.ggml.pre")
    if stated.get("tokenizer.ggml.model") != "gpt2" or name in GGUF_PRE_TOKENIZER_SPLITS:
        return None
    by_gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name in _GPT2_SPLITS:
        return by_gpt2
    if name in _DIGIT_SPLITS:
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), by_gpt2])
    raise UserError(
        f"{gguf}: its tokenizer splits text in a way called {name!r}, which is not known here, "
        "so token ids would differ from those the model was trained on; "
        "load the original repository instead"
    )


def _check_split(before: Any, after: Any, gguf: Path) -> None:
    """Refuse a tokenizer whose class brings its own split at each load, whatever was saved."""
    text = "Step 1:\n\n12 + 345 = 357.  It's naïve;\r\n\tdef f(x): return -x\n"
    pieces = [t.backend_tokenizer.pre_tokenizer for t in (before, after)]
    if len({str(p.pre_tokenize_str(text) if p else None) for p in pieces}) > 1:
        raise UserError(
            f"{gguf}: transformers loads its tokenizer as {type(after).__name__}, which splits "
            "text otherwise than the file states; load the original repository instead"
        )


def _turn_ends(tokenizer: Any, stated: dict[str, Any]) -> list[int]:
    """Ids of the tokens that end a turn: those the file states, and the usual ones that it has."""
    named = (stated.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot"))
    special = {token.content: i for i, token in tokenizer.added_tokens_decoder.items()}
    usual = (special.get(token) for token in _TURN_ENDS)
    return list(dict.fromkeys(int(i) for i in (*named, *usual) if i is not None))
