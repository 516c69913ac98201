"""A base model with an adapter: PEFT puts it on, and what it put on is compared with the files.

PEFT warns of an adapter whose tensors fit in part, and says nothing of tensors that fit nowhere;
both would be measured as the base model under the adapter's name. The adapter is then merged into
the base model's weights where these are plain, so that every reading works on it as on any other
model. It stays a set of modules of its own over quantised weights, and where merging would change
what it computes.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from faithscope.interp import adapters
from faithscope.interp.errors import UserError
from faithscope.interp.fingerprint import folder_fingerprint
from faithscope.interp.model import Model
from faithscope.interp.noise import size
from faithscope.interp.reference import Noise, Tree, forward, times

SOUND = 10
"""Largest sound difference of merged logits from unmerged ones, in multiples of the rounding noise;
adapters of random weights show 0.6 to 2."""


def weights_of(model: Model) -> str | None:
    """What tells a model's weights from others of the same name: the fingerprint of its files, or
    its commit on the hub; None of a model that was built in memory."""
    if model.files is None:
        return model.revision
    return folder_fingerprint(model.files, ("safetensors", "bin"))


def facts(base: Model, folder: Path) -> dict[str, str]:
    """What a run records of an adapter.

    Raises:
        UserError: the adapter records that it was trained on other weights than `base` has.
    """
    weights = weights_of(base)
    noted = folder / adapters.TRAINED_ON
    recorded = adapters.json_of(noted).get("weights") if noted.is_file() else None
    if recorded not in (None, weights):
        raise UserError(
            f"adapter {str(folder)!r} was trained on other weights than {base.name!r} has now: "
            f"{noted.name} records {recorded}, and they are {weights}; name the folder or revision "
            f"with the right ones under {adapters.BASE} of {adapters.FILE}"
        )
    return {
        "base model": base.name,
        "weights of the base model": str(weights),
        "files of the adapter": folder_fingerprint(folder),
        "version of peft": version("peft"),
    }


def put_on(base: Model, folder: Path, *, merge: bool = True) -> tuple[str | None, tuple[str, ...]]:
    """Put an adapter on a base model, in place; it is merged if `merge` and the weights are plain.

    Returns:
        Why the merged weights are not the adapter's, or None; and cautions. In the first case
        `base` is spoilt: load it again, and do not merge.

    Raises:
        UserError: the adapter does not fit the base model, whole and without remainder.
    """
    peft = adapters.import_peft("an adapter")
    hf, tree = base.hf, Tree.of(base, 0)

    def logits() -> Tensor:
        return forward(base, [tree.chain.ids], tree.chain.ask)[0]

    before = logits()
    tied = hf.get_input_embeddings(), hf.get_output_embeddings()
    with warnings.catch_warnings():
        # PEFT warns of what is checked here
        warnings.simplefilter("ignore")
        adapted = _injected(peft, base, folder)
        plain = tree.plain[tree.chain.ids]
        if before.isfinite().all() and not plain.isfinite().all():
            reason = "logits are NaN or infinite with it; its files are damaged: get them again"
            raise _misfit(base, folder, reason)
        changed = size(before - plain).median()
        cautions = (
            ()
            if changed
            else ("its adapter changes nothing on a short text: it reads as the base model does",)
        )
        if not merge or getattr(hf, "is_quantized", False):
            return None, cautions
        if tied != (hf.get_input_embeddings(), hf.get_output_embeddings()):
            _untie(hf)
        try:
            adapted.merge_and_unload()
        except Exception as error:
            raise _misfit(base, folder, f"it cannot be merged: {_line(error)}") from error
    gap = Noise.of(logits() - plain)
    if not gap.most <= SOUND * tree.noise.most:
        noise = times(gap.most, tree.noise.most)
        return f"merged logits differ by {noise:.3g} times the rounding noise", cautions
    if 2 * gap.middle > changed:
        return f"merging in {base.dtype} loses its small changes of weights", cautions
    return None, cautions


def _injected(peft: Any, base: Model, folder: Path) -> Any:
    """The base model with PEFT's modules in it, which hold all tensors of the adapter's files."""
    hf = base.hf
    adapters.check_patterns(folder, (name for name, _ in hf.named_modules()))
    try:
        config = peft.PeftConfig.from_pretrained(str(folder))
        _check_config(base, folder, config)
        config.inference_mode = True
        adapted = peft.PeftModel(hf, config)
        _check_alphas(base, folder, config)
        names = getattr(hf, "_checkpoint_conversion_mapping", {})
        loaded = adapted.load_adapter(str(folder), "default", key_mapping=names)
        missing, left = set(loaded.missing_keys), sorted(loaded.unexpected_keys)
        # some kinds hold a tensor that all layers share under the name of each
        state = adapted.state_dict()
        held = {state[name].data_ptr() for name in state.keys() - missing}
        missing = {name for name in missing if state[name].data_ptr() not in held}
        if getattr(config, "bias", "none") != "none":
            # PEFT reports no missing bias of the base model
            own = peft.get_peft_model_state_dict(adapted, save_embedding_layers=False)
            biases = {name for name in own if name.endswith(".bias")}
            missing |= biases - set(peft.utils.load_peft_weights(str(folder), device="cpu"))
    except UserError:
        raise
    except Exception as error:  # PEFT, safetensors and torch have errors of their own
        raise _misfit(base, folder, _line(error)) from error
    if missing:
        first = min(missing)
        raise _misfit(base, folder, f"its files lack {len(missing)} tensors (first: {first})")
    if left:
        count = f"its files hold {len(left)} tensors that fit nowhere (first: {left[0]})"
        raise _misfit(base, folder, f"{count} as {adapters.FILE} describes it")
    return adapted


def _check_config(base: Model, folder: Path, config: Any) -> None:
    """Check what PEFT takes without a word: keys that it does not know, prompts in place of
    weights, and ranks of any size."""
    raw = adapters.json_of(folder / adapters.FILE)
    known = {field.name for field in dataclasses.fields(config)}
    if unknown := sorted(key for key, value in raw.items() if value and key not in known):
        raise _misfit(
            base,
            folder,
            f"{config.peft_type.value} of PEFT {version('peft')} knows no key {unknown[0]!r}, and "
            f"{adapters.FILE} sets it; install the PEFT that wrote it, or correct the config",
        )
    if config.is_prompt_learning or config.is_adaption_prompt:
        raise _misfit(
            base,
            folder,
            f"{config.peft_type.value} adds tokens or states of its own, and only adapters that "
            "change weights are measured",
        )
    if getattr(config, "alora_invocation_tokens", None):
        raise _misfit(base, folder, "it acts after certain tokens alone (aLoRA)")
    # no update of a matrix has a rank above its shorter side
    largest = max(sorted(p.shape)[-2] for p in base.hf.parameters() if p.dim() > 1)
    for rank in (raw.get("r"), *(raw.get("rank_pattern") or {}).values()):
        if isinstance(rank, int | float) and rank > largest:
            raise _misfit(
                base, folder, f"its rank {rank:,} is above the size of every layer ({largest:,})"
            )


def _check_alphas(base: Model, folder: Path, config: Any) -> None:
    """Check that each pattern of scales fits a module, and no module two that differ: PEFT takes
    the first, and writes them in another order than they were trained in."""
    patterns = getattr(config, "alpha_pattern", None) or {}
    modules = (name for name, m in base.hf.named_modules() if hasattr(m, "base_layer"))
    # PEFT adapts experts that lie in one parameter by its name
    parameters = (name.replace("base_layer.", "") for name, _ in base.hf.named_parameters())
    names = {*modules, *parameters}
    fits = {p: {n for n in names if re.match(rf"(.*\.)?({p})$", n)} for p in patterns}
    for pattern, of_pattern in fits.items():
        if not of_pattern:
            reason = f"alpha_pattern {pattern!r} is the name of no module that it adapts"
            raise _misfit(base, folder, reason)
        for other, of_other in fits.items():
            both = of_pattern & of_other
            if both and patterns[other] != patterns[pattern]:
                raise _misfit(
                    base,
                    folder,
                    f"alpha_pattern gives {min(both)} two values, by {pattern!r} and {other!r}; "
                    "keep one of them",
                )


def _untie(hf: nn.Module) -> None:
    """Give every name of a parameter that has several a copy of its own, so that what is merged
    into one does not change the others."""
    seen: set[int] = set()
    for module in hf.modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            if id(parameter) in seen:
                copy = nn.Parameter(parameter.detach().clone(), requires_grad=False)
                module._parameters[name] = copy
            seen.add(id(parameter))
    hf.config.tie_word_embeddings = False  # pyright: ignore


def _misfit(base: Model, folder: Path, reason: str) -> UserError:
    return UserError(f"adapter {str(folder)!r} does not fit its base model {base.name!r}: {reason}")


def _line(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing or unknown"
    kind = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
    return kind + " ".join(str(error).split())[:400]
