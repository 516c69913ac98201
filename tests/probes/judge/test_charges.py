"""What a call is charged where no server says: by hand, and through servers that are silent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Reply, Usage, Writing, no_reply
from faithscope.probes.judge.spend import (
    MESSAGE_TOKENS,
    REPLY_TOKENS,
    BudgetSpent,
    most_used,
    tokens_of,
)

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_judge import ONE, PRICE, account, ask_all, asks, judge
from fault_server import (
    GOOD,
    USAGE,
    FaultServer,
    body,
    completion,
    cut_off,
    fails,
    hangs_up,
    replies,
    says,
    waits,
)

from faithscope.experiments.engine.models.account import calls_of
from faithscope.probes.judge.api import ApiJudge

MOST = 200
(ASK,) = asks("a")
UNKNOWN = most_used(ASK, MOST)
"""What a call is charged whose usage nobody tells."""


def test_the_most_that_a_call_may_use_by_hand() -> None:
    writing = Writing("w", "x" * 70, "1" * 35, (("user", "z" * 35), ("assistant", "z" * 35)))
    assert most_used(writing, MOST) == Usage(1, 175 + 3 * MESSAGE_TOKENS, MOST)
    unprompted = most_used(ASK, None, prompted=False)
    # item=a; Rate this. You are strict.
    read = 4 / 2.5 + 1 + 1 + 1 + 4 / 2.5 + 4 / 2.5 + 1 + 3 / 2.5 + 3 / 2.5 + 6 / 2.5 + 1
    assert unprompted == Usage(1, math.ceil(read) + 12, REPLY_TOKENS)


@pytest.mark.parametrize(
    ("text", "most_of_nine"),
    [
        # the most that one of nine vocabularies makes of it, those of `LETTERS_PER_TOKEN`
        ("12345678 9012", 13),
        (r"\[\frac{x^2+3x-7}{\sqrt{2y+1}} = \sum_{i=1}^{n} \alpha_i \leq 3\]", 41),
        ("小明有十二个苹果，他给了小红三个，还剩下多少个苹果？", 44),
        ("Следовательно, правильный ответ — девять.", 31),
        ("Gur dhvpx oebja sbk whzcf bire gur ynml qbt.", 24),
        ("😀🎉👍🏽", 16),
        ("The quick brown fox jumps over the lazy dog.", 12),
    ],
)
def test_no_text_has_more_tokens_than_its_estimate(text: str, most_of_nine: int) -> None:
    estimate = tokens_of([text], 0)
    assert most_of_nine <= estimate <= 4 * most_of_nine


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
    server: FaultServer, tmp_path: Path, told: dict[str, int] | None, charged: Usage
) -> None:
    server.default = [says(GOOD, used=told)]
    ask_all(one_judge(server, tmp_path), "a")
    (call,) = calls_of(tmp_path)
    assert (call.outcome, call.usage) == ("parsed", charged)
    assert call.estimated == (charged != Usage(1, 100, 20))
    assert call.cost == PRICE.of(charged)


def test_a_reply_that_says_something_is_one_though_its_tokens_are_not_told() -> None:
    assert no_reply(Reply("unparsed", text="hm", usage=Usage(1))) == ""
    assert no_reply(Reply("unparsed", problem="empty", usage=Usage(1))) == "empty"


def one_judge(server: FaultServer, folder: Path, limits: Mapping[str, Any] = {}, **changes):
    """A judge with one connection, whose calls are kept in a run folder."""
    settings = {"max_tokens": MOST, "max_connections": 1} | changes
    return judge(server, account=account(folder, **limits), **settings)


def test_a_cost_is_limited_where_the_server_tells_no_usage(
    server: FaultServer, tmp_path: Path
) -> None:
    server.plan = {str(i): [says(GOOD, used=None)] for i in range(10)}
    server.plan["0"] = [says(GOOD, used={"prompt_tokens": 0, "completion_tokens": 0,
                                         "total_tokens": 0})]  # fmt: skip
    each = PRICE.of(UNKNOWN)
    answers: list[Reply] = []
    with pytest.raises(BudgetSpent, match="max_cost="):
        one_judge(server, tmp_path, {"max_cost": 3.5 * each}).ask_all(
            asks(range(10)), lambda _, r: answers.append(r)
        )
    assert len(answers) == sum(server.seen.values()) == 3
    assert account(tmp_path).cost == pytest.approx(3 * each)
    found = [(s.estimated, s.cost) for s in calls_of(tmp_path)]
    assert found == [(True, pytest.approx(each))] * 3
    # records keep what the server said
    assert {reply.usage for reply in answers} == {Usage(calls=1)}


@pytest.mark.slow
def test_every_attempt_that_timed_out_is_charged(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspect_ai.model import ModelAPI
    from tenacity import wait_none

    monkeypatch.setattr(ModelAPI, "retry_wait", lambda self: wait_none())
    server.plan = {"late": [waits(1.5, says(GOOD)), says(GOOD)], "never": [waits(1.5, says(GOOD))]}
    late = {"attempt_timeout": 1, "max_retries": 1, "max_connections": 2}
    answers = ask_all(one_judge(server, tmp_path, **late), ["late", "never"])
    assert {name: reply.outcome for name, reply in answers.items()} == {
        "late": "parsed",
        "never": "failed",
    }
    calls = calls_of(tmp_path)
    found = sorted((s.ask, s.outcome, s.estimated) for s in calls)
    assert found == [
        ("coverage/late", "parsed", False),
        ("coverage/late", "timed_out", True),
        ("coverage/never", "failed", True),
        ("coverage/never", "timed_out", True),
    ]
    assert len(calls) == sum(server.seen.values()) == 4
    unseen = {s.usage.output_tokens for s in calls if s.estimated}
    assert unseen == {MOST}


def test_asks_are_counted_apart_where_their_caller_has_a_transcript(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspect_ai.log import transcript

    def called_within_an_evaluation() -> None:
        transcript()
        test_every_attempt_that_timed_out_is_charged(server, tmp_path, monkeypatch)

    copy_context().run(called_within_an_evaluation)


@pytest.mark.slow
def test_only_what_the_server_refused_or_never_got_costs_nothing(
    server: FaultServer, tmp_path: Path
) -> None:
    server.plan = {
        "bad": [fails(400)],
        "broken": [body(b'{"id": "x", "cho')],
        "cut off": [cut_off],
        "hung up": [hangs_up],
    }
    ask_all(one_judge(server, tmp_path, attempts=1), server.plan)
    calls = calls_of(tmp_path)
    found = {s.ask.partition("/")[2]: (s.usage.output_tokens, s.estimated) for s in calls}
    assert found == {
        "bad": (0, False),
        "broken": (MOST, True),
        "cut off": (MOST, True),
        "hung up": (MOST, True),
    }
    nowhere = ApiJudge("openai/gpt-4.1", {"max_retries": 0}, base_url="http://127.0.0.1:9/v1",
                       account=account(tmp_path))  # fmt: skip
    (reply,) = ask_all(nowhere, "x").values()
    assert reply.outcome == "failed"
    assert [(s.usage, s.estimated) for s in calls_of(tmp_path)][-1] == (Usage(1), False)


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


def test_counts_that_are_none_are_estimated(server: FaultServer, tmp_path: Path) -> None:
    server.plan = {name: [replies("usage", **counts)] for name, counts in NO_COUNTS.items()}
    answers = ask_all(one_judge(server, tmp_path, {"max_cost": 1}), NO_COUNTS)
    assert {(r.outcome, r.usage) for r in answers.values()} == {("parsed", Usage(calls=1))}
    for call in calls_of(tmp_path):
        (ask,) = asks([call.ask.partition("/")[2]])
        assert (call.usage, call.estimated) == (most_used(ask, MOST), True)


def test_thinking_that_is_no_part_of_the_completion_is_counted_beside_it(
    server: FaultServer,
) -> None:
    server.default = [replies("usage", completion_tokens_details={"reasoning_tokens": 5000})]
    assert ask_all(judge(server), "a")["a"].usage == Usage(1, 100, 5020, 5000, 40)


UNREADABLE = {
    "parts": replies("choices", 0, "message", content=[{"type": "text", "text": GOOD}]),
    "a number": replies("choices", 0, "message", content=3),
    "no message": replies("choices", 0, message=None),
    "no choices": replies(choices=None),
    "other letters": body(WHOLE.replace(b"fine", b"\xff\xfe")),
    "a long number": body(WHOLE.replace(b'"created": 1', b'"created": ' + b"9" * 5000)),
    "half": body(WHOLE[: len(WHOLE) // 2]),
    "more behind": body(WHOLE + b"more"),
    "a page": body(b"<html><body>Log in first</body></html>"),
    "nothing": body(b""),
    "null": body(b"null"),
    "deep": body(b"[" * 100_000),
    "an error": body(b'{"error": {"message": "overloaded", "code": 503}}'),
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.in_time(7)
def test_a_reply_that_the_client_cannot_read_is_charged_and_asked_for_again(
    server: FaultServer, tmp_path: Path, name: str
) -> None:
    server.default = [UNREADABLE[name]]
    (reply,) = ask_all(one_judge(server, tmp_path, attempts=2), "a").values()
    assert reply.outcome == "unparsed"
    assert reply.problem.startswith("the server's reply cannot be read: ")
    assert no_reply(reply) == reply.problem
    calls = calls_of(tmp_path)
    assert len(calls) == sum(server.seen.values()) == 2
    assert {(call.usage, call.estimated) for call in calls} == {(UNKNOWN, True)}


READ, MOST_READ = 100, UNKNOWN.input_tokens
UNREAD = {
    "null": (replies(usage=dict.fromkeys(USAGE)), (MOST_READ, MOST)),
    "empty": (replies(usage={}), (MOST_READ, MOST)),
    "a number": (replies(usage=7), (MOST_READ, MOST)),
    "a list": (replies(usage=[USAGE]), (MOST_READ, MOST)),
    "words": (replies("usage", prompt_tokens="many", total_tokens="120"), (MOST_READ, 20)),
    "a null beside a total": (replies("usage", prompt_tokens=None), (READ, 20)),
    "half a token": (replies("usage", completion_tokens=20.5, total_tokens=None), (READ, MOST)),
    "NaN": (replies("usage", completion_tokens=float("nan")), (READ, 20)),
    "only a total": (replies(usage={"total_tokens": 5000}), (MOST_READ, 5000)),
    "details a list": (replies("usage", prompt_tokens_details=[1]), (READ, 20)),
}
"""What a server tells that is no usage -> the tokens that are charged."""


def test_a_usage_that_cannot_be_read_takes_no_verdict_away(
    server: FaultServer, tmp_path: Path
) -> None:
    server.plan = {name: [tells] for name, (tells, _) in UNREAD.items()}
    answers = ask_all(one_judge(server, tmp_path), UNREAD)
    assert {(r.outcome, r.values["score"]) for r in answers.values()} == {("parsed", 3)}
    assert max(server.seen.values()) == 1
    longer = {ask.id: most_used(ask, MOST).input_tokens for ask in asks(UNREAD)}
    for call in calls_of(tmp_path):
        name = call.ask.partition("/")[2]
        read, written = UNREAD[name][1]
        read = longer[name] if read == MOST_READ else read
        assert (call.usage.input_tokens, call.usage.output_tokens) == (read, written), name
        assert call.estimated == (name not in ("a null beside a total", "NaN", "details a list"))


def test_tokens_of_the_total_that_are_in_no_part_were_written(server: FaultServer) -> None:
    told = {"prompt_tokens": 100, "completion_tokens": 20}
    for total, written in ((10_120, 10_020), (120, 20), (90, 20)):
        server.default = [says(GOOD, used=told | {"total_tokens": total})]
        assert ask_all(judge(server), "a")["a"].usage == Usage(1, 100, written)


ENDLESS = ["error", "abort", "insufficient_system_resource", "network_error", "unknown", "", None]


def test_a_reply_that_did_not_end_of_itself_is_no_verdict_and_asked_for_again(
    server: FaultServer, tmp_path: Path
) -> None:
    ends = {str(i): finish for i, finish in enumerate(ENDLESS)}
    server.plan = {name: [says(GOOD, finish)] for name, finish in ends.items()}
    server.plan["again"] = [says(GOOD, "error"), says(GOOD)]
    answers = ask_all(one_judge(server, tmp_path, attempts=2), server.plan)
    assert answers.pop("again").outcome == "parsed"
    assert set(server.seen.values()) == {2}
    for name, reply in answers.items():
        assert (reply.outcome, reply.values, reply.text) == ("failed", {}, GOOD)
        assert no_reply(reply).endswith(repr(ends[name]) if ends[name] else "no finish reason")
        # all that was written is charged
        assert reply.usage == ONE + ONE
    known = {
        "parsed": ("STOP", "eos_token", "end_turn", "stop_sequence", "COMPLETE"),
        "truncated": ("MAX_TOKENS", "max_output_tokens"),
        "filtered": ("sensitive", "SAFETY"),
    }
    server.plan = {end: [says(GOOD, end)] for of in known.values() for end in of}
    answers = ask_all(judge(server), server.plan)
    assert {name: r.outcome for name, r in answers.items()} == {
        end: outcome for outcome, of in known.items() for end in of
    }


def test_a_server_of_which_nothing_can_be_read_is_asked_no_further(server: FaultServer) -> None:
    server.default = [UNREADABLE["a number"]]
    answers: list[Reply] = []
    with pytest.raises(UserError, match=r"10 asks in a row failed; .*cannot be read"):
        judge(server, attempts=1, max_connections=1).ask_all(
            asks(range(40)), lambda _, r: answers.append(r)
        )
    assert len(answers) == 10
