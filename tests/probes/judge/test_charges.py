"""What a call is charged where no server says: by hand, and through servers that are silent."""

from __future__ import annotations

import math
from contextvars import copy_context

import pytest

from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask, Field, Form, Reply, Usage, Writing, no_reply
from faithscope.probes.judge.replies import may_be_billed, timed_out
from faithscope.probes.judge.spend import (
    MESSAGE_TOKENS,
    REPLY_TOKENS,
    Budget,
    BudgetSpent,
    Call,
    Price,
    most_used,
)

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_judge import InMemory
from fault_server import (
    GOOD,
    FaultServer,
    body,
    completion,
    cut_off,
    fails,
    replies,
    says,
    waits,
)
from judge_replies import replies_of

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


def ask(name: str = "a") -> Ask:
    return Ask(name, FORM, {"item": name})


UNKNOWN = most_used(ask(), MOST)
"""What a call is charged whose usage nobody tells."""


def test_the_most_that_a_call_may_use_by_hand() -> None:
    writing = Writing("w", "x" * 70, "y" * 35, (("user", "z" * 35), ("assistant", "z" * 35)))
    assert most_used(writing, MOST) == Usage(1, 175 // 3.5 + 3 * MESSAGE_TOKENS, MOST)
    unprompted = most_used(ask(), None, prompted=False)
    read = math.ceil(len("item=a; Rate this.") / 3.5) + 12
    assert unprompted == Usage(1, read, REPLY_TOKENS)


@pytest.mark.parametrize(
    ("told", "charged"),
    [
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
            Usage(1, 100, 20),
        ),
        (
            {"prompt_tokens": 0, "completion_tokens": 7, "total_tokens": 7},
            Usage(1, UNKNOWN.input_tokens, 7),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 0, "total_tokens": 100},
            Usage(1, 100, MOST),
        ),
        (None, UNKNOWN),
    ],
)
def test_what_the_server_does_not_tell_counts_as_the_most_that_was_allowed(
    server: FaultServer, told: dict[str, int] | None, charged: Usage
) -> None:
    server.default = [says(GOOD, used=told)]
    budget = InMemory(prices=PRICES)
    judge(server, budget).ask_all([ask()], lambda *_: None)
    (call,) = budget.kept
    assert (call.outcome, call.usage) == ("parsed", charged)
    assert call.estimated == (charged != Usage(1, 100, 20))
    assert call.cost == PRICES["gpt-4.1"].of(charged)


def test_an_attempt_may_be_billed_where_it_was_on_its_way() -> None:
    for error in (None, "RuntimeError('model call cancelled')", 'AttemptTimeoutError("…")'):
        assert may_be_billed(error)
    assert not may_be_billed("RateLimitError(…)")


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
    each = PRICES["gpt-4.1"].of(UNKNOWN)
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


WHOLE = completion(GOOD, used=None)
NO_COUNTS = {
    "negative completion": {"completion_tokens": -(10**6)},
    "negative prompt": {"prompt_tokens": -1},
    "negative total": {"total_tokens": -1},
    "more cached than read": {"prompt_tokens_details": {"cached_tokens": 101}},
    "negative cached": {"prompt_tokens_details": {"cached_tokens": -50}},
    "more written to the cache than read": {"prompt_tokens_details": {"cache_write_tokens": 500}},
    "negative thinking": {"completion_tokens_details": {"reasoning_tokens": -5}},
    "huge prompt": {"prompt_tokens": 10**18},
    "huge completion": {"completion_tokens": 10**9},
}


def test_counts_that_are_none_are_estimated(server: FaultServer) -> None:
    server.plan = {name: [replies("usage", **counts)] for name, counts in NO_COUNTS.items()}
    budget = InMemory(prices=PRICES, max_cost=1)
    answers = replies_of(judge(server, budget), [ask(name) for name in NO_COUNTS])
    assert {(r.outcome, r.usage) for r in answers.values()} == {("parsed", Usage(calls=1))}
    for call in budget.kept:
        most = most_used(ask(call.ask.partition("/")[2]), MOST)
        assert (call.usage, call.estimated) == (most, True)


TRUTHS = {
    "prompt true": {"prompt_tokens": True},
    "completion false": {"completion_tokens": False},
    "thinking true": {"completion_tokens_details": {"reasoning_tokens": True}},
}


def test_true_and_false_are_no_counts(server: FaultServer) -> None:
    """The client makes 1 and 0 of them."""
    server.plan = {name: [replies("usage", **counts)] for name, counts in TRUTHS.items()}
    server.plan["own key"] = [replies("usage", is_byok=True)]
    budget = InMemory(prices=PRICES, max_cost=1)
    answers = replies_of(judge(server, budget), [ask(name) for name in server.plan])
    assert answers.pop("own key").usage == Usage(1, 100, 20, 5, 40)
    assert {(r.outcome, r.usage) for r in answers.values()} == {("parsed", Usage(calls=1))}
    estimated = {call.ask.partition("/")[2] for call in budget.kept if call.estimated}
    assert estimated == set(TRUTHS)


