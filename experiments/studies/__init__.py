"""The studies, a folder each: what each asks, and what a reader gets of it."""

from faithscope.experiments.config.study import Study, register

_OUTPUTS = ("rf_baseline", "rf_intervened")
_EDITED = ("trace", "written_edits")

register(Study("slrc", f"{__name__}.slrc", "RunConfig", unnamed=True))
register(Study("c2faith", f"{__name__}.c2faith", "C2FaithConfig"))
register(Study("rfeval", f"{__name__}.rfeval", "RFEvalConfig", texts=_OUTPUTS))
register(Study("judge", f"{__name__}.judge", "JudgeStudyConfig"))
register(Study("faithcot", f"{__name__}.faithcot", "FaithCotConfig", texts=_EDITED))
register(Study("compare", f"{__name__}.compare", "CompareConfig", reads_runs=True))
