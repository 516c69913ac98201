"""A substitute for the parts of `vllm` that `interp.backends.offline` uses, which can fail on
demand.

A tiny model of the tests generates its texts. `tests/interp/test_backends_vllm.py` tests the real
one and its interface.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from faithscope import interp
from faithscope.interp.backends.here import Here
from faithscope.interp.generation import Sampling
from faithscope.interp.model import Model


class EngineDeadError(Exception):
    """Like vLLM's error of this name, which has no more specific base than `Exception`."""


@dataclass
class Vllm:
    """Faults of the engines, and a record of what they did."""

    refuses: Callable[[Sequence[int]], bool] = lambda prompt: False
    dies_after: int | None = None
    """Number of continuations of the first engine before it dies; None if it lives."""
    error: Exception = field(default_factory=lambda: EngineDeadError("EngineCore had an issue"))
    """Error that the engine dies of."""
    loaded: list[str] = field(default_factory=list)
    open: int = 0
    """Number of engines that were not shut down."""
    slept: list[str] = field(default_factory=list)
    """What engines with `enable_sleep_mode` were told, in order: `sleep` or `wake`."""
    options: list[dict[str, Any]] = field(default_factory=list)
    """Options that each engine was loaded with, besides the model."""
    wakes: bool = True
    """Whether a sleeping engine can be woken."""


class _Core:
    def __init__(self, of: Vllm) -> None:
        self.of, self.down = of, False
        of.open += 1

    def shutdown(self) -> None:
        assert not self.down
        self.down = True
        self.of.open -= 1


class _Engine:
    def __init__(self, of: Vllm, model: Model, dies_after: int | None) -> None:
        self.of, self.model, self.left = of, model, dies_after
        self.engine_core = _Core(of)
        self.waiting: dict[str, tuple[list[int], Any]] = {}
        config = SimpleNamespace(max_model_len=model.max_positions, dtype="torch.float32")
        parallel = SimpleNamespace(tensor_parallel_size=1, world_size=1)
        device = SimpleNamespace(device_type="cpu")
        self.model_config = config
        self.vllm_config = SimpleNamespace(
            model_config=config, parallel_config=parallel, device_config=device
        )

    @property
    def dead(self) -> bool:
        return self.left is not None and self.left <= 0

    def add_request(self, request_id: str, prompt: dict[str, list[int]], params: Any) -> None:
        ids = prompt["prompt_token_ids"]
        # like vLLM, registered here before the engine has it
        self.waiting[request_id] = ids, params
        if self.dead:
            raise self.of.error
        if self.of.refuses(ids):
            raise ValueError("Token id 999 is out of vocabulary")

    def has_unfinished_requests(self) -> bool:
        return bool(self.waiting)

    def step(self) -> list[Any]:
        assert self.of.slept[-1:] != ["sleep"], "it is asleep"
        if self.dead:
            raise self.of.error
        if self.left is not None:
            self.left -= 1
        request_id = next(iter(self.waiting))
        ids, params = self.waiting.pop(request_id)
        how = {k: getattr(params, k) for k in ("temperature", "top_p", "repetition_penalty")}
        sampling = Sampling(tuple(params.stop_token_ids), params.max_tokens, **how)
        (said,) = Here(self.model).generate([ids], sampling)
        output = SimpleNamespace(token_ids=list(said.tokens), finish_reason=said.finish)
        if params.logprobs is not None:
            output.logprobs = [
                {n: SimpleNamespace(logprob=x) for n, x in enumerate((-0.5, -0.5 - gap))}
                for gap in said.gaps
            ]
        return [SimpleNamespace(request_id=request_id, outputs=[output], finished=True)]

    def abort_request(self, request_ids: Sequence[str]) -> None:
        if self.dead:
            raise self.of.error
        for request_id in request_ids:
            self.waiting.pop(request_id, None)


@contextmanager
def planted(of: Vllm) -> Iterator[Vllm]:
    """Lets `import vllm` return this substitute until the block ends."""

    class LLM:
        def __init__(self, *, model: str, **options: Any) -> None:
            assert not of.open, "an engine is loaded beside another"
            of.options.append(options)
            self.may_sleep = options.get("enable_sleep_mode", False)
            of.loaded.append(model)
            first = len(of.loaded) == 1
            self.llm_engine = _Engine(of, interp.load(model), of.dies_after if first else None)

        def sleep(self, level: int = 1) -> None:
            assert self.may_sleep, "sleep mode is not enabled"
            assert level == 1, "other levels forget the weights"
            assert not self.llm_engine.waiting, "it sleeps over requests"
            of.slept.append("sleep")

        def wake_up(self) -> None:
            assert of.slept[-1] == "sleep", "it is awake"
            if not of.wakes:
                raise RuntimeError("CUDA out of memory")
            of.slept.append("wake")

    modules = {
        "vllm": {"LLM": LLM, "TokensPrompt": dict, "SamplingParams": SimpleNamespace},
        "vllm.sampling_params": {"RequestOutputKind": SimpleNamespace(FINAL_ONLY=2)},
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.exceptions": {"EngineDeadError": EngineDeadError},
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, held in modules.items():
            module = ModuleType(name)
            vars(module).update(held, __version__="0.0.test", __path__=[])
            patch.setitem(sys.modules, name, module)
        yield of