def test_thinking_that_is_no_part_of_the_completion_is_counted_beside_it(
    server: FaultServer,
) -> None:
    server.default = [replies("usage", completion_tokens_details={"reasoning_tokens": 5000})]
    answers: list[Reply] = []
    judge(server, InMemory()).ask_all([ask()], lambda _, r: answers.append(r))
    assert answers[0].usage == Usage(1, 100, 5020, 5000, 40)


UNREADABLE = {
    "usage null": replies("usage", prompt_tokens=None),
    "usage float": replies("usage", completion_tokens=20.5),
    "usage words": replies("usage", prompt_tokens="many"),
    "usage NaN": replies("usage", prompt_tokens=float("nan")),
    "usage empty": replies(usage={}),
    "usage a number": replies(usage=7),
    "details a list": replies("usage", prompt_tokens_details=[1]),
    "parts": replies("choices", 0, "message", content=[{"type": "text", "text": GOOD}]),
    "a number": replies("choices", 0, "message", content=3),
    "no message": replies("choices", 0, message=None),
    "no choices": replies(choices=None),
    "other letters": body(WHOLE.replace(b"fine", b"\xff\xfe")),
    "a long number": body(WHOLE.replace(b'"created": 1', b'"created": ' + b"9" * 5000)),
    "half": body(WHOLE[: len(WHOLE) // 2]),
    "more behind": body(WHOLE + b"more"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_reply_that_the_client_cannot_read_is_charged_and_kept(
    server: FaultServer, name: str
) -> None:
    server.default = [UNREADABLE[name]]
    account = InMemory(prices=PRICES)
    answers: list[Reply] = []
    judge(server, account, attempts=2).ask_all([ask()], lambda _, r: answers.append(r))
    (reply,) = answers
    assert reply.outcome == "unparsed"
    assert reply.problem.startswith("the server's reply cannot be read: ")
    # its text is kept, and so it is not asked for again at the next start
    assert reply.text.startswith('{"id": "x"')
    assert no_reply(reply) == ""
    assert account.calls == sum(server.seen.values()) == 2
    for call in account.kept:
        assert (call.usage, call.estimated) == (UNKNOWN, True)


@pytest.mark.parametrize(
    "raw", [b"<html><body>Log in first</body></html>", b"", b"null", b"[]", b"[" * 100_000]
)
def test_a_page_in_the_place_of_a_reply_is_charged_and_asked_for_again(
    server: FaultServer, raw: bytes
) -> None:
    server.default = [body(raw)]
    account = InMemory(prices=PRICES)
    answers: list[Reply] = []
    judge(server, account, attempts=1).ask_all([ask()], lambda _, r: answers.append(r))
    assert (answers[0].outcome, answers[0].text) == ("unparsed", "")
    assert no_reply(answers[0]).startswith("the server's reply cannot be read")
    assert [call.usage for call in account.kept] == [UNKNOWN]


def test_an_error_with_the_status_of_success_is_a_failure(server: FaultServer) -> None:
    server.default = [body(b'{"error": {"message": "overloaded", "code": 503}}')]
    answers: list[Reply] = []
    judge(server, InMemory()).ask_all([ask()], lambda _, r: answers.append(r))
    assert answers[0].outcome == "failed"
    assert answers[0].problem == "the server sent an error in place of a reply: overloaded"


def test_a_body_that_breaks_off_with_its_connection_is_charged(server: FaultServer) -> None:
    server.default = [cut_off]
    account = InMemory(prices=PRICES)
    judge(server, account).ask_all([ask()], lambda *_: None)
    assert [(c.outcome, c.usage) for c in account.kept] == [("failed", UNKNOWN)]


def test_a_server_of_which_nothing_can_be_read_is_asked_no_further(server: FaultServer) -> None:
    server.default = [UNREADABLE["usage float"]]
    answers: list[Reply] = []
    with pytest.raises(UserError, match=r"10 asks in a row failed; .*cannot be read"):
        judge(server, InMemory(), attempts=1).ask_all(
            [ask(str(i)) for i in range(40)], lambda _, r: answers.append(r)
        )
    assert len(answers) == 10


def test_a_long_body_is_kept_in_part_and_no_key_of_it(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_API_KEY", "planted-secret-value")
    long = "planted-secret-value" + "x" * 100_000
    server.default = [replies("choices", 0, "message", content=[long])]
    account = InMemory(prices=PRICES)
    answers: list[Reply] = []
    judge(server, account, attempts=1).ask_all([ask()], lambda _, r: answers.append(r))
    assert len(answers[0].text) < 11_000
    assert "[OWN_API_KEY]" in answers[0].text
    assert answers[0].text.endswith("characters]")


def test_no_count_of_an_earlier_run_lowers_the_cost() -> None:
    budget = Budget(max_cost=1, prices=PRICES)
    budget.count(Call(NAME, "", "parsed", Usage(1, 100, -(10**6))))
    assert budget.cost == 0
