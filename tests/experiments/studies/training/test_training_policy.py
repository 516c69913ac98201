"""The policy of training: its log-probabilities, and what the answer sees of the prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_models import tiny

from faithscope.experiments.studies.training.policy import Choice, Policy, Text
from faithscope.interp.errors import UserError

IDS = (5, 9, 2, 7, 7, 3, 11, 4, 8, 6)


def policy(family: str = "llama", **config: int) -> Policy:
    of = Policy(tiny(family, **config), rank=4, alpha=8, targets="all-linear", seed=0)
    with torch.no_grad():
        for parameter in of.parameters:  # an adapter begins without effect; this one has some
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=torch.manual_seed(1)))
    return of


def text(ids=IDS, learned: int = 4) -> Text:
    return Text(tuple(ids), learned, prompt=3, answer=2)


def test_log_probs_are_those_of_the_model_one_by_one():
    of = policy()
    texts = [text(), text(IDS[:7], 3)]
    with torch.no_grad():
        together_of = of.log_probs(texts)
    for one, together in zip(texts, together_of, strict=True):
        logits = of.hf(input_ids=torch.tensor([one.ids])).logits[0].log_softmax(-1)
        ids = one.ids[-one.learned :]
        alone = [logits[len(one.ids) - one.learned - 1 + i, token] for i, token in enumerate(ids)]
        assert together.tolist() == pytest.approx([float(x) for x in alone], abs=1e-5)


def test_the_adapter_is_off_in_the_reference():
    of = policy()
    own = of.log_probs([text()])[0].detach()
    with of.reference():
        before = of.log_probs([text()])[0].detach()
    assert not torch.allclose(own, before)
    assert torch.allclose(of.log_probs([text()])[0], own)


def test_under_the_update_mask_the_answer_does_not_see_the_prompt():
    """In a model of one layer nothing but attention carries the prompt to the answer."""
    of = policy(num_hidden_layers=1)
    other = (1, 1, 1, *IDS[3:])
    seen = [of.log_probs([text(ids)])[0].detach() for ids in (IDS, other)]
    masked = [of.log_probs([text(ids)], "update_mask")[0].detach() for ids in (IDS, other)]
    assert not torch.allclose(seen[0][-1], seen[1][-1])
    assert torch.allclose(masked[0][-1], masked[1][-1])
    # what is no part of the answer sees all that it saw before
    assert torch.allclose(masked[0][:-2], seen[0][:-2], atol=1e-5)


def test_windows_stay_under_the_update_mask():
    """An answer that has nothing of the prompt in its window is the same with and without mask."""
    of = policy("mistral")
    ids = tuple(range(1, 31))
    far = Text(ids, learned=4, prompt=3, answer=2)
    plain, masked = (of.log_probs([far], sight)[0] for sight in ("all", "update_mask"))
    assert torch.allclose(plain, masked, atol=1e-5)


def test_the_gradient_mask_changes_gradients_and_no_number():
    of = policy()
    grads, values = [], []
    for sight in ("all", "gradient_mask"):
        of.hf.zero_grad()
        log_probs = of.log_probs([text()], sight)[0]
        log_probs[-1].backward()
        values.append(log_probs.detach())
        grads.append(torch.cat([p.grad.flatten() for p in of.parameters if p.grad is not None]))
    assert torch.allclose(values[0], values[1], atol=1e-5)
    assert not torch.allclose(grads[0], grads[1], atol=1e-6)


def test_labels_of_several_tokens_add_up_and_are_normalised():
    of = policy()
    prefix, labels = tuple(IDS[:5]), ((3,), (4, 6), (9,))
    longer, short = of.answers(
        [
            Choice((prefix,), labels, ("a", "b", "a")),
            Choice((prefix, prefix), ((3,), (9,)), ("a", "b")),
        ]
    )
    (together,) = longer
    assert short[0].exp().sum().item() == pytest.approx(1)
    assert torch.equal(short[0], short[1])
    alone = [of.log_probs([Text((*prefix, *label), len(label))])[0].sum() for label in labels]
    scores = torch.stack([torch.stack([alone[0], alone[2]]).logsumexp(0), alone[1]])
    assert together.tolist() == pytest.approx(scores.log_softmax(-1).tolist(), abs=1e-5)


def test_unknown_targets_are_named():
    with pytest.raises(UserError, match=r"adapter\.targets.*nothing_like_it"):
        Policy(tiny("llama"), 4, 8, ["nothing_like_it"], 0)


def test_a_merged_adapter_reads_the_same_and_leaves_the_weights_as_they_were():
    of = policy()
    with torch.no_grad():
        for parameter in of.parameters:
            parameter.add_(0.05)
    weights = {name: p.clone() for name, p in of.hf.named_parameters()}
    apart = of.log_probs([text()])[0].detach()
    with of.merged(), torch.no_grad():
        merged = of.log_probs([text()])[0]
    assert torch.allclose(apart, merged, atol=1e-5)
    assert not torch.allclose(apart, _before(of), atol=1e-3)
    assert all(torch.equal(p, weights[name]) for name, p in of.hf.named_parameters())
    assert all(p.requires_grad for p in of.parameters)


def _before(of: Policy) -> torch.Tensor:
    with of.reference(), torch.no_grad():
        return of.log_probs([text()])[0]


@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2"])
def test_texts_with_shared_beginnings_run_as_a_forest_with_the_same_gradients(family: str):
    of = policy(family)
    chain = tuple(range(3, 43))
    labels = tuple((60 + i, 70 + j) for i in range(4) for j in range(3))
    asked = [Choice((chain, chain[:25]), labels, tuple("abcdefghijkl"))]
    results = []
    for reason in (None, "padded, for the comparison"):
        of.model.tree_reason = reason
        of.hf.zero_grad()
        run: list[int] = []
        hook = of.hf.get_input_embeddings().register_forward_hook(
            lambda _m, inputs, _out, run=run: run.append(inputs[0].numel())
        )
        (answers,) = of.answers(asked)
        hook.remove()
        torch.stack(answers)[:, 3].sum().backward()
        gradient = torch.cat([p.grad.flatten() for p in of.parameters if p.grad is not None])
        results.append((torch.stack(answers).detach(), gradient.clone(), run))
    (packed, of_packed, few), (padded, of_padded, many) = results
    assert few == [40 + 2 * 4]
    assert many == [2 * 4 * 41]
    assert torch.allclose(packed, padded, atol=1e-5)
    assert torch.allclose(of_packed, of_padded, atol=1e-5)


def test_a_stored_adapter_lists_its_modules_in_one_order(tmp_path: Path) -> None:
    policy().save(tmp_path)
    stored = json.loads((tmp_path / "adapter_config.json").read_text())
    names = ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]
    assert stored["target_modules"] == names
