"""What is kept of logits equals what a plain reading of each row gives, and waits once."""

from __future__ import annotations

import emulated_devices
import launches
import pytest
import torch
from tiny_models import tiny

from faithscope.interp.kept import Kept, rows_of
from faithscope.interp.leads import Lead, gaps
from faithscope.interp.number_ends import TokenSet
from faithscope.interp.placement import Fetch, sent, sent_together

ONE, OTHER = TokenSet(torch.tensor([2, 5, 9])), TokenSet(torch.tensor([7]))
TOKENS = {"a": {3, 8, ONE}, "c": {0}, "d": {OTHER, ONE}}


@pytest.mark.parametrize("device", ["cpu", "emulated:0"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_probs_and_leads_are_those_of_each_row(device: str, dtype: torch.dtype):
    emulated_devices.require()
    model, rows = tiny("llama"), ["a", "b", "c", "d"]
    here = torch.randn(4, 11, generator=torch.Generator().manual_seed(0)).to(dtype)
    here[1, 4] = here[1, 6] = 9.0
    there = here.to(device)
    scores: dict = {}
    leads: dict = {}
    Kept(model, there, rows, TOKENS, {"b", "d"}).read(scores, leads)
    with launches.Launches(there.device) as counted:
        Kept(model, there, rows, TOKENS, {"b", "d"}).read(scores, leads)
    if device != "cpu":
        assert (counted.syncs, counted.copies) == (1, 1)
    log_p = here.double().log_softmax(-1)
    assert {name: set(of) for name, of in scores.items()} == TOKENS
    for name, of_row in scores.items():
        row = log_p[rows.index(name)]
        for token, x in of_row.items():
            at = token.ids if isinstance(token, TokenSet) else torch.tensor([token])
            assert x == pytest.approx(float(row[at].logsumexp(-1)), abs=1e-6)
    assert leads["b"] == Lead(4, 0.0)
    (of_d,) = gaps(here[3:].float())
    assert leads == {"b": Lead(4, 0.0), "d": Lead(int(here[3].argmax()), of_d)}


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize(("value", "said"), [(float("nan"), "NaN"), (float("inf"), "infinite")])
def test_logits_that_are_not_finite_are_refused(name: str, value: float, said: str):
    logits = torch.zeros(2, 11)
    logits["ab".index(name), 3] = value
    kept = Kept(tiny("llama"), logits, ["a", "b"], {"a": {1}}, {"b"})
    with pytest.raises(FloatingPointError, match=f"{said} logits"):
        kept.read({}, {})


def test_rows_in_order_are_not_copied():
    logits = torch.arange(6.0).view(3, 2)
    assert rows_of(logits, [0, 1, 2]) is logits
    assert rows_of(logits, [2, 0, 2]).tolist() == [[4, 5], [0, 1], [4, 5]]


def test_tensors_of_all_kinds_go_and_come_in_one_transfer():
    emulated_devices.require()
    device = torch.device("emulated:0")
    tensors = [
        torch.tensor(True),
        torch.arange(5),
        torch.empty(0, 3, dtype=torch.int32),
        torch.tensor([[1.5, -2.0, 3.0]]).T,
        torch.tensor([1.0, 7.0], dtype=torch.bfloat16),
        torch.tensor([False, True, True]),
    ]
    with launches.Launches(device) as counted:
        there = sent_together([*tensors, torch.ones(2, device=device)], device)
        back = Fetch(there).read()
    assert (counted.copies, counted.syncs) == (1, 1)
    assert all(x.device == device for x in there)
    for x, y in zip([*tensors, torch.ones(2)], back, strict=True):
        assert x.dtype == y.dtype
        assert torch.equal(x, y)


@pytest.mark.parametrize("device", ["cpu", "emulated:0"])
def test_what_comes_to_the_host_is_waited_for(device: str) -> None:
    """A transfer that is not waited for could be read before it has arrived; this device refuses
    to begin one."""
    emulated_devices.require()
    there = torch.arange(3.0).to(device)
    assert sent(there, torch.device("cpu")).tolist() == [0, 1, 2]
    both = sent_together([there, there + 1], torch.device("cpu"))
    assert [x.tolist() for x in both] == [[0, 1, 2], [1, 2, 3]]
