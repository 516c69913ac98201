"""The benchmark of texts written under edits: every way writes as much as plain decoding."""

from __future__ import annotations

import cut_decoding as bench
from tiny_models import tiny


def test_every_way_writes_equally_much_and_has_a_ratio() -> None:
    table = bench.measure(tiny("llama"), [range(40, 70), range(90, 111), range(5, 40)], 6, 2)
    assert list(table["way"]) == ["plain", "cut", "steered", "both"]
    assert (table[["prompts", "prompt_tokens", "new_tokens"]] == [3, 86, 6]).all(axis=None)
    assert table["ratio_to_plain"][0] == 1
    assert (table["ratio_least"] <= table["ratio_to_plain"]).all()
    assert (table["ratio_to_plain"] <= table["ratio_greatest"]).all()
