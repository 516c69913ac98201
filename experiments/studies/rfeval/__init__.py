"""RFEval: whether a model follows counterfactual reasoning prefilled as its own, and coherently."""

from faithscope.experiments.config.study import Study

STUDY = Study("rfeval", at=__name__, unit="pairs")
