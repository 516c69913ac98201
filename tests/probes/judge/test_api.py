"""Through a server that goes wrong: nothing lost, nothing doubled, spend counted once."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import signal
import threading
import time
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_judge import NAME, ONE, PRICE, account, ask_all, asks, judge
from fault_server import (
    GOOD,
    KEY,
    body,
    cut_off,
    drips,
    echoes_key,
    fails,
    hangs_up,
    says,
    waits,
)

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.engine.append import Appender
from faithscope.experiments.engine.models.account import RunAccount, calls_of, spend_file
from faithscope.experiments.files import StoreError
from faithscope.interp.errors import UserError
from faithscope.probes.judge.api import ApiJudge
from faithscope.probes.judge.form import Usage, Writing
from faithscope.probes.judge.spend import BudgetSpent, most_used

pytestmark = pytest.mark.usefixtures("home")


LONG = "This model's maximum context length is 100 tokens, your prompt has 200"
SOON = {"retry_after_ms": "10"}
OUTCOMES = {
    "good": ([says(GOOD)], "parsed", 1),
    "slow": ([drips(GOOD)], "parsed", 1),
    "rate limit": ([fails(429, **SOON), fails(429, **SOON), says(GOOD)], "parsed", 3),
    "error": ([fails(500, **SOON), says(GOOD)], "parsed", 2),
    "hung up": ([hangs_up, says(GOOD)], "parsed", 2),
    "cut off": ([cut_off, says(GOOD)], "parsed", 2),
    "down": ([fails(503, **SOON)], "failed", 3),
    "not accepted": ([fails(400, "unknown parameter")], "failed", 1),
    "broken body": ([body(b'{"id": "x", "cho')], "unparsed", 3),
    "other body": ([body(b'"hello"')], "unparsed", 3),
    "no choice": ([body(b'{"id":"x","object":"chat.completion","model":"m","choices":[]}')],
                  "unparsed", 3),
    "prose": ([says("I'd say 3.")], "unparsed", 3),
    "prose once": ([says("I'd say 3."), says(GOOD)], "parsed", 2),
    "empty": ([says("")], "unparsed", 3),
    "nothing": ([says(None)], "unparsed", 3),
    "refusal": ([says(None, refusal="I cannot rate this.")], "refused", 1),
    "filter": ([says("", "content_filter")], "filtered", 1),
    "filter before": ([fails(400, "blocked", "content_filter")], "filtered", 1),
    "cut": ([says('{"rationale": "fine', "length")], "truncated", 1),
    "cut after": ([says(GOOD, "length")], "truncated", 1),
    "cut while thinking": ([says("", "length", reasoning_content="hm")], "truncated", 1),
    "too long": ([fails(400, LONG, "context_length_exceeded")], "overflow", 1),
    "too long, no code": ([fails(400, LONG)], "overflow", 1),
    "too large": ([fails(413, "the prompt is too large")], "overflow", 1),
    "thinking field": ([says(GOOD, reasoning_content="hm")], "parsed", 1),
    "thinking tags": ([says(f"<think>hm</think>{GOOD}")], "parsed", 1),
    "only thinking": ([says(f"<think>{GOOD}</think>")], "unparsed", 3),
    "endless thinking": ([says(f"<think>hm {GOOD}")], "unclosed_thinking", 1),
}  # fmt: skip


def test_every_way_of_having_no_verdict_is_its_own(server):
    server.plan = {name: plan for name, (plan, _, _) in OUTCOMES.items()}
    replies = ask_all(judge(server), OUTCOMES)
    found = {name: (reply.outcome, server.seen[name]) for name, reply in replies.items()}
    assert found == {name: tuple(expected) for name, (_, *expected) in OUTCOMES.items()}
    for name, reply in replies.items():
        assert bool(reply.values) == (reply.outcome == "parsed"), name
        assert bool(reply.problem) == (reply.outcome != "parsed" and name != "filter"), name
    assert replies["good"].values == {"rationale": "fine", "score": 3}
    assert replies["prose"].text == "I'd say 3."
    assert replies["refusal"].text == "I cannot rate this."
    assert "maximum context length" in replies["too long"].problem
    assert {replies[f"thinking {how}"].thinking for how in ("field", "tags")} == {"hm"}
    assert replies["thinking tags"].text == GOOD


def test_usage_is_counted_once(server):
    server.plan = {name: plan for name, (plan, _, _) in OUTCOMES.items()}
    replies = ask_all(judge(server), ["good", "rate limit", "prose", "prose once", "down"])
    assert {name: reply.usage for name, reply in replies.items()} == {
        "good": ONE,
        "rate limit": ONE,
        "prose": Usage(3, 300, 60, 15, 120),
        "prose once": Usage(2, 200, 40, 10, 80),
        "down": Usage(calls=1),
    }


def test_nothing_lost_and_nothing_doubled(server, tmp_path):
    faults = [fails(500, **SOON), fails(429, **SOON), cut_off, hangs_up]
    for i in range(40):
        server.plan[str(i)] = [faults[i % 4]] * (i % 3) + [
            waits(0.5 if i < 8 else 0.02, says(GOOD))
        ]
    me = judge(server, max_connections=8, account=account(tmp_path))
    replies = ask_all(me, range(40))
    assert Counter(reply.outcome for reply in replies.values()) == {"parsed": 40}
    assert all(reply.usage == ONE for reply in replies.values())
    assert server.seen == {str(i): i % 3 + 1 for i in range(40)}
    assert 1 < server.most <= 8
    assert len(calls_of(tmp_path)) == 40


def test_the_server_says_how_long_to_wait(server):
    server.plan["a"] = [fails(429, Retry_After="1"), says(GOOD)]
    began = time.perf_counter()
    assert ask_all(judge(server), "a")["a"].outcome == "parsed"
    assert time.perf_counter() - began >= 1


def test_a_call_without_an_answer_is_given_up(server):
    server.plan["a"] = [waits(4, says(GOOD))]
    reply = ask_all(judge(server, attempt_timeout=1), "ab")
    assert reply["b"].outcome == "parsed"
    assert reply["a"].outcome == "failed"
    assert reply["a"].seconds < 4
    assert "Timeout" in reply["a"].problem


def test_a_model_that_thinks_is_sent_nothing_but_what_is_asked(server, tmp_path):
    thinks = ApiJudge(
        "openai/o3-mini", {"max_retries": 0}, base_url=server.url, account=account(tmp_path)
    )
    replies = ask_all(thinks, ["a", "b"])
    assert {r.outcome for r in replies.values()} == {"parsed"}
    assert len(server.bodies) == len(calls_of(tmp_path)) == 2


def test_what_is_sent(server):
    replies = ask_all(judge(server, temperature=0.5, seed=7, max_tokens=99), "a")
    held = judge(server, temperature=None, max_tokens=None, structured="schema")
    replies |= ask_all(held, "b")
    prompted, held = server.bodies
    assert replies["a"].requested == prompted["messages"][1]["content"].partition("\n\n")[2] != ""
    assert replies["b"].requested == ""
    assert prompted["messages"][0] == {"role": "system", "content": "You are strict."}
    assert '"maximum": 4' in prompted["messages"][1]["content"]
    assert (prompted["temperature"], prompted["seed"], prompted["max_tokens"]) == (0.5, 7, 99)
    assert "response_format" not in prompted
    assert held["messages"][1]["content"] == "item=b; Rate this."
    schema = held["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"]) == ("coverage", True)
    # bounds would be taken out on the way: see parse.schema
    assert schema["schema"]["properties"]["score"]["enum"] == [0, 1, 2, 3, 4]
    assert schema["schema"]["required"] == ["rationale", "score"]
    assert schema["schema"]["additionalProperties"] is False
    assert not {"temperature", "max_tokens"} & set(held)
    assert ApiJudge(NAME, base_url=server.url).structured == "schema"
    assert ApiJudge("openai-api/own/m", base_url=server.url).structured == "prompt"


def test_replies_come_one_at_a_time_also_where_a_loop_runs(server):
    threads, at_work = set(), threading.Lock()

    def keep(ask, reply):
        assert at_work.acquire(blocking=False)
        threads.add(threading.get_ident())
        time.sleep(0.02)
        at_work.release()

    async def notebook():
        judge(server).ask_all(asks("abc"), keep)

    asyncio.run(notebook())
    assert len(threads) == 1


def test_what_is_not_taken_yet_holds_its_connection(server):
    """A kill loses what was sent and not yet taken: no more asks than there are connections."""
    sent = []

    def keep(ask, reply):
        if len(sent) in (0, 7):
            time.sleep(0.5)
        sent.append(len(server.bodies))

    judge(server, max_connections=2).ask_all(asks(range(20)), keep)
    assert len(sent) == 20
    assert all(now <= taken + 2 for taken, now in enumerate(sent)), sent


@pytest.fixture
def slow_disk(tmp_path, monkeypatch):
    """The account of a run on a slow disk, and what the disk took of it so far, flush by flush."""
    files, flushed, sync = Appender(sync=True), [b""], os.fsync

    def slow(file: int):
        before = (tmp_path / spend_file("main")).read_bytes()
        time.sleep(0.01)
        sync(file)
        flushed.append(before)

    monkeypatch.setattr(os, "fsync", slow)
    with files:
        yield RunAccount(SpendConfig(), tmp_path, "main", files), flushed


def test_one_wait_for_the_disk_serves_all_calls_and_none_is_sent_before_it(server, slow_disk):
    of_run, flushed = slow_disk
    unknown = []

    def behave(handler):
        (name,) = re.findall("item=([^;]*);", json.dumps(handler.request_body))
        if f'"coverage/{name}", "outcome": "begun"'.encode() not in flushed[-1]:
            unknown.append(name)
        says(GOOD)(handler)

    server.default = [behave]
    ask_all(judge(server, max_connections=20, account=of_run), range(60))
    assert not unknown
    assert len(flushed) < 60, "each of 120 lines had a flush of its own"
    assert flushed[-1].count(b"parsed") == 60


def test_a_disk_that_takes_nothing_more_ends_the_asking(server, slow_disk, monkeypatch):
    of_run, flushed = slow_disk
    slow = os.fsync

    def failing(file: int):
        if len(flushed) > 3:
            raise OSError(errno.EIO, "Input/output error")
        slow(file)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(StoreError, match=r"cannot be written \(Input/output error\)"):
        ask_all(judge(server, max_connections=2, account=of_run), range(200))
    assert sum(server.seen.values()) < 20


def test_a_reply_that_cannot_be_kept_ends_the_asking(server):
    server.plan = {str(i): [waits(0.05, says(GOOD))] for i in range(50)}

    def disk_full(ask, reply):
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        judge(server, max_connections=2).ask_all(asks(range(50)), disk_full)
    assert sum(server.seen.values()) < 10


@pytest.fixture
def interruptible():
    """A process that a shell put in the background ignores SIGINT from birth."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_keeps_what_was_answered(server, tmp_path):
    server.plan["never"] = [waits(20, says(GOOD))]
    kept = []
    main = threading.get_ident()

    def keep(ask, reply):
        kept.append(ask.id)
        if len(kept) == 5:
            threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()

    began = time.perf_counter()
    me = judge(server, max_tokens=99, account=account(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        me.ask_all(asks(["never", *"abcde"]), keep)
    assert sorted(kept) == list("abcde")
    assert time.perf_counter() - began < 15
    # what was on its way may be billed
    parsed = {(f"coverage/{name}", "parsed", ONE) for name in "abcde"}
    most = most_used(asks(["never"])[0], 99)
    stopped = ("coverage/never", "stopped", most)
    assert {(s.ask, s.outcome, s.usage) for s in calls_of(tmp_path)} == parsed | {stopped}


def test_every_call_is_written_down_whatever_becomes_of_it(server, tmp_path):
    server.plan |= {"bad": [fails(400)], "hm": [says("hm")], "again": [says("hm"), says(GOOD)]}
    me = judge(server, attempts=2, account=account(tmp_path))
    ask_all(me, ["good", "bad", "hm", "again"])
    calls = calls_of(tmp_path)
    told = Counter((s.ask.removeprefix("coverage/"), s.outcome) for s in calls)
    assert told == {
        ("good", "parsed"): 1,
        ("bad", "failed"): 1,
        ("hm", "unparsed"): 2,
        ("again", "unparsed"): 1,
        ("again", "parsed"): 1,
    }
    assert [s.cost for s in calls if s.usage == ONE] == [PRICE.of(ONE)] * 5
    assert account(tmp_path).cost == pytest.approx(5 * PRICE.of(ONE))


def test_what_cannot_be_written_down_is_not_spent_on(server, tmp_path):
    server.plan = {str(i): [waits(0.02, says(GOOD))] for i in range(20)}
    of_run, kept = account(tmp_path), []

    def keep(ask, reply):
        kept.append(reply.outcome)
        if len(kept) == 3:
            of_run.path.unlink()
            (tmp_path / spend_file("main")).mkdir()

    me = judge(server, account=of_run, max_connections=2)
    with pytest.raises(UserError, match="cannot be written"):
        me.ask_all(asks(range(20)), keep)
    assert 4 <= len(kept) <= 6
    assert sum(server.seen.values()) <= 6


def test_two_asks_of_one_id_are_refused(server):
    with pytest.raises(ValueError, match="asked twice"):
        judge(server).ask_all(asks("aa"), lambda *_: None)
    assert not server.seen


def test_calls_are_limited_and_the_rest_goes_on_later(server, tmp_path):
    server.plan = {str(i): [waits(0.02, says(GOOD))] for i in range(20)}
    kept = {}
    me = judge(server, account=account(tmp_path, max_calls=7))
    with pytest.raises(BudgetSpent, match=r"7 calls.*max_calls=7.*13 of 20 asks are left"):
        me.ask_all(asks(range(20)), lambda ask, reply: kept.setdefault(ask.id, reply))
    assert len(kept) == sum(server.seen.values()) == len(calls_of(tmp_path)) == 7
    left = [i for i in range(20) if str(i) not in kept]
    kept |= ask_all(judge(server, account=account(tmp_path, max_calls=20)), left)
    assert len(kept) == sum(server.seen.values()) == len(calls_of(tmp_path)) == 20


def test_cost_is_limited(server, tmp_path):
    server.plan = {str(i): [waits(0.02, says(GOOD))] for i in range(20)}
    each = (60 * 10 + 40 * 5 + 20 * 30) / 1e6
    most = PRICE.of(most_used(asks(["10"])[0], 20))
    assert most > each
    of_run, kept = account(tmp_path, max_cost=3 * each + most), []
    with pytest.raises(BudgetSpent, match=r"4 calls, .* max_cost=.*; the next call may cost"):
        judge(server, account=of_run, max_connections=2, max_tokens=20).ask_all(
            asks(range(20)), lambda ask, reply: kept.append(reply)
        )
    assert len(kept) == sum(server.seen.values()) == 4
    assert of_run.cost == pytest.approx(4 * each)


@pytest.mark.parametrize("told", ["total_tokens", "completion_tokens"])
def test_a_server_that_thinks_beyond_its_limit_passes_a_cost_by_one_call(server, tmp_path, told):
    used = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    server.default = [waits(0.02, says(GOOD, used=used | {told: 10_000}))]
    each = PRICE.of(Usage(1, 100, 10_000 - (100 if told == "total_tokens" else 0)))
    for cap, calls in ((each / 15, 1), (4.5 * each, 4)):
        folder = tmp_path / str(calls)
        folder.mkdir()
        server.seen.clear()
        of_run = account(folder, max_cost=cap)
        with pytest.raises(BudgetSpent):
            ask_all(judge(server, account=of_run, max_connections=8, max_tokens=20), range(20))
        assert sum(server.seen.values()) == calls
        assert of_run.cost == pytest.approx(calls * each)


def test_an_ask_that_the_budget_stops_between_two_attempts_is_left_for_later(server, tmp_path):
    server.plan["a"] = [says("hm")]
    of_run = account(tmp_path, max_calls=2)
    with pytest.raises(BudgetSpent, match="2 of 2 asks are left"):
        ask_all(judge(server, account=of_run, max_connections=1), "ab")
    assert [call.usage for call in calls_of(tmp_path)] == [ONE, ONE]
    assert server.seen == {"a": 2}


def test_a_refused_key_ends_the_asking_and_is_not_shown(server):
    server.plan = {str(i): [waits(0.05, echoes_key(401))] for i in range(50)}
    with pytest.raises(UserError, match=r"OPENAI_API_KEY.*the key was refused") as error:
        ask_all(judge(server), range(50))
    assert KEY not in str(error.value)
    assert "\n" not in str(error.value)
    assert sum(server.seen.values()) <= 20
    assert server.keys == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (fails(404, "no model m"), "there is no such model.*no model m"),
        (fails(402, "Insufficient Balance"), "the account has nothing left"),
        (fails(429, "add credit", "insufficient_quota", **SOON), "the account has nothing left"),
    ],
)
def test_what_every_ask_would_meet_ends_the_asking(server, plan, message):
    server.plan = {str(i): [waits(0.05, plan)] for i in range(50)}
    kept = []
    with pytest.raises(UserError, match=message):
        judge(server, max_connections=2).ask_all(asks(range(50)), lambda *pair: kept.append(pair))
    assert not kept
    assert len(server.seen) <= 4


