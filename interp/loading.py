"""Loading of a model: weights, tokenizer, structure, checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.peft_utils import find_adapter_config_file

from faithscope.interp import (
    adapted,
    adapters,
    attention,
    flex,
    graphs,
    hub,
    prompts,
    sources,
    template_checks,
    verify,
)
from faithscope.interp.checkpoint import bounded_building, check_counts, check_unused
from faithscope.interp.errors import UserError
from faithscope.interp.formats import detect_format
from faithscope.interp.language import Language
from faithscope.interp.marks import StatedMarks
from faithscope.interp.memory import is_out_of_memory
from faithscope.interp.model import Model
from faithscope.interp.packed import Packed
from faithscope.interp.placement import devices_of, is_offloaded
from faithscope.interp.structure import Structure, looks_ahead, probe

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
_STRATEGIES = ("auto", "balanced", "balanced_low_0", "sequential")
"""Values of `device_map` in transformers, besides the name of a device and a mapping."""


def load(
    name: str,
    *,
    dtype: Dtype = "auto",
    device: str = "auto",
    revision: str | None = None,
    quantize: Literal["8bit", "4bit"] | None = None,
    device_map: str | dict[str, Any] | None = None,
    trust_remote_code: bool = False,
    marks: StatedMarks | None = None,
    verify_model: bool = True,
) -> Model:
    """Load `name` and check that it behaves.

    Args:
        name: a hub id (`Qwen/Qwen3-8B`), a local folder, the folder of a PEFT adapter, a GGUF
            file, `bundled:NAME`, or another registered scheme (`planted:faithful`).
        dtype: `auto` is float32 on a CPU and bfloat16 on an accelerator.
        device: `auto` takes cuda, then mps, then cpu.
        revision: revision of a hub repository; a commit hash is reproducible, a branch may move. Of
            an adapter it is the base model's.
        quantize: 8- or 4-bit weights through bitsandbytes (extra `quant`).
        device_map: `auto` lets accelerate spread layers over the devices there are, and keep what
            does not fit in the CPU's memory or on disk; also any other value that transformers
            takes.
        marks: the marks of the model's reasoning, if its chat template does not show them or shows
            others (`interp.formats.stated_format`).
        verify_model: run the checks of `interp.verify`; they take a few short forwards.

    Raises:
        UserError: the weights cannot be found, read, placed as asked, or run there; config.json
            describes another model than the files hold; or a check fails.
    """
    if (folder := adapters.adapter_folder(name)) is not None:
        how: dict[str, Any] = {
            "dtype": dtype,
            "device": device,
            "revision": adapters.revision_of(folder, revision),
            "quantize": quantize,
            "device_map": device_map,
            "trust_remote_code": trust_remote_code,
        }
        return _load_adapter(name, folder, how, marks, verify_model)
    source = _source(name, revision)
    where = str(source.location)
    at = device_named(device)
    if isinstance(device_map, str) and device_map not in _STRATEGIES:
        device_named(device_map)
    config = _config(name, where, source.revision, trust_remote_code)
    if type(config) not in AutoModelForCausalLM._model_mapping and not hasattr(config, "auto_map"):
        raise UserError(
            f"model {name!r}: transformers {transformers.__version__} has no causal language model "
            f"of the family {config.model_type!r}; choose a model that continues text"
        )
    options: dict[str, Any] = {
        "dtype": _dtype(dtype, at),
        "revision": source.revision,
        "trust_remote_code": trust_remote_code,
    }
    if quantize is not None:
        config_of_weights = _quantization(quantize, options["dtype"])
        options |= {"quantization_config": config_of_weights, "device_map": device_map or at}
    elif device_map is not None:
        options["device_map"] = device_map
    with _reading(name, where), bounded_building(name):
        hf, info = AutoModelForCausalLM.from_pretrained(  # pyright: ignore
            where, config=config, output_loading_info=True, **options
        )
        tokenizer = AutoTokenizer.from_pretrained(
            where, revision=source.revision, trust_remote_code=trust_remote_code
        )
        if quantize is None and device_map is None:
            hf = hf.to(torch.device(at))  # pyright: ignore
    if missing := sorted(info["missing_keys"]):
        # transformers would initialise missing weights at random and only warn
        raise UserError(
            f"model {name!r}: {where} lacks {len(missing)} weights that {type(hf).__name__} has "
            f"(first: {missing[0]}); get its files again"
        )
    unused = check_unused(name, where, hf, info["unexpected_keys"], refuse=verify_model)
    model = wrap(
        hf,
        tokenizer,
        name=name,
        revision=source.revision,
        marks=marks,
        verify_model=verify_model,
    )
    model.files = Path(where) if Path(where).is_dir() else None
    model.cautions = (*unused, *model.cautions)
    return model


def _load_adapter(
    name: str, folder: Path, how: Mapping[str, Any], marks: StatedMarks | None, verify_model: bool
) -> Model:
    """Load the base model of an adapter in `folder`, and put the adapter on it.

    Args:
        how: how the base model is loaded, by parameters of `load`.

    Raises:
        UserError: PEFT is not installed, or as `load` and `adapted.put_on`.
    """
    adapters.import_peft(f"model {name!r} is an adapter, which")
    apart: tuple[str, ...] = ()
    while True:
        base = load(adapters.base_of(folder), **how, verify_model=False)
        facts = adapted.facts(base, folder)
        attention.hand_back(base.hf)
        fault, cautions = adapted.put_on(base, folder, merge=not apart)
        if fault is None:
            break
        apart = (f"its adapter runs beside the weights and is not merged into them: {fault}",)
        del base
    tokenizer = base.tokenizer
    if (own := adapters.tokenizer_of(folder)) is not None:
        with _reading(name, str(own)):
            trusted = how["trust_remote_code"]
            tokenizer = AutoTokenizer.from_pretrained(own, trust_remote_code=trusted)
    model = wrap(base.hf, tokenizer, name=name, marks=marks, verify_model=verify_model)
    model.adapter = facts
    model.cautions = (*base.cautions, *cautions, *apart, *model.cautions)
    return model


def load_language(
    name: str,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    marks: StatedMarks | None = None,
) -> Language:
    """Tokenizer, reasoning format and end tokens of `name`, without its weights.

    Args:
        name, revision, marks: as for `load`.

    Raises:
        UserError: the files cannot be found or read, or the chat template does not hold a question.
    """
    folder, base = adapters.adapter_folder(name), name
    if folder is not None:
        base, revision = adapters.base_of(folder), adapters.revision_of(folder, revision)
    source = _source(base, revision)
    where = str(source.location)
    options: dict[str, Any] = {
        "revision": source.revision,
        "trust_remote_code": trust_remote_code,
    }
    config = _config(name, where, **options)
    with _reading(name, where):
        own = None if folder is None else adapters.tokenizer_of(folder)
        tokenizer = (
            AutoTokenizer.from_pretrained(where, **options)
            if own is None
            else AutoTokenizer.from_pretrained(own, trust_remote_code=trust_remote_code)
        )
        try:
            defaults = GenerationConfig.from_pretrained(where, **options)
        except OSError:
            # as transformers does for a model without a generation_config.json
            defaults = GenerationConfig.from_model_config(config)
    fmt = detect_format(tokenizer, config.model_type, marks, name)
    ends = prompts.end_ids(tokenizer, defaults)
    return Language(
        name,
        tokenizer,
        fmt,
        ends,
        where if folder is None else str(folder),
        source.revision or getattr(config, "_commit_hash", None),
        getattr(config.get_text_config(), "max_position_embeddings", None),
        template_checks.check_template(name, tokenizer, fmt, ends),
    )


def _config(name: str, where: str, revision: str | None, trust_remote_code: bool) -> Any:
    with _reading(name, where):
        raw, _ = PretrainedConfig.get_config_dict(where, revision=revision)
        check_counts(name, raw)
        return AutoConfig.from_pretrained(
            where, revision=revision, trust_remote_code=trust_remote_code
        )


def _source(name: str, revision: str | None) -> sources.Source:
    """The source of a model's weights.

    Raises:
        UserError: as `sources.resolve`; the weights are on the hub alone, which cannot be reached;
            or an adapter lies beside them.
    """
    source = sources.resolve(name, revision)
    on_hub = source.kind == "hub" and not hub.is_cached(name, revision)
    if on_hub and (problem := hub.unreachable()):
        raise UserError(
            f"model {name!r} is not in the cache, and {problem}; give a folder with its weights, "
            f"or fetch it where there is a network: hf download {name}"
        )
    if find_adapter_config_file(str(source.location), revision=source.revision) is not None:
        # transformers would put it on a base model, and only warn where it does not fit
        raise UserError(
            f"model {name!r} has {adapters.FILE} beside its own files, so that it is not clear "
            "which is meant: give a folder that holds the whole model alone, or one that holds the "
            "adapter alone (no config.json)"
        )
    return source


def _reading(name: str, where: str) -> AbstractContextManager[None]:
    """A context that turns errors of damaged or absent files into one line that names the model."""
    again = f"; are the files in {where} whole? get them again" if Path(where).exists() else ""
    return _in_one_line(name, "read", again)


@contextmanager
def _in_one_line(name: str, cannot_be: str, remedy: str) -> Iterator[None]:
    """A context that turns any error of the libraries below into a `UserError` with the model's
    name.

    Each library has errors of its own (safetensors, tokenizers, json, torch, accelerate), some of
    them plain `Exception`.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:400]
        if is_out_of_memory(error):
            raise UserError(
                f"model {name!r} does not fit into memory ({reason}); take dtype bfloat16, "
                "quantize, or device_map: auto, with more or larger devices"
            ) from error
        # transformers and accelerate ask for an offload folder by a parameter of such a name
        if "offload_" in reason:
            raise UserError(
                f"model {name!r} does not fit into the memory of the devices and of the CPU, and "
                "part of its weights would have to be written to disk anew; quantize, or take "
                "dtype bfloat16, or more or larger devices"
            ) from error
        if "ignore_mismatched_sizes" in reason:
            reason = "its weights have other shapes than config.json describes (listed above)"
        kind = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
        raise UserError(f"model {name!r} cannot be {cannot_be}: {kind}{reason}{remedy}") from error


