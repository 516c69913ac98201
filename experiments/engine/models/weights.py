"""The weights that a process holds, which are loaded by `loading` alone: a run that only asks APIs
imports neither torch nor transformers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from faithscope.interp.marks import StatedMarks

if TYPE_CHECKING:
    from faithscope import interp


class WeightSettings(Protocol):
    """Settings of a config for loading weights."""

    @property
    def dtype(self) -> Literal["auto", "float32", "bfloat16", "float16"]: ...
    @property
    def device(self) -> str: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def quantize(self) -> Literal["8bit", "4bit"] | None: ...
    @property
    def device_map(self) -> str | None: ...
    @property
    def thinking(self) -> bool | None: ...
    @property
    def marks(self) -> StatedMarks | None: ...


_LOADED_AS = ("dtype", "device", "revision", "quantize", "device_map", "marks")


class Weights:
    """The weights that a process holds: one model at a time, kept until another is needed, so that
    a subject model that is also a judge is loaded once."""

    def __init__(self) -> None:
        self.name = ""
        self._how: tuple[Any, ...] = ()
        self._model: interp.Model | None = None

    def of(
        self,
        name: str,
        settings: WeightSettings,
        trust_remote_code: bool,
        read: Callable[[], interp.Model],
    ) -> interp.Model:
        """The model `name` with these settings; calls `read` to load it if it is not held."""
        how = (trust_remote_code, *(getattr(settings, key) for key in _LOADED_AS))
        if self._model is None or (self.name, self._how) != (name, how):
            self.drop_others()
            self._model = read()
            self.name, self._how = name, how
        return self._model

    def drop_others(self, name: str | None = None) -> None:
        """Free the memory of any model but `name`."""
        if self.name != name:
            self.name, self._model = "", None
        if "torch" in sys.modules:  # without it nothing was loaded
            from faithscope.interp.memory import free

            free()
