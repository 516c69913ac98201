"""Corrections of p-values for their number, in which the same test counts once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np


def holm(p: Sequence[float], tests: Sequence[Hashable] | None = None) -> list[float]:
    """p-values corrected by Holm's procedure, so that one of them is wrongly small in at most one
    of twenty cases; an empty list stays empty.

    Args:
        tests: equal values for p-values of the same test, which counts once, by its first p-value;
            all are different tests if not given.
    """
    return _corrected(p, tests, "holm")


def false_discoveries(p: Sequence[float], tests: Sequence[Hashable] | None = None) -> list[float]:
    """p-values corrected by the procedure of Benjamini and Hochberg; arguments as of `holm`."""
    return _corrected(p, tests, "fdr_bh")


def _corrected(p: Sequence[float], tests: Sequence[Hashable] | None, method: str) -> list[float]:
    tests = range(len(p)) if tests is None else tests
    first: dict[Hashable, float] = {}
    for test, of_test in zip(tests, p, strict=True):
        first.setdefault(test, of_test)
    if not first:
        return []
    # imported late, since few runs have anything to correct
    from statsmodels.stats.multitest import multipletests

    corrected = np.asarray(multipletests(list(first.values()), method=method)[1]).tolist()
    of = dict(zip(first, corrected, strict=True))
    return [of[test] for test in tests]
