"""The way into a model's attention: through transformers' own interface.

A model loaded by faithscope runs under an attention implementation registered here.
Outside a packed run it hands every call straight to the kernel that transformers would
have used. Inside one, a *session* (`interp.prefill`, `interp.decoding`) decides which keys
each query sees, and the same kernel does the arithmetic, so grouped heads, soft-caps, sinks
and scaling stay the model's own (`interp.masked`: how it is called under a mask). The mask function
is registered with it: without one, transformers drops padding and causality silently.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, causal_mask_function
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from faithscope.interp.masks import EVERYTHING, Reach, reach_of

_PREFIX = "faithscope_"
Kernel = Callable[..., tuple[Tensor, Tensor | None]]


class Session(Protocol):
    """Decides what the queries of a packed forward attend to."""

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        """Attention of (1, H, T, D) queries as (1, T, H, D) outputs."""
        ...


class _WatchedMask(Tensor):
    """A mask that tells when anything but attention computes with it.

    An index that picks the keys of each query computes with it: in a short text it picks all keys,
    and the mask that attention gets is then the plain one.
    """

    _HANDED_ON = frozenset({"__get__", "__getitem__", "size", "dim", "to", "contiguous", "expand"})

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        watching = _watch.get()
        if watching is not None and func.__name__ not in cls._HANDED_ON:
            watching.mask_is_read = True
        return super().__torch_function__(func, types, args, kwargs)

    def plain(self) -> Tensor:
        with torch._C.DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor)


class Watch:
    """What one forward outside a session shows of every layer that calls the interface.

    A window may stand in the mask alone, so a layer's reach is that of the mask function whose mask
    the layer is given. Masks of the watched forward are marked: each has a pattern of its own, by
    which it is recognised wherever the model sends it.
    """

    def __init__(self) -> None:
        self.modules: dict[int, nn.Module] = {}
        """layer -> its attention module."""
        self.reaches: dict[int, Reach | None] = {}
        """layer -> its reach; None for a reach that `interp.masks` does not know."""
        self.calls = 0
        self.mask_is_read = False
        """Whether a layer computes with the mask before attention does."""
        self._marked: list[tuple[Tensor, Reach | None]] = []

    def mask(self, make: Callable[..., Tensor], options: dict[str, Any]) -> Tensor:
        reach = (
            None
            if options.get("use_vmap")
            else reach_of(
                options.get("mask_function", causal_mask_function),
                options.get("local_size"),
                options.get("device", "cpu"),
            )
        )
        rule = functools.partial(self._pattern, len(self._marked))
        skips = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        mask = make(**options | skips | {"mask_function": rule, "use_vmap": False})
        self._marked.append((mask.cpu(), reach))
        return mask.as_subclass(_WatchedMask)

    @staticmethod
    def _pattern(number: int, _: Tensor, __: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Each query sees itself, and of the others the digits of the mask's number."""
        return (key == query) | ((torch.as_tensor(number) >> key) % 2 == 1)

    def saw(self, module: nn.Module, mask: Tensor | None) -> None:
        layer = getattr(module, "layer_idx", None)
        if layer is None:
            # no layer of the decoder, or one whose keys cannot be cached
            return
        self.calls += 1
        self.modules[layer] = module
        if mask is None:
            # without a mask the kernels read the module's `is_causal`
            self.reaches[layer] = EVERYTHING if getattr(module, "is_causal", True) else None
            return
        same = (r for m, r in self._marked if m.shape == mask.shape and m.equal(mask.cpu()))
        self.reaches[layer] = next(same, None)


_session: ContextVar[Session | None] = ContextVar("faithscope_attention", default=None)
_watch: ContextVar[Watch | None] = ContextVar("faithscope_watch", default=None)


@contextmanager
def watch() -> Iterator[Watch]:
    """Watch the one forward that runs inside, of at most 16 tokens."""
    token = _watch.set(Watch())
    try:
        yield _watch.get()  # pyright: ignore
    finally:
        _watch.reset(token)


@contextmanager
def session(active: Session) -> Iterator[None]:
    token = _session.set(active)
    try:
        yield
    finally:
        _session.reset(token)


def take_over(hf: PreTrainedModel) -> None:
    """Set the packed implementation over the kernel that `hf` runs under.

    A model that chooses its attention while it is built (Falcon, GPT-J, GPT-Neo: classes by the
    implementation's name) or has one implementation only (MPT, BLOOM) keeps what it has.
    """
    kernel_name = str(hf.config._attn_implementation)
    if not kernel_name.startswith(_PREFIX) and hf._can_set_attn_implementation():
        hf.set_attn_implementation(register(kernel_name))


def hand_back(hf: PreTrainedModel) -> bool:
    """Restore transformers' own attention implementation; returns whether ours was set.

    Some families ask for their implementation by name (DeepSeek-V3.2 attends to what its index
    picks under "sdpa" and "eager" alone), so a model that is never packed runs under its own.
    """
    name = str(hf.config._attn_implementation)
    ours = name.startswith(_PREFIX)
    if ours:
        hf.set_attn_implementation(name.removeprefix(_PREFIX))
    return ours


@contextmanager
def plain(hf: PreTrainedModel) -> Iterator[None]:
    """A context in which `hf` runs as in transformers: no attention or mask function of ours."""
    ours = hand_back(hf)
    try:
        yield
    finally:
        if ours:
            take_over(hf)


def register(base: str) -> str:
    """Register the packed implementation over the kernel `base`, and return its name."""
    name = _PREFIX + base
    if name not in ALL_ATTENTION_FUNCTIONS:
        base_mask = ALL_MASK_ATTENTION_FUNCTIONS[base]

        def attention(
            module: nn.Module,
            query: Tensor,
            key: Tensor,
            value: Tensor,
            attention_mask: Tensor | None,
            **kwargs: Any,
        ) -> tuple[Tensor, Tensor | None]:
            active, watching = _session.get(), _watch.get()
            if watching is not None:
                if isinstance(attention_mask, _WatchedMask):
                    attention_mask = attention_mask.plain()
                watching.saw(module, attention_mask)
            if active is None:
                return kernel(module)(module, query, key, value, attention_mask, **kwargs)
            return active.attend(module, query, key, value, **kwargs), None

        def mask(**kwargs: Any) -> Tensor | None:
            if (watching := _watch.get()) is not None:
                return watching.mask(base_mask, kwargs)
            return None if _session.get() is not None else base_mask(**kwargs)

        AttentionInterface.register(name, attention)
        AttentionMaskInterface.register(name, mask)
    return name


def kernel(module: nn.Module) -> Kernel:
    """The kernel below the packed implementation that `module` runs under."""
    name: str = module.config._attn_implementation  # pyright: ignore
    if name in ("faithscope_eager", "eager"):
        return eager(module)
    return ALL_ATTENTION_FUNCTIONS[name.removeprefix(_PREFIX)]


def eager(module: nn.Module) -> Kernel:
    """The family's own plain attention, which also returns its weights."""
    return sys.modules[type(module).__module__].eager_attention_forward


def runs_eager(hf: PreTrainedModel) -> bool:
    """Whether `hf` runs under its family's own plain attention."""
    return hf.config._attn_implementation in ("faithscope_eager", "eager")


def is_eager(module: nn.Module) -> bool:
    return module.config._attn_implementation == "faithscope_eager"  # pyright: ignore
