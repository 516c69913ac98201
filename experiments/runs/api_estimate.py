"""What asking models behind APIs would use in a run over traces, for `--dry-run`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.config.api import API
from experiments.listing import columns
from experiments.measures import PROBES, STEPS_GUESSED, TOKENS_GUESSED
from experiments.runs.index import Index
from experiments.runs.planfile import missing
from experiments.spending import prices_of

if TYPE_CHECKING:
    from experiments.config import RunConfig
    from experiments.runs.plan import Item

ANSWER_TOKENS = 16
"""Of a reply that only answers; models that think first write hundreds more."""


def api_lines(config: RunConfig, items: Sequence[Item], index: Index) -> list[str]:
    """A table of calls, tokens and dollars, a row per model; none where all models are here.

    Traces are not there yet, so that their lengths, and with them how many edits there are, are
    guesses; whatever a model thinks before it answers comes on top.
    """
    from probes.judge.form import Usage
    from probes.judge.spend import CHARACTERS_PER_TOKEN, MESSAGE_TOKENS, price_of

    prices = prices_of(config.spend)
    reasoning = STEPS_GUESSED * TOKENS_GUESSED
    table = []
    for model in (m for m in config.model.name if m.startswith(API)):
        mine = config.of(model)
        calls = put = written = 0
        for item in (i for i in items if i.model == model):
            lacking = missing(index, item)
            prompt = math.ceil(len(item.task.cot_prompt(item.question)) / CHARACTERS_PER_TOKEN)
            prompt += MESSAGE_TOKENS
            asks = sum(PROBES[p].branches(STEPS_GUESSED, mine) for p in lacking if p in PROBES)
            calls += asks + ("trace" in lacking)
            put += asks * (prompt + reasoning) + prompt * ("trace" in lacking)
            written += asks * ANSWER_TOKENS + reasoning * ("trace" in lacking)
        price = price_of(model.removeprefix(API), prices)
        cost = "no price" if price is None else f"{price.of(Usage(calls, put, written)):.2f}"
        table.append((model, f"{calls:,}", f"{put:,}", f"{written:,}", cost))
    if not table:
        return []
    header = ("model", "calls, about", "input tokens", "output tokens", "dollars, about")
    return ["", *columns([header, *table]), "without what a model thinks before it answers"]
