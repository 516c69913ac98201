"""A judge whose model is behind the server of `fault_server`."""

from __future__ import annotations

from typing import Any

from fault_server import FaultServer
from judge_replies import replies_of

from faithscope.interp.errors import UserError
from faithscope.probes.judge.api import ApiJudge
from faithscope.probes.judge.form import Ask, Field, Form, Reply, Usage
from faithscope.probes.judge.spend import Budget, Call

FORM = Form(
    "coverage",
    "item={item}; Rate this.",
    (Field("rationale", "text"), Field("score", "integer", 0, 4)),
    "score",
    system="You are strict.",
)
NAME = "openai/gpt-4.1"
ONE = Usage(1, 100, 20, 5, 40)
"""Usage that the server reports for one completion."""


def asks(names) -> list[Ask]:
    return [Ask(str(name), FORM, {"item": str(name)}) for name in names]


def judge(server: FaultServer, **changes) -> ApiJudge:
    settings = {"max_retries": 0, "structured": "prompt"} | changes
    return ApiJudge(NAME, base_url=server.url, **settings)


def ask_all(judge: ApiJudge, names) -> dict[str, Reply]:
    return replies_of(judge, asks(names))


class InMemory(Budget):
    """An account in memory whose budget may be spent."""

    def __init__(self, most: int = 10**9, **limits: Any) -> None:
        super().__init__(**limits)
        self.kept: list[Call] = []
        self.most = most

    def keep(self, call: Call) -> None:
        if len(self.kept) == self.most:
            raise UserError("the account is full")
        self.kept.append(call)
