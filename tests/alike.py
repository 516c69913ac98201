"""Records that are equal up to the rounding of floats."""

from __future__ import annotations

from typing import Any

import pytest


def assert_alike(a: Any, b: Any) -> None:
    """Asserts that `a` and `b` are equal, floats within 2e-5."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_alike(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_alike(x, y)
    elif isinstance(a, float):
        assert a == pytest.approx(b, abs=2e-5, nan_ok=True)
    else:
        assert a == b
