"""The stages of a run of this study: traces, probes, judges, and what detectors ask besides."""

from collections.abc import Mapping

from faithscope.experiments.config.study import Stage, by_name
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.traces.stages import STAGES as OF_TRACES
from faithscope.experiments.engine.traces.stages import TRACE

SHUFFLED, WRITTEN, EDITED = "option_shuffling", "written_edits", "edited_answers"
"""Stages of detectors: the question asked again with shuffled options, edits that a judge writes,
and the subject's answers to them."""


def room_to_reply(*run: object) -> Mapping[str, str]:
    """Setting that would keep replies which the token limit of judges cut off."""
    return {"truncated": "judges.max_tokens=N, a larger one"}


STAGES = {
    **OF_TRACES,
    **by_name(
        # The question is asked again whether or not the trace is usable.
        Stage(SHUFFLED),
        Stage(WRITTEN, (TRACE,), measures=False),
        Stage(EDITED, (TRACE,)),
        *(Stage(name, (TRACE,), remedies=room_to_reply) for name in READINGS),
    ),
}
"""Stages by name; those of judges have the judge and the form behind a dot each."""
