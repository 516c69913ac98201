"""The config of a training run: the models that training begins with, objectives, seeds, bounds."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import FiguresConfig, FolderConfig, OneOrMany, Section
from faithscope.experiments.config.keys import by_key
from faithscope.experiments.engine.traces.config import fits
from faithscope.experiments.engine.traces.sections import (
    DataConfig,
    ModelConfig,
    StepsConfig,
    TaskName,
    known,
)
from faithscope.interp.errors import did_you_mean

START = "start"
"""Method of the row of a model as it is before training."""
METHODS = {
    START: "the model before training",
    "grpo": "GRPO: pays for a right answer alone",
    "csr": "CSR: pays for a right answer, and for a distance of the answer's distributions with "
    "and without a step",
    "farl": "FARL: pays for a right answer, and unlearns right answers without reasoning",
    "cosr": "CoSR: pays if the answer changes when a step is dropped",
    "cosr_differentiable": "CoSR through gradients: the answer's log-probability with all steps "
    "less that without one",
    "cosr_log_odds": "CoSR through gradients of log-odds, which a certain answer keeps as well",
    "lc_cosr": "LC-CoSR: CoSR under the Lyapunov bound",
    "update_mask": "pays for a right answer; in updates the answer does not see the question",
    "gradient_mask": "pays for a right answer; no gradient flows from it to the question",
    "follow": "ours: pays if the answer follows a corrupted step that the model writes onward from",
    "follow_differentiable": "ours through gradients: the log-probability of the answer that the "
    "rewritten steps state",
    "shuffled_reward": "control: CoSR's rewards, dealt out anew among the rollouts of a batch",
}
"""The objectives (`objectives.OBJECTIVES`) and the model before training: name -> meaning."""


def method_problem(name: str) -> str | None:
    """Why `name` is no method; None if it is one."""
    if name in METHODS:
        return None
    guess = did_you_mean(name, METHODS) or f"; known: {', '.join(METHODS)}"
    return f"unknown method {name!r}{guess}"


MethodName = Annotated[StrictStr, known(method_problem)]


class SamplingConfig(Section):
    """The rollouts of each step."""

    questions: StrictInt = Field(default=4, ge=1)
    """Number of questions per step."""
    group: StrictInt = Field(default=8, ge=2)
    """Number of rollouts of each question; rewards are compared within them."""
    max_new_tokens: StrictInt = Field(default=128, ge=1)
    """Most tokens of a rollout. A rollout that is cut off is counted and not rewarded."""
    temperature: StrictFloat = Field(default=1.0, gt=0)
    """Sampling temperature. The policy that is trained is the one at this temperature."""
    answer_tokens: StrictInt = Field(default=24, ge=1)
    """Most tokens of an answer that is asked for after an edit."""


class AdapterConfig(Section):
    """The adapter that is trained (LoRA, by PEFT)."""

    rank: StrictInt = Field(default=16, ge=1)
    """Rank of the adapter's matrices; the paper's is lost."""
    alpha: StrictInt = Field(default=32, ge=1)
    """The adapter's update is multiplied by alpha / rank."""
    targets: StrictStr | list[StrictStr] = "all-linear"
    """Names of the modules that are adapted, or `all-linear`."""


Per = Literal["rollout", "token"]
"""What the policy's loss is a mean of: rollouts, each the mean of its tokens (GRPO, arXiv
2402.03300); or all tokens of the batch alike (DAPO, arXiv 2503.14476)."""


class OptimizerConfig(Section):
    """The optimiser (AdamW) and the policy's loss."""

    rate: StrictFloat = Field(default=1e-4, gt=0)
    """Learning rate, the same at every step."""
    clip: StrictFloat = Field(default=1.0, gt=0)
    """Largest norm of the gradient; a longer one is shortened to it."""
    kl: StrictFloat = Field(default=0.0, ge=0)
    """Weight of the divergence from the model before training, which `per` averages as the loss."""
    per: Per = "rollout"
    """What the policy's loss is a mean of: rollouts, each the mean of its tokens, or all tokens."""
    scaled: StrictBool = True
    """Whether advantages are divided by the standard deviation of their group."""
    weight: StrictFloat = 1.0
    """Weight of an objective's loss beside the policy's; a negative one teaches the opposite."""
    tokens: StrictInt = Field(default=8192, ge=64)
    """Most tokens of rollouts in one forward with gradient; more are taken in turn."""


