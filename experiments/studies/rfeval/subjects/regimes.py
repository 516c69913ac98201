"""Which models Table 3 can compare, and why it does not compare the others (RFEval, §5, A3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from faithscope.experiments.studies.rfeval.subjects.model_files import REGIMES, ModelFile

LEFT_OUT = ("model", "base", "regime", "reason")
"""Columns of the models that Table 3 has no cell for; base and regime are "" where not known."""
REASONS = {
    "regime_unknown": "how it was post-trained is not known",
    "base_unknown": "what it was post-trained from is not known",
    "alone": "no model of its base under another regime is in this run",
}


def regimes(files: Mapping[str, ModelFile], models: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Base and regime of the models that Table 3 can compare, in its order.

    Those are models of one base under different regimes; a model alone of its base compares
    nothing. The result is an argument of `experiments.studies.rfeval.tables.tables`.
    """
    known = [
        (file.base, file.regime, name)
        for name in models
        if (file := files.get(name)) and file.base and file.regime
    ]
    bases = list(dict.fromkeys(base for base, _, _ in known))
    several = {b for b in bases if len({r for base, r, _ in known if base == b}) > 1}
    known.sort(key=lambda one: (bases.index(one[0]), REGIMES.index(one[1])))
    return {name: (base, regime) for base, regime, name in known if base in several}


def left_out(files: Mapping[str, ModelFile], models: Iterable[str]) -> pd.DataFrame:
    """The models that Table 3 does not have, and why (`REASONS`): none goes without a word."""
    names = list(models)
    compared = regimes(files, names)
    made = []
    for name in names:
        if name in compared:
            continue
        file = files.get(name, ModelFile(name=name))
        reason = "alone"
        if not file.regime or not file.base:
            reason = "base_unknown" if file.regime else "regime_unknown"
        made.append((name, file.base or "", file.regime or "", reason))
    return pd.DataFrame(made, columns=list(LEFT_OUT))


NO_MODEL = pd.DataFrame(columns=list(LEFT_OUT))
"""What `left_out` gives where every model is compared."""
