"""One answer moves nothing, and settings that mean nothing are refused: whatever the probe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planted_traces import ASKING, planted

from faithscope.probes import PROBES

ALONE = replace(ASKING, labels=ASKING.labels[1:2])
BY_LABELS = ("causal_effects", "filler", "knockout", "paraphrase", "patching", "tracing")


@pytest.mark.parametrize("probe", BY_LABELS)
def test_with_one_answer_nothing_can_move(probe: str) -> None:
    model, traces = planted("faithful")
    (record,) = PROBES[probe].measure(model, traces[0], ALONE, PROBES[probe].settings())
    assert record["excluded"] == "fewer_than_2_labels"


@pytest.mark.parametrize(
    ("probe", "settings", "message"),
    [
        ("filler", {"fillers": ()}, "fillers"),
        ("information", {"threshold": -1}, r"threshold\n.*greater than or equal to 0"),
        ("information", {"replacements": -1}, r"replacements\n.*greater than or equal to 0"),
        ("knockout", {"queries": ()}, "at least 1 item"),
        ("knockout", {"windows": -1}, r"windows\n.*greater than or equal to 0"),
        ("patching", {"sites": ()}, "sites"),
        ("patching", {"least": 0}, r"least\n.*greater than 0"),
        ("slrc", {"framings": ("prefx",)}, r"framings(?s:.*)'prefix' or 'reprompt'"),
        ("tracing", {"every": 0}, r"every\n.*greater than or equal to 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    probe: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PROBES[probe].settings(**settings)