def wrap(
    hf: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    name: str,
    revision: str | None = None,
    marks: StatedMarks | None = None,
    verify_model: bool = True,
) -> Model:
    """A `Model` over a transformers model that is already in memory.

    If a packed forest serves the model, faithscope's attention implementation is set over the
    model's kernel, and hands every call to that kernel outside packed runs.
    """
    attention.take_over(hf)
    hf.eval().requires_grad_(False)
    size = hf.get_input_embeddings().weight.shape[0]  # pyright: ignore
    if len(tokenizer) > size:
        raise UserError(
            f"{name}: the tokenizer has {len(tokenizer)} tokens but the model embeds {size}; "
            "the two do not belong together"
        )
    remedy = (
        f" ({type(hf).__name__}, transformers {transformers.__version__}, on token ids alone); "
        "complete its config.json, or take another model"
    )
    if len(devices_of(hf)) > 1 or is_offloaded(hf):
        remedy += ", or load it on one device (device_map: null)"
    with _in_one_line(name, "run", remedy):
        ahead = looks_ahead(hf)
    if ahead:
        raise UserError(
            f"{name}: {type(hf).__name__} looks ahead as it is configured: later tokens change "
            "the logits of earlier ones, so it is no causal language model; set is_decoder: true "
            "in the config.json of an encoder, or take another model"
        )
    with _in_one_line(name, "run", remedy):
        structure = probe(hf)
    model = Model(
        name=name,
        hf=hf,
        tokenizer=tokenizer,
        structure=structure,
        format=detect_format(tokenizer, hf.config.model_type, marks, name),
        end_ids=prompts.end_ids(tokenizer, hf.generation_config),
        revision=revision or getattr(hf.config, "_commit_hash", None),
        tree_reason=_tree_reason(hf, structure),
    )
    model.flex_reason = flex.reason_against(hf, model.device)
    model.graph_reason = graphs.reason_against(model)
    if model.device.type != "cpu":
        model.chunk, model.token_budget = 16_384, 131_072
    else:
        model.packed = Packed(hf)
    if not model.supports_tree:
        attention.hand_back(hf)
    if verify_model:
        model.cautions = template_checks.check_template(
            name, tokenizer, model.format, model.end_ids
        )
        with _in_one_line(name, "run", remedy):
            model.checks = verify.verify(model)
    return model


