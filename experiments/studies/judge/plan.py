"""The units of a run of judges on given chains; reads no weights."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.data.given.reading import AUTO
from faithscope.experiments.engine.forms import TaskForm, as_files
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.planfile import StoredPlan, is_finished
from faithscope.experiments.engine.traces.given import read_given
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.studies.judge.chains import (
    FILE,
    JudgedChain,
    as_lines_of_json,
    judged_chain,
)
from faithscope.experiments.studies.judge.config import JudgeStudyConfig
from faithscope.experiments.studies.judge.units import Judging, forms_of, judgings
from faithscope.probes.judge.form import Ask, Writing

if TYPE_CHECKING:
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store
    from faithscope.experiments.studies.judge.work import JudgeWork

FOLDER = "prompts"
"""Below the run folder: the forms that were asked, as a folder of prompts."""


@dataclass(frozen=True)
class JudgePlan:
    """All that is to be judged, in the order it is worked on."""

    config: JudgeStudyConfig
    source: str
    """Which file the chains are of, and what it was read as."""
    chains: tuple[JudgedChain, ...]
    forms: Mapping[str, TaskForm]
    items: tuple[Judging, ...]
    prepares = ""

    def of(self, model: str) -> list[Judging]:
        return [i for i in self.items if i.model == model]

    def stored(self) -> StoredPlan:
        """What of it is kept in the run folder."""
        return StoredPlan.of(self.items, self.config.judge.batch_size)

    def summary(self) -> str:
        """What a run would do, for `--dry-run`."""
        index = Index.of(self.config.run_dir)
        left = [i for i in self.items if not is_finished(index, i)]
        chains = Counter((i.model, i.task) for i in self.items)
        n_asks: Counter[tuple[str, str]] = Counter()
        for item in left:
            n_asks[item.model, item.task] += len(item.asks) * len(item.units)
        rows = [(*pair, n, n_asks[pair]) for pair, n in chains.items()]
        steps = sum(len(chain.places) for chain in self.chains)
        to_ask: dict[str, list[Ask | Writing]] = {
            model: [ask for i in left if i.model == model for _, ask in i.asks]
            for model in self.config.judge.model
        }
        lines = [
            f"run folder  {self.config.run_dir}",
            f"chains      {len(self.chains)} with {steps} steps, of {self.source}",
            "",
            *columns([("judge", "form", "chains", "asks left"), *rows, total(rows)]),
            *spending_lines(to_ask, self.config.judge, self.config.spend),
        ]
        return "\n".join(lines)

    def write_inputs(self, store: Store) -> None:
        """Keep what is judged, chains and forms."""
        with store.shared():
            file = store.run_dir / FILE
            write_atomically(make_folder(file.parent) / file.name, as_lines_of_json(self.chains))
            folder = make_folder(store.run_dir / FOLDER)
            for name, text in as_files(self.forms).items():
                write_atomically(folder / name, text)

    def work(self, store: Store, shard: Shard) -> JudgeWork:
        # it brings torch, which a dry run need not wait for
        from faithscope.experiments.studies.judge.work import JudgeWork

        return JudgeWork(self.config, self.items, store, shard)


def plan(config: JudgeStudyConfig) -> JudgePlan:
    """Read the chains, and name every unit.

    Raises:
        ConfigError: no chains are named, or a form there is not.
        UserError: a file of chains that cannot be read, or a row that does not fit.
    """
    forms, t = forms_of(config), config.traces
    if t.path is None:
        raise ConfigError(
            [
                "traces.path: missing; give the chains that are to be judged: "
                "--set traces.path=FILE, or the folder of a run (docs/given.md)"
            ]
        )
    read = read_given(Path(t.path).expanduser(), t.format, t.limit, t.writers, config.seed)
    if t.format == AUTO:
        print(f"note: traces.path: {read.file} is read as {read.format}", file=sys.stderr)
    chains = tuple(judged_chain(chain, config.steps) for chain in read.chains)
    items = tuple(judgings(config, forms, chains))
    return JudgePlan(config, f"{read.file} ({read.format})", chains, forms, items)
