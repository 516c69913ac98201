"""vLLM running as servers, over the completions API: token ids in, token ids out.

`prompt` is a list of ids, and `return_token_ids` (vLLM 0.10.2 and later) has the ids that were
drawn come back: the text beside them is never read. Whatever a server would fill in from the
model's generation_config.json (temperature, top_k, end tokens) is sent with every request.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope.interp.backends import BackendError, Generates, OnEnded
from faithscope.interp.backends.checks import LEADS, check_room, gap_of, written
from faithscope.interp.backends.spread import Endpoint, Servers, spread
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation, Sampling

if TYPE_CHECKING:
    from openai import AsyncOpenAI

START = (
    "start one with: python -m vllm.entrypoints.openai.api_server --model MODEL (vLLM 0.10.2 "
    "or later)"
)


@dataclass(frozen=True)
class VllmServer(Servers, Generates):
    """One model behind one or more servers as a `Backend`. Made by `connect`.

    Prompts go one by one to whichever server has room, so that vLLM batches them as it sees fit and
    a slow server delays only its own prompts; the prompts of a lost server go to the others.
    """

    @property
    def max_positions(self) -> int | None:
        return min((e.max_positions for e in self.endpoints if e.max_positions), default=None)

    def each(self, prompts: Sequence[Sequence[int]], sampling: Sampling, on_ended: OnEnded) -> None:
        """Continue every prompt; see `Backend.each`.

        A prompt ends in an error if a server refuses it, fails at it twice, or gives back something
        else than was asked.

        Raises:
            UserError: a prompt leaves no room, or no server is left; the message says why each was
                given up.
        """
        if not prompts:
            return
        limits = sampling.limits_of(len(prompts))
        check_room(self.name, prompts, limits, self.max_positions)
        seeds = sampling.seeds(len(prompts))

        async def ask(client: AsyncOpenAI, endpoint: Endpoint, i: int) -> Generation:
            began = time.perf_counter()
            reply = await client.completions.create(
                **_request(endpoint, prompts[i], sampling, limits[i], seeds[i])
            )
            took = time.perf_counter() - began
            ids, finish = _read(reply, i, prompts[i], endpoint.url)
            gaps = _gaps(reply, i, endpoint.url) if sampling.leads else ()
            return written(i, endpoint.url, ids, finish, sampling.stop_ids, limits[i], took, gaps)

        # closed at once if `on_ended` raises, so that servers stop writing texts that nobody awaits
        with contextlib.closing(spread(self, len(prompts), ask)) as events:
            for i, ended in events:
                on_ended(i, ended)

    def describe(self) -> Mapping[str, str]:
        """vLLM's versions and the number of servers, without their addresses."""
        return {
            "backend": "vllm-server",
            "vllm": ", ".join(sorted({e.version for e in self.endpoints})),
            "endpoints": str(len(self.endpoints)),
            "served_as": ", ".join(sorted({e.served_as for e in self.endpoints})),
        }


def connect(
    name: str,
    urls: Sequence[str],
    *,
    served_as: str | None = None,
    location: str | None = None,
    key_variable: str = "VLLM_API_KEY",
    wait_s: float = 0.0,
    **options: Any,
) -> VllmServer:
    """Connect to the servers at `urls`, and check that each gives token ids back.

    Args:
        name: the model's name in the records.
        urls: base URLs of the servers' API, each as `http://HOST:PORT/v1`.
        served_as: the model's name on the servers (`--served-model-name`), taken at its word. By
            default the one model whose name or weights (`id` and `root` in the server's list) agree
            with `name` or `location` in their last part (without folders and owners), in any case.
        location: where the weights are, as `interp.sources.resolve(name).location` gives it.
        key_variable: environment variable that holds the servers' key, where they want one.
        wait_s: how long to wait for servers that are still starting.
        options: `in_flight`, `timeout_s` and `retries` of `VllmServer`.

    Raises:
        UserError: the `openai` package is missing, or a server does not answer, serves another
            model, or gives no token ids back.
    """
    try:
        import openai  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"backend 'vllm-server' needs the openai client, which is not here ({error}); "
            "pip install 'faithscope[judge]'"
        ) from error
    if not urls:
        raise UserError(f"backend 'vllm-server' for {name}: no endpoint given; {START}")
    until = time.monotonic() + wait_s
    key = os.environ.get(key_variable) or "none"
    called = _Called(name, location, served_as)
    endpoints = [_endpoint(url.rstrip("/"), called, key, key_variable, until) for url in urls]
    if len(names := sorted({e.served_as for e in endpoints})) > 1 and served_as is None:
        raise UserError(
            f"the servers of {name} serve different models ({', '.join(names)}); give them one "
            "--served-model-name, or leave some out"
        )
    server = VllmServer(name, tuple(endpoints), **options)
    for endpoint in endpoints:
        # any two tokens will do: what counts is whether ids come back
        one = VllmServer(name, (endpoint,), timeout_s=600)
        try:
            one.generate([[1, 2]], Sampling((), max_new_tokens=1))
        except BackendError as error:
            raise UserError(f"server {endpoint.url} is of no use here: {error}") from error
    return server


