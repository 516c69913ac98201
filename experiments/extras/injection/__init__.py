"""Prompt injection: a line inside the judged chain that tells the judge of C2-Faith what to say."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.config.study import Addition


def _load():
    from faithscope.experiments.extras.injection import asks
    from faithscope.experiments.studies.c2faith.additions import C2Addition

    return C2Addition(asks.NAME, asks.cases, asks.again, asks.words)


def _report(report: Any):
    from faithscope.experiments.extras.injection.report import with_injections

    return with_injections(report)


ADDITION = Addition((), _load, _report)
