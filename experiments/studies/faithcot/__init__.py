"""FaithCoT-Bench (arXiv 2510.04040): is one particular chain of thought faithful? Eleven detectors
against annotators' labels."""

from faithscope.experiments.config.study import Study

STUDY = Study("faithcot", at=__name__)
