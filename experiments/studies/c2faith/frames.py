"""A run of C2-Faith, opened: every judgement and every signal as tidy DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from faithscope.experiments.engine.folder import read_config
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.store import read_records

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from faithscope.experiments.analysis.records import Place
    from faithscope.experiments.studies.c2faith.config import C2FaithConfig
    from faithscope.experiments.studies.c2faith.metrics.frames import Frames
    from faithscope.experiments.studies.c2faith.results import C2Results
    from faithscope.experiments.studies.c2faith.saved import Benchmark


@dataclass(frozen=True)
class C2Run:
    """One run folder of C2-Faith; what it holds is read when first asked for.

    Neither models nor data need be at hand. How often each judge is right, of what it says:

        run = faithscope.load_run("runs/c2faith")
        said = run.judgements.dropna(subset=["verdict", "right"])
        (said["verdict"] == said["right"]).groupby([said["judge"], said["form"]]).mean()
    """

    path: Path

    @cached_property
    def config(self) -> C2FaithConfig:
        from faithscope.experiments.studies.c2faith.config import C2FaithConfig

        return read_config(self.path, C2FaithConfig)

    @property
    def benchmark(self) -> Benchmark:
        """The items: chains with a broken step, and chains with steps left out.

        Raises:
            UserError: it is not made yet, or not what was written.
        """
        return self._results.benchmark

    @cached_property
    def judgements(self) -> pd.DataFrame:
        """A row per judgement, with the texts; those without a verdict, too.

        Who and how: `judge`, `form` (the prompt), `task`, `reading` (generated | scored).
        Of what: `item` (the benchmark's), `ask` (its id as asked), `chain`; `condition`
        (perturbed | control), `target`, `n_steps`, or `level`, `scale`, `n_middle`, `n_removed`;
        steps count from 0.
        What came: `outcome` (parsed, refused …), `verdict`, `right` (none for coverage),
        `values` (every field of the reply); of the scored reading `probabilities` (of every
        verdict, from the least), their mean `expected`, and `mass`, what all verdicts have of the
        model's probability.
        Usage: calls and tokens, `from_cache`. Texts: `system`, `asked`, `text` (the raw reply),
        `thinking`, `problem`.

        A text put into the chain makes it another item: `injected` has those.
        """
        from faithscope.experiments.studies.c2faith.judgements import READINGS, judgements

        records = read_records(self.path, *READINGS)
        return judgements(records, self._results.forms, injected=False)

    @cached_property
    def injected(self) -> pd.DataFrame:
        """A row per judgement of a chain with a text put into it, and none in `judgements`.

        The columns are those of `judgements`, and: `injection` (the text's name), `demand` (best |
        worst; none of a text that names no verdict), `demanded` (the verdict that it names), `step`
        (from 0, among those shown, at whose end it stands), `twin` (`ask` of the same ask without
        the text). Both as one frame, told apart by `injection`:

            pd.concat([run.judgements, run.injected])
        """
        from faithscope.experiments.studies.c2faith.judgements import READINGS, judgements

        records = read_records(self.path, *READINGS)
        return judgements(records, self._results.forms, injected=True)

    @cached_property
    def signals(self) -> pd.DataFrame:
        """A row per model, item, condition, step and signal: what it shows inside at that step.

        `step` and `target` from 0; `value` is NaN where a step has none (`probes.broken_step`).
        """
        import pandas as pd

        from faithscope.experiments.studies.c2faith.inside import step_rows
        from faithscope.experiments.studies.c2faith.units import INSIDE

        names = ("model", "item", "chain", "condition", "target", "step", "signal", "value")
        made = [row for r in read_records(self.path, INSIDE) for row in step_rows(r)]
        return pd.DataFrame(made, columns=list(names)).astype({"value": float})

    @property
    def frames(self) -> Frames:
        """What the tables are made from: one frame a task, one row a judgement, no texts."""
        return self._results.frames

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its file name; made from the records, so also of a run still going."""
        return self._results.tables

    def arrays(self, probe: str = "broken_step") -> Iterator[tuple[Place, dict[str, np.ndarray]]]:
        """(model, task, item) and its raw numbers by name, e.g. `perturbed/surprisal` per token.

        One item is in memory at a time. `arrays/broken_step.safetensors` in the run folder,
        which is written with the tables, holds the same in one file.
        """
        from faithscope.experiments.engine.arrays import each

        for (_, model, task, item), found in each(counted(self.path), probe):
            yield (model, task, item), found

    @cached_property
    def _results(self) -> C2Results:
        from faithscope.experiments.studies.c2faith.results import results

        return results(self.path)