def test_a_server_that_answers_nothing_is_left_alone(server):
    no = [fails(400, "unknown parameter: response_format")]
    server.plan = {str(i): no for i in range(5, 50)}
    kept = []
    with pytest.raises(UserError, match=r"10 asks in a row failed.*unknown parameter"):
        judge(server, max_connections=2).ask_all(
            asks(range(50)), lambda _, r: kept.append(r.outcome)
        )
    assert kept.count("parsed") == 5
    assert 10 <= kept.count("failed") <= 11


def test_no_key_in_anything_that_comes_back(server, home, caplog, capfd):
    server.plan = {
        "error": [echoes_key(400)],
        "down": [echoes_key(500)],
        "text": [says(f"<think>{KEY}</think>the key is {KEY}")],
        "value": [says(GOOD.replace("fine", KEY), reasoning_content=KEY)],
        "escaped": [says(GOOD.replace("fine", KEY.replace("-", "\\u002d")))],
        "served": [says(GOOD, served=KEY)],
        "refusal": [says(None, refusal=KEY)],
        "filter": [fails(400, f"blocked {KEY}", "content_filter")],
    }
    caplog.set_level(logging.DEBUG)
    me = judge(server)
    replies = ask_all(me, [*server.plan, "good"])
    assert len(replies) == 9
    assert replies["served"].served == "[OPENAI_API_KEY]"
    for name in ("value", "escaped"):
        assert replies[name].values["rationale"] == "[OPENAI_API_KEY]"
    kept = [repr(replies), repr(me), caplog.text, *capfd.readouterr()]
    assert not [where for where, text in enumerate(kept) if KEY in text]
    assert not list(home.rglob("*"))


