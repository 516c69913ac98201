"""GRPO as training does it, against TRL's own trainer on the same rollouts and rewards."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import faithscope
from faithscope.experiments.studies.training.config import TrainConfig
from faithscope.experiments.studies.training.loop import Training
from faithscope.experiments.studies.training.losses import advantages
from faithscope.experiments.studies.training.objectives import OBJECTIVES
from faithscope.experiments.studies.training.plan import plan
from faithscope.experiments.studies.training.rollouts import Rollout, sample

MODEL = "planted:mixture_50"
QUESTIONS, GROUP, TEMPERATURE, RANK, ALPHA = 2, 4, 3.0, 4, 8
REWARDS = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.25, math.nan, 1.0, 0.0])
"""One reward per rollout; the one with NaN is not rewarded."""
LOSS_TYPE = {"rollout": "grpo", "token": "dapo"}
"""`optimizer.per` -> TRL's name of the same mean."""


def training(folder: Path, **optimizer: Any) -> Training:
    """A training whose adapter has an effect: gradients of all its matrices differ from zero."""
    config = TrainConfig.model_validate(
        {
            "name": "against_trl",
            "benchmark": "training",
            "model": {"name": [MODEL]},
            "tasks": ["planted"],
            "data": {"limit": 6},
            "methods": ["grpo"],
            "sampling": {
                **{"questions": QUESTIONS, "group": GROUP},
                **{"max_new_tokens": 40, "temperature": TEMPERATURE},
            },
            "adapter": {"rank": RANK, "alpha": ALPHA},
            "optimizer": optimizer,
            "bound": {"chains": 4},
        }
    )
    asked = plan(config).items[0].asked
    of = Training(faithscope.load(MODEL), asked, config, OBJECTIVES["grpo"], 0, folder)
    drawn = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in of.policy.parameters:
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=drawn))
    return of


def adapter(hf: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters of an adapter by their names, as in a model without PEFT's wrapper."""
    return {
        name.removeprefix("base_model.model."): p
        for name, p in hf.named_parameters()
        if p.requires_grad
    }


def by_trl(
    rollouts: list[Rollout], like: Training, folder: Path, **settings: Any
) -> tuple[dict[str, torch.Tensor], Any]:
    """The gradient that TRL's trainer hands to its optimiser for rollouts with `REWARDS`, and the
    trainer after that step. The adapter begins as that of `like`."""
    trl = pytest.importorskip("trl", reason="needs TRL: pip install 'faithscope[dev]'")
    peft = pytest.importorskip("peft", reason="needs the extra: faithscope[train]")
    datasets = pytest.importorskip("datasets", reason="needs the extra: faithscope[data]")
    model = faithscope.load(MODEL)
    gradient: dict[str, torch.Tensor] = {}

    class Read(transformers.TrainerCallback):
        def on_pre_optimizer_step(self, *of: Any, **kwargs: Any) -> None:
            gradient.update((n, p.grad.clone()) for n, p in adapter(trainer.model).items())

    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        assert prompts == [str(r.group) for r in rollouts]
        texts = [r.text() for r in rollouts]
        return {
            "prompt_ids": [list(t.ids[: -t.learned]) for t in texts],
            "completion_ids": [list(t.ids[-t.learned :]) for t in texts],
            "logprobs": None,
        }

    def reward(**kwargs: Any) -> list[float | None]:
        return [None if math.isnan(r) else r for r in REWARDS.tolist()]

    trainer = trl.GRPOTrainer(
        model.hf,
        reward,
        trl.GRPOConfig(
            str(folder),
            **settings,
            num_generations=GROUP,
            per_device_train_batch_size=len(rollouts),
            temperature=TEMPERATURE,
            max_steps=1,
            max_grad_norm=0.0,
            shuffle_dataset=False,
            gradient_checkpointing=False,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        ),
        datasets.Dataset.from_list([{"prompt": str(i)} for i in range(QUESTIONS)]),
        processing_class=model.tokenizer,
        peft_config=peft.LoraConfig(
            r=RANK, lora_alpha=ALPHA, target_modules="all-linear", lora_dropout=0.0
        ),
        callbacks=[Read()],
        rollout_func=rollout,
    )
    ours = adapter(like.policy.hf)
    with torch.no_grad():
        for name, parameter in adapter(trainer.model).items():
            parameter.copy_(ours[name])
    trainer.train()
    return gradient, trainer


def our_advantages(rollouts: list[Rollout], scaled: bool) -> torch.Tensor:
    """Our advantages; where they are scaled, with the standard deviation as TRL estimates it: the
    sum of squares is divided by n − 1, and by n in ours."""
    ours = advantages(REWARDS, [r.group for r in rollouts], scaled=scaled)
    if scaled:
        for group, of_group in zip(REWARDS.split(GROUP), ours.split(GROUP), strict=True):
            known = group[~group.isnan()]
            by_n, by_one_less = (known.std(correction=c) + 1e-4 for c in (0, 1))
            of_group *= by_n / by_one_less
    return ours


@pytest.mark.in_time(1)
@pytest.mark.parametrize(
    ("per", "kl", "scaled"),
    [
        ("rollout", 0.0, True),
        ("rollout", 0.3, False),
        ("token", 0.0, False),
        ("token", 0.3, True),
    ],
)
def test_gradients_are_those_of_trl(tmp_path, per, kl, scaled):
    ours = training(tmp_path / "ours", per=per, kl=kl, scaled=scaled)
    rollouts = sample(ours.model, ours._questions(0), GROUP, ours._sampling("0"))
    lengths = {r.text().learned for r in rollouts}
    assert len(lengths) > 1, "the two means differ only where rollouts differ in length"
    ours._backward(rollouts, our_advantages(rollouts, scaled))
    theirs, _ = by_trl(
        rollouts,
        ours,
        tmp_path / "trl",
        loss_type=LOSS_TYPE[per],
        scale_rewards="group" if scaled else "none",
        beta=kl,
        # GRPO's estimate of the divergence as its paper has it, which TRL has under this name
        use_bias_correction_kl=False,
    )
    own = {name: p.grad for name, p in adapter(ours.policy.hf).items()}
    assert own.keys() == theirs.keys()
    for name, gradient in theirs.items():
        assert gradient.norm() > 0
        assert (own[name] - gradient).norm() < 1e-5 * gradient.norm(), name


def test_an_adapter_that_trl_saved_is_a_models_name(tmp_path):
    ours = training(tmp_path / "ours")
    rollouts = sample(ours.model, ours._questions(0), GROUP, ours._sampling("0"))
    _, trainer = by_trl(rollouts, ours, tmp_path / "trl")
    trainer.save_model(str(tmp_path / "adapter"))
    loaded = faithscope.load(str(tmp_path / "adapter"))
    ids = torch.tensor([rollouts[0].text().ids])
    with torch.no_grad():
        own, theirs = (hf.eval()(input_ids=ids).logits for hf in (loaded.hf, trainer.model))
    torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-4)
