"""Steering: parity with plain hooks on the model itself, identities, and refusals."""

from __future__ import annotations

import pytest
import torch
from edited_alone import edited_logits
from families import bushy, gap
from tiny_models import tiny

from faithscope.interp.edits import SITES, Knockout, Patch, Site, Steer
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch, Forest
from faithscope.interp.model import Model

IDS = bushy(6, n=3, length=30)[0] + (7,) * 6
N = len(IDS)
EVERY = tuple(range(N))


def direction(seed: int = 0, width: int = 64) -> torch.Tensor:
    return torch.randn(width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.in_time(12)
@pytest.mark.parametrize("site", SITES)
def test_steering_is_a_plain_hook(tree_model: Model, site: Site):
    free = edited_logits(tree_model, IDS, [])
    for layer in range(tree_model.n_layers):
        for edit in (
            Steer(site, layer, direction(layer), 3.0, (9, 20)),
            Steer(site, layer, direction(layer), positions=(9, None), ablate=True),
        ):
            expected = edited_logits(tree_model, IDS, [edit])
            for execution in ("packed", "dense", "loop"):
                (read,) = tree_model.run(
                    [Branch(IDS, EVERY, (edit,))], execution=execution
                ).branches
                assert gap(read.logits, expected) < 1e-3
            assert gap(read.logits[:9], free[:9]) < 1e-4
            assert gap(read.logits[9:], free[9:]) > 2e-3


def test_what_is_removed_is_gone_and_removed_once(llama: Model):
    x = direction()
    once, other = (Steer("residual", 1, x, positions=(5, 12), ablate=True) for _ in range(2))
    free, read, twice = llama.run(
        [Branch(IDS, EVERY), Branch(IDS, EVERY, (once,)), Branch(IDS, EVERY, (once, other))],
        residuals=True,
    ).branches
    assert free.residuals is not None
    assert read.residuals is not None
    along = read.residuals[:, 2] @ x
    assert (
        float(along[5:12].abs().max()) < 1e-3 < float((free.residuals[:, 2] @ x)[5:12].abs().min())
    )
    assert torch.equal(read.residuals[:5], free.residuals[:5])
    assert gap(read.logits, twice.logits) < 1e-3


def test_edits_of_one_place_follow_each_other(tree_model: Model):
    put = Patch("residual", 1, (6, 8), torch.stack([direction(1), direction(2)]))
    add, take = (
        Steer("residual", 1, direction(3), 2.0),
        Steer("residual", 1, direction(4), ablate=True),
    )
    orders = [(put, add, take), (add, put, take), (take, add, put), (add, take), (put,), ()]
    branches = [Branch(IDS, (5, 6, 7, 8, -1), edits) for edits in orders]
    packed = tree_model.run(branches).branches
    for branch, read in zip(branches, packed, strict=True):
        assert (
            gap(read.logits, edited_logits(tree_model, IDS, branch.edits)[[5, 6, 7, 8, -1]]) < 1e-3
        )
    assert gap(packed[0].logits, packed[1].logits) > 1e-2


def test_a_coefficient_of_zero_changes_no_bit_and_costs_nothing(tree_model: Model):
    nothing = [Steer("mlp", 1, direction(), 0.0), Steer("residual", 0, direction(), 1.0, (4, 4))]
    run = tree_model.run([Branch(IDS, EVERY), *(Branch(IDS, EVERY, (e,)) for e in nothing)])
    assert run.trie_tokens == N
    for read in run.branches[1:]:
        assert torch.equal(read.logits, run.branches[0].logits)


@pytest.mark.in_time(4)
def test_many_steered_texts_share_what_comes_before_and_stay_apart(tree_model: Model):
    edits = [(), *[(Steer(site, 1, direction(1), 2.0, (14, None)),) for site in SITES]]
    edits += [(Steer("residual", 2, direction(2), c, (20, 25)),) for c in (-4.0, 4.0)]
    edits.append((Knockout((14, None), (8, 14)), Steer("residual", 0, direction(), ablate=True)))
    branches = [Branch(IDS, (-1, 3), e) for e in edits]
    run = tree_model.run(branches)
    assert run.trie_tokens == N + 3 * (N - 14) + 2 * (N - 20) + N
    small = tiny(tree_model.name.removeprefix("tiny:"))
    small.chunk, small.token_budget = 7, 60
    for branch, read, split in zip(
        branches, run.branches, small.run(branches).branches, strict=True
    ):
        assert gap(read.logits, edited_logits(tree_model, IDS, branch.edits)[[-1, 3]]) < 1e-3
        assert gap(read.logits, split.logits) < 1e-4


def test_labels_are_scored_under_steering(tree_model: Model):
    edits = [(), (Steer("residual", 1, direction(), 3.0, (N, None)),)]
    edits += [(Steer("mlp", 0, direction(1), 3.0, (4, N + 1)),)]
    labels = [[[1, 2], [9, 4, 5]]] * 3
    scored = tree_model.ask([IDS] * 3, labels, edits=edits)
    for under, answered in zip(edits, scored, strict=True):
        for label, log_prob in zip(labels[0], answered.log_probs, strict=True):
            logits = edited_logits(tree_model, (*IDS, *label), under).log_softmax(-1)
            at = range(N - 1, N + len(label) - 1)
            expected = sum(float(logits[i, t]) for i, t in zip(at, label, strict=True))
            assert log_prob == pytest.approx(expected, abs=2e-3)
    loop = tree_model.ask([IDS] * 3, labels, edits=edits, execution="loop")
    for one, other in zip(scored, loop, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-3)


def test_tokens_behind_a_number_are_steered_as_its_prefix(llama: Model, everything_run):
    prefix = llama.encode("so it is 40 + 2, hence =")
    add = Steer("residual", 1, direction(), 4.0, (12, None))
    late = Steer("mlp", 2, direction(1), 9.0, (len(prefix) + 1, None))
    edits = [(), (add,), (add, late), (Steer("attention", 1, direction(), ablate=True),)]
    labels = [[llama.encode(x) for x in (" 7", " 70", " $70.00")]] * len(edits)
    packed, loop = (
        llama.ask([prefix] * len(edits), labels, boundary="number", edits=edits, execution=how)
        for how in ("packed", "loop")
    )
    for p, q in zip(packed, loop, strict=True):
        assert p.log_probs == pytest.approx(q.log_probs, abs=1e-4)
    assert len({p.log_probs for p in packed}) == len(edits)


def test_a_texts_likelihood_is_taken_under_edits(tree_model: Model):
    edits = [
        (),
        (Steer("residual", 1, direction(), 3.0, (10, None)),),
        (Steer("mlp", 0, direction(), ablate=True), Knockout((14, None), (2, 9))),
        (Patch("residual", 0, (4, 7), torch.stack([direction(1), direction(2)])),),
    ]
    starts = [0, 12, 5, 3]
    for execution in ("packed", "dense", "loop"):
        ran = tree_model.likelihood([IDS] * 4, starts, edits=edits, execution=execution)
        for start, under, read in zip(starts, edits, ran.sequences, strict=True):
            log_p = edited_logits(tree_model, IDS, under).log_softmax(-1).cpu()
            wanted = [float(log_p[i - 1, IDS[i]]) for i in range(max(start, 1), N)]
            assert read.log_probs[start == 0 :] == pytest.approx(wanted, abs=2e-3)


def test_a_forest_parts_where_steering_begins():
    one, other = (Steer("mlp", 0, direction(), c, (3, None)) for c in (1.0, 2.0))
    ids = [1, 2, 3, 4, 5, 6]
    assert len(Forest.of([ids] * 4, [(), (one,), (one,), (other,)])) == 6 + 3 + 3


def test_what_steering_cannot_name_is_refused(llama: Model, loop_model: Model):
    x, branch = direction(), (1, 2, 3)

    def refused(match: str, edit: Steer, model: Model = llama, kind: type = ValueError):
        for ask in (
            lambda: model.run([Branch(branch, edits=(edit,))]),
            lambda: model.likelihood([branch], [0], edits=[(edit,)]),
        ):
            with pytest.raises(kind, match=match):
                ask()

    refused("steer: layer 3: tiny:llama has layers 0 to 2", Steer("mlp", 3, x, 1.0))
    refused("direction of width 8: tiny:llama has width 64", Steer("mlp", 0, x[:8], 1.0))
    refused("positions .* lie outside a branch of 3", Steer("mlp", 0, x, 1.0, (3, None)))
    refused(
        "cannot be steered .*take another model", Steer("mlp", 0, x, 1.0), loop_model, UserError
    )
    quantised = tiny("llama")
    quantised.hf.is_quantized = True  # pyright: ignore
    refused("quantised.*load it without quantize", Steer("mlp", 0, x, 1.0), quantised, UserError)
    twice = Steer("mlp", 0, x, 1.0)
    with pytest.raises(ValueError, match="stands twice"):
        llama.run([Branch(branch, edits=(twice, twice))])
    for match, change in {
        "unknown site 'mpl'": {"site": "mpl"},
        "zero or not finite": {"direction": x * 0},
        "zero or": {"direction": x / 0},
        r"direction of shape \(1, 64\)": {"direction": x[None]},
        "give a coefficient to add": {"coefficient": None},
        "or ablate=True to remove": {"ablate": True},
        "give a finite number": {"coefficient": float("nan")},
        r"positions \(4, 2\)": {"positions": (4, 2)},
    }.items():
        with pytest.raises(ValueError, match=match):
            Steer(**({"site": "mlp", "layer": 0, "direction": x, "coefficient": 1.0} | change))
