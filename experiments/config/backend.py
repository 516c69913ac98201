"""Config section for the generation backend of models whose weights are at hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import API, Address
from faithscope.experiments.config.base import AnyNumber, Section

WHERE = ("endpoints", "served_as", "in_flight", "timeout")
"""Keys of `BackendSection` that do not change the generated text."""


class BackendSection(Section):
    """Backend that continues token ids for models whose weights are at hand. Models behind APIs
    exchange text and have the section `api`."""

    backend: Literal["here", "vllm", "vllm-server"] = "here"
    """Software that generates: `here` is transformers in this process, `vllm` is vLLM in this
    process (where installed), `vllm-server` is the servers at `endpoints`, over the completions
    API."""
    endpoints: Annotated[list[Address], *AnyNumber] = Field(default=[])
    """Addresses of vLLM servers that all serve the model, each as `http://HOST:PORT/v1`."""
    served_as: StrictStr | None = None
    """Name of the model on the servers, where they list neither its name here nor a folder of
    weights of that name."""
    batch_size: StrictInt = Field(default=16, ge=1)
    """Number of items whose texts are generated together by `here`. Batches are cut from the whole
    list of items, so a resumed run generates in the same batches and gives the same tokens."""
    tensor_parallel_size: StrictInt | None = Field(default=None, ge=1)
    """Number of devices over which `vllm` splits each layer; null is what the model's file says,
    or one."""
    max_model_len: StrictInt | None = Field(default=None, ge=1)
    """Maximum number of tokens of prompt and continuation in `vllm`; null is the model's own
    limit."""
    in_flight: StrictInt = Field(default=64, ge=1)
    """Maximum number of open requests to each server."""
    timeout: StrictInt = Field(default=3600, ge=1)
    """Seconds after which a server's continuation is given up."""

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
        """The keys, with their values, that decide which tokens are generated."""
        if self.backend == "here":
            return {"batch_size": self.batch_size}
        return {"backend": self.backend, "max_model_len": self.max_model_len}

    def several_models_problem(self, section: str, names: Iterable[str]) -> str | None:
        """Why the servers cannot generate for all these models; None if they can."""
        n = sum(not name.startswith(API) for name in names)
        if not self.endpoints or n < 2:
            return None
        return (
            f"{section}.endpoints serve one model, and {n} are to be written by them; "
            "run each by itself with the same settings: `faithscope merge` joins the folders"
        )
