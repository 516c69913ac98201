"""Kept replies: read only where no one else could have planted them, and nothing else deleted."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_judge import ONE, ask_all, judge
from fault_server import GOOD, KEY, says

from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.reply_cache import ReplyCache
from faithscope.probes.judge.spend import Budget

pytestmark = pytest.mark.usefixtures("home")


def test_the_cache_is_where_it_was_asked_for_and_costs_nothing(server, tmp_path, home):
    server.plan["m"] = [says("hm"), says(GOOD)]
    folder = tmp_path / "cache"
    first = ask_all(judge(server, cache=folder), "abm")
    assert [first[n].from_cache for n in "abm"] == [False] * 3
    assert first["m"].usage.calls == 2
    me = judge(server, cache=folder)
    again = ask_all(me, "abm")
    assert server.seen == {"a": 1, "b": 1, "m": 3}, "a malformed reply is asked for past the cache"
    assert (again["a"].from_cache, again["a"].usage) == (True, Usage())
    assert again["a"].values == first["a"].values
    assert (again["m"].outcome, again["m"].usage) == ("parsed", ONE)
    assert me.budget.calls == 1
    other = ask_all(judge(server, cache=folder, temperature=1.0), "a")
    assert not other["a"].from_cache
    assert any(folder.rglob("*"))
    assert not list(home.rglob("*"))
    assert "INSPECT_CACHE_DIR" not in os.environ


def test_cached_replies_need_no_budget(server, tmp_path):
    ask_all(judge(server, cache=tmp_path), range(20))
    me = judge(server, cache=tmp_path, budget=Budget(max_calls=3))
    assert len(ask_all(me, range(23))) == 23
    assert me.budget.calls == 3


def test_the_cache_deletes_nothing_of_the_users(server, tmp_path, home):
    folder = tmp_path / "cache"
    folder.mkdir()
    theirs = {folder / ".env": f"OPENAI_API_KEY={KEY}", folder / ("a" * 32): KEY}
    ours = ReplyCache(folder).folder
    ours.mkdir(mode=0o700)
    older = ours / ("b" * 32)
    theirs |= {ours / "notes.txt": KEY, older: KEY}
    for path, text in theirs.items():
        path.write_text(text)
    os.utime(older, (1, 1))
    server.plan = {"key": [says(GOOD.replace("fine", KEY))]}
    ask_all(judge(server, cache=folder), ["key"])
    assert {path: path.read_text() for path in theirs} == theirs


def test_a_reply_that_others_could_have_planted_is_not_read(server, tmp_path, home):
    """Inspect unpickles what it kept, and that may run code."""
    folder = tmp_path / "cache"
    ask_all(judge(server, cache=folder), "a")
    (kept,) = [f for f in folder.rglob("*") if f.is_file()]
    planted = folder / kept.relative_to(ReplyCache(folder).folder)
    planted.parent.mkdir(parents=True, exist_ok=True)
    kept.rename(planted)
    assert not ask_all(judge(server, cache=folder), "a")["a"].from_cache
    ours = ReplyCache(folder).folder
    ours.chmod(0o770)
    with pytest.raises(UserError, match=r"open to others \(mode 770\).*could run code here"):
        judge(server, cache=folder)
    ours.rename(tmp_path / "elsewhere")
    ours.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link or no folder"):
        judge(server, cache=folder)
