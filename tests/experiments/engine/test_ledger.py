"""What a run has spent: kept by every worker, counted once, whatever becomes of the folder."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.engine import ledger
from faithscope.experiments.engine.ledger import Ledger, calls_of, in_words, spend_file
from faithscope.experiments.engine.spending import budget_of
from faithscope.experiments.engine.store import Store
from faithscope.experiments.files import StoreError
from faithscope.probes.judge import spend
from faithscope.probes.judge.charges import Charge
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import Budget, Spent
from faithscope.probes.record import head

MODEL = "api:openai/gpt-4.1"
ONE = Usage(1, 100, 20, 5, 40)
CHARGE = Charge(ONE, "parsed")


@contextmanager
def at_work(folder: Path, worker: str = "main", name: str = "t"):
    with Store(FolderConfig(name=name, out=str(folder)), {}, worker) as store:
        yield store


def spent(n: int = 0, cost: float | None = None) -> Spent:
    return Spent("openai/gpt-4.1", ONE, cost, f"c2_detection/{n}", "parsed")


def stored_reply(store: Store, item: str, calls: int = 2) -> None:
    used = {**vars(ONE), "calls": calls}
    key = ("judge_generated", MODEL, "t", item)
    store.add(f"unit-{item}", key, [of(item) | used | {"outcome": "parsed"}])


def of(item: str) -> dict[str, Any]:
    about = {"dataset": "d", "task": "t", "item": item, "model": None, "judge": MODEL}
    return head(**about, probe="judge_generated", seed=0)


def test_what_is_added_is_told_to_whoever_comes_after(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        Ledger(store).add(spent(cost=0.25))
    with at_work(tmp_path) as store:
        (line,) = Ledger(store).lines
    assert line.spent == spent(cost=0.25)
    assert (line.model, line.time[-6:]) == (MODEL, "+00:00")


def test_a_torn_last_line_is_passed_over_and_cut_by_its_worker(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        Ledger(store).add(spent())
    path = tmp_path / "t" / spend_file("main")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert len(calls_of(tmp_path / "t")) == 1
    with at_work(tmp_path, "1of2") as store:
        assert len(Ledger(store).lines) == 1
    with at_work(tmp_path) as store:
        assert path.read_bytes() == whole
        Ledger(store).add(spent(1))
    assert len(calls_of(tmp_path / "t")) == 2


def test_a_damaged_line_is_named_with_its_remedy(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        Ledger(store).add(spent())
    path = tmp_path / "t" / spend_file("main")
    path.write_bytes(path.read_bytes() + b'{"id": "x"}\n')
    with pytest.raises(StoreError, match=r"spend\.main\.jsonl: line 2 is damaged.*sed -i '2d'"):
        calls_of(tmp_path / "t")


def test_workers_see_each_other_s_calls_once(tmp_path: Path) -> None:
    with at_work(tmp_path, "1of2") as one, at_work(tmp_path, "2of2") as two:
        here, there = Ledger(one), Ledger(two)
        here.add(spent(1))
        assert [s.ask for s in there.news()] == ["c2_detection/1"]
        assert list(there.news()) == []
        there.add(spent(2))
        here.add(spent(3))
        assert [s.ask for s in there.news()] == ["c2_detection/3"]
        assert [s.ask for s in here.news()] == ["c2_detection/2"]
    assert sorted(line.ask[-1] for line in calls_of(tmp_path / "t")) == ["1", "2", "3"]


def test_a_line_is_not_read_before_it_is_whole(tmp_path: Path) -> None:
    with at_work(tmp_path, "1of2") as one, at_work(tmp_path, "2of2") as two:
        watching = Ledger(two)
        Ledger(one).add(spent())
        path = tmp_path / "t" / spend_file("1of2")
        whole = path.read_bytes()
        path.write_bytes(whole[:30])
        assert list(watching.news()) == []
        path.write_bytes(whole)
        assert len(list(watching.news())) == 1


def test_a_limit_holds_for_all_workers_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spend, "REFRESH", 0.0)
    limits = SpendConfig(max_calls=5)
    with at_work(tmp_path, "1of2") as one, at_work(tmp_path, "2of2") as two:
        budgets = [budget_of(limits, store, [MODEL]) for store in (one, two)]
        made = 0
        while any([b.admit() and (b.settle("openai/gpt-4.1", CHARGE) or True) for b in budgets]):
            made += 1
        assert [b.calls for b in budgets] == [5, 5]
    assert len(calls_of(tmp_path / "t")) == 5
    with at_work(tmp_path) as store:
        assert not budget_of(limits, store, [MODEL]).admit()


def test_who_asks_no_api_opens_no_ledger(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        stored_reply(store, "a")
        none = SpendConfig(max_calls=1, prices="no/such/prices.yaml")
        assert budget_of(none, store, ["planted:faithful"]).account is None
    assert not list((tmp_path / "t").glob("spend.*"))


def test_stored_replies_count_once_where_there_was_no_ledger(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        stored_reply(store, "a")
        stored_reply(store, "b", calls=3)
        stored_reply(store, "from_cache", calls=0)
        store.add("local", ("judge_generated", "planted:faithful", "t", "a"), [of("a") | vars(ONE)])
    assert sum(line.usage.calls for line in calls_of(tmp_path / "t")) == 5
    for made in range(2):
        with at_work(tmp_path) as store:
            budget = budget_of(SpendConfig(), store, [MODEL])
            assert budget.calls == 5 + made
            assert budget.admit()
            budget.settle("openai/gpt-4.1", CHARGE)
            # as a reply is stored whose call is in the ledger
            stored_reply(store, f"new{made}")
    assert (tmp_path / "t" / spend_file("records")).read_bytes().count(b"\n") == 2


def test_cached_replies_are_not_written_down(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        budget = budget_of(SpendConfig(), store, [MODEL])
        assert budget.admit()
        budget.settle("openai/gpt-4.1", Charge(Usage(), "parsed"))
    assert calls_of(tmp_path / "t") == []


def test_a_merge_counts_every_call_once_however_often_it_is_done(tmp_path: Path) -> None:
    for part, n in (("a", 2), ("b", 1)):
        with at_work(tmp_path / part) as store:
            mine = Ledger(store)
            for i in range(n):
                mine.add(spent(i))
    with at_work(tmp_path / "old") as store:
        stored_reply(store, "x")
    # a copy of a part that was gone on with
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    with at_work(tmp_path / "copy") as store:
        Ledger(store).add(spent(9))
    folders = [tmp_path / part / "t" for part in ("a", "b", "old", "copy")]
    into = tmp_path / "joined/t"
    into.mkdir(parents=True)
    for _ in range(2):
        ledger.join(folders, into)
        assert sum(line.usage.calls for line in calls_of(into)) == 2 + 1 + 2 + 1
    with at_work(tmp_path / "joined") as store:
        Ledger(store).add(spent(10))
    ledger.join(folders, into)
    assert sum(line.usage.calls for line in calls_of(into)) == 7
    ledger.join([into, tmp_path / "a/t"], tmp_path)
    assert sum(line.usage.calls for line in calls_of(tmp_path)) == 7


def test_what_a_call_cost_then_is_what_it_cost(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        mine = Ledger(store)
        mine.add(spent(cost=0.5))
        mine.add(spent())
    prices = tmp_path / "prices.yaml"
    entry = {"input": 10000.0, "output": 0.0, "source": "a test"}
    prices.write_text(json.dumps({"as_of": "2026-01-01", "models": {"gpt-4.1": entry}}))
    with at_work(tmp_path) as store:
        budget = budget_of(SpendConfig(prices=str(prices)), store, [MODEL])
    # the price of now where none was known then
    assert budget.cost == pytest.approx(0.5 + 100 * 0.01)


def test_estimates_are_told_from_what_the_server_said(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        budget = budget_of(SpendConfig(), store, [MODEL])
        budget.account.add(spent(cost=0.25))
        budget.write_down("openai/gpt-4.1", Charge(ONE, "timed_out", estimated=True))
        budget.account.add(Spent("openai/gpt-4.1", ONE, 0.5, "", "stopped", estimated=True))
    path = tmp_path / "t" / spend_file("main")
    first, *others = path.read_text().splitlines()
    # as a version wrote it that knew no estimates
    old = {name: value for name, value in json.loads(first).items() if name != "estimated"}
    path.write_text("\n".join([json.dumps(old), *others, ""]))
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
    assert (row["calls"], row["cost"]) == (3, 0.75)
    assert (row["estimated_calls"], row["estimated_cost"]) == (2, 0.5)


def test_a_call_that_cannot_be_written_down_is_an_error(tmp_path: Path) -> None:
    with at_work(tmp_path) as store:
        mine = Ledger(store)
        mine.path.mkdir()
        budget = Budget(account=mine)
        assert budget.admit()
        with pytest.raises(StoreError, match=r"spend\.main\.jsonl: cannot be written"):
            budget.settle("openai/gpt-4.1", CHARGE)
        assert (budget.calls, budget.in_flight) == (1, 0)
