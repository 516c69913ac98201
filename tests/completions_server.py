"""A server that speaks vLLM's completions API in token ids on loopback, and goes wrong on demand.

A tiny model of the tests generates its texts. Faults are listed by the first token of a prompt, one
behaviour per request; the last one stays.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import loopback

from faithscope import interp
from faithscope.interp.backends.here import Here
from faithscope.interp.generation import Sampling
from faithscope.interp.model import Model

Behaviour = Callable[["Handler"], None]


class Handler(loopback.Handler):
    server: CompletionsServer

    def do_GET(self):
        if self.path == "/health":
            return self.send(200, {})
        if self.path == "/version":
            return self.send(200, {"version": "0.0.test"})
        assert self.path == "/v1/models", self.path
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            return self.send(401, {"error": {"message": "Unauthorized"}})
        limit = self.server.model.max_positions
        root = self.server.root
        listed = [
            {"id": n, "object": "model", "max_model_len": limit} | ({"root": root} if root else {})
            for n in self.server.names
        ]
        return self.send(200, {"object": "list", "data": listed})

    def do_POST(self):
        assert self.path == "/v1/completions", self.path
        self.asked = self.body()
        with self.server.lock:
            first = self.asked["prompt"][0]
            plan = self.server.plan.get(first, [good])
            behave = plan[min(self.server.seen[first], len(plan) - 1)]
            self.server.seen[first] += 1
            self.server.asked.append(self.asked)
        behave(self)

    def written(self) -> dict[str, Any]:
        """The complete reply that vLLM would send."""
        asked = self.asked
        assert asked["model"] in self.server.names
        assert asked["ignore_eos"] is True
        assert asked["return_token_ids"] is True
        sampling = Sampling(
            tuple(asked["stop_token_ids"]),
            asked["max_tokens"],
            temperature=asked["temperature"],
            top_p=asked["top_p"],
            repetition_penalty=asked["repetition_penalty"],
            seed=(asked["seed"],),
        )
        with self.server.lock:
            (said,) = Here(self.server.model).generate([asked["prompt"]], sampling)
        ids = list(said.tokens)
        choice = {
            "index": 0,
            "text": "never read",
            "finish_reason": said.finish,
            "token_ids": ids,
            "prompt_token_ids": asked["prompt"],
        }
        if "logprobs" in asked:
            # tokens are told apart by ids, and a rival's log-prob is all that is read of it
            assert asked["return_tokens_as_token_ids"] is True
            places = zip(ids, said.gaps, strict=True)
            top = [{f"token_id:{i}": -0.5, "token_id:-1": -0.5 - gap} for i, gap in places]
            choice["logprobs"] = {"top_logprobs": top}
        return {
            "id": "x",
            "object": "text_completion",
            "created": 1,
            "model": asked["model"],
            "choices": [choice],
        }


class CompletionsServer(loopback.Server):
    def __init__(
        self,
        model: Model,
        names: tuple[str, ...] = ("m",),
        key: str = "",
        root: str = "",
        port: int = 0,
    ):
        super().__init__(Handler, port)
        self.root = root
        self.model, self.names, self.key = model, names, key
        self.plan: dict[int, list[Behaviour]] = {}
        self.seen: Counter[int] = Counter()
        self.asked: list[dict[str, Any]] = []


def good(handler: Handler):
    handler.send(200, handler.written())


def fails(status: int, message: str = "no") -> Behaviour:
    return lambda handler: handler.send(status, {"error": {"message": message}})


def changed(**changes: Any) -> Behaviour:
    """A reply whose only choice has changed fields; None removes a field."""

    def behave(handler: Handler):
        whole = handler.written()
        choice = whole["choices"][0] | changes
        whole["choices"] = [{k: v for k, v in choice.items() if v is not None}]
        handler.send(200, whole)

    return behave


def garbage(handler: Handler):
    handler.send(200, b"<html>gateway</html>")


def dies(handler: Handler):
    """The server dies: this connection breaks, and no further one is accepted."""
    handler.server.socket.close()
    handler.hang_up()


def main() -> None:
    """Serves a model as a process of its own, as `vllm serve MODEL --port PORT` does."""
    model, _, port = sys.argv[2:5]
    with CompletionsServer(interp.load(model), (model,), port=int(port)):
        threading.Event().wait()


if __name__ == "__main__":
    main()
