"""vLLM in this process: its engine, where it is installed (extra `vllm`)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from faithscope.interp.backends import BackendError, BackendLost, Generates, OnEnded
from faithscope.interp.backends.checks import LEADS, check_room, gap_of, written
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Sampling
from faithscope.interp.memory import free, is_out_of_memory


@dataclass
class VllmOffline(Generates):
    """A `vllm.LLM` as a `Backend`. Made by `load_offline`; vLLM batches and shares prefixes."""

    name: str
    llm: Any
    """The `vllm.LLM`; None once it is closed."""
    version: str
    sleeps: bool = False
    """Whether the engine gives its memory back between calls: its weights wait in the CPU's memory,
    and what it kept of prompts is forgotten. Only where `vllm.LLM` has `enable_sleep_mode`."""

    @property
    def max_positions(self) -> int | None:
        return self._engine.model_config.max_model_len

    @property
    def _engine(self) -> Any:
        if self.llm is None:
            raise UserError(f"model {self.name!r}: its vLLM engine is closed; load it again")
        return self.llm.llm_engine

    def each(self, prompts: Sequence[Sequence[int]], sampling: Sampling, on_ended: OnEnded) -> None:
        """Continue every prompt; see `Backend.each`.

        The engine is stepped here instead of by `LLM.generate`, which returns nothing before the
        last prompt has ended, so that a kill would lose all. A prompt that the engine does not take
        ends in a `BackendError`.

        Raises:
            UserError: a prompt leaves no room, or the engine died or was closed.
        """
        engine = self._engine
        limits = sampling.limits_of(len(prompts))
        check_room(self.name, prompts, limits, self.max_positions)
        began = time.perf_counter()
        asked: list[str] = []
        self._wake()
        try:
            for i, (prompt, seed, most) in enumerate(
                zip(prompts, sampling.seeds(len(prompts)), limits, strict=True)
            ):
                asked.append(str(i))
                if refused := self._put(engine, i, prompt, _params(sampling, seed, most)):
                    on_ended(i, refused)
            while engine.has_unfinished_requests():
                for out in self._step(engine):
                    if not out.finished:
                        continue
                    i, (output,) = int(out.request_id), out.outputs
                    took = time.perf_counter() - began
                    who = f"vLLM {self.version}"
                    try:
                        ids, finish = output.token_ids, output.finish_reason
                        gaps = _gaps(output) if sampling.leads else ()
                        ended = written(
                            i, who, ids, finish, sampling.stop_ids, limits[i], took, gaps
                        )
                    except BackendError as error:
                        ended = error
                    on_ended(i, ended)
        except BaseException:
            # requests left in the engine would be answered in the next call
            with contextlib.suppress(Exception):
                # a dead engine has nothing left, and its error would hide this one
                engine.abort_request(asked)
                self._sleep()
            raise
        self._sleep()

    def _wake(self) -> None:
        if not self.sleeps:
            return
        # memory that torch keeps for this process is not free for the engine
        free()
        try:
            self.llm.wake_up()
        except Exception as error:
            raise self._died(error) from error

    def _sleep(self) -> None:
        if not self.sleeps:
            return
        try:
            # level 1: weights go to the CPU's memory, keys and values are dropped
            self.llm.sleep(level=1)
        except Exception as error:
            raise self._died(error) from error

    def _put(self, engine: Any, i: int, prompt: Sequence[int], params: Any) -> BackendError | None:
        """Hand a prompt to the engine; returns the error if the engine does not take it."""
        from vllm import TokensPrompt  # pyright: ignore[reportMissingImports]

        try:
            engine.add_request(str(i), TokensPrompt(prompt_token_ids=list(prompt)), params)
        except Exception as error:
            if _is_dead(error):
                raise self._died(error) from error
            # a request that was taken half would be waited for
            engine.abort_request([str(i)])
            refused = BackendError(
                f"prompt {i}: vLLM {self.version} does not take it ({_said(error)})"
            )
            refused.__cause__ = error
            return refused
        return None

    def _step(self, engine: Any) -> Sequence[Any]:
        try:
            return engine.step()
        except Exception as error:
            # after any error of a step it is unknown which prompts are still intact
            raise self._died(error) from error

    def _died(self, error: Exception) -> BackendLost:
        return BackendLost(
            f"model {self.name!r}: the engine of vLLM {self.version} ended ({_said(error)}); what "
            "it wrote is kept: run again, and it goes on from there. Its log above has the cause; "
            "where that is memory, lower max_model_len, or gpu_memory_utilization or max_num_seqs "
            "(vllm: in the model's file), or raise tensor_parallel_size"
        )

    def describe(self) -> Mapping[str, str]:
        """vLLM's version, the dtype and the number of devices."""
        config = self._engine.vllm_config
        on_cpu = config.device_config.device_type == "cpu"
        return {
            "backend": "vllm",
            "vllm": self.version,
            "dtype": str(config.model_config.dtype).removeprefix("torch."),
            "tensor_parallel_size": str(config.parallel_config.tensor_parallel_size),
            **({} if on_cpu else {"devices": str(config.parallel_config.world_size)}),
            **({"sleeps": "between calls"} if self.sleeps else {}),
        }

    def close(self) -> None:
        """End the engine and give its devices back; see `Backend.close`.

        `vllm.LLM` has no method to close it: its engine ends when it is garbage-collected, and
        until then keeps 0.9 of each device's memory, whether in a process of its own or in this
        one.
        """
        if self.llm is None:
            return
        engine, self.llm = self.llm.llm_engine, None
        # waits for the engine's process, or takes down what the engine set up in this one
        engine.engine_core.shutdown()
        del engine
        free()