def test_texts_are_written(server):
    server.plan = {
        "a": [says("<think>hm</think> 12 + 7 = 21\n")],
        "b": [says(""), says("It is a cat.")],
        "c": [says("It is", "length")],
        "d": [says("")],
    }
    replies = {}
    me = judge(server, structured="schema", temperature=0.7)
    writings = [Writing(name, f"item={name}; Rewrite.", "Be brief.") for name in server.plan]
    me.ask_all(writings, lambda writing, reply: replies.setdefault(writing.id, reply))
    found = {
        name: (reply.outcome, reply.text, reply.usage.calls) for name, reply in replies.items()
    }
    assert found == {
        "a": ("parsed", "12 + 7 = 21", 1),
        "b": ("parsed", "It is a cat.", 2),
        "c": ("truncated", "It is", 1),
        "d": ("unparsed", "", 3),
    }
    assert server.bodies[0]["messages"][0]["content"] == "Be brief."
    assert all("response_format" not in body for body in server.bodies)


def test_a_reply_from_the_cache_is_no_call(server, tmp_path, monkeypatch):
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    server.plan["m"] = [says("hm"), says(GOOD)]
    first = ask_all(judge(server, cache=True), "abm")
    assert [first[n].from_cache for n in "abm"] == [False] * 3
    assert first["m"].usage.calls == 2
    again = ask_all(judge(server, cache=True, account=account(tmp_path, max_calls=1)), "abm")
    assert server.seen == {"a": 1, "b": 1, "m": 3}, "a malformed reply is asked for past the cache"
    assert (again["a"].from_cache, again["a"].usage) == (True, Usage())
    assert again["a"].values == first["a"].values
    assert (again["m"].outcome, again["m"].usage) == ("parsed", ONE)
    assert len(calls_of(tmp_path)) == 1
    other = ask_all(judge(server, cache=True, temperature=1.0), "a")
    assert not other["a"].from_cache


