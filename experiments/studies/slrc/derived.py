"""What a run's tally counts beside its stages: detectors, labels that are read off hidden states,
and chains that only judges read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faithscope.experiments.engine.tallies.chain_faults import (
    ANSWERLESS,
    CUT,
    DEGENERATE,
    REPEATING,
)
from faithscope.experiments.engine.tallies.tally import StageTally
from faithscope.experiments.engine.traces.endings import is_degenerate, repeats
from faithscope.experiments.studies.slrc.stages import JUDGED_CHAINS
from faithscope.probes import probe_called


def DERIVED(run_dir: Path, stored: Mapping[str, Any]) -> list[StageTally]:
    """A tally for the detectors of equal counts, and one of all for a run in which none has a
    score; and a tally for every label that is read off hidden states."""
    return [*_of_detectors(run_dir, stored), *_of_labels(run_dir, stored)]


def _of_labels(run_dir: Path, stored: Mapping[str, Any]) -> list[StageTally]:
    asked = ("labels", "step_labels", "apply")
    sections = ((name, of) for name, of in stored.items() if isinstance(of, dict))
    asking = (name for name, of in sections if any(of.get(key) for key in asked))
    if not any(map(_is_probe, asking)):
        return []
    # These import pandas, which a tally of most runs does without.
    from faithscope.experiments.analysis.run import Run
    from faithscope.experiments.studies.slrc.frames import Results
    from faithscope.experiments.studies.slrc.label_probes.tallies import label_tallies

    return label_tallies(Results(Run(run_dir)))


def _is_probe(name: str) -> bool:
    try:
        return bool(probe_called(name))
    except KeyError:
        return False


def _of_detectors(run_dir: Path, stored: Mapping[str, Any]) -> list[StageTally]:
    if stored.get("detectors") is None:
        return []
    # These import pandas, which a tally of most runs does without.
    from faithscope.experiments.analysis.run import Run
    from faithscope.experiments.analysis.tidy import rows
    from faithscope.experiments.studies.slrc.detectors.findings import NOT_ASKED, NOT_RUN
    from faithscope.experiments.studies.slrc.detectors.results import FaithResults
    from faithscope.experiments.studies.slrc.detectors.tables import DETECTOR, fates

    of: dict[str, Counter[str]] = {}
    for row in rows(fates(FaithResults(Run(run_dir)))):
        if row["stage"].startswith(DETECTOR):
            of.setdefault(row["stage"], Counter())[row["fate"]] += 1
    alike: dict[tuple[int, tuple[tuple[str, int], ...]], list[str]] = {}
    for stage, fate in of.items():
        measured = fate.pop("included", 0)
        lost = ((NOT_ASKED if why == NOT_RUN else why, n) for why, n in fate.most_common())
        alike.setdefault((measured, tuple(lost)), []).append(stage)
    found = [
        StageTally(tuple(stages), measured + sum(dict(lost).values()), measured, dict(lost))
        for (measured, lost), stages in alike.items()
    ]
    if found and not any(one.measured for one in found):
        found.append(StageTally(("detectors",), max(f.items for f in found), 0, {}, ("detectors",)))
    return found


def CHAINS(run_dir: Path) -> Mapping[tuple[str, str, str], frozenset[str]]:
    """Faults of the chains that judges alone read, by model (none), data set and id."""
    if not (run_dir / JUDGED_CHAINS).is_file():
        return {}
    # This imports the readers of given chains, which a run of a model's own does without.
    from faithscope.experiments.studies.slrc.judges.chains import read_judged

    found = {}
    for chain in read_judged(run_dir).values():
        text, steps = "".join(chain.steps), [chain.steps[i] for i in chain.places]
        has = {
            CUT: chain.cut,
            REPEATING: repeats(text, steps),
            ANSWERLESS: False,
            DEGENERATE: is_degenerate(text),
        }
        found["", chain.dataset, chain.id] = frozenset(name for name, is_so in has.items() if is_so)
    return found
