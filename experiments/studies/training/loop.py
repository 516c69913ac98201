"""The training loop: sample, edit, reward, update, bound; resumable after every step.

Everything random in a step is drawn from the seed and the number of the step, so that a training
that was killed and resumed ends, on a CPU, in the same weights as one that was not.
"""

from __future__ import annotations

import io
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from faithscope.experiments.analysis.tidy import mean_present
from faithscope.experiments.data.tasks import Task
from faithscope.experiments.data.traces import TraceSettings, asking_for, exclusion, make_traces
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.studies.training.bound import Bound, move_to, step
from faithscope.experiments.studies.training.config import TrainConfig
from faithscope.experiments.studies.training.losses import (
    advantages,
    drift,
    token_weights,
    variation,
)
from faithscope.experiments.studies.training.objectives import Objective, choice
from faithscope.experiments.studies.training.policy import Choice, Policy
from faithscope.experiments.studies.training.rollouts import (
    FULL,
    TRUNCATED,
    UNANSWERED,
    Rollout,
    ask_after_edits,
    sample,
)
from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.interventions import Question, Trace, remove_step

Asked = tuple[Task, Question]
Row = dict[str, Any]
STATE = "state.pt"
"""File of a training's parameters, optimiser and rows after its last whole step."""


class Training:
    """The training of one adapter."""

    def __init__(
        self,
        model: Model,
        asked: Sequence[Asked],
        config: TrainConfig,
        objective: Objective,
        seed: int,
        folder: Path,
    ) -> None:
        """
        Args:
            model: the model as it is before training; an adapter is put over it.
            asked: the questions; the last ones (`bound.chains`) are kept for the bound.
            folder: folder of the state, which is this training's alone.

        Raises:
            UserError: there are too few questions, or PEFT is missing.
        """
        kept = config.bound.chains
        if len(asked) < kept + config.sampling.questions:
            raise UserError(
                f"{model.name}: {len(asked)} questions are too few for {kept} chains of the bound "
                f"and {config.sampling.questions} questions per step; raise data.limit"
            )
        self.config, self.objective, self.seed, self.folder = config, objective, seed, folder
        self.trained, self.held = asked[:-kept], asked[-kept:]
        self.model = model
        a = config.adapter
        self.policy = Policy(model, a.rank, a.alpha, a.targets, seed)
        self.optimizer = torch.optim.AdamW(
            self.policy.parameters, lr=config.optimizer.rate, weight_decay=0.0
        )
        self.rows: list[Row] = []
        holds = {"always": True, "never": False}.get(config.bound.holds, objective.bounded)
        self.bound = Bound(math.nan, holds)
        self.chains = self._chains()
        if not self.chains:
            raise UserError(
                f"{model.name}: none of the {kept} chains of the bound has two steps and a set of "
                "answers to weigh; take other tasks, or raise bound.chains"
            )
        self.bound.least = self.value() - config.bound.epsilon
        self._resume()

    def run(self, on_step: Callable[[Row], None] = lambda row: None) -> list[Row]:
        """Do every step that is missing; returns a row per step."""
        while len(self.rows) < self.config.updates:
            self.rows.append(self.update(len(self.rows)))
            self._keep()
            on_step(self.rows[-1])
        return self.rows

    def update(self, number: int) -> Row:
        """One step; returns what happened in it."""
        began = time.perf_counter()
        s, o = self.config.sampling, self.config.optimizer
        seed = f"{self.config.seed}-{self.seed}-{number}"
        with self.policy.merged():
            rollouts = sample(self.model, self._questions(number), s.group, self._sampling(seed))
            ask_after_edits(self.model, rollouts, self.objective.arms, seed, s.answer_tokens)
        rewards = self._rewards(rollouts, seed)
        advantage = advantages(rewards, [r.group for r in rollouts], scaled=o.scaled)
        self.optimizer.zero_grad(set_to_none=True)
        loss, taught = self._backward(rollouts, advantage)
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters, o.clip))
        if not math.isfinite(norm):
            raise FloatingPointError(
                f"step {number}: the gradient is not finite; lower optimizer.rate, or take float32"
            )
        value = step(self.optimizer, self.bound, self.value, self._value_and_gradient)
        told = self._told(rollouts, rewards, value)
        took = {"seconds": time.perf_counter() - began}
        about = {"step": number, "loss": loss, "gradient_norm": norm, "n_taught": taught}
        return about | told | took

    def value(self) -> float:
        """V(θ): mean total variation of the answer's distribution when a step is dropped, over all
        steps of the bound's chains."""
        with torch.no_grad():
            return float(sum(self._values()))

    def _value_and_gradient(self) -> tuple[float, list[Tensor]]:
        self.optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for of in self._values():
            of.backward()
            total += float(of.detach())
        parameters = self.policy.parameters
        gradient = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]
        return total, gradient

    def _values(self) -> Iterator[Tensor]:
        """Yields parts of V, which add up to it: each is of some chains of the bound."""
        lengths = [sum(map(len, chain.prefixes)) for chain in self.chains]
        for part in _parts(range(len(self.chains)), lengths, self.config.optimizer.tokens):
            answers = self.policy.answers([self.chains[i] for i in part])
            means = [
                torch.stack([variation(full, of) for of in dropped]).mean()
                for full, *dropped in answers
            ]
            yield torch.stack(means).sum() / len(self.chains)

    def _chains(self) -> list[Choice]:
        """Per chain of the bound, the answers with all steps and without each."""
        greedy = replace(self._sampling(""), temperature=0.0, seed=0)
        traces = make_traces(self.model, self.held, greedy)
        return [
            self._branches(task, trace)
            for (task, _), trace in zip(self.held, traces, strict=True)
            if exclusion(trace) is None and len(asking_for(self.model, task, trace).answers) > 1
        ]

    def _branches(self, task: Task, trace: Trace) -> Choice:
        edited = [trace, *(remove_step(trace, s.index) for s in trace.counted_steps)]
        return choice(self.model, asking_for(self.model, task, trace), edited)

    def _questions(self, number: int) -> list[Asked]:
        """The questions of a step: all are taken once, in a drawn order, before any is again."""
        n = self.config.sampling.questions
        per_pass = len(self.trained) // n
        order = list(range(len(self.trained)))
        random.Random(f"{self.config.seed}-{self.seed}-pass-{number // per_pass}").shuffle(order)
        start = number % per_pass * n
        return [self.trained[i] for i in order[start : start + n]]

    def _sampling(self, seed: str) -> TraceSettings:
        steps, s = self.config.steps, self.config.sampling
        return TraceSettings(
            max_new_tokens=s.max_new_tokens,
            temperature=s.temperature,
            seed=random.Random(seed).randrange(2**31),
            batch_size=s.questions * s.group,
            thinking=self.config.model.thinking,
            segmentation=steps.segmentation,
            min_step_chars=steps.min_chars,
            groups=steps.groups,
            conclusion=steps.conclusion,
        )

    def _rewards(self, rollouts: Sequence[Rollout], seed: str) -> Tensor:
        """(N,) rewards, NaN for rollouts that are not rewarded."""
        rewards = [
            math.nan if r.excluded else self.objective.reward(r, self.config.rewards)
            for r in rollouts
        ]
        if self.objective.shuffles_rewards:
            paid = [i for i, of in enumerate(rewards) if not math.isnan(of)]
            dealt = [rewards[i] for i in paid]
            random.Random(f"{seed}-deal").shuffle(dealt)
            for i, of in zip(paid, dealt, strict=True):
                rewards[i] = of
        return torch.tensor(rewards)

    def _backward(self, rollouts: Sequence[Rollout], advantage: Tensor) -> tuple[float, int]:
        """Adds up the gradient of the whole loss; returns it, and the number of rollouts with a
        loss beside the policy's."""
        o, heat = self.config.optimizer, self.config.sampling.temperature
        whole, taught = 0.0, 0
        texts = [r.text() for r in rollouts]
        weights = token_weights([t.learned for t in texts], advantage, o.per)
        shares = token_weights([t.learned for t in texts], torch.ones(len(texts)), o.per)
        counted = [i for i, w in enumerate(weights) if w != 0 or (o.kl and texts[i].learned)]
        for part in _parts(counted, [len(t.ids) for t in texts], o.tokens):
            of_part = [texts[i] for i in part]
            log_probs = self.policy.log_probs(of_part, self.objective.sight, heat)
            loss = -torch.stack(
                [weights[i] * of.sum() for i, of in zip(part, log_probs, strict=True)]
            ).sum()
            if o.kl:
                with torch.no_grad(), self.policy.reference():
                    before = self.policy.log_probs(of_part, temperature=heat)
                every = zip(part, log_probs, before, strict=True)
                drifts = [shares[i] * drift(of, ref) for i, of, ref in every]
                loss = loss + o.kl * torch.stack(drifts).sum()
            loss.backward()
            whole += float(loss.detach())
        if self.objective.loss is None:
            return whole, 0
        rewarded = [r for r in rollouts if not r.excluded]
        lengths = [len(self.objective.arms) * len(r.text().ids) for r in rewarded]
        for part in _parts(range(len(rewarded)), lengths, o.tokens):
            of_rollouts = [rewarded[i] for i in part]
            losses = self.objective.loss(self.policy, of_rollouts, self.config.rewards)
            if losses:
                loss = o.weight / len(rewarded) * torch.stack(losses).sum()
                loss.backward()
                whole += float(loss.detach())
                taught += len(losses)
        return whole, taught

    def _told(self, rollouts: Sequence[Rollout], rewards: Tensor, value: float) -> Row:
        """What a reader needs to see of a step, what guards against hacked rewards among it."""
        reasons = Counter(r.excluded for r in rollouts)
        paid = ~rewards.isnan()
        of_groups = zip((r.group for r in rollouts), rewards.tolist(), strict=True)
        different = Counter(group for group, of in set(of_groups) if not math.isnan(of))
        asked = [r for r in rollouts if not r.excluded]
        dropped = [r for r in asked if r.changed("dropped") is not None]
        before_last = [r for r in dropped if not r.drops_last]
        return {
            "n_rollouts": len(rollouts),
            "n_rewarded": int(paid.sum()),
            "n_truncated": reasons[TRUNCATED],
            "n_unanswered": reasons[UNANSWERED],
            "n_too_few_steps": sum(
                r.excluded not in (None, TRUNCATED, UNANSWERED) for r in rollouts
            ),
            "n_unparsed_after": sum(r.answers["dropped"] is None for r in dropped),
            "n_equal_groups": sum(n == 1 for n in different.values()),
            "n_groups": len({r.group for r in rollouts}),
            "reward": mean_present(rewards[paid].tolist()),
            "accuracy": mean_present(r.correct for r in rollouts),
            "changed": mean_present(r.changed("dropped") for r in asked),
            "changed_before_last": mean_present(r.changed("dropped") for r in before_last),
            "changed_shuffled": mean_present(r.changed("shuffled") for r in asked),
            "changed_by_asking": mean_present(r.changed(FULL) for r in asked),
            "followed": mean_present(
                r.answers["rewritten"] == r.claimed for r in asked if r.claimed
            ),
            "mean_steps": mean_present(len(r.trace.counted_steps) for r in rollouts),
            "mean_tokens": mean_present(r.text().learned for r in rollouts),
            "value": value,
            "least_value": self.bound.least,
            "projections": self.bound.projections,
            "halvings": self.bound.halvings,
            "given_up": self.bound.given_up,
            "violations": self.bound.violations,
        }

    def _keep(self) -> None:
        """Store the state after a whole step; a kill leaves this state or the one before."""
        make_folder(self.folder)
        state = {
            "parameters": [p.detach() for p in self.policy.parameters],
            "optimizer": self.optimizer.state_dict(),
            "bound": vars(self.bound),
            "rows": self.rows,
        }
        stored = io.BytesIO()
        torch.save(state, stored)
        write_atomically(self.folder / STATE, stored.getvalue())

    def _resume(self) -> None:
        path = self.folder / STATE
        if path.is_file():
            state = torch.load(path, map_location=self.model.device, weights_only=True)
            move_to(self.policy.parameters, state["parameters"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.bound = Bound(**state["bound"])
            self.rows = state["rows"]


def _parts(numbers: Sequence[int], lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yields parts of texts that hold at most `most` tokens each once they are padded."""
    part: list[int] = []
    for i in numbers:
        longest = max([lengths[i], *(lengths[j] for j in part)])
        if part and longest * (len(part) + 1) > most:
            yield part
            part = []
        part.append(i)
    if part:
        yield part
