"""The replies of a judge by the ids of its asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faithscope.probes.judge.form import Ask, Reply


def replies_of(judge: Any, asks: Sequence[Ask]) -> dict[str, Reply]:
    """Ask id -> reply of any kind of judge, in the order of arrival; each ask has one reply."""
    replies: dict[str, Reply] = {}

    def keep(ask: Ask, reply: Reply) -> None:
        assert ask.id not in replies, "a reply came twice"
        replies[ask.id] = reply

    judge.ask_all(asks, keep)
    assert replies.keys() == {ask.id for ask in asks}
    return replies
