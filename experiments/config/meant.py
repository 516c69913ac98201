"""The config key that is meant by a word that is no key: an option of another tool, the last part
of a key, a key without its section."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from faithscope.experiments.config.keys import keys_of, section_at

_ALSO = {
    "limit": "n num count first max_samples num_samples n_samples max_examples num_examples n_items"
    " num_items max_items sample_limit limit_samples",
    "model.name": "model m models model_name model_id model_path model_name_or_path pretrained"
    " checkpoint hf_model llm",
    "out": "o output outputs output_dir output_path out_dir outdir save_dir save_path results_dir",
    "name": "run_name experiment experiment_name exp_name",
    "tasks": "task t dataset datasets benchmarks",
    "data.path": "data data_path data_file data_dir dataset_path questions",
    "traces.path": "traces trace chains chain input input_file input_path file i f trace_file cots",
    "traces.columns": "columns column_mapping",
    "seed": "random_seed random_state rng_seed",
    "batch_size": "b bs batch eval_batch_size per_device_eval_batch_size",
    "dtype": "torch_dtype precision data_type",
    "device": "cuda gpu accelerator",
    "quantize": "quantization quant load_in_4bit load_in_8bit",
    "max_new_tokens": "max_tokens max_gen_toks max_length max_len max_completion_tokens tokens",
    "temperature": "temp",
    "rate": "lr learning_rate",
    "samples": "k n_sample num_return_sequences num_generations repeats epochs",
    "probes": "probe measure measures metric metrics",
    "judges.model": "judges judge judge_model grader scorer",
    "judge.model": "judge judges judge_model grader scorer",
    "internals.model": "model model_name model.name",
    "backend": "engine",
    "tensor_parallel_size": "tp",
    "thinking": "think reasoning enable_thinking",
    "base_url": "api_base url endpoint",
    "spend.max_cost": "budget cost max_budget",
    "tracking": "report_to tracker wandb mlflow",
}
"""A key, or the last part of keys, -> what other tools and tired hands call it; earlier keys come
first."""
_FIRST = ("", "model", "data", "traces", "generation", "generate", "judges", "judge", "api")
"""Sections in the order in which a word is looked for in them; the others follow."""


def meant(kind: type[BaseModel], word: str, values: Mapping[str, Any] | None = None) -> str | None:
    """The key of a config class that a word means, dotted; None if none is close.

    Args:
        word: a key as somebody wrote it, an option with its dashes.
        values: the config; if it gives chains, their keys come before those of questions.
    """
    word = re.sub(r"[-\s]+", "_", word.lstrip("-")).lower()
    given = (values or {}).get("traces")
    first = ("", "traces", *_FIRST) if isinstance(given, dict) and given.get("path") else _FIRST
    rank = {name: i for i, name in reversed([*enumerate(first)])}
    leaves = [key for key in keys_of(kind) if section_at(kind, key.split(".")) is None]
    leaves.sort(key=lambda key: rank.get(key.rpartition(".")[0], len(first) + key.count(".")))
    if word in leaves:
        return word
    section, _, last = word.rpartition(".")
    sections = {key.rpartition(".")[0] for key in leaves}
    inside = section and difflib.get_close_matches(section.split(".")[-1], sections, 1, 0.8)
    within = [key for key in leaves if inside and key.rpartition(".")[0] == inside[0]]
    if key := _among(within, last) or _among(leaves, word):
        return key
    return _among([key for key in leaves if "." in key], last) if section else None


def _among(leaves: list[str], word: str) -> str | None:
    """The first of the keys that a word means."""
    also = (name for name, words in _ALSO.items() if word in words.split())
    for name in (*also, word):
        if key := next((k for k in leaves if f".{k}".endswith(f".{name}")), None):
            return key
    ends = {key.rpartition(".")[2]: key for key in reversed(leaves)} | {key: key for key in leaves}
    ends |= {w: ends[name] for name, words in _ALSO.items() if name in ends for w in words.split()}
    return next((ends[name] for name in difflib.get_close_matches(word, ends, 1, 0.78)), None)


def option(kind: type[BaseModel], key: str, value: str | None) -> str:
    """The option that gives a key a value, as it is pasted; VALUE stands for one that is not
    known."""
    if value is None:
        value = "true" if bool in _kinds(kind, key) else "VALUE"
    if "," in value and value[0] not in "[{" and list in _kinds(kind, key):
        value = f"[{value}]"
    return f"--set {quoted(f'{key}={value}')}"


def _kinds(kind: type[BaseModel], key: str) -> set[Any]:
    """The types that the value of a key may have."""
    *sections, name = key.split(".")
    section = section_at(kind, sections)
    found = [section.model_fields[name].annotation] if section and sections else []
    found = found or ([kind.model_fields[name].annotation] if name in kind.model_fields else [])
    kinds: set[Any] = set()
    while found:
        one = found.pop()
        if get_origin(one) in (UnionType, Union):
            found += get_args(one)
        else:
            kinds.add(get_origin(one) or one)
    return {list if k in (list, tuple) else k for k in kinds}


def quoted(word: str) -> str:
    """A word of a command line as a shell takes it, without quotes where none are needed."""
    return word if re.fullmatch(r"[\w@%+=:,./\[\]-]+", word) else shlex.quote(word)
