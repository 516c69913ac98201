import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.interp.forest import Branch, Forest, split_by_budget

sequences = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=12)


@given(sequences)
def test_paths_spell_the_sequences(given):
    forest = Forest.of(given)
    for ids, path in zip(given, forest.paths, strict=True):
        assert forest.tokens[path].tolist() == ids
        assert forest.depth[path].tolist() == list(range(len(ids)))


@given(sequences)
def test_nodes_are_the_unique_prefixes(given):
    prefixes = {tuple(s[: i + 1]) for s in given for i in range(len(s))}
    forest = Forest.of(given)
    assert len(forest) == len(prefixes)
    assert forest.naive_tokens == sum(map(len, given))


@given(sequences)
def test_ancestry_is_a_comparison(given):
    forest = Forest.of(given)
    for node in range(len(forest)):
        by_end = [j for j in range(node + 1) if node < forest.end[j]]
        assert forest.path(node).tolist() == by_end


@given(sequences, st.integers(1, 9))
def test_runs_cover_every_chunk(given, chunk):
    forest = Forest.of(given)
    for start in range(0, len(forest), chunk):
        stop = min(start + chunk, len(forest))
        at = start
        for run in forest.runs(start, stop):
            assert run.start == at
            at = run.stop
            ancestors = [i for a, b in run.ancestors for i in range(a, b)]
            assert [*ancestors, run.start] == forest.path(run.start).tolist()
            assert run.depth == len(ancestors)
            assert np.array_equal(
                forest.parent[run.start + 1 : run.stop], np.arange(run.start, run.stop - 1)
            )
        assert at == stop


@given(sequences, st.integers(1, 9), st.integers(1, 6))
def test_blocks_are_runs_or_short_runs_together(given, chunk, most):
    forest = Forest.of(given)
    for start in range(0, len(forest), chunk):
        stop = min(start + chunk, len(forest))
        found = forest.blocks(start, stop, most)
        assert [start, *(b for _, b, _ in found)] == [*(a for a, _, _ in found), stop]
        bounds = forest.bounds(start, stop)
        for a, b, one in found:
            assert one == ((a, b) in bounds)
            assert one or b - a <= most
            # what any node of a block sees before the block, its first node sees too
            before = {j for node in range(a, b) for j in forest.path(node).tolist() if j < a}
            assert before == set(forest.path(a).tolist()) - {a}


@given(sequences, st.integers(1, 30))
def test_a_split_forest_keeps_the_budget(given, budget):
    groups = split_by_budget(given, budget)
    assert sorted(i for g in groups for i in g) == list(range(len(given)))
    for group in groups:
        forest = Forest.of([given[i] for i in group])
        assert len(forest) <= budget or len(group) == 1


@given(sequences, st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), max_size=4))
def test_a_split_forest_keeps_the_budget_with_the_tails_of_its_sequences(given, tails):
    for group in split_by_budget(given, 12, continued=[tails] * len(given)):
        whole = [[*given[i], *tail] for i in group for tail in ([], *tails)]
        assert len(Forest.of(whole)) <= 12 or len(group) == 1


def test_bad_branches_say_what_is_wrong():
    with pytest.raises(ValueError, match="at least one token"):
        Branch(())
    with pytest.raises(ValueError, match="position 3 lies outside a branch of 3"):
        Branch((1, 2, 3), ask=(3,))
    with pytest.raises(ValueError, match="empty sequence"):
        Forest.of([[1], []])
