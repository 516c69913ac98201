"""A judge that asks the server of `fault_server`."""

from __future__ import annotations

from fault_server import FaultServer

from faithscope.probes.judge.api import ApiJudge
from faithscope.probes.judge.form import Ask, Field, Form, Reply, Usage

FORM = Form(
    "coverage",
    "item={item}; Rate this.",
    (Field("rationale", "text"), Field("score", "integer", 0, 4)),
    "score",
    system="You are strict.",
)
NAME = "openai/gpt-4.1"
KEY = "sk-planted-1f0e9d8c7b6a"
ONE = Usage(1, 100, 20, 5, 40)
"""What the server bills for one completion."""


def asks(names) -> list[Ask]:
    return [Ask(str(name), FORM, {"item": str(name)}) for name in names]


def judge(server: FaultServer, **changes) -> ApiJudge:
    settings = {"max_retries": 0, "structured": "prompt"} | changes
    return ApiJudge(NAME, base_url=server.url, **settings)


def ask_all(judge: ApiJudge, names) -> dict[str, Reply]:
    replies = {}

    def keep(ask: Ask, reply: Reply):
        assert ask.id not in replies, "a reply came twice"
        replies[ask.id] = reply

    judge.ask_all(asks(names), keep)
    return replies
