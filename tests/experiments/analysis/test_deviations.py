"""What speaks against a run is what the paper states, through whatever service a model is asked."""

from __future__ import annotations

import pytest

from faithscope.experiments.analysis.published import Deviation, Paper, deviations
from faithscope.experiments.analysis.published.deviations import paper_config, undeclared
from faithscope.experiments.config.api import same_model
from faithscope.experiments.config.load import load_config
from faithscope.experiments.studies.c2faith.paper import PAPER as C2FAITH
from faithscope.experiments.studies.rfeval.paper import PAPER as RFEVAL
from faithscope.experiments.studies.slrc.paper import FAITHCOT
from faithscope.experiments.studies.slrc.paper import PAPER as SLRC

PAPERS = (C2FAITH, FAITHCOT, RFEVAL, SLRC)


def found(paper: Paper, table: str, *sets: str) -> dict[str, Deviation]:
    """The deviations of a run with the paper's config and further settings, by key."""
    published = paper.table(table)
    theirs = paper_config(published)
    ours = load_config(published.config, [*published.sets, *sets], at_hand=False)
    of = deviations(paper, published, ours.model_dump(mode="json"), theirs)
    return {d.key: d for d in of}


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_key_of_a_shipped_config_is_stated_or_left_open(paper: Paper) -> None:
    assert undeclared(paper) == []


@pytest.mark.parametrize(
    ("paper", "table", "setting"),
    [
        (RFEVAL, "table2", "judge.model=api:openai/o3"),
        (RFEVAL, "table2", "judge.model=api:openai/azure/o3"),
        (RFEVAL, "table2", "paper_compat=true"),
        (RFEVAL, "table2", "judge.max_tokens=16000"),
        (RFEVAL, "table2", "generate.max_new_tokens=32768"),
        (RFEVAL, "table2", "model.name=[Qwen/Qwen3-8B]"),
        (RFEVAL, "table8", "counterfactual.writer=api:openai/o3-2025-04-16"),
        (C2FAITH, "table3", "reference=api:openai/azure/gpt-4.1"),
        (C2FAITH, "table3", "judge.model=[api:openai/gpt-4.1-2025-04-14]"),
        (
            C2FAITH,
            "table1_tests",
            "judge.model=[api:openai/azure/gpt-4.1,"
            "api:openrouter/deepseek/deepseek-chat-v3.1,api:openai/azure/o4-mini]",
        ),
        (C2FAITH, "table1", "data.least=5"),
        (SLRC, "table1", "model.name=[api:openrouter/anthropic/claude-opus-4.6]"),
        (SLRC, "table1", "api.max_tokens=16384"),
        (SLRC, "table1", "api.reasoning_effort=low"),
        (SLRC, "table4", "generation.max_new_tokens=4096"),
        (FAITHCOT, "table1", "judges.model=api:openai/gpt-5"),
        (FAITHCOT, "table1", "api.max_tokens=8192"),
    ],
)
def test_what_a_paper_states_or_leaves_open_costs_no_verdict(
    paper: Paper, table: str, setting: str
) -> None:
    assert [d.line for d in found(paper, table, setting).values() if d.decides] == []


@pytest.mark.parametrize(
    ("paper", "table", "setting", "line"),
    [
        (
            SLRC,
            "table4",
            "model.quantize=8bit",
            "model.quantize: the paper (4.5): 4bit; this run: 8bit (decides what the number is)",
        ),
        (
            SLRC,
            "table1",
            "steps.min_chars=0",
            "steps.min_chars: the paper (4.1): sentences shorter than 15 characters are filtered; "
            "this run: 0 (decides what the number is)",
        ),
        (
            RFEVAL,
            "table2",
            "judge.model=api:openai/gpt-4.1",
            "judge.model: the paper (4.1): o3-2025-04-16; this run: [api:openai/gpt-4.1] "
            "(decides what the number is)",
        ),
        (RFEVAL, "table2", "judge.model=api:openai/o3-2026-01-01", None),
        (RFEVAL, "table2", "model.template=own", None),
        (RFEVAL, "table2", "generate.max_new_tokens=4096", None),
        (C2FAITH, "table1", "perturb.temperature=0.2", None),
        (C2FAITH, "table1", "judge.temperature=0.0", None),
        (C2FAITH, "table1_tests", "judge.model=[api:openai/gpt-4.1]", None),
        (FAITHCOT, "table1", "traces.read_by=all", None),
    ],
)
def test_what_a_paper_states_decides(
    paper: Paper, table: str, setting: str, line: str | None
) -> None:
    (decides,) = [d for d in found(paper, table, setting).values() if d.decides]
    assert decides.key == setting.partition("=")[0]
    assert line is None or decides.line == line


def test_prompts_in_our_words_are_named_and_the_authors_own_are_no_deviation() -> None:
    stands_in = found(RFEVAL, "table2")["prompts"]
    assert not stands_in.decides
    assert "the authors' prompts; this run: null" in stands_in.line
    assert found(RFEVAL, "table2", "prompts=checkout") == {}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("api:openai/o3", "api:openai/o3-2025-04-16", True),
        ("api:openai/o3-2025-04-16", "api:openai/azure/o3-2025-04-16", True),
        ("api:anthropic/claude-opus-4-6", "api:bedrock/us.anthropic.claude-opus-4-6-v1:0", True),
        ("api:anthropic/claude-sonnet-4-5", "api:vertex/claude-sonnet-4-5@20250929", True),
        ("api:together/deepseek-ai/DeepSeek-V3.2", "api:openrouter/deepseek/deepseek-v3.2", True),
        ("api:openrouter/x/m-1:free", "api:x/m-1", True),
        ("api:openai/gpt-4o-2024-05-13", "api:openai/gpt-4o-2024-08-06", False),
        ("api:openai/gpt-4o", "api:openai/gpt-4o-mini", False),
        ("api:x/deepseek-v3", "api:x/deepseek-v3-0324", False),
        ("api:ollama/qwen3:8b", "api:ollama/qwen3:32b", False),
        ("api:x/Qwen3.5-122B", "api:x/Qwen3.5-397B", False),
        ("api:together/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", False),
    ],
)
def test_one_model_is_known_by_its_name_and_not_by_its_service(
    one: str, other: str, same: bool
) -> None:
    assert (same_model(one, other), same_model(other, one)) == (same, same)
