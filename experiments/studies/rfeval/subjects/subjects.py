"""A model that is measured: what its file and the run's config say of it together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from faithscope.experiments.config.api import API, DECIDES, DECIDES_API, ApiSection
from faithscope.experiments.engine.fingerprint import fingerprint
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.subjects.injection import PREFIX, Framing
from faithscope.experiments.studies.rfeval.subjects.model_files import (
    ModelFile,
    model_files,
    profile_of,
)
from faithscope.interp.errors import UserError

MAX_NEW_TOKENS = 32_768
"""Of RFEval, appendix C.1."""
HOW_FAST = ("gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "enforce_eager")
HOW_FAST += ("swap_space", "cpu_offload_gb", "disable_log_stats")
"""Options of `vllm.LLM` that decide nothing of what is written; to be changed where memory is
short."""


@dataclass(frozen=True)
class Subject:
    """How one model is held, prompted and sampled; a run's config goes before its file."""

    name: str
    file: ModelFile
    max_new_tokens: int
    repetition_penalty: float
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    device: str
    revision: str | None
    quantize: Literal["8bit", "4bit"] | None
    device_map: str | None
    tensor_parallel_size: int
    max_model_len: int | None
    backend: Literal["here", "vllm", "vllm-server", "api"]
    framing: Framing = PREFIX
    asked: ApiSection | None = None
    """How it is asked, where it is behind an API: nothing above but its file's prompt holds."""

    @property
    def thinking(self) -> bool | None:
        """Left to what its prompt says; `injection.forced` opens the reasoning."""
        return None

    @property
    def for_vllm(self) -> dict[str, Any]:
        """Keyword arguments of `vllm.LLM`, the file's own last."""
        sizes = ("tensor_parallel_size", "max_model_len")
        return {key: getattr(self, key) for key in sizes} | self.file.vllm

    def decides(self, batch_size: int) -> dict[str, Any]:
        """All that decides its outputs but the items."""
        if self.asked is not None:
            how = self.asked.model_dump(mode="json")
            return {
                "model": self.name,
                "framing": self.framing,
                "system": self.file.system,
                "api": {name: how[name] for name in (*DECIDES, *DECIDES_API)},
            }
        settings: dict[str, Any] = {
            "model": self.name,
            "weights": fingerprint(self.name, self.revision),
            "backend": self.backend,
            "max_new_tokens": self.max_new_tokens,
            "repetition_penalty": self.repetition_penalty,
            "system": self.file.system,
            "effort": self.file.effort,
            "marks": self.file.marks,
            "dtype": self.dtype,
            "revision": self.revision,
            "quantize": self.quantize,
            "framing": self.framing,
        }
        if self.backend == "here":
            return settings | {"batch_size": batch_size, "device_map": self.device_map}
        if self.backend == "vllm":
            settings["vllm"] = {k: v for k, v in self.file.vllm.items() if k not in HOW_FAST}
        return settings | {"max_model_len": self.max_model_len}

    def kept(self) -> dict[str, Any]:
        """What a run folder keeps of it for its tables and its reader."""
        of_file = ("label", "family", "base", "regime", "system", "system_source", "effort")
        return {name: getattr(self.file, name) for name in of_file} | {
            "max_new_tokens": self.max_new_tokens,
            "repetition_penalty": None if self.asked else self.repetition_penalty,
            "backend": self.backend,
            "framing": self.framing,
        }


def _model_type(name: str) -> str:
    """Reads the type of a model off the config of its folder; "" where the name is no folder."""
    path = Path(name).expanduser() / "config.json"
    if name.startswith(API) or not path.is_file():
        return ""
    try:
        return str(json.loads(path.read_bytes())["model_type"])
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path}: says no model_type ({type(error).__name__}: {error}); get the file again"
        ) from error


def subjects_of(config: RFEvalConfig) -> dict[str, Subject]:
    """The models of a run by name, in its order.

    Raises:
        UserError: the folder of model files, or a model's config.json, cannot be used.
    """
    m, g = config.model, config.generate
    files = {} if m.profiles is None else model_files(m.profiles)
    subjects = {}
    for name in m.name:
        file = profile_of(name, files, _model_type(name))
        asked = None
        if name.startswith(API):
            effort = config.api.reasoning_effort or file.effort
            asked = config.api.model_copy(update={"reasoning_effort": effort})
        most = g.max_new_tokens or file.max_new_tokens or MAX_NEW_TOKENS
        subjects[name] = Subject(
            name=name,
            file=file,
            max_new_tokens=most if asked is None else asked.max_tokens,
            repetition_penalty=g.repetition_penalty or file.repetition_penalty,
            dtype=file.dtype if m.dtype == "auto" else m.dtype,
            device=m.device,
            revision=m.revision or file.revision,
            quantize=m.quantize or file.quantize,
            device_map=m.device_map or file.device_map,
            tensor_parallel_size=g.tensor_parallel_size or file.tensor_parallel_size,
            max_model_len=g.max_model_len or file.max_model_len,
            backend=g.backend if asked is None else "api",
            framing=config.framing_of(name),
            asked=asked,
        )
    return subjects
