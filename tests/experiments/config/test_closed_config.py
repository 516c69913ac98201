"""The paper's sixteen models as a config: every one of a known service, with a price."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithscope.experiments.config.load import load_config
from faithscope.experiments.studies.slrc.config import RunConfig

CONFIGS = Path(__file__).parents[3] / "configs"
CLOSED = CONFIGS / "paper" / "slrc.yaml"


@pytest.fixture(scope="module")
def config() -> RunConfig:
    found = load_config(CLOSED)
    assert isinstance(found, RunConfig)
    return found


def test_all_sixteen_are_asked_as_the_paper_asked(config):
    assert len(config.model.name) == 16
    assert all(name.startswith("api:") for name in config.model.name)
    paper = load_config(CONFIGS / "paper" / "slrc_open.yaml")
    assert isinstance(paper, RunConfig)
    assert config.tasks == paper.tasks
    assert config.probes == paper.probes
    assert config.data.limit == 500
    assert (config.slrc.framings, config.slrc.readings) == (("reprompt",), ("generated",))
    assert len(config.pairs) == 16 * 6
    assert config.notes == []


def test_sizes_are_of_models_that_are_there_and_of_their_names(config):
    sizes = config.report.parameters
    assert set(sizes) <= set(config.model.name)
    for size in sizes.values():
        assert size.active is not None
        assert size.active <= size.total
    # what the names say: 122B-A10B, 397B-A17B, 253B, 32b, 70b, 120b
    for name, billions in (("122b", 122), ("397b", 397), ("253B", 253), ("32b", 33), ("70b", 71)):
        (total,) = [s.total for m, s in sizes.items() if name in m]
        assert round(total / 1e9) == billions
