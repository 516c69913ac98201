"""A server that speaks the chat completions API on loopback and goes wrong on demand.

Its behaviours are listed by the item that a prompt names (`item=ID;`), one per request; the last
one stays.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import loopback

KEY = "sk-planted-0a1b2c3d4e5f"
"""The API key that clients must send; it must not appear in any file."""
GOOD = '{"rationale": "fine", "score": 3}'
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
Behaviour = Callable[["Handler"], None]


class Handler(loopback.Handler):
    server: FaultServer

    def do_POST(self):
        body = self.body()
        if self.path.endswith("/responses"):
            self.server.bodies.append(body)
            return self.send(200, responds(GOOD))
        assert self.path.endswith("/chat/completions"), self.path
        self.request_body = body
        with self.server.lock:
            item = re.search(r"item=([^;]*);", json.dumps(body["messages"]))
            name = item[1] if item else ""
            plan = self.server.plan.get(name, self.server.default)
            behave = plan[min(self.server.seen[name], len(plan) - 1)]
            self.server.seen[name] += 1
            self.server.bodies.append(body)
            self.server.keys.add(self.headers.get("Authorization", ""))
            self.server.now += 1
            self.server.most = max(self.server.most, self.server.now)
        try:
            behave(self)
        finally:
            with self.server.lock:
                self.server.now -= 1


class FaultServer(loopback.Server):
    def __init__(self):
        super().__init__(Handler)
        self.plan: dict[str, list[Behaviour]] = {}
        self.default: list[Behaviour] = [says(GOOD)]
        self.seen: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.now = 0
        self.most = 0


def completion(
    content: str | None,
    finish: str | None = "stop",
    used: dict[str, Any] | None = USAGE,
    served: str = "m",
    **message: Any,
) -> bytes:
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content, **message},
    }
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": served}
    return json.dumps({**whole, "choices": [choice], "usage": used}).encode()


def says(content: str | None, finish: str | None = "stop", **message: Any) -> Behaviour:
    return lambda handler: handler.send(200, completion(content, finish, **message))


def responds(text: str) -> dict[str, Any]:
    """A reply of OpenAI's responses API, which is used for models that think."""
    content = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    return {
        "id": "r",
        "object": "response",
        "created_at": 0,
        "model": "o3-mini",
        "status": "completed",
        "output": [message | {"content": [content]}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 40},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 120,
        },
    }


def fails(status: int, message: str = "no", code: str = "", **headers: str) -> Behaviour:
    error = {"error": {"message": message, "type": "invalid_request_error", "code": code or None}}
    return lambda handler: handler.send(status, error, **headers)


def body(raw: bytes) -> Behaviour:
    return lambda handler: handler.send(200, raw)


def replies(*at: str | int, **changes: Any) -> Behaviour:
    """A good reply with other values in the part of its JSON that lies at a path."""
    whole = json.loads(completion(GOOD))
    part = whole
    for key in at:
        part = part[key]
    part.update(changes)
    return body(json.dumps(whole).encode())


def waits(seconds: float, then: Behaviour) -> Behaviour:
    def behave(handler: Handler):
        time.sleep(seconds)
        then(handler)

    return behave


def drips(content: str) -> Behaviour:
    """A complete reply, sent a few bytes at a time."""

    def behave(handler: Handler):
        raw = completion(content)
        handler.begin(200, len(raw))
        for at in range(0, len(raw), 60):
            handler.wfile.write(raw[at : at + 60])
            handler.wfile.flush()
            time.sleep(0.02)

    return behave


def hangs_up(handler: Handler):
    handler.hang_up()


def cut_off(handler: Handler):
    """Sends half of a reply and breaks the connection."""
    raw = completion(GOOD)
    handler.begin(200, len(raw))
    handler.wfile.write(raw[: len(raw) // 2])
    handler.wfile.flush()
    handler.hang_up()


def key_of(handler: Handler) -> str:
    return handler.headers["Authorization"].removeprefix("Bearer ")


def says_key(content: str, where: str) -> Behaviour:
    """A good reply that repeats the key wherever it can: `where` in its content, and around it."""

    def behave(handler: Handler):
        key = key_of(handler)
        told = {"served": f"m-{key}", "reasoning_content": f"The key is {key}."}
        says(content.replace(where, key), **told)(handler)

    return behave


def echoes_key(status: int) -> Behaviour:
    """An error that repeats the key, as careless servers send for an unknown key."""

    def behave(handler: Handler):
        fails(status, f"Incorrect API key: {handler.headers['Authorization']}")(handler)

    return behave
