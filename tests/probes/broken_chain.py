"""A chain with one broken step, as C2-Faith has them."""

from __future__ import annotations

from faithscope.probes.broken_chain import BrokenChain

CHAIN = BrokenChain(
    item="i1",
    chain="c1",
    dataset="made",
    task="made",
    prompt="What is 2 + 3 - 1?",
    steps=("Add 2 and 3.", "That is 5.", "Take 1 off.", "So 4.", "The answer is 4."),
    target=1,
    replacement="That is 6.",
    answer="4",
)
