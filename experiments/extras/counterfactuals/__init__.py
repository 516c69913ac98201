"""r′, the counterfactual reasoning: a model writes it and another validates it (RFEval, 3.2)."""

from __future__ import annotations

from faithscope.experiments.config.study import Addition, Stage


def _load():
    from faithscope.experiments.extras.counterfactuals.building import build
    from faithscope.experiments.studies.rfeval.additions import RfAddition

    return RfAddition(build)


ADDITION = Addition((Stage("rf_writing"), Stage("rf_validation")), _load)
