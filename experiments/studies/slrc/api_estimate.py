"""What asking models behind APIs would use in a run over traces, for `--dry-run`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from faithscope.experiments.config.api import API
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.engine.models.prices import prices_of
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.engine.units import API_REPLIES
from faithscope.experiments.studies.slrc.units import TRACE, Item
from faithscope.probes import PROBES
from faithscope.probes.probe import GUESS

if TYPE_CHECKING:
    from faithscope.experiments.studies.slrc.config import RunConfig

ANSWER_TOKENS = 60
"""Of a reply to a probe, a guess: some are a word, those to "Do you agree?" a paragraph. What a
model thinks first comes on top, often hundreds."""


def api_lines(config: RunConfig, items: Sequence[Item], index: Index) -> list[str]:
    """A table of calls, tokens and dollars, a row per model; none where all models are here.

    Traces are not there yet, so that their lengths, and with them how many edits there are, are
    guesses; whatever a model thinks before it answers comes on top.
    """
    from faithscope.probes.judge.charges import CHARACTERS_PER_TOKEN, MESSAGE_TOKENS
    from faithscope.probes.judge.form import Usage
    from faithscope.probes.judge.spend import price_of

    # what was answered before a stop is asked no more, though its probe is not taken yet
    stored = Counter(
        (model, task, item.rpartition(" ")[0])
        for (_, model, task, item), _ in index.places((API_REPLIES,))
    )
    prices = prices_of(config.spend)
    reasoning = GUESS.steps * GUESS.tokens
    table = []
    for model in (m for m in config.model.name if m.startswith(API)):
        mine = config.of(model)
        calls = put = written = 0
        for item in (i for i in items if i.model == model):
            lacking = missing(index, item)
            prompt = math.ceil(len(item.of.cot_prompt(item.question)) / CHARACTERS_PER_TOKEN)
            prompt += MESSAGE_TOKENS
            asked = {p: PROBES[p].calls(GUESS, mine.settings(p)) for p in item.probes}
            whole = sum(asked[p] for p in lacking if p in asked)
            have = stored[model, item.task, item.item]
            asks = min(whole, max(0, sum(asked.values()) - have))
            quoted = GUESS.tokens * sum(
                PROBES[p].quotes(GUESS, mine.settings(p)) for p in lacking if p in asked
            )
            calls += asks + (TRACE in lacking)
            put += asks * prompt + prompt * (TRACE in lacking)
            put += round(quoted * asks / whole) if whole else 0
            written += asks * ANSWER_TOKENS + reasoning * (TRACE in lacking)
        price = price_of(model.removeprefix(API), prices)
        cost = "no price" if price is None else f"{price.of(Usage(calls, put, written)):.2f}"
        table.append((model, f"{calls:,}", f"{put:,}", f"{written:,}", cost))
    if not table:
        return []
    header = ("model", "calls, about", "input tokens", "output tokens", "dollars, about")
    return ["", *columns([header, *table]), "without what a model thinks before it answers"]
