"""What a call is charged where no server says: by hand, and through servers that are silent."""

from __future__ import annotations

import math
from contextvars import copy_context

import pytest

from faithscope.probes.judge.charges import (
    MESSAGE_TOKENS,
    REPLY_TOKENS,
    Charge,
    Charges,
    prompt_tokens,
    timed_out,
)
from faithscope.probes.judge.form import Ask, Field, Form, Reply, Usage, Writing, no_reply
from faithscope.probes.judge.spend import Budget, BudgetSpent, Price

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_judge import InMemory
from fault_server import GOOD, FaultServer, body, fails, says, waits

from faithscope.probes.judge.api import ApiJudge

FORM = Form(
    "coverage",
    "item={item}; Rate this.",
    (Field("rationale", "text"), Field("score", "integer", 0, 4)),
    "score",
)
NAME = "openai/gpt-4.1"
PRICES = {"gpt-4.1": Price(input=10, cached=5, output=30)}
MOST = 200
CHARGES = Charges(MOST, prompted=True)


def ask(name: str = "a") -> Ask:
    return Ask(name, FORM, {"item": name})


PUT = prompt_tokens(ask())


def test_a_prompt_by_hand() -> None:
    writing = Writing("w", "x" * 70, "y" * 35, (("user", "z" * 35), ("assistant", "z" * 35)))
    assert prompt_tokens(writing) == 175 / 3.5 + 3 * MESSAGE_TOKENS
    assert prompt_tokens(ask(), prompted=False) == math.ceil(len("item=a; Rate this.") / 3.5) + 12


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply("parsed", text="x", usage=Usage(1, 100, 20, 5, 40)), Usage(1, 100, 20, 5, 40)),
        (Reply("unparsed", usage=Usage(1, 100)), Usage(1, 100)),
        (Reply("filtered", text="no", usage=Usage()), Usage()),
    ],
)
def test_what_the_server_says_is_charged(reply: Reply, expected: Usage) -> None:
    assert CHARGES.of(ask(), reply) == Charge(expected, reply.outcome)


@pytest.mark.parametrize(
    ("reply", "written"),
    [
        (Reply("parsed", text="x" * 30, thinking="y" * 40, usage=Usage(1)), 20),
        (Reply("parsed", text="x" * 30, usage=Usage(1, 0, 7)), 7),
        (Reply("truncated", text="x" * 30, usage=Usage(1)), MOST),
        (Reply("unparsed", usage=Usage(1)), MOST),
        (Reply("filtered", usage=Usage(1)), 0),
    ],
)
def test_what_it_does_not_say_is_estimated(reply: Reply, written: int) -> None:
    expected = Charge(Usage(1, PUT, written), reply.outcome, estimated=True)
    assert CHARGES.of(ask(), reply) == expected


def test_without_a_limit_a_reply_that_nobody_saw_is_guessed() -> None:
    assert Charges(None, True).unseen(ask(), "stopped").usage.output_tokens == REPLY_TOKENS


def test_what_was_stopped_is_charged_where_it_was_on_its_way() -> None:
    cancelled, timeout = "RuntimeError('model call cancelled')", 'AttemptTimeoutError("…")'
    sent = Charge(Usage(1, PUT, MOST), "stopped", estimated=True)
    for attempts in (["RateLimitError(…)", None], [cancelled], [timeout]):
        assert CHARGES.of_stopped(ask(), attempts) == sent
    assert CHARGES.of_stopped(ask(), ["RateLimitError(…)"]) == Charge(Usage(1), "stopped")
    assert CHARGES.of_stopped(ask(), []) == Charge(Usage(), "stopped")


def test_a_timeout_is_told_from_other_errors() -> None:
    assert timed_out("ReadTimeout('')")
    assert timed_out("Request timed out.")
    assert not any(map(timed_out, (None, "ConnectTimeout('')", "RateLimitError('timeout')")))


def test_a_reply_that_says_something_is_one_though_its_tokens_are_not_told() -> None:
    assert no_reply(Reply("unparsed", text="hm", usage=Usage(1))) == ""
    assert no_reply(Reply("unparsed", problem="empty", usage=Usage(1))) == "empty"


def judge(server: FaultServer, budget: Budget, **changes) -> ApiJudge:
    told = {"max_retries": 0, "structured": "prompt", "max_tokens": MOST, "max_connections": 1}
    return ApiJudge(NAME, base_url=server.url, budget=budget, **told | changes)


def test_a_cost_is_limited_where_the_server_tells_no_usage(server: FaultServer) -> None:
    server.plan = {str(i): [says(GOOD, used=None)] for i in range(10)}
    server.plan["0"] = [says(GOOD, used={"prompt_tokens": 0, "completion_tokens": 0,
                                         "total_tokens": 0})]  # fmt: skip
    each = PRICES["gpt-4.1"].of(Usage(1, PUT, math.ceil(len(GOOD) / 3.5)))
    budget = InMemory(max_cost=3.5 * each, prices=PRICES)
    replies: list[Reply] = []
    with pytest.raises(BudgetSpent, match="max_cost="):
        judge(server, budget).ask_all(
            [ask(str(i)) for i in range(10)], lambda _, r: replies.append(r)
        )
    assert len(replies) == sum(server.seen.values()) == 4
    assert budget.cost == pytest.approx(4 * each)
    assert [(s.estimated, s.cost) for s in budget.kept] == [(True, pytest.approx(each))] * 4
    # records keep what the server said
    assert {reply.usage for reply in replies} == {Usage(calls=1)}


def test_every_attempt_that_timed_out_is_charged(server: FaultServer, monkeypatch) -> None:
    from inspect_ai.model import ModelAPI
    from tenacity import wait_none

    monkeypatch.setattr(ModelAPI, "retry_wait", lambda self: wait_none())
    server.plan = {"late": [waits(1.5, says(GOOD)), says(GOOD)], "never": [waits(1.5, says(GOOD))]}
    budget = InMemory(prices=PRICES)
    replies: dict[str, Reply] = {}
    judge(server, budget, timeout=1, max_retries=1, max_connections=2).ask_all(
        [ask("late"), ask("never")], lambda a, r: replies.setdefault(a.id, r)
    )
    assert {name: reply.outcome for name, reply in replies.items()} == {
        "late": "parsed",
        "never": "failed",
    }
    found = sorted((s.ask, s.outcome, s.estimated) for s in budget.kept)
    assert found == [
        ("coverage/late", "parsed", False),
        ("coverage/late", "timed_out", True),
        ("coverage/never", "failed", True),
        ("coverage/never", "timed_out", True),
    ]
    assert budget.calls == sum(server.seen.values()) == 4
    unseen = {s.usage.output_tokens for s in budget.kept if s.estimated}
    assert unseen == {MOST}


def test_asks_are_counted_apart_where_their_caller_has_a_transcript(
    server: FaultServer, monkeypatch
) -> None:
    from inspect_ai.log import transcript

    def called_within_an_evaluation() -> None:
        transcript()
        test_every_attempt_that_timed_out_is_charged(server, monkeypatch)

    copy_context().run(called_within_an_evaluation)


def test_errors_of_the_server_cost_nothing_and_a_broken_body_does(server: FaultServer) -> None:
    server.plan = {"bad": [fails(400)], "broken": [body(b'{"id": "x", "cho')]}
    account = InMemory(prices=PRICES)
    me = judge(server, account, attempts=1)
    me.ask_all([ask("bad"), ask("broken")], lambda *_: None)
    assert {s.ask: (s.usage.output_tokens, s.estimated) for s in account.kept} == {
        "coverage/bad": (0, False),
        "coverage/broken": (MOST, True),
    }
