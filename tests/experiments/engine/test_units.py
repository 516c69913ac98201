"""What names a unit of work."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faithscope.experiments.engine.units import UnitIds, why_failed

NAMES = st.text("abcdefghij_", min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('abé\n" ', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, VALUES, max_size=6), st.integers(0, 6))
def test_an_id_is_the_hash_of_all_that_determines_it_however_it_is_shared(
    values: dict[str, Any], cut: int
) -> None:
    names = list(values)
    shared, own = names[:cut], names[cut:]
    made = UnitIds(**{n: values[n] for n in shared}).of(**{n: values[n] for n in own})
    text = json.dumps(values, sort_keys=True)
    assert made == hashlib.sha256(text.encode()).hexdigest()[:24]


def test_what_json_has_no_word_for_counts_by_its_text() -> None:
    assert UnitIds(path=Path("a")).of() == UnitIds(path="a").of()
    assert UnitIds(path=Path("a")).of() != UnitIds(path=Path("b")).of()


def test_why_a_unit_failed_may_be_written_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", "sk-planted-77")
    error = RuntimeError("a\n  \x1b[31mb of sk-planted-77\x07" + "." * 400)
    told = why_failed(error)
    assert told.startswith("RuntimeError: a ␛[31mb of [PLANTED_API_KEY]␇...")
    assert len(told) == len("RuntimeError: ") + 300
