"""Report of stored states: what is on disk, and labels that are read off it."""

from __future__ import annotations

from faithscope.experiments.analysis.cells import Kept, Mean
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, N_LAYERS, item_table
from faithscope.experiments.studies.slrc.label_probes.applied import item_scores
from faithscope.experiments.studies.slrc.label_probes.tables import label_topics
from faithscope.experiments.studies.slrc.label_probes.values import REASONS
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport

SPAN = Column("span", meaning="Name of the span.")
STATES = item_table(
    "states",
    (
        COUNTED,
        Mean(
            "n_spans",
            "n_spans",
            label="stretches",
            meaning="Stretches of tokens with the name, mean.",
        ),
        Mean("n_tokens", "n_tokens", label="tokens", meaning="Tokens of these, mean."),
        Mean("n_rows", "n_rows", label="states", meaning="Stored states per layer and site, mean."),
        Kept((N_LAYERS,)),
    ),
    keys=(SPAN,),
    alike=("n_layers",),
    caption="States that are stored",
)

REPORT = MeasureReport(
    "states",
    Section(
        "states",
        "Stored states",
        markup(
            "Hidden states at the spans that the config names, in "
            "<code>arrays/states.safetensors</code>: "
            '<code>load_run(…).arrays("states")</code> gives them by chain, without reading more '
            "than is used (<code>faithscope docs label_probes</code>)."
        ),
        "Stored states",
    ),
    (STATES,),
    (
        Frame(
            "states",
            'A row per item and span: what is stored of it; `arrays("states")` has the states.',
            ("span", "pool", "sites", "n_spans", "n_tokens", "n_rows", "n_layers"),
        ),
    ),
    over_steps=False,
    further=label_topics("states", "states_label_probe"),
    item_scores=item_scores("states"),
    reasons={
        "no_residual_stream": "model structure not recognised",
        "site_not_recognised": "which part of a layer is its attention or MLP could not be told",
        **REASONS,
    },
)
