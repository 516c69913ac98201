"""Attention knockout against eager transformers under a mask with the same edges cut."""

from __future__ import annotations

import pytest
import torch
from edited_alone import edited_logits, written_alone
from families import bushy, gap
from tiny_models import tiny

from faithscope.interp.edits import Knockout
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch, Forest, split_by_budget
from faithscope.interp.model import Model

IDS = bushy(6, n=3, length=30)[0] + (7,) * 12
N = len(IDS)


CUTS = {
    "all layers, all later tokens": Knockout((14, None), (8, 14)),
    "the last tokens only": Knockout((N - 4, None), (N - 9, N - 5)),
    "a window of layers": Knockout((14, None), (8, 14), layers=(1, 2)),
    "one head": Knockout((14, None), (8, 14), heads=(1,)),
    "one head of one layer": Knockout((14, N - 3), (8, 14), layers=(0,), heads=(2,)),
    "every key but a token itself": Knockout((5, None), (0, N)),
}


@pytest.mark.in_time(6)
@pytest.mark.parametrize("name", CUTS)
def test_a_knockout_is_an_additive_mask_in_eager_attention(tree_model: Model, name: str):
    cut, ask = CUTS[name], tuple(range(N))
    expected = edited_logits(tree_model, IDS, [cut])
    free = edited_logits(tree_model, IDS, [])
    for execution in ("packed", "dense", "flex", "loop"):
        (read,) = tree_model.run([Branch(IDS, ask, (cut,))], execution=execution).branches
        assert gap(read.logits, expected) < 1e-3
    first = cut.first
    assert first is not None
    assert gap(expected[:first], free[:first]) < 1e-4
    assert gap(expected[first:], free[first:]) > 1e-2


@pytest.mark.in_time(2)
def test_many_knockouts_of_one_text_share_what_comes_before(tree_model: Model):
    cuts = [(), *[(c,) for c in CUTS.values()], (CUTS["one head"], CUTS["the last tokens only"])]
    branches = [Branch(IDS, (-1, 3), c) for c in cuts]
    run = tree_model.run(branches)
    starts = [min([N, *(k.first for k in c)]) for c in cuts[1:]]
    assert run.trie_tokens == N + sum(N - s for s in starts) - shared_twice(cuts)
    for cut, read in zip(cuts, run.branches, strict=True):
        assert gap(read.logits, edited_logits(tree_model, IDS, list(cut))[[-1, 3]]) < 1e-3
    model = tiny(tree_model.name.removeprefix("tiny:"))
    model.chunk, model.token_budget = 7, 60
    for read, other in zip(run.branches, model.run(branches).branches, strict=True):
        assert gap(read.logits, other.logits) < 1e-4


def shared_twice(cuts) -> int:
    """The pair runs as its first knockout alone until the second begins."""
    pair = cuts[-1]
    return pair[1].first - pair[0].first


def test_a_knockout_of_nothing_is_no_knockout(tree_model: Model):
    (free,) = tree_model.run([Branch(IDS, (-1, 5))]).branches
    nothing = (
        Knockout((14, None), (8, 8)),
        Knockout((14, 14), (8, 14)),
        Knockout((3, 8), (8, 14)),
        Knockout((14, None), (8, 14), layers=()),
        Knockout((14, None), (8, 14), heads=()),
    )
    for cut in nothing:
        run = tree_model.run([Branch(IDS, (-1, 5)), Branch(IDS, (-1, 5), (cut,))])
        assert run.trie_tokens == N
        assert torch.equal(run.branches[1].logits, free.logits)


def test_rows_have_no_weight_on_what_is_cut(tree_model: Model):
    cut = Knockout((14, None), (8, 14), layers=(1,), heads=(0, 3))
    read, free = tree_model.run([Branch(IDS, edits=(cut,)), Branch(IDS)], rows=True).branches
    (rows,), (plain,) = read.rows, free.rows
    window = getattr(tree_model.hf.config.get_text_config(), "sliding_window", None)
    assert float(rows[1, [0, 3], 8:14].abs().max()) == 0
    assert torch.allclose(rows[0], plain[0], atol=1e-6)
    if not window:
        assert float(rows[1, [1, 2], 8:14].min()) > 0


