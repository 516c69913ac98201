"""Activation patching: identities, and parity with plain forward hooks on the model itself."""

from __future__ import annotations

import pytest
import torch
from edited_alone import edited_logits
from families import bushy, gap
from tiny_models import tiny

from faithscope.interp.edits import SITES, Knockout, Patch, Site
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model
from faithscope.interp.read import Read

IDS = bushy(6, n=3, length=30)[0] + (7,) * 6
DONOR = tuple((t + 31) % 256 for t in IDS)
N = len(IDS)
SPAN = tuple(range(6, 12))


def states(model: Model, ids: tuple[int, ...], execution="auto") -> Read:
    """Everything of one text."""
    everywhere = Branch(ids, tuple(range(len(ids))))
    sites: tuple[Site, ...] = ("attention", "mlp") if model.supports_tree else ()
    run = model.run([everywhere], residuals=True, sites=sites, execution=execution)
    return run.branches[0]


def patch(read: Read, site: Site, layer: int, positions: tuple[int, ...]) -> Patch:
    assert read.residuals is not None
    source = read.residuals[:, layer + 1] if site == "residual" else read.outputs[site][:, layer]
    return Patch(site, layer, positions, source[list(positions)])


@pytest.mark.in_time(12)
@pytest.mark.parametrize("site", SITES)
def test_own_values_change_no_bit(tree_model: Model, site: Site):
    own = states(tree_model, IDS)
    for layer in range(tree_model.n_layers):
        edit = patch(own, site, layer, SPAN)
        (read,) = tree_model.run([Branch(IDS, tuple(range(N)), (edit,))]).branches
        assert torch.equal(read.logits, own.logits)


@pytest.mark.in_time(12)
@pytest.mark.parametrize("site", SITES)
def test_a_patch_is_a_plain_hook(tree_model: Model, site: Site):
    donor = states(tree_model, DONOR)
    free = states(tree_model, IDS).logits
    for layer in range(tree_model.n_layers):
        edit = patch(donor, site, layer, SPAN)
        expected = edited_logits(tree_model, IDS, [edit])
        for execution in ("packed", "dense", "loop"):
            (read,) = tree_model.run(
                [Branch(IDS, tuple(range(N)), (edit,))], execution=execution
            ).branches
            assert gap(read.logits, expected) < 1e-3
        assert gap(read.logits[: SPAN[0]], free[: SPAN[0]]) < 1e-4
        assert gap(read.logits[SPAN[0] :], free[SPAN[0] :]) > 1e-2


def test_the_last_stream_of_another_text_gives_its_logits(tree_model: Model):
    donor = states(tree_model, DONOR)
    edit = patch(donor, "residual", tree_model.n_layers - 1, tuple(range(N)))
    (read,) = tree_model.run([Branch(IDS, tuple(range(N)), (edit,))]).branches
    assert gap(read.logits, donor.logits) < 1e-5
    all_of_it = patch(donor, "residual", 0, tuple(range(N)))
    (read,) = tree_model.run([Branch(IDS, tuple(range(N)), (all_of_it,))]).branches
    assert gap(read.logits, donor.logits) < 1e-4


@pytest.mark.in_time(6)
def test_many_patches_share_what_comes_before_and_stay_apart(tree_model: Model):
    donor = states(tree_model, DONOR)
    edits = [(), *[(patch(donor, site, 1, SPAN),) for site in SITES]]
    edits.append((patch(donor, "mlp", 0, SPAN[:2]), patch(donor, "residual", 2, (20,))))
    edits.append((Knockout((14, None), (8, 14)), patch(donor, "residual", 2, (20,))))
    branches = [Branch(IDS, (-1, 3), e) for e in edits]
    run = tree_model.run(branches)
    assert run.trie_tokens == N + 4 * (N - SPAN[0]) + (N - 14)
    small = tiny(tree_model.name.removeprefix("tiny:"))
    small.chunk, small.token_budget = 7, 60
    for branch, read, split in zip(
        branches, run.branches, small.run(branches).branches, strict=True
    ):
        (alone,) = tree_model.run([branch], execution="loop").branches
        assert gap(read.logits, alone.logits) < 1e-3
        assert gap(read.logits, split.logits) < 1e-4


