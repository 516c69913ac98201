"""Settings that mean nothing are refused."""

from __future__ import annotations

from typing import Any

import pytest

from faithscope.probes import PROBES


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
