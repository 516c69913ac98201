"""What a run has spent: kept by every worker, counted once, whatever becomes of the folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.engine.models import account as accounts
from faithscope.experiments.engine.models.account import (
    RunAccount,
    calls_of,
    in_words,
    join,
    spend_file,
)
from faithscope.experiments.engine.store import Store
from faithscope.experiments.files import StoreError
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import BEGUN, Call

NAME = "openai/gpt-4.1"
MODEL = f"api:{NAME}"
ONE = Usage(1, 100, 20, 5, 40)


@contextmanager
def at_work(folder: Path, worker: str = "main", limits: SpendConfig | None = None):
    with Store(FolderConfig(name="t", out=str(folder)), {}, worker) as store:
        yield RunAccount(limits or SpendConfig(), store.run_dir, store.worker)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[RunAccount, RunAccount]]:
    with at_work(tmp_path, "1of2") as one, at_work(tmp_path, "2of2") as other:
        yield one, other


def call(
    n: int = 0, cost: float | None = None, outcome: str = "parsed", estimated: bool = False
) -> Call:
    return Call(NAME, f"c2_detection/{n}", outcome, ONE, cost, estimated)


def begun(n: int = 0, cost: float | None = None) -> Call:
    return call(n, cost, BEGUN, estimated=True)


def settle(account: RunAccount, *calls: Call) -> None:
    """A call that is begun and ends, by the last of `calls`; none for a reply from the cache."""
    first = begun()
    assert account.admit(first)
    account.settle(first, [*calls[:-1], *(replace(c, id=first.id) for c in calls[-1:])])


def test_a_call_is_read_back_as_it_was_kept(tmp_path: Path) -> None:
    kept = call(cost=0.25)
    with at_work(tmp_path) as account:
        settle(account, kept)
    (read,) = calls_of(tmp_path / "t")
    assert replace(read, id=kept.id) == kept
    assert kept.time.endswith("+00:00")


def test_a_torn_last_line_costs_that_line_and_no_other(tmp_path: Path) -> None:
    with at_work(tmp_path) as account:
        settle(account, call())
    path = tmp_path / "t" / spend_file("main")
    path.write_bytes(path.read_bytes() + path.read_bytes()[:40])
    assert len(calls_of(tmp_path / "t")) == 1
    with at_work(tmp_path) as account:
        assert account.calls == 1
        # the torn line is gone, so that this one does not go on from it
        settle(account, call(1))
    assert len(calls_of(tmp_path / "t")) == 2


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    with at_work(tmp_path) as account:
        settle(account, call())
    path = tmp_path / "t" / spend_file("main")
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(
        StoreError, match=r"spend\.main\.jsonl: line 3 is damaged.*faithscope repair"
    ):
        calls_of(tmp_path / "t")


def test_workers_see_each_others_calls_once(
    tmp_path: Path, two: tuple[RunAccount, RunAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "REFRESH", 0.0)
    here, there = two

    def seen(account: RunAccount) -> int:
        settle(account)
        return account.calls

    settle(here, call(1))
    assert [seen(there), seen(there)] == [1, 1]
    settle(there, call(2))
    settle(here, call(3))
    assert [seen(there), seen(here)] == [3, 3]
    assert sorted(c.ask[-1] for c in calls_of(tmp_path / "t")) == ["1", "2", "3"]
    # a line that is not whole yet
    path = tmp_path / "t" / spend_file("1of2")
    whole = path.read_bytes()
    settle(here, call(4))
    more = path.read_bytes()
    path.write_bytes(more[: len(whole) + 30])
    assert seen(there) == 3
    path.write_bytes(more)
    assert seen(there) == 4


def test_a_limit_holds_for_all_workers_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "REFRESH", 0.0)
    limits = SpendConfig(max_calls=5)
    with at_work(tmp_path, "1of2", limits) as one, at_work(tmp_path, "2of2", limits) as other:
        for account in (one, other, one, other, one):
            settle(account, call())
        assert not any(account.admit(begun()) for account in (one, other))
        assert [one.calls, other.calls] == [5, 5]
    assert len(calls_of(tmp_path / "t")) == 5
    with at_work(tmp_path, limits=limits) as account:
        assert not account.admit(begun())


def test_calls_in_flight_count(tmp_path: Path) -> None:
    with at_work(tmp_path, limits=SpendConfig(max_calls=3)) as account:
        first, second, *_ = calls = [begun(n) for n in range(4)]
        assert [account.admit(one) for one in calls] == [True, True, True, False]
        # a reply from the cache
        account.settle(first, [])
        assert account.admit(calls[3])
        # an attempt that timed out counts beside the call, and ends no call
        account.settle(second, [call(outcome="timed_out"), replace(call(), id=second.id)])
        assert (account.calls, account.in_flight, account.admit(begun())) == (4, 2, False)


def test_no_call_begins_that_might_pass_the_cost(tmp_path: Path) -> None:
    with at_work(tmp_path, limits=SpendConfig(max_cost=4.0)) as account:
        two, more = begun(cost=2.0), begun(cost=2.5)
        assert not account.admit(begun(cost=4.5))
        assert str(account) == "0 calls, $0 of max_cost=4; the next call may cost $4.5"
        assert account.admit(two)
        # the first call of a model begins alone: it may cost more than it may
        assert not account.admit(begun(cost=0.5))
        assert account.may_free()
        account.settle(two, [replace(call(cost=1.0), id=two.id)])
        assert account.admit(more)
        assert account.admit(begun(cost=0.5))
        assert not account.admit(begun(cost=0.5))
        assert account.cost == 1.0 + 2.5 + 0.5
        account.settle(more, [replace(call(cost=0.1), id=more.id)])
        assert account.admit(begun(cost=0.5))
    with at_work(tmp_path) as account:
        assert account.admit(begun())
        with pytest.raises(UserError, match=r"has no price"):
            RunAccount(SpendConfig(max_cost=0), account.run_dir, "main").check(NAME)
        RunAccount(SpendConfig(max_calls=0), account.run_dir, "main").check(NAME)


def test_a_call_that_a_kill_cut_off_is_charged_the_most(tmp_path: Path) -> None:
    with at_work(tmp_path) as account:
        settle(account, call(1, cost=1.0))
        assert account.admit(begun(2, cost=2.0))
    for _ in range(2):
        with at_work(tmp_path, limits=SpendConfig(max_cost=4.0)) as account:
            assert (account.calls, account.cost) == (2, 3.0)
            assert not account.admit(begun(3, cost=1.5))
            # nobody is at work any more
            assert not account.may_free()
    _, lost = calls_of(tmp_path / "t")
    assert (lost.ask, lost.outcome, lost.usage, lost.estimated) == (
        "c2_detection/2",
        "stopped",
        ONE,
        True,
    )
    # its beginning was copied before it ended
    into = tmp_path / "joined"
    shutil.copytree(tmp_path / "t", into)
    with at_work(tmp_path) as account:
        settle(account, replace(call(2, cost=0.5), id=lost.id))
    line = (tmp_path / "t" / spend_file("main")).read_bytes().splitlines(True)[-1]
    ended = line.replace(json.loads(line)["id"].encode(), lost.id.encode())
    with (tmp_path / "t" / spend_file("main")).open("ab") as file:
        file.write(ended)
    join([tmp_path / "t"], into)
    assert [(c.outcome, c.cost) for c in calls_of(into)][:2] == [("parsed", 1.0), ("parsed", 0.5)]


def test_calls_are_taken_to_cost_what_earlier_ones_did(tmp_path: Path) -> None:
    allowed = begun().usage
    with at_work(tmp_path) as account:
        assert account.most(NAME, allowed) == allowed
        settle(account, replace(call(), usage=Usage(1, 150, 5000)))
        settle(account, replace(call(), usage=Usage(1, 50, 10)))
    # a later start has learned it, too
    with at_work(tmp_path) as account:
        assert account.most(NAME, allowed) == replace(allowed, input_tokens=150, output_tokens=5000)
        assert account.most("another", allowed) == allowed


def test_a_merge_counts_every_call_once_however_often_it_is_done(tmp_path: Path) -> None:
    for part, n in (("a", 2), ("b", 1)):
        with at_work(tmp_path / part) as account:
            for i in range(n):
                settle(account, call(i))
    # a copy of a part that was gone on with
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    with at_work(tmp_path / "copy") as account:
        settle(account, call(9))
    folders = [tmp_path / part / "t" for part in ("a", "b", "copy")]
    into = tmp_path / "joined/t"
    into.mkdir(parents=True)
    for _ in range(2):
        join(folders, into)
        assert len(calls_of(into)) == 2 + 1 + 1
    with at_work(tmp_path / "joined") as account:
        settle(account, call(10))
    join(folders, into)
    assert len(calls_of(into)) == 5
    join([into, tmp_path / "a/t"], tmp_path)
    assert len(calls_of(tmp_path)) == 5


def test_what_a_call_cost_then_is_what_it_cost(tmp_path: Path) -> None:
    with at_work(tmp_path) as account:
        settle(account, call(cost=0.5))
        settle(account, call())
    prices = tmp_path / "prices.yaml"
    entry = {"input": 10000.0, "output": 0.0, "source": "a test"}
    prices.write_text(json.dumps({"as_of": "2026-01-01", "models": {"gpt-4.1": entry}}))
    with at_work(tmp_path, limits=SpendConfig(prices=str(prices))) as account:
        # the price of now where none was known then
        assert account.cost == pytest.approx(0.5 + 100 * 0.01)


def test_estimates_are_told_from_what_the_server_said(tmp_path: Path) -> None:
    with at_work(tmp_path) as account:
        settle(account, call(cost=0.25))
        settle(account, call(outcome="timed_out", estimated=True))
        settle(account, call(cost=0.5, outcome="stopped", estimated=True))
    calls = calls_of(tmp_path / "t")
    assert [(c.outcome, c.estimated) for c in calls] == [
        ("parsed", False),
        ("timed_out", True),
        ("stopped", True),
    ]
    assert in_words(calls) == (
        "3 calls to APIs, $0.75, 1 of them without a price, the tokens of 2 of them estimated"
    )
    (row,) = spend_table(calls).to_dict("records")
    assert (row["model"], row["calls"], row["cost"]) == (MODEL, 3, 0.75)
    assert (row["estimated_calls"], row["estimated_cost"]) == (2, 0.5)


def test_a_call_that_cannot_be_written_down_is_an_error(tmp_path: Path) -> None:
    with at_work(tmp_path) as account:
        account.path.mkdir()
        with pytest.raises(StoreError, match=r"spend\.main\.jsonl: cannot be written"):
            account.admit(begun())
        assert (account.calls, account.in_flight) == (0, 0)
        account.path.rmdir()
        first = begun()
        assert account.admit(first)
        account.path.unlink()
        account.path.mkdir()
        with pytest.raises(StoreError, match=r"spend\.main\.jsonl: cannot be written"):
            account.settle(first, [replace(call(), id=first.id)])
        assert (account.calls, account.in_flight) == (1, 0)
