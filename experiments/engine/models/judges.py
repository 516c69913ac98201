"""Judges that a config names: an API model, or a local model, in either reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API, DECIDES, DECIDES_API, ApiSection, SpendConfig
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.models.account import RunAccount
from faithscope.experiments.engine.models.fingerprint import fingerprint
from faithscope.experiments.engine.planfile import as_file_name
from faithscope.experiments.engine.units import versions
from faithscope.interp.errors import UserError
from faithscope.interp.number_ends import NUMBER_ENDS
from faithscope.probes.judge.form import Ask
from faithscope.probes.judge.parse import REPLIES, sent
from faithscope.probes.judge.spend import Account

if TYPE_CHECKING:
    from faithscope.experiments.engine.store import Store
    from faithscope.interp.backends import Backend
    from faithscope.interp.language import Speaks
    from faithscope.interp.model import Model
    from faithscope.probes.judge.api import ApiJudge
    from faithscope.probes.judge.form import Judge, Reply, Writing
    from faithscope.probes.judge.open_model import GeneratingJudge, GeneratingSettings

STAGES: dict[Reading, str] = {"generated": "judge_generated", "scored": "judge_scored"}
"""Reading -> stage of its verdicts, in studies where all judges share a stage."""
READINGS: dict[str, Reading] = {stage: reading for reading, stage in STAGES.items()}
_OF_MODELS_HERE = ("thinking", "batch_size", "dtype", "device", "revision", "quantize")
_OF_MODELS_HERE += ("device_map",)


def stage_of(base: str, judge: str) -> str:
    """Name of the stage of one judge, where every judge of a run has its own stage."""
    return f"{base}.{as_file_name(judge)}"


def check_stages(judges: Iterable[str], key: str = "judge.model") -> None:
    """Check that each of several judges has a stage of its own (`stage_of`).

    Args:
        key: config key that names them, for the error.

    Raises:
        ConfigError: two judges have the same stage.
    """
    names = list(judges)
    if len({stage_of("", name) for name in names}) < len(names):
        raise ConfigError([f"{key}: {', '.join(names)}: two of these names differ in marks only"])


def decides(model: str, judge: JudgeConfig, seed: int) -> dict[str, Any]:
    """Settings that decide a judge's replies to any ask; those of speed are left out."""
    values = judge.model_dump(mode="json")
    of_api = model.startswith(API)
    how = (*DECIDES, "structured", *(DECIDES_API if of_api else _OF_MODELS_HERE))
    backend = {} if of_api else judge.decides()
    stated = {} if of_api or judge.marks is None else {"marks": judge.marks}
    return {
        "schema": SCHEMA,
        "seed": seed,
        "weights": fingerprint(model, judge.revision),
        "model": model,
        "judge": {name: values[name] for name in how} | stated | backend,
        **versions(replies=REPLIES, **({} if of_api else {"number_ends": NUMBER_ENDS})),
    }


def writing_as(judge: JudgeConfig, temperature: float) -> JudgeConfig:
    """The judge settings with the writer's temperature and one attempt."""
    own = {"temperature": temperature, "attempts": 1, "structured": "prompt"}
    return judge.model_copy(update=own)


def answered(ask: Ask | Writing, reply: Reply, keeps_prompts: bool = True) -> dict[str, Any]:
    """Record fields of an ask and of its reply, word for word. Of a judgement also its `verdict`,
    None if the reply is malformed.

    Args:
        keeps_prompts: whether the prompts are among the fields.
    """
    record = {"system": ask.system, "asked": ask.prompt} if keeps_prompts else {}
    if isinstance(ask, Ask):
        verdict = reply.values.get(ask.form.verdict)
        record |= {"verdict": verdict, "form_sha256": ask.form.sha256}
    return record | reply.to_record()


def as_sent(record: Mapping[str, Any]) -> str:
    """The user message sent for a judgement, word for word, from its record."""
    return sent(record["asked"], record["requested"])


def checked_apis(
    models: Mapping[str, ApiSection], spend: SpendConfig, store: Store
) -> dict[str, ApiJudge]:
    """Name -> judge for the API models among `models`, each checked to be ready for asking. They
    share an account of the run's spending, for which prices are read if there are any.

    Raises:
        UserError: keys, packages, addresses or prices are missing; a line for each model.
        StoreError: the account is damaged.
    """
    from faithscope.probes.judge.api import ApiJudge

    asked = {name: how for name, how in models.items() if name.startswith(API)}
    account = RunAccount(spend, store.run_dir, store.worker, store.files) if asked else Account()
    judges, problems = {}, []
    for name, how in asked.items():
        try:
            judges[name] = ApiJudge(
                name.removeprefix(API),
                how.generate_config(),
                base_url=how.base_url,
                structured=how.structured if isinstance(how, JudgeConfig) else "prompt",
                attempts=how.attempts,
                max_connections=how.max_connections,
                cache=how.cache,
                account=account,
            )
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("\n".join(problems))
    return judges


def open_judge(model: Model, reading: Reading, c: JudgeConfig, seed: int) -> Judge:
    """A local model as judge, by what it writes or by its log-probs.

    Raises:
        UserError: the model must write, and no temperature is given.
    """
    if reading == "scored":
        from faithscope.probes.judge.scoring import ScoringJudge, ScoringSettings

        return ScoringJudge(model, ScoringSettings(batch_size=c.batch_size))
    thinks = bool(model.format.marks) and c.thinking is not False
    if c.structured == "schema" or (c.structured == "auto" and not thinks):
        from faithscope.probes.judge.forced import ForcedJudge

        return ForcedJudge(model, _generating(model.name, c, seed))
    return writing_judge(model, c, seed)


def writing_judge(
    model: Speaks, c: JudgeConfig, seed: int, backend: Backend | None = None
) -> GeneratingJudge:
    """A model as judge by what it writes freely, here or through another backend.

    Raises:
        UserError: no temperature is given.
    """
    from faithscope.probes.judge.open_model import GeneratingJudge

    return GeneratingJudge(model, _generating(model.name, c, seed), backend)


def _generating(name: str, c: JudgeConfig, seed: int) -> GeneratingSettings:
    from faithscope.probes.judge.open_model import GeneratingSettings

    if c.temperature is None:
        raise UserError(f"{name}: judge.temperature is null; give a number, 0 for greedy")
    return GeneratingSettings(
        max_new_tokens=c.max_tokens,
        batch_size=c.batch_size,
        temperature=c.temperature,
        top_p=c.top_p,
        seed=seed,
        thinking=c.thinking,
        # a greedy reply that does not parse would be written again word for word
        attempts=c.attempts if c.temperature > 0 else 1,
    )
