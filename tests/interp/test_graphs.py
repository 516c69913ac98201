"""Steps of decoding that are replayed from CUDA graphs."""

import pytest
import torch
from tiny_models import tiny

from faithscope.interp.edits import Knockout

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA device: there are no graphs elsewhere"
)


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma2", "gpt_oss"])
@pytest.mark.parametrize("shared", [False, True], ids=["rows", "shared trunk"])
def test_replayed_steps_write_what_started_ones_write(family: str, shared: bool):
    model = tiny(family)
    trunk = list(range(5, 205)) if shared else [7]
    prompts = [[*trunk, *range(i + 3, 2 * i + 9)] for i in range(5)]
    ends = frozenset({-1})
    limits = [90, 70, 5, 30, 80]
    replayed = model.generate(prompts, limits, end_ids=ends)
    reason = model.graph_reason
    model.graph_reason = "off"
    started = model.generate(prompts, limits, end_ids=ends)
    assert [g.tokens for g in replayed] == [g.tokens for g in started]
    assert reason is None or family == "gpt_oss"


def test_steps_under_edits_write_what_each_writes_alone():
    model = tiny("llama")
    prompts = [list(range(3, 30))] * 2
    edits = [(Knockout(queries=(8, None), keys=(2, 6), heads=(0, 1)),), ()]
    both = model.ask(prompts, None, edits=edits, max_new_tokens=12)
    alone = [model.ask(prompts[:1], None, edits=[e], max_new_tokens=12)[0] for e in edits]
    written = [[[lead.candidate for lead in a.written] for a in of] for of in (both, alone)]
    assert written[0] == written[1]
