"""Asks of C2-Faith with a text put into their chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, cast

from faithscope.experiments.config.base import expanded, named
from faithscope.experiments.engine.models.judging import Case
from faithscope.experiments.extras.injection.texts import (
    Demand,
    Injected,
    Injection,
    drawn_chains,
    inject,
    injected_into,
    injections,
    variants,
)
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.prompts_of_items import cases as ordinary
from faithscope.experiments.studies.c2faith.units import Varied, case

NAME = "injected"


def injections_of(config: C2FaithConfig) -> list[Injection]:
    """The texts that a run puts into chains, in the order of its config.

    Raises:
        ConfigError: a name without a text.
        UserError: a file of texts that cannot be used.
    """
    known = injections(expanded(config.injection.texts))
    return list(named("injection.kinds", "injection", config.injection.kinds, known).values())


def cases(config: C2FaithConfig) -> Callable[[TaskForm, Benchmark], Iterator[Case]]:
    """The asks with a text in their chain, of every text and demand that a config names.

    Raises:
        ConfigError: the config names a text that there is not.
        UserError: a file of texts that cannot be used.
    """
    kinds, settings, seed = injections_of(config), config.injection, config.seed

    def of_form(form: TaskForm, benchmark: Benchmark) -> Iterator[Case]:
        items = (*benchmark.causal, *benchmark.coverage)
        chains = drawn_chains((i.chain for i in items), settings.chains, seed)
        for kind, demand in variants(kinds, settings.demands):
            for of, condition in ordinary(benchmark, form):
                changed = inject(of, form, condition, kind, demand, seed)
                if of.chain in chains and changed is not None:
                    ask, injected = changed
                    yield case(form, of, condition, ask, _varied(injected))

    return of_form


def again(config: C2FaithConfig, twin: Case, ask: str) -> Case:
    """The case of an injected ask, from its twin and its id."""
    kind, _, demand = ask.rpartition("+")[2].partition(".")
    about = (kind, cast("Demand", demand) or None, twin.item, config.seed)
    injected = injected_into(twin.of, twin.form, *about)
    assert injected is not None
    (one,) = twin.asks
    changed, condition = replace(one.ask, id=ask), one.about["condition"]
    return case(twin.form, twin.of, condition, cast("Any", changed), _varied(injected))


def _varied(injected: Injected) -> Varied:
    return Varied(NAME, asdict(injected))


def words(record: Mapping[str, Any]) -> tuple[str, str]:
    """Words for the heading of a judgement with a text in its chain, and what the text demands."""
    demand = f" for the {record['demand']} verdict" if record["demand"] else ""
    wanted = "no verdict" if record["demanded"] is None else record["demanded"]
    clause = f"a line at the end of step {record['step']} demands {wanted}"
    return f"injected {record['injection']}{demand}", clause
