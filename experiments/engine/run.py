"""Carries out a run of any study: plan, work, outputs.

Stored units are never redone, so a run that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.study import study_of
from faithscope.experiments.data.tasks.sources.rows import files_read
from faithscope.experiments.engine import outputs, planfile
from faithscope.experiments.engine.environment import environment
from faithscope.experiments.engine.folder import check_config, shown_otherwise, stored_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.at_hand import models_of
from faithscope.experiments.engine.plan import RunPlan
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.store import Store, outputs_lock
from faithscope.experiments.engine.tallies.input_report import unused_columns
from faithscope.experiments.engine.tallies.tally import Tally, tally_of_run
from faithscope.experiments.files import StoreError
from faithscope.experiments.garbage import gc_paused
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.plain import visible

AnyPlan = RunPlan[Any, Any]


@dataclass
class Outcome:
    """Result of a run: what failed, why it ended, and how much was measured."""

    run_dir: Path
    failures: list[str] = field(default_factory=list)
    """A line per failed unit and per output that could not be made: what, where, why."""
    interrupted: bool = False
    """Whether a person or a scheduler interrupted the run."""
    done: str = ""
    """Progress of an interrupted run, in words."""
    problems: list[str] = field(default_factory=list)
    """A line per model that could not be used; the work of all others was done."""
    stopped: str = ""
    """Why the run ended early though nothing is wrong; the same command resumes it."""
    tally: Tally | None = None
    """Counts of measured items in this worker's shard; None where there was nothing to measure yet,
    or the run was interrupted."""


def plan(config: FolderConfig, asked: Collection[str] = ()) -> AnyPlan:
    """The plan of a run.

    Args:
        asked: dotted config keys that the user set (`config.load.asked_of`); those that ask for
            measures are kept in the input report.

    Raises:
        ConfigError: data cannot be read, or holds no item.
        StoreError: the run folder holds records that were made with another config.
    """
    check_config(config)
    study = study_of(config.model_dump())
    with files_read() as files:
        planned = study.plan(config)
    keys = dict.fromkeys(key for stage in study.stages().values() for key in stage.keys)
    named = tuple(key for key in keys if any(_is_about(name, key) for name in asked))
    given = any(_is_about(name, "traces.path") for name in asked)
    by_default = given and not any(_is_about(name, "model.name") for name in asked)
    report = replace(
        planned.input_report,
        unused=unused_columns(files),
        asked=named,
        readers=planned.readers() if by_default else "",
    )
    return replace(planned, input_report=report)


def _is_about(name: str, key: str) -> bool:
    """Whether two dotted keys are the same, or one is of the section that the other names."""
    return f"{name}.".startswith(f"{key}.") or f"{key}.".startswith(f"{name}.")


def run(config: FolderConfig, shard: Shard | None = None, mixed: bool = False) -> Outcome:
    """Do what is missing of a run, then write its outputs.

    For one of several shards no outputs are written; call `write_outputs` after the last.

    Args:
        mixed: whether items may be finished on another device, dtype or library version than they
            were begun with.

    Raises:
        UserError: the config, its data, its models or the run folder cannot be used.
    """
    with _standard_output_kept_clean():
        whole = plan(config)
    return work_through(whole, shard, mixed=mixed)


def work_through(
    whole: AnyPlan,
    shard: Shard | None = None,
    build_only: bool = False,
    mixed: bool = False,
) -> Outcome:
    """`run` of a plan that is already made.

    Args:
        mixed: as of `Store`.
        build_only: end where the work could be shared out, with what is asked in the run folder.
            One of several shards does its part of what is prepared first, and ends there, since
            what follows is planned from the parts of all.
    """
    shard = shard or Shard()
    if whole.prepares and not shard.is_all and not build_only:
        raise StoreError(
            f"{whole.config.run_dir}: {whole.prepares} before the work is shared out; first "
            "`faithscope build` with the same config and --set options, then the parts"
        )
    if shard.is_all and not build_only and has_nothing_to_do(whole):
        told = visible(f"{whole.config.run_dir}: is finished, and its tables, figures and page are")
        print(told, "as they would be made now", file=sys.stderr, flush=True)
        return Outcome(whole.config.run_dir, tally=tally_of_run(whole.config.run_dir))
    weights = any(not m.startswith(API) for c in whole.configs for m in models_of(c))
    if weights:  # a run that only asks APIs imports neither torch nor transformers
        with gc_paused():
            from faithscope.interp import loading  # noqa: F401
    with (
        _standard_output_kept_clean(),
        Store(whole.config, environment(weights), shard.worker, whole.stored(), mixed) as store,
    ):
        whole.write_inputs(store)
        if build_only and not whole.prepares:
            return Outcome(store.run_dir)
        work = whole.work(store, shard)
        if shard.only is not None:
            work.limit_to(shard.only)
        if line := _gone_on_with(whole, store.index, shard):
            print(visible(line), file=sys.stderr, flush=True)
        try:
            work.go()
            ended = Outcome(
                store.run_dir, work.failures(), problems=work.problems, stopped=work.stopped
            )
            cut_short = ended.failures or ended.problems or ended.stopped
            alone = shard.is_all
            more = (
                plan(whole.config, whole.input_report.asked)
                if whole.prepares and alone and not cut_short
                else None
            )
            if more is None and not whole.prepares:
                ended.tally = tally_of_run(store.run_dir, shard)
            if more is None and shard.is_all and work.has_outputs:
                ended.failures += write_outputs(store.run_dir).failed
        except KeyboardInterrupt:
            return Outcome(store.run_dir, work.failures(), True, work.done())
    return ended if more is None else work_through(more, shard, build_only, mixed)


def _gone_on_with(whole: AnyPlan, index: Index, shard: Shard) -> str:
    """`12 of 30 items are done; going on with 18`, or why a shard has none; else empty."""
    items = whole.stored().part(shard)
    left = [item for item in items if not planfile.is_finished(index, item)]
    study = study_of(whole.config.model_dump(mode="json"))
    if not items and not study.reads_runs:
        return whole.stored().idle(shard)
    begun = any(index.is_done(i.key(stage), unit) for i in items for stage, unit in i.units.items())
    if not begun or not left:
        return ""
    what = "sources" if study.reads_runs else study.unit
    before = f"{whole.prepares}: " * bool(whole.prepares)
    failed = sum(bool(planfile.failures(index, item)) for item in left)
    again = f", {failed} of which failed before" * bool(failed)
    done = f"{len(items) - len(left)} of {len(items)} {what} are done"
    return f"{before}{done}; going on with {len(left)}{again}"


def check_model(whole: AnyPlan, model: str | None) -> None:
    """Check that a plan has items of the one model that is to be done.

    Raises:
        UserError: it has none; names its models.
    """
    known = list(dict.fromkeys(str(item.model) for item in whole.items))
    if model is not None and model not in known and not whole.prepares:
        guess = did_you_mean(model, known) or f"; there are {', '.join(known)}"
        guess += f"; to measure another: --set model.name={model}"
        raise UserError(f"--model: no items of {model!r} are planned{guess}")


def has_nothing_to_do(whole: AnyPlan) -> bool:
    """Whether every unit of a plan is stored and all outputs are up to date.

    Imports neither torch nor the libraries that outputs are made with.
    """
    config, run_dir = whole.config, whole.config.run_dir
    if whole.prepares or not run_dir.is_dir() or not outputs.is_current(run_dir):
        return False
    planned = whole.stored()
    if planfile.digest(run_dir) != planned.digest or shown_otherwise(config):
        return False
    index = Index.of(run_dir)
    finished = all(planfile.is_finished(index, item) for item in planned.items)
    return finished and not whole.inputs_differ()


def write_outputs(run_dir: Path) -> Any:
    """Write tables, figures and page from the stored records; returns the `analysis.run.Outputs`.

    Outputs of which some could not be made are not taken for current: the same command makes them
    again.
    """
    told = visible(f"writing tables, figures and page of {run_dir}")
    print(told, file=sys.stderr, flush=True)
    with _standard_output_kept_clean(), outputs_lock(run_dir):
        made_of = outputs.sources(run_dir)
        written = study_of(stored_config(run_dir)).report().write(run_dir)
        if not written.failed:
            outputs.keep(run_dir, made_of)
        return written


@contextlib.contextmanager
def _standard_output_kept_clean() -> Iterator[None]:
    """Sends what libraries print to standard error, since scripts read standard output."""
    with contextlib.redirect_stdout(sys.stderr):
        yield
