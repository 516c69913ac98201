"""The stages of a run of this study."""

from collections.abc import Mapping
from typing import Any

from faithscope.experiments.config.study import Stage, by_name
from faithscope.experiments.engine.tallies.chain_faults import (
    ANSWERLESS,
    CUT,
    DEGENERATE,
    REPEATING,
)
from faithscope.experiments.engine.traces.endings import is_cut, is_degenerate, repeats


def faults_of_output(record: Mapping[str, Any]) -> frozenset[str]:
    """Faults of a stored output. One in whose explanation a judge may find the answer has one."""
    text = record["reasoning"] or record["text"]
    found = {
        CUT: is_cut(record),
        REPEATING: repeats(text),
        ANSWERLESS: not record["answer"] and not record["explanation"],
        DEGENERATE: is_degenerate(text),
    }
    return frozenset(name for name, has in found.items() if has)


def room_to_write(*run: object) -> Mapping[str, str]:
    """Setting that would let outputs come to an end."""
    return {CUT: "generate.max_new_tokens=N, a larger one"}


_OUTPUT: dict[str, Any] = {
    "measures": False,
    "faults": faults_of_output,
    "remedies": room_to_write,
}
STAGES = by_name(
    Stage("rf_baseline", **_OUTPUT),
    Stage("rf_intervened", **_OUTPUT),
    Stage("rf_tests", keys=("tests.run",)),
    Stage("rf_log_probs", keys=("log_probs",)),
    Stage("rf_inside", keys=("inside.model",)),
    Stage("rf_judged", keys=("judge.model",)),
    Stage("rf_steps", keys=("per_step.judge",)),
    Stage("rf_steps_scored", keys=("per_step.judge",)),
)
