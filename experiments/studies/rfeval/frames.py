"""A run of RFEval, opened: outputs, judgements, pairs and signals as tidy DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.engine.folder import read_config
from faithscope.experiments.engine.judges import as_sent
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.store import read_records
from faithscope.experiments.studies.rfeval.units import INSIDE, JUDGED, LOG_PROBS, OUTPUTS, TESTS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from faithscope.experiments.analysis.records import Place
    from faithscope.experiments.studies.rfeval.config import RFEvalConfig
    from faithscope.experiments.studies.rfeval.items import Item
    from faithscope.experiments.studies.rfeval.results import RfResults


@dataclass(frozen=True)
class RfRun:
    """One run folder of RFEval; what it holds is read when first asked for.

    Neither models nor data need be at hand. What models do with r′ in each task:

        run = faithscope.load_run("runs/rfeval")
        run.pairs.groupby(["model", "task"])["behaviour"].value_counts()
    """

    path: Path

    @cached_property
    def config(self) -> RFEvalConfig:
        from faithscope.experiments.studies.rfeval.config import RFEvalConfig

        return read_config(self.path, RFEvalConfig)

    @property
    def items(self) -> Mapping[str, Item]:
        """The items by id, with r′, answer and tests."""
        return self._results.items

    @cached_property
    def outputs(self) -> pd.DataFrame:
        """A row per output: `text` and its parts, `outcome`, `n_tokens`, `seconds`, `ids`.

        `condition` is baseline or intervened; `n_prompt` and `n_r_prime` are the tokens before
        what was generated; `backend` says what wrote it.
        """
        return self._records(*OUTPUTS.values()).rename(columns={"variant": "condition"})

    @cached_property
    def judgements(self) -> pd.DataFrame:
        """A row per judgement of an output, with the prompt as it was sent (`asked`) and the raw
        reply (`text`); `values` are the stances and flaws of a reply that was `parsed`."""
        import pandas as pd

        stages = {key[0] for key, _ in counted(self.path).places() if key[0].startswith(JUDGED)}
        found = read_records(self.path, *sorted(stages)) if stages else []
        told = [r | {"asked": as_sent(r)} for r in found]
        return pd.DataFrame(told).drop(columns="requested", errors="ignore")

    @cached_property
    def log_probs(self) -> pd.DataFrame:
        """A row per part of an output: what the model would have answered after it."""
        return self._records(LOG_PROBS)

    @cached_property
    def tests(self) -> pd.DataFrame:
        """A row per program: what came of its tests."""
        return self._records(TESTS)

    @property
    def pairs(self) -> pd.DataFrame:
        """A row per pair and reader: stances, flaws, χ, κ, RF, behaviour, why it is left out."""
        return self._results.tables["rf_pairs"]

    @property
    def inside(self) -> pd.DataFrame:
        """A row per pair that counts and was looked into: the signals beside what was judged."""
        return self._results.tables["rf_inside_pairs"]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its file name; made from the records, so also of a run still going."""
        return self._results.tables

    def example(self, place: int) -> dict[str, Any]:
        """Row `place` of `pairs` with all its texts, as the page and `faithscope show` have it."""
        row = self.pairs.iloc[place].to_dict()
        return self._results.example({str(k): v for k, v in row.items()})

    def arrays(self, stage: str = INSIDE) -> Iterator[tuple[Place, dict[str, np.ndarray]]]:
        """(model, task, item) and its raw numbers by name; one item is in memory at a time.

        `arrays/rf_inside.safetensors` in the run folder, which is written with the tables, holds
        the same in one file.
        """
        from faithscope.experiments.engine.arrays import each

        for (_, model, task, item), found in each(counted(self.path), stage):
            yield (model, task, item), found

    def _records(self, *stages: str) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(read_records(self.path, *stages) if stages else [])

    @cached_property
    def _results(self) -> RfResults:
        from faithscope.experiments.studies.rfeval.results import results

        return results(self.path)
