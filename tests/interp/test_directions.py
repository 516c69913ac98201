"""Files of directions: what is written is read back, and what cannot be used is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import faithscope
from faithscope.interp.directions import (
    Direction,
    load_direction,
    load_directions,
    save_directions,
)
from faithscope.interp.errors import UserError

ABOUT = {"model": "org/model", "place": "before", "label": "hint", "kind": "logistic", "n": 40}


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    one = Direction("hint, layer 2", torch.randn(8, dtype=torch.float64), 2, "residual", ABOUT)
    other = Direction("bare", torch.arange(8.0), None, "mlp")
    path = save_directions(tmp_path / "d.safetensors", [one, other])
    bare, hint = load_directions(path)
    assert (hint.name, hint.layer, hint.site, hint.about) == ("hint, layer 2", 2, "residual", ABOUT)
    assert (bare.layer, bare.site, bare.about) == (None, "mlp", {})
    assert torch.equal(hint.vector, one.vector)
    assert hint.vector.dtype == torch.float32
    assert bare.norm == pytest.approx(float(torch.arange(8.0).norm()))
    assert load_direction(path, "bare").name == "bare"
    assert faithscope.load_directions is load_directions
    assert faithscope.Direction is Direction


def test_bare_tensors_are_directions_without_a_layer(tmp_path: Path) -> None:
    save_file({"v": torch.ones(4, dtype=torch.float16)}, tmp_path / "v.safetensors", {"by": "me"})
    (only,) = load_directions(tmp_path / "v.safetensors")
    assert (only.name, only.layer, only.about) == ("v", None, {})
    assert load_direction(tmp_path / "v.safetensors").name == "v"


@pytest.mark.parametrize(
    ("tensors", "metadata", "problem"),
    [
        ({"v": torch.ones(2, 2)}, None, r"'v' has shape \(2, 2\)"),
        ({"v": torch.ones(2, dtype=torch.int64)}, None, "type int64; give one vector of floats"),
        ({"v": torch.zeros(3)}, None, "'v' is zero or not finite"),
        ({"v": torch.tensor([1, torch.nan])}, None, "'v' is zero or not finite"),
        ({"v": torch.ones(2)}, {"v": '{"layer": 0}'}, "layer 0; layers are counted from 1"),
        ({"v": torch.ones(2)}, {"v": '{"site": "head"}'}, "unknown site 'head'"),
        ({"v": torch.ones(2)}, {"v": "[1]"}, "metadata of 'v' cannot be read"),
        ({}, None, "holds no direction"),
    ],
)
def test_what_is_no_direction_is_refused_by_file_and_name(
    tmp_path: Path, tensors: dict, metadata: dict | None, problem: str
) -> None:
    save_file(tensors, tmp_path / "x.safetensors", metadata)
    with pytest.raises(UserError, match=rf"x\.safetensors.*{problem}"):
        load_directions(tmp_path / "x.safetensors")


def test_a_file_that_is_missing_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such file; give a \.safetensors"):
        load_directions(tmp_path / "none.safetensors")
    (tmp_path / "text").write_text("not this")
    with pytest.raises(UserError, match="cannot be read as safetensors"):
        load_directions(tmp_path / "text")


def test_one_of_several_has_to_be_named(tmp_path: Path) -> None:
    two = [Direction(name, torch.ones(2), 1) for name in ("hint.logistic", "hint.ridge")]
    path = save_directions(tmp_path / "two.safetensors", two)
    with pytest.raises(UserError, match=r"name one: it holds hint\.logistic, hint\.ridge"):
        load_direction(path)
    with pytest.raises(UserError, match=r"no direction 'hint\.rigde'.*did you mean 'hint\.ridge'"):
        load_direction(path, "hint.rigde")
    with pytest.raises(UserError, match="each under a name of its own"):
        save_directions(path, [two[0], two[0]])
    with pytest.raises(UserError, match="`about` is not JSON"):
        save_directions(path, [Direction("v", torch.ones(2), 1, about={"x": object()})])
