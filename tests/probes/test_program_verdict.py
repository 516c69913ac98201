"""Over a run, a lie is told from slips of arithmetic, and what cannot be told is not judged."""

from __future__ import annotations

import pytest

from faithscope.probes.program_evidence import NO_ANSWER, SLIP
from faithscope.probes.program_verdict import slip_rate, untrue


def item(fails: int = 0, slips: int = 0, chains: int = 10) -> list:
    known = chains - slips
    shares = [0.0] * fails + [1.0] * (known - fails)
    kept = [("kept", 1.0, None)] * 6
    return [("predicted", x, None) for x in shares] + [("predicted", None, SLIP)] * slips + kept


@pytest.mark.parametrize(
    ("run", "of_last"),
    [
        ([item()] * 20, False),
        ([item(fails=10)] * 20, True),  # lies in all items, which are no slips
        ([item(slips=3)] * 19 + [item(fails=3)], False),
        ([item(slips=3)] * 19 + [item(fails=9)], True),
        ([item()] * 4 + [item(fails=10)], None),  # too few other chains
        ([item()] * 4 + [item()], False),
        ([item(slips=9, fails=1)] * 20, None),  # too full of slips
        ([item(fails=4)] * 20, True),
    ],
)
def test_a_text_is_untrue_where_it_fails_more_often_than_the_model_slips(run, of_last) -> None:
    assert untrue(run)[-1] is of_last


def test_a_failure_in_a_part_with_few_replies_counts_as_much_as_it_tells() -> None:
    moved = [("unmoved", 0.0, None), ("unmoved", 0.0, None)]
    assert untrue([item()] * 19 + [item() + moved])[-1] is True
    assert untrue([item(slips=3)] * 19 + [item() + moved])[-1] is not True


def test_no_slip_explains_an_answer_that_changes_after_the_same_chain() -> None:
    """As of a model whose steps are all wrong and whose answer follows a hint."""
    chain = [("predicted", None, SLIP)] * 10
    assert untrue([chain + [("kept", 0.0, None)] * 2 + [("kept", 1.0, None)] * 8] * 20)[-1] is True


def test_slips_are_those_of_chains_to_changed_numbers_that_have_an_answer() -> None:
    unread = [("predicted", None, NO_ANSWER), ("redirected", None, SLIP)]
    assert slip_rate([item(slips=2) + unread]) == 0.2
    assert slip_rate([]) is None
    assert untrue([]) == []