def load_offline(
    name: str,
    location: str,
    *,
    dtype: str = "auto",
    revision: str | None = None,
    tensor_parallel_size: int = 1,
    max_model_len: int | None = None,
    sleeps: bool = False,
    **options: Any,
) -> VllmOffline:
    """Load a model into vLLM in this process.

    Args:
        name: the model's name in the records.
        location: a hub id or a folder, as `interp.sources.resolve(name).location` gives.
        tensor_parallel_size: devices that share each layer.
        max_model_len: most tokens of a prompt and its continuation; the model's by default.
        sleeps: whether the engine gives its memory back between calls (`VllmOffline.sleeps`).
        options: whatever else `vllm.LLM` takes (`gpu_memory_utilization`, `quantization`, …).

    Raises:
        UserError: vLLM is not installed here, or cannot load the model.
    """
    try:
        import vllm  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError(
            f"model {name!r}: backend 'vllm' needs vLLM, which is not here ({error}); pip install "
            "'faithscope[vllm]', or, as its pins often clash, install it in an environment of its "
            "own, run `python -m vllm.entrypoints.openai.api_server --model MODEL` there, and take "
            "backend 'vllm-server'"
        ) from error
    try:
        llm = vllm.LLM(
            model=location,
            dtype=dtype,
            revision=revision,
            tensor_parallel_size=tensor_parallel_size,
            max_model_len=max_model_len,
            **({"enable_sleep_mode": True} if sleeps else {}),
            **options,
        )
    except Exception as error:
        # vLLM's errors share no base class, and the engines of some models raise their own
        raise UserError(f"model {name!r} cannot be loaded by vLLM: {_said(error)}") from error
    backend = VllmOffline(name, llm, vllm.__version__, sleeps)
    backend._sleep()
    return backend


def _is_dead(error: Exception) -> bool:
    """Whether an engine that raises `error` is dead."""
    from vllm.v1.engine.exceptions import EngineDeadError  # pyright: ignore[reportMissingImports]

    device = isinstance(error, torch.AcceleratorError) or is_out_of_memory(error)
    return device or isinstance(error, EngineDeadError)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def _gaps(output: Any) -> list[float]:
    return [gap_of(x.logprob for x in place.values()) for place in output.logprobs]


def _params(sampling: Sampling, seed: int, most: int) -> Any:
    from vllm import SamplingParams  # pyright: ignore[reportMissingImports]
    from vllm.sampling_params import RequestOutputKind  # pyright: ignore[reportMissingImports]

    return SamplingParams(
        max_tokens=most,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        repetition_penalty=sampling.repetition_penalty,
        seed=seed,
        stop_token_ids=list(sampling.stop_ids),
        # the model's own end tokens count only where they are asked for
        ignore_eos=True,
        detokenize=False,
        logprobs=LEADS if sampling.leads else None,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