def _tree_reason(hf: PreTrainedModel, structure: Structure) -> str | None:
    config = hf.config.get_text_config()
    if structure.attention_calls > structure.attention_layers:
        return (
            f"{config.model_type} calls attention {structure.attention_calls} times in "
            f"{structure.attention_layers} layers"
        )
    if structure.attention_layers < structure.n_layers:
        missing = structure.n_layers - structure.attention_layers
        return (
            f"{missing} of {structure.n_layers} layers of {config.model_type} do not go through "
            "transformers' attention interface (recurrent, linear or convolutional layers, or an "
            "older implementation)"
        )
    if getattr(config, "attn_temperature_tuning", False):
        return f"{config.model_type} scales queries by their place in a forward, not by position"
    if structure.mask_is_read:
        return f"{config.model_type} chooses keys by an index of its own, within the attention mask"
    if other := [n for n, reach in structure.reaches.items() if reach is None]:
        return (
            f"the attention mask of {len(other)} layers of {config.model_type} (first: {other[0]}) "
            "is neither causal nor one of windows or chunks"
        )
    if not structure.takes_positions:
        return f"the forward of {type(hf).__name__} takes no position_ids"
    return None


def held_as(dtype: str, device: str) -> str:
    """The number type of weights that are loaded with these settings of `load`, such as
    `bfloat16`."""
    return str(_dtype(dtype, device_named(device))).removeprefix("torch.")