def test_labels_and_continuations_are_under_the_knockouts(tree_model: Model):
    prefixes = [IDS, IDS, IDS, IDS[:20]]
    edits = [(), (Knockout((14, None), (8, 14)),), (Knockout((N, None), (2, 14)),), ()]
    labels = [[[1, 2], [9, 4, 5]]] * 4
    found = tree_model.ask(prefixes, labels, 5, edits=edits)
    for prefix, under, answered in zip(prefixes, edits, found, strict=True):
        for label, log_prob in zip(labels[0], answered.log_probs, strict=True):
            logits = edited_logits(tree_model, (*prefix, *label), list(under)).log_softmax(-1)
            at = range(len(prefix) - 1, len(prefix) + len(label) - 1)
            expected = sum(float(logits[i, t]) for i, t in zip(at, label, strict=True))
            assert log_prob == pytest.approx(expected, abs=2e-3)
        assert answered.generated is not None
        assert answered.generated.ids == written_alone(tree_model, prefix, under, 5)
    loop = tree_model.ask(prefixes, labels, edits=edits, execution="loop")
    for one, other in zip(found, loop, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-3)
    with pytest.raises(UserError, match="cannot be continued one by one"):
        tree_model.ask(prefixes, labels, 5, edits=edits, execution="loop")


def test_layers_and_heads_may_be_given_as_a_list(llama: Model):
    one = Knockout((14, None), (8, 14), layers=[1], heads=range(2))  # pyright: ignore
    assert one == Knockout((14, None), (8, 14), layers=(1,), heads=(0, 1))
    llama.run([Branch(IDS, edits=(one,))])


def test_labels_under_edits_that_begin_after_the_prefix_count_towards_the_budget():
    prefix, labels = [1, 2, 3, 4], [[5, 6], [7]]
    cuts = [(Knockout((4, None), (k, k + 1)),) for k in range(3)]
    assert split_by_budget([prefix] * 3, 10, cuts, [labels] * 3) == [[0, 1], [2]]
    assert split_by_budget([prefix] * 3, 13, cuts, [labels] * 3) == [[0, 1, 2]]


def test_what_a_knockout_cannot_name_is_refused(llama: Model, loop_model: Model):
    with pytest.raises(ValueError, match=r"keys \(3, 9\) lie outside a branch of 4 tokens"):
        llama.run([Branch((1, 2, 3, 4), edits=(Knockout((3, None), (3, 9)),))])
    with pytest.raises(ValueError, match="layer 3: tiny:llama has layers 0 to 2"):
        llama.run([Branch((1, 2, 3), edits=(Knockout((2, None), (0, 1), layers=(3,)),))])
    with pytest.raises(ValueError, match="head 4: tiny:llama has heads 0 to 3"):
        llama.run([Branch((1, 2, 3), edits=(Knockout((2, None), (0, 1), heads=(4,)),))])
    for queries in ((3, None), (2, 9)):
        with pytest.raises(ValueError, match="lie outside a branch of 3 tokens, which nothing"):
            llama.run([Branch((1, 2, 3), edits=(Knockout(queries, (0, 1)),))])
    with pytest.raises(ValueError, match=r"queries \(5, 2\)"):
        Knockout((5, 2), (0, 1))
    with pytest.raises(UserError, match="attention cannot be cut"):
        loop_model.run([Branch((1, 2, 3), edits=(Knockout((2, None), (0, 1)),))])


def test_a_forest_shares_what_comes_before_the_first_edit():
    cut, later = Knockout((3, None), (1, 2)), Knockout((4, None), (1, 2))
    ids = [1, 2, 3, 4, 5, 6]
    forest = Forest.of([ids, ids, ids, ids], [(), (cut,), (cut, later), (later,)])
    assert len(forest) == 6 + 3 + 2 + 2
    for path in forest.paths:
        assert forest.tokens[path].tolist() == ids
        assert forest.depth[path].tolist() == list(range(6))
    assert forest.edits[forest.mark[forest.paths[2][-1]]] == (cut, later)
    assert split_by_budget([ids, ids], 8, [(), (cut,)]) == [[0], [1]]
    assert split_by_budget([ids, ids], 9, [(), (cut,)]) == [[0, 1]]
