"""Figure of models' internals under r′ (ours): the option of r′ traced through the output."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.axes import share_rise, sheet
from faithscope.experiments.analysis.charts import along_parts
from faithscope.experiments.analysis.colours import (
    AMBER,
    FAITHFUL,
    GREY,
    PALE,
    SKY,
    UNFAITHFUL,
    Style,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL
from faithscope.probes.chain_parts import PARTS

BEHAVIOURS = {
    "misled": Style(FAITHFUL, "o", "misled"),
    "self_correcting": Style(SKY, "^", "self-correcting"),
    "silently_correcting": Style(UNFAITHFUL, "s", "silently correcting"),
    "incoherent": Style(AMBER, "v", "incoherent"),
    "inert": Style(GREY, "D", "inert"),
    "ornamental": Style(PALE, "P", "ornamental"),
}


def traces_picture(traces: pd.DataFrame) -> Picture:
    """Figure of the mean trace of the option of r′ by behaviour.

    Args:
        traces: `rf_inside_traces` of one reader; all models together are drawn, or the only one.
    """
    lines = []
    for behaviour, style in BEHAVIOURS.items():
        line = where(traces, model=OVERALL, option="r_prime", behaviour=behaviour)
        label = f"{style.label} (n = {line['n'].max():,})" if len(line) else ""
        lines.append((style._replace(label=label), line))
    figure = None
    if any(len(line) for _, line in lines):
        figure = sheet(3.2)
        ax = share_rise(along_parts(figure.subplots(), lines, "p", PARTS))
        ax.set_ylabel("probability of the option of r′")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return Picture(
        "rf_inside_traces",
        "When does the answer follow r′, and where does it turn back?",
        "Probability, among the options, of the option that r′ leads to, if the text is cut off "
        "and the answer asked for: through r′, the model's own reasoning and its explanation, each "
        "stretched to one width; means by behaviour with 95 % bands over items. A silent "
        "correction is a line that falls where no word says why.",
        traces,
        figure,
        "No model was looked into." if traces.empty else "No item with options was traced.",
    )
