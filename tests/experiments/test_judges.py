"""Judges as a config names them: what is sent of it, and what names their units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.judge import WITH_THOUGHT, JudgeConfig
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models.judges import checked_apis, writing_judge
from faithscope.experiments.engine.store import Store
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp.errors import UserError

API = "api:openai/gpt-4.1"
HERE = "planted:faithful"


def judge(**said: Any) -> JudgeConfig:
    return JudgeConfig(model=[API], **said)


def test_a_temperature_of_null_is_left_to_the_provider(tmp_path: Path) -> None:
    assert judge(temperature=None).generate_config()["temperature"] is None
    path = tmp_path / "x.yaml"
    said = {"name": "x", "model": {"name": [API, HERE]}, "tasks": ["planted", "single_cue"]}
    path.write_text(yaml.safe_dump(said | {"api": {"temperature": None}}))
    config = load_config(path, must_be=RunConfig)
    # models here are sampled by section generation
    assert (config.api.temperature, config.generation.temperature) == (None, 0)
    assert config.api.generate_config()["temperature"] is None


def test_a_model_here_has_no_provider_to_leave_it_to() -> None:
    for models in ([HERE], [API, HERE]):
        with pytest.raises(ValueError, match=r"temperature is null.*'planted:faithful' runs here"):
            JudgeConfig(model=models, temperature=None)

    class Loaded:
        name = HERE

    with pytest.raises(UserError, match="give a number, 0 for greedy"):
        writing_judge(Loaded(), judge(temperature=None), 0)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("config", "key"), [("judge", "judges"), ("c2faith", "judge")])
def test_a_judge_behind_an_api_has_room_to_think_in_a_shipped_config(config: str, key: str) -> None:
    def section(*settings: str) -> JudgeConfig:
        return getattr(load_config(config, [f"{key}.{s}" for s in settings]), key)

    asked = section("model=api:openai/gpt-4.1")
    assert asked.max_tokens == WITH_THOUGHT
    assert not asked.short_of_thought(asked.model)
    assert section("model=planted:hint").max_tokens == section().max_tokens == 256
    told = section("model=[planted:hint,api:openai/gpt-4.1]", "max_tokens=300")
    assert told.max_tokens == 300
    (note,) = told.short_of_thought(told.model)
    assert f"--set {key}.max_tokens={WITH_THOUGHT}" in note


def test_a_run_that_asks_no_api_reads_no_prices(tmp_path: Path) -> None:
    spend = SpendConfig(max_cost=1.0, prices="no/such/prices.yaml")
    with Store(FolderConfig(name="t", out=str(tmp_path)), {}) as store:
        assert checked_apis({HERE: judge()}, spend, store) == {}
        with pytest.raises(UserError, match="no such file"):
            checked_apis({API: judge()}, spend, store)