def test_inspects_own_limit_loses_replies_that_are_paid_for(server):
    """Why the account admits calls (`probes.judge.api`)."""
    import anyio
    from inspect_ai.model import ModelCost, ModelInfo, get_model, set_model_info
    from inspect_ai.util import LimitExceededError, cost_limit

    server.default = [waits(0.3, says(GOOD))]
    cost = ModelCost(input=10, output=30, input_cache_write=10, input_cache_read=5)
    set_model_info("openai/gpt-own", ModelInfo(cost=cost))
    replies = []

    async def one(model):
        try:
            replies.append(await model.generate("item=a; Rate this."))
        except LimitExceededError:
            replies.append(None)

    async def three():
        async with get_model("openai/gpt-own", base_url=server.url, memoize=False) as model:
            with cost_limit(PRICE.of(ONE) / 2):
                async with anyio.create_task_group() as group:
                    for _ in range(3):
                        group.start_soon(one, model)

    anyio.run(three)
    assert server.seen["a"] == 3
    assert replies == [None] * 3


def test_many_connections_are_kept_in_small_pools_and_used_together(server):
    all_here = threading.Barrier(24)

    def waits_for_all(handler):
        all_here.wait(60)
        says(GOOD)(handler)

    server.default = [waits_for_all]
    me = judge(server, max_connections=24)
    assert {reply.outcome for reply in ask_all(me, range(24)).values()} == {"parsed"}
    api: Any = me._connect().api
    assert len(api.http_client._transport.pools) == 3
