"""Who writes the texts of models whose weights are at hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import API, Address
from faithscope.experiments.config.base import AnyNumber, Section

WHERE = ("endpoints", "served_as", "in_flight", "timeout")
"""Keys of `BackendSection` that decide nothing of what is written."""


class BackendSection(Section):
    """Who writes token ids after token ids; models behind APIs write in words (section `api`)."""

    backend: Literal["here", "vllm", "vllm-server"] = "here"
    """`here`: transformers in this process; `vllm`: in this process, where it is installed;
    `vllm-server`: servers at `endpoints`, over the completions API."""
    endpoints: Annotated[list[Address], *AnyNumber] = Field(default=[])
    """Of servers that all serve the model, each as `http://HOST:PORT/v1`."""
    served_as: StrictStr | None = None
    """What the servers call the model, where that or the folder of its weights there is not called
    as the model is here."""
    batch_size: StrictInt = Field(default=16, ge=1)
    """Items whose texts are written in lockstep here. Batches are cut from the whole list of items,
    so a resumed run writes in the same company and gives the same tokens."""
    tensor_parallel_size: StrictInt | None = Field(default=None, ge=1)
    """Devices of `vllm` that share each layer; null is what the model's file says, or one."""
    max_model_len: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of a prompt and its continuation, of `vllm`; null is the model's own."""
    in_flight: StrictInt = Field(default=64, ge=1)
    """Requests at once to each server."""
    timeout: StrictInt = Field(default=3600, ge=1)
    """Seconds until a server's continuation is given up."""

    @model_validator(mode="after")
    def _endpoints_where_they_are_needed(self) -> Self:
        if self.backend == "vllm-server" and not self.endpoints:
            raise ValueError("backend 'vllm-server' needs endpoints; give http://HOST:PORT/v1")
        if self.backend != "vllm-server" and self.endpoints:
            raise ValueError(
                f"endpoints are of backend 'vllm-server', and backend is {self.backend!r}; leave "
                "them out, or take that"
            )
        return self

    def decides(self) -> dict[str, Any]:
        """What of it decides the tokens that are written."""
        if self.backend == "here":
            return {"batch_size": self.batch_size}
        return {"backend": self.backend, "max_model_len": self.max_model_len}

    def several_models_problem(self, section: str, names: Iterable[str]) -> str | None:
        """Why these models cannot all be written by the servers, if they cannot."""
        n = sum(not name.startswith(API) for name in names)
        if not self.endpoints or n < 2:
            return None
        return (
            f"{section}.endpoints serve one model, and {n} are to be written by them; "
            "run each by itself with the same settings: `faithscope merge` joins the folders"
        )