def device_named(device: str) -> str:
    """The device that `device` of `load` means; `auto` is the best of this machine.

    Raises:
        UserError: the device cannot be used.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        if torch.empty(0, device=device).is_meta:
            raise UserError(f"device {device!r} holds no weights; try 'auto'")
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device {device!r} is not usable here: {error}; try 'auto'") from error
    return device


def _dtype(dtype: str, device: str) -> torch.dtype:
    if dtype == "auto":
        return torch.float32 if device == "cpu" else torch.bfloat16
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if dtype not in known:
        raise UserError(f"unknown dtype {dtype!r}; use auto, {', '.join(known)}")
    return known[dtype]


def _quantization(quantize: str, dtype: torch.dtype) -> Any:
    """The bitsandbytes config of `quantize`, whose layers compute in `dtype`.

    8-bit layers run without LLM.int8's separate outlier columns. Which columns these are depends on
    all tokens of a forward, so that later tokens would change the logits of earlier ones, and a
    branch would be read otherwise in a pack than alone.
    """
    try:
        import bitsandbytes  # noqa: F401  # pyright: ignore
    except ImportError as error:
        raise UserError(
            f"quantize={quantize!r} needs bitsandbytes: pip install 'faithscope[quant]'; or load "
            "the weights as they are stored: quantize=None, of a config --set model.quantize=null"
        ) from error
    from transformers import BitsAndBytesConfig

    if quantize == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=0.0)
    if quantize == "4bit":
        return BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
        )
    raise UserError(f"unknown quantize {quantize!r}; use '8bit' or '4bit'")
