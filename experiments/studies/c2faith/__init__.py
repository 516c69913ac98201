"""C2-Faith: how well judges tell broken steps and missing steps in a chain of reasoning."""

from faithscope.experiments.config.study import Study

STUDY = Study("c2faith", at=__name__)
