"""TransformerLens' names of places: `test_interop` holds them against TransformerLens itself."""

from __future__ import annotations

import pytest
import torch
from families import gap
from tiny_models import tiny

from faithscope.interp.edits import Patch, Steer
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.hook_names import place_of
from faithscope.interp.model import Model

IDS = (5, 6, 7, 8)
X = torch.ones(64)


def test_a_name_is_a_site_and_a_layer() -> None:
    assert place_of("blocks.3.hook_resid_post") == ("residual", 3)
    assert place_of("blocks.3.hook_resid_pre") == ("residual", 2)
    assert place_of("blocks.0.hook_resid_pre") == ("residual", -1)
    assert place_of("blocks.12.hook_attn_out") == ("attention", 12)
    assert place_of("blocks.0.hook_mlp_out") == ("mlp", 0)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("blocks.3.hook_resid_mid", "blocks.3.hook_resid_p"),
        ("blocks.3.hook_mlp_output", "blocks.3.hook_mlp_out"),
        ("blocks.x.hook_mlp_out", r"blocks.{l}.hook_mlp_out"),
        ("resid_post", "blocks.{l}.hook_resid_post"),
        ("blocks.2.attn.hook_z", "blocks.2.hook_"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UserError, match=f"unknown hook name '{name}'") as refused:
        place_of(name)
    assert near in str(refused.value)


def test_edits_take_a_name_in_place_of_site_and_layer(llama: Model) -> None:
    edits = [
        (Steer("mlp", 1, X, 2.0), Steer("blocks.1.hook_mlp_out", None, X, 2.0)),
        (
            Steer("residual", 0, X, ablate=True),
            Steer("blocks.1.hook_resid_pre", None, X, ablate=True),
        ),
        (
            Patch("residual", 1, (2,), X[None]),
            Patch("blocks.1.hook_resid_post", None, (2,), X[None]),
        ),
    ]
    for by_site, by_name in edits:
        one, other = llama.run([Branch(IDS, edits=(e,)) for e in (by_site, by_name)]).branches
        assert gap(one.logits, other.logits) < 1e-5
    with pytest.raises(ValueError, match="layer 7: tiny:llama has layers 0 to 2"):
        llama.run([Branch(IDS, edits=(Steer("blocks.7.hook_mlp_out", None, X, 1.0),))])
    with pytest.raises(ValueError, match="before the first layer; no edit reaches it"):
        Steer("blocks.0.hook_resid_pre", None, X, 1.0)
    with pytest.raises(ValueError, match="site 'mlp' without a layer"):
        Steer("mlp", None, X, 1.0)
    with pytest.raises(ValueError, match="or a hook name with layer None"):
        Patch("blocks.0.hook_mlp_out", 0, (2,), X[None])


def test_a_model_names_the_places_that_it_has(llama: Model) -> None:
    names = llama.hook_names()
    assert list(names)[:4] == [
        f"blocks.0.hook_{x}" for x in ("resid_pre", "resid_post", "attn_out", "mlp_out")
    ]
    assert names == {name: place_of(name) for name in names}
    falcon = tiny("falcon").hook_names()
    assert {place.site for place in falcon.values()} == {"residual"}
