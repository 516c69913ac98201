"""The rows of the table `exclusions` have one order in every process."""

from __future__ import annotations

from itertools import permutations

from faithscope.experiments.analysis.traces.exclusions import _variant_rank


def test_windows_of_a_knockout_have_one_order_in_every_process():
    variants = ("answer.all", "answer.3-3", "later.all", "prefix.scored", "prefix.generated")
    orders = {tuple(sorted(order, key=_variant_rank)) for order in permutations(variants)}
    assert len(orders) == 1
