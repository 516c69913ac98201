"""The emulated devices allow and refuse the same mixtures of devices as CUDA.

The cases follow CUDA's documentation and code: `TensorIterator`'s common
device, `index` ("indices should be either on cpu or on the same device as the indexed tensor"),
and every other kernel's "Expected all tensors to be on the same device".
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import emulated_devices
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F


@pytest.fixture(scope="module", autouse=True)
def devices() -> None:
    emulated_devices.require()


A, B = "emulated:0", "emulated:1"


def x(device: str, *size: int) -> Tensor:
    return (torch.arange(9.0).view(3, 3) if not size else torch.ones(size)).to(device)


def at(device: str, *indices: int) -> Tensor:
    return torch.tensor(indices).to(device)


REFUSED: dict[str, Callable[[], object]] = {
    "sum with the CPU": lambda: x(A) + x("cpu"),
    "sum with a number of another device": lambda: x(A) + torch.tensor(1.0, device=B),
    "matrix product": lambda: x(A) @ x(B),
    "linear": lambda: F.linear(x(A), x(B)),
    "concatenation": lambda: torch.cat([x(A), x(B)]),
    "equal": lambda: torch.equal(x(A), x(B)),
    "index from another device": lambda: x(A)[at(B, 0)],
    "index of a device into the CPU": lambda: x("cpu")[at(A, 0)],
    "gather": lambda: x(A).gather(1, at("cpu", 0)[None]),
    "embedding": lambda: F.embedding(at("cpu", 0), x(A)),
    "masked_fill": lambda: x(A).masked_fill(x("cpu") > 1, 0.0),
    "attention": lambda: F.scaled_dot_product_attention(x(A)[None], x(B)[None], x(B)[None]),
    "attention mask": lambda: F.scaled_dot_product_attention(
        *[x(A)[None, None]] * 3, attn_mask=x("cpu") > 1
    ),
    "a placeholder": lambda: x(A) * x("meta"),
}

ALLOWED: dict[str, Callable[[str], Tensor]] = {
    "a number on the CPU": lambda d: x(d) * torch.tensor(2.0),
    "where with a number": lambda d: torch.where(x(d) > 4, x(d), torch.tensor(-1.0)),
    "index from the CPU": lambda d: x(d)[at("cpu", 2, 0)],
    "index of its own": lambda d: x(d)[at(d, 2, 0)],
    "mask from the CPU": lambda d: x(d)[torch.tensor([True, False, True])],
    "a row copied in": lambda d: x(d).index_put_((at("cpu", 1),), torch.tensor(5.0).to(d)),
    "copy between devices": lambda d: x(d).copy_(x("emulated:3") + 1),
    "view written to": lambda d: _written_through_a_view(x(d)),
    "attention": lambda d: F.scaled_dot_product_attention(*[x(d)[None, None]] * 3),
    "one row through a weight": lambda d: F.linear(x(d)[None, -1:], x(d)),
}


def _written_through_a_view(whole: Tensor) -> Tensor:
    whole.t()[1:].reshape(2, 3)[0] = 7
    whole.view(9)[4:6] += 1
    return whole


@pytest.mark.parametrize("what", REFUSED)
def test_what_cuda_refuses_is_refused(what: str) -> None:
    with pytest.raises(RuntimeError, match=r"device"):
        REFUSED[what]()


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("what", ALLOWED)
def test_what_cuda_computes_is_computed_there(what: str, inference: bool) -> None:
    with torch.inference_mode(inference):
        out = ALLOWED[what](B)
        assert str(out.device) == B
        torch.testing.assert_close(out.cpu(), ALLOWED[what]("cpu"))


def test_they_are_devices_of_their_own() -> None:
    weight = torch.nn.Parameter(x("cpu"))
    layer = torch.nn.Linear(3, 3).to(B)
    assert type(layer.weight) is torch.nn.Parameter
    assert str(layer.weight.device) == B != str(weight.to(A).device)
    assert torch.tensor(0).to(1).device == torch.device(B)
    assert copy.deepcopy(layer).weight.device == layer.weight.device
    assert weight.to(A).data_ptr() != weight.data_ptr()
    with pytest.raises(RuntimeError, match="no such device"):
        torch.empty(1, device="emulated:4")