@dataclass(frozen=True)
class _Called:
    """The names that a model may have on the servers that serve it."""

    name: str
    location: str | None
    served_as: str | None

    def among(self, served: Mapping[str, Any], url: str) -> str:
        """The name in `served` that is this model's.

        Raises:
            UserError: no served name is this model's, or several may be.
        """
        listed = ", ".join(_told(m) for m in served.values()) or "nothing"
        if self.served_as is not None:
            if self.served_as not in served:
                raise UserError(
                    f"server {url} serves {listed}, not {self.served_as!r}; set served_as to one "
                    "of them"
                )
            return self.served_as
        own_names = {_base(self.name)} | ({_base(self.location)} if self.location else set())
        fit = [
            name
            for name, model in served.items()
            if own_names & {_base(name), _base(str(getattr(model, "root", None) or name))}
        ]
        if len(fit) != 1:
            what = "none of which is called so" if not fit else "several of which are called so"
            raise UserError(
                f"server {url} serves {listed}, {what} as {self.name!r} is; if one is that model, "
                "name it as served_as (generate.served_as of a run)"
            )
        return fit[0]


def _told(model: Any) -> str:
    root = getattr(model, "root", None)
    return repr(model.id) if root in (None, model.id) else f"{model.id!r} ({root})"


def _base(name: str) -> str:
    """The last part of a name or a path; for a snapshot in a hub cache, the repository's name."""
    parts = [part for part in name.replace(":", "/").split("/") if part] or [""]
    if len(parts) > 2 and parts[-2] == "snapshots" and parts[-3].startswith("models--"):
        return parts[-3].rpartition("--")[2].casefold()
    return parts[-1].casefold()


def _endpoint(url: str, called: _Called, key: str, key_variable: str, until: float) -> Endpoint:
    import httpx
    import openai

    with openai.OpenAI(base_url=url, api_key=key, timeout=30, max_retries=0) as client:
        while True:
            try:
                models = client.models.list().data
                break
            except openai.APIConnectionError as error:
                if time.monotonic() > until:
                    raise UserError(f"no vLLM server answers at {url}; {START}") from error
                time.sleep(2)
            except openai.AuthenticationError as error:
                raise UserError(
                    f"server {url} refuses the key; put the right one into {key_variable}"
                ) from error
            except openai.OpenAIError as error:
                raise UserError(f"server {url} lists no models: {error}") from error
    served = {m.id: m for m in models}
    served_as = called.among(served, url)
    try:
        version = httpx.get(url.removesuffix("/v1") + "/version", timeout=30).json()["version"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        # other servers that speak this API have no such page, and gateways hide it
        version = "unknown"
    limit = getattr(served[served_as], "max_model_len", None)
    return Endpoint(url, served_as, limit, str(version), key)


def _request(
    endpoint: Endpoint, prompt: Sequence[int], sampling: Sampling, most: int, seed: int
) -> dict[str, Any]:
    """One prompt's request, with nothing left to the server's defaults."""
    # by ids, not by strings, of which two tokens may have the same
    leads = {"return_tokens_as_token_ids": True} if sampling.leads else {}
    return {
        **({"logprobs": LEADS} if sampling.leads else {}),
        "model": endpoint.served_as,
        "prompt": [int(i) for i in prompt],
        "max_tokens": most,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": seed,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "extra_body": {
            **leads,
            "return_token_ids": True,
            "repetition_penalty": sampling.repetition_penalty,
            "stop_token_ids": list(sampling.stop_ids),
            # the model's end tokens end a text only if they are among the stop tokens sent
            "ignore_eos": True,
            "top_k": -1,
            "min_p": 0,
            "min_tokens": 0,
        },
    }


def _read(reply: Any, i: int, prompt: Sequence[int], url: str) -> tuple[Sequence[int], str | None]:
    """The token ids of a reply, and its finish reason."""
    choices = getattr(reply, "choices", None)
    if not choices or len(choices) != 1:
        raise BackendError(f"prompt {i}: {url} gave back {len(choices or ())} choices, not one")
    (choice,) = choices
    ids, read = getattr(choice, "token_ids", None), getattr(choice, "prompt_token_ids", None)
    if ids is None:
        raise BackendError(
            f"prompt {i}: {url} gives no token_ids back; vLLM 0.10.2 and later do, where "
            "return_token_ids is asked for, and text would have to be tokenised anew"
        )
    if read is not None and list(read) != list(prompt):
        raise BackendError(
            f"prompt {i}: {url} read {len(read)} tokens that are not the {len(prompt)} sent; does "
            "it truncate prompts, or add tokens?"
        )
    return ids, choice.finish_reason


def _gaps(reply: Any, i: int, url: str) -> list[float]:
    """The lead of each token of a reply, in nats."""
    log_probs = getattr(reply.choices[0], "logprobs", None)
    places = getattr(log_probs, "top_logprobs", None)
    if not places or any(len(place or ()) < LEADS for place in places):
        raise BackendError(
            f"prompt {i}: {url} gives no log-probs of the {LEADS} likeliest tokens back, by which "
            "answers that are near ties are told; start it with --max-logprobs 2 or more"
        )
    return [gap_of(place.values()) for place in places]