def test_what_is_read_is_what_a_patch_left(llama: Model):
    donor = states(llama, DONOR)
    edit = patch(donor, "residual", 1, SPAN)
    (read,) = llama.run([Branch(IDS, SPAN, (edit,))], residuals=True).branches
    assert read.residuals is not None
    assert donor.residuals is not None
    assert torch.equal(read.residuals[:, 2], donor.residuals[list(SPAN), 2])
    for execution in ("packed", "loop"):
        taken = states(llama, IDS, execution)
        for site in ("attention", "mlp"):
            assert taken.outputs[site].shape == (N, llama.n_layers, 64)
        assert taken.residuals is not None
        added = taken.outputs["attention"] + taken.outputs["mlp"]
        assert gap(taken.residuals[:, 1:] - taken.residuals[:, :-1], added) < 1e-4


def test_labels_are_scored_and_continued_under_patches(llama: Model):
    donor = states(llama, DONOR)
    edit = patch(donor, "residual", 0, SPAN)
    labels = [[[1, 2], [9, 4, 5]]] * 2
    free, packed = llama.ask([IDS, IDS], labels, 5, edits=[(), (edit,)])
    _, loop = llama.ask([IDS, IDS], labels, edits=[(), (edit,)], execution="loop")
    assert packed.log_probs == pytest.approx(loop.log_probs, abs=1e-3)
    assert packed.log_probs != pytest.approx(free.log_probs, abs=1e-2)
    written: list[int] = []
    for _ in range(5):
        (read,) = llama.run([Branch((*IDS, *written), edits=(edit,))], execution="loop").branches
        written.append(int(read.logits[-1].argmax()))
    assert packed.generated is not None
    assert list(packed.generated.ids) == written


def test_a_model_without_a_tree_takes_patches_of_its_stream(loop_model: Model):
    own, donor = states(loop_model, IDS), states(loop_model, DONOR)
    last = loop_model.n_layers - 1
    for read, source in ((own, own), (donor, donor)):
        edit = patch(source, "residual", last, tuple(range(N)))
        (found,) = loop_model.run([Branch(IDS, tuple(range(N)), (edit,))]).branches
        assert torch.equal(found.logits, read.logits)


def test_what_a_patch_cannot_name_is_refused(llama: Model):
    values = torch.zeros(1, 64)
    with pytest.raises(ValueError, match="patch position 3 lies outside a branch of 3 tokens"):
        llama.run([Branch((1, 2, 3), edits=(Patch("mlp", 0, (3,), values),))])
    with pytest.raises(ValueError, match="patch: layer 3: tiny:llama has layers 0 to 2"):
        llama.run([Branch((1, 2, 3), edits=(Patch("mlp", 3, (1,), values),))])
    with pytest.raises(ValueError, match="width 8: tiny:llama has width 64"):
        llama.run([Branch((1, 2, 3), edits=(Patch("mlp", 0, (1,), values[:, :8]),))])
    with pytest.raises(ValueError, match="patch of 2 positions"):
        Patch("mlp", 0, (1, 2), values)
    with pytest.raises(ValueError, match="one stands there twice"):
        Patch("mlp", 0, (1, 1), values.expand(2, -1))
    with pytest.raises(ValueError, match="unknown site 'mpl'"):
        Patch("mpl", 0, (1,), values)  # pyright: ignore
    falcon = tiny("falcon")
    with pytest.raises(UserError, match="use the residual stream"):
        falcon.run([Branch((1, 2, 3), edits=(Patch("attention", 0, (1,), values),))])


def test_a_site_that_is_not_there_leaves_no_hook_behind() -> None:
    model = tiny("falcon")
    before = model.run([Branch(IDS)]).branches[0].logits
    with pytest.raises(UserError):
        model.run([Branch(IDS)], sites=("residual", "attention"), residuals=True)
    assert not any(layer._forward_hooks for layer in model.structure.layers)
    assert gap(model.run([Branch(IDS)]).branches[0].logits, before) == 0


def test_of_an_edit_that_is_named_twice_the_later_stands() -> None:
    model = tiny("llama")
    one, other = (patch(states(model, d), "residual", 1, SPAN[:1]) for d in (DONOR, DONOR[::-1]))
    twice = Branch(IDS, edits=(one, other, one))
    packed, alone = (
        model.run([twice], execution=how).branches[0].logits for how in ("packed", "loop")
    )
    assert gap(packed, alone) < 1e-4
    last = model.run([Branch(IDS, edits=(one,))]).branches[0].logits
    assert gap(packed, last) < 1e-4
