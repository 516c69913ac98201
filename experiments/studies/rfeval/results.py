"""A run of RFEval as frames, tables and examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.engine.judges import as_sent
from faithscope.experiments.studies.rfeval import frame_rows as rows
from faithscope.experiments.studies.rfeval.asks import question_of
from faithscope.experiments.studies.rfeval.counterfactuals.annotations import annotations_of
from faithscope.experiments.studies.rfeval.counterfactuals.built import read_filtering
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.metrics.frames import READINGS
from faithscope.experiments.studies.rfeval.metrics.lengths import LENGTHS
from faithscope.experiments.studies.rfeval.pairview import of_all_kinds
from faithscope.experiments.studies.rfeval.plan import FOLDER, FORMS
from faithscope.experiments.studies.rfeval.prompts import questions
from faithscope.experiments.studies.rfeval.records import output_in
from faithscope.experiments.studies.rfeval.run_records import RfStored
from faithscope.experiments.studies.rfeval.subjects.model_files import ModelFile
from faithscope.experiments.studies.rfeval.subjects.regimes import left_out, regimes
from faithscope.experiments.studies.rfeval.tables import RfFrames, tables
from faithscope.experiments.studies.rfeval.units import JUDGED, OUTPUTS


@dataclass(frozen=True)
class RfResults(RfStored):
    """What a run stored, and what is made of it."""

    @cached_property
    def frames(self) -> RfFrames:
        """A row per reader and pair, per output, per reading."""
        judged = pd.DataFrame(list(rows.pairs(self)))
        steps, left = rows.steps(self)
        annotations = pd.DataFrame()
        if self.config.annotations is not None:
            path = Path(self.config.annotations).expanduser()
            annotations = annotations_of(path, self.items.values(), self.models, self.config.naming)
        return RfFrames(
            judged=judged,
            lengths=pd.DataFrame(list(rows.lengths(self)), columns=list(LENGTHS)),
            items=pd.DataFrame(list(rows.items(self))),
            steps=steps,
            steps_left=left,
            annotations=annotations,
            readings=pd.DataFrame(list(rows.readings(self)), columns=list(READINGS)),
            evaluator=rows.evaluator(self, judged),
            without_judge=pd.DataFrame(list(rows.unjudged(self))),
            framings=self.framings,
            inside=self.inside,
            filtering=read_filtering(self.run_dir / FOLDER),
        )

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its file name."""
        files = {
            name: ModelFile.model_validate(
                {"name": name, "base": told["base"], "regime": told["regime"]}
            )
            for name, told in self.models.items()
        }
        written = {model for model, _ in self.outputs}
        models = [m for m in self.models if m in written]
        made = tables(
            self.frames,
            regimes(files, models),
            paper_compat=self.config.paper_compat,
            seed=self.config.seed,
            resamples=self.config.report.bootstrap,
            externality=self.config.report.externality,
        )
        return made | {
            "rf_regimes_left_out": left_out(files, models),
            "exclusions": rows.exclusions(self, made["rf_pairs"]),
            "rf_tests": rows.tests(self),
            "usage": rows.usage(self),
            "spend": spend_table(self.calls),
        }

    def examples(self, n: int) -> list[dict[str, Any]]:
        """Pairs to be shown word for word, of all kinds, models and tasks in turn.

        Of each: `item`, `model`, `reader`, `outputs` and `judged` by condition, `row` of
        `rf_pairs`.
        """
        pairs = self.tables["rf_pairs"]
        rows = [{str(k): v for k, v in row.items()} for row in pairs.to_dict("records")]
        return [self.example(rows[i]) for i in of_all_kinds(rows, n)]

    def example(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """One row of `rf_pairs` with all its texts, from the disk."""
        model, item, reader = row["model"], self.items[row["item"]], row["reader"]
        outputs = {}
        for condition, stage in OUTPUTS.items():
            key = (stage, model, item.task, item.id)
            if self.index.is_whole(key):
                (record,) = self.index.records(key)
                parts = vars(output_in(record, self.config.paper_compat))
                outputs[condition] = parts | {"text": record["text"]}
        judged = {}
        for stage in {k[0] for k, _ in self.index.places() if k[0].startswith(JUDGED)}:
            key = (stage, model, item.task, item.id)
            if self.index.is_whole(key):
                judged |= {
                    r["condition"]: r | {"asked": as_sent(r)}
                    for r in self.index.records(key)
                    if r["judge"] == reader
                }
        return {
            "item": item,
            "model": model,
            "reader": reader,
            "outputs": outputs,
            "judged": judged,
            "row": dict(row),
        }


def results(run_dir: str | Path) -> RfResults:
    """Read a run once; models and data need not be at hand.

    Raises:
        StoreError: no output is written yet.
    """
    return RfResults.read(run_dir)


def problem_of(item: Item, run_dir: Path) -> str:
    """An item as its models were asked it."""
    return question_of(item, questions(run_dir / FORMS))