class Rewards(Section):
    """The numbers that objectives pay and weigh with; the paper states none of them."""

    changed: StrictFloat = 1.0
    """CoSR's reward if the answer changes when a step is dropped."""
    unchanged: StrictFloat = -1.0
    """CoSR's reward if it does not."""
    correct: StrictFloat = 0.0
    """What CoSR adds for a right answer; the paper does not say that correctness counts."""
    shuffled: StrictFloat = 0.0
    """What CoSR adds if another order of the steps changes the answer. The paper has such a pass
    and does not say what it is for; 0 counts it without rewarding it."""
    npo_beta: StrictFloat = Field(default=0.1, gt=0)
    """Inverse temperature of FARL's unlearning (NPO)."""
    most: StrictFloat = Field(default=5.0, gt=0)
    """Nats beyond which a larger distance between two answer distributions earns nothing more."""


class BoundConfig(Section):
    """The Lyapunov bound V(θ) ≥ V(θ₀) − ε on a fixed batch of chains."""

    epsilon: StrictFloat = Field(default=0.05, ge=0)
    """How far V may fall below its value before training."""
    chains: StrictInt = Field(default=8, ge=1)
    """Number of chains of the fixed batch; their questions are not trained on."""
    holds: Literal["by_method", "always", "never"] = "by_method"
    """Whether steps are projected so that the bound holds: as the method says (`lc_cosr` alone
    does), always, or never. Violations are counted either way."""


class MeasureConfig(Section):
    """The run that measures each model before training, and each of its adapters."""

    config: StrictStr
    """A YAML file, or the name of a shipped config, of a study that measures models (`slrc`)."""
    set: dict[str, Any] = Field(default={})
    """Keys to change in that config. Its questions must not be trained on: another `seed` draws
    other ones, other `tasks` may have other lengths. The section `model` is that of the training
    run."""

    @field_validator("set")
    @classmethod
    def _models_are_given(cls, values: dict[str, Any]) -> dict[str, Any]:
        taken = {"name", "out", "model.name"} & by_key(values).keys()
        if taken:
            raise ValueError(f"{min(taken)} is given by the training run; take it out")
        return values


class TrainingReport(FiguresConfig):
    """Settings of the tables and the page."""

    bootstrap: StrictInt = Field(default=1000, ge=10, le=10_000)
    """Number of bootstrap resamples of seeds for every interval."""


class TrainConfig(FolderConfig):
    """The settings of a training run."""

    benchmark: Literal["training"]
    """Name of the study: `training`."""
    model: ModelConfig
    """The models that training begins with."""
    tasks: Annotated[list[TaskName], *OneOrMany]
    """Tasks of the questions; each model is trained on those of its own language, together."""
    data: DataConfig = DataConfig(limit=200)
    steps: StepsConfig = StepsConfig()
    methods: Annotated[list[MethodName], *OneOrMany]
    """Objectives to train with, one adapter each; `start` measures the model before training."""
    seeds: Annotated[list[StrictInt], *OneOrMany] = Field(default=[0])
    """Seeds of sampling, of edits and of the adapter's first weights: one adapter each."""
    updates: StrictInt = Field(default=50, ge=1)
    """Number of training steps."""
    sampling: SamplingConfig = SamplingConfig()
    adapter: AdapterConfig = AdapterConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    rewards: Rewards = Rewards()
    bound: BoundConfig = BoundConfig()
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Most tokens whose keys and values are held at once; null suits the device."""
    measured_on: StrictInt = Field(default=200, ge=10)
    """Number of fresh questions on which planted models are measured after training."""
    measure: MeasureConfig | None = None
    """`config` and `set` of a run that measures each model before training and each adapter (table
    `training_measured`); null measures nothing but planted models. May be added or changed when the
    adapters are trained."""
    report: TrainingReport = TrainingReport()

    SHOWN: ClassVar[tuple[str, ...]] = ("report", "measure")
    FREE: ClassVar[tuple[str, ...]] = (
        *(*FolderConfig.FREE, "token_budget", "optimizer.tokens", "measure", "measure."),
        *("data.group", "data.group."),
    )

    @model_validator(mode="after")
    def _weights_and_questions(self) -> TrainConfig:
        problems = [
            f"model.name: {model!r} is behind an API, and only weights can be trained"
            for model in self.model.name
            if model.startswith(API)
        ]
        problems += [
            f"model.name: {model!r} can do none of the tasks {', '.join(self.tasks)}; "
            "add one that it can do (`faithscope list tasks`)"
            for model in self.model.name
            if not model.startswith(API) and not any(fits(model, task) for task in self.tasks)
        ]
        if self.model.quantize is not None and self.model.device_map is not None:
            problems.append("model: quantized weights over several devices are not trained here")
        if problems:
            raise ValueError("\n".join(problems))
        return self


CONFIG = TrainConfig
