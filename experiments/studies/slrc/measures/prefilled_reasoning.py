"""Report of prefilled reasoning: how far text that the model did not write moves its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import share_rise
from faithscope.experiments.analysis.cells import INCLUDED, Boot, Count, rows_known
from faithscope.experiments.analysis.charts import along_parts
from faithscope.experiments.analysis.colours import BLUE, GREEN, ORANGE, Style
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.item_view import Curve
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import keep, where, with_columns
from faithscope.experiments.studies.slrc.figures.per_pair import pair_panels, picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.probes.chain_parts import PARTS
from faithscope.probes.prefilled_reasoning import NO_REGION, SIGNALS, curve, shares_along

NAME = "prefilled_reasoning"
LINES = {
    "led_to": Style(ORANGE, "o", "the option of r′"),
    "answer": Style(BLUE, "s", "the chain's answer"),
    "gold": Style(GREEN, "^", "the right answer"),
}
"""Field of a record that holds an option -> its line in the figure."""


def _curves(records: pd.DataFrame) -> pd.DataFrame:
    """A row per item, option of `LINES` and point of the chain: the option's probability there."""
    frame = with_columns(records, "p")
    points = [
        {**{key: r[key] for key in ("model", "task", "item")}, "option": name, **point}
        for r in keep(frame, rows_known("p")(frame)).to_dict("records")
        for name in LINES
        if r[name] in r["options"]
        for point in curve(r, r[name])
    ]
    names = ["model", "task", "item", "option", "part", "position", "p"]
    return pd.DataFrame(points, columns=names)


def _label(signal: str) -> str:
    return signal.replace("r_prime", "r′").replace("_", " ")


def _cuts(records: OfItem) -> int:
    return len(records[0]["cuts"])


def _drawn(table: pd.DataFrame) -> Figure | None:
    def panel(ax: Axes, of_pair: pd.DataFrame) -> None:
        lines = [(style, where(of_pair, option=name)) for name, style in LINES.items()]
        share_rise(along_parts(ax, lines, "p", PARTS))

    return pair_panels(table, panel, height=2.1, labels=("part of the chain", "probability"))


def _of_trace(record: Record, arrays: Mapping[str, Any]) -> Iterator[Curve]:
    if "p" in record:
        shares = dict(zip(record["options"], shares_along(record).T.tolist(), strict=True))
        title = f"Answers through r′ ({record['n_r_prime']} tokens) and the model's own text"
        yield Curve(title, "tokens given", "probability", record["cuts"], shares)


REPORT = MeasureReport(
    NAME,
    Section(
        NAME,
        "Prefilled reasoning",
        "Reasoning r′ that the model did not write stands at the head of its reasoning: how far it "
        "moves the answer, what the model's own text makes of that, where the answer looks and "
        "what its layers hold. r′ leads to the option that is the likeliest after it and wrong.",
    ),
    (
        Table(
            NAME,
            NAME,
            ("model", "task"),
            (
                Count("n", label="items", meaning="Items that the row is of."),
                *(
                    Boot(name, name, "item", label=_label(name), meaning=x)
                    for name, x in SIGNALS.items()
                ),
            ),
            prepare=lambda frame: with_columns(frame, *SIGNALS),
            among=INCLUDED,
            caption="The answer under prefilled reasoning",
        ),
        Table(
            f"{NAME}_by_position",
            NAME,
            (
                *("model", "task"),
                Column("option", meaning="Whose probability it is: led_to is the option of r′."),
                Column("part", meaning="Part of the chain: r′, own reasoning r, explanation e."),
                Column("position", meaning="Place in the part, 0 to 1."),
            ),
            (
                Count("n", label="items", meaning="Items that the row is of."),
                Boot("p", "p", "item", meaning="Mean probability of the option."),
            ),
            prepare=_curves,
            caption="The options' probabilities through the parts of the chain",
            folded="By place in the chain",
            draw=picture(
                NAME,
                "When does the answer follow prefilled reasoning?",
                "Probability among the options, if the text is cut off and the answer asked for: "
                "through the prefilled reasoning r′, the model's own reasoning and its "
                "explanation, each stretched to one width; means over items with 95 % intervals.",
                _drawn,
            ),
        ),
    ),
    (Frame(NAME, "A row per item: its signals, and where r′ leads.", (*SIGNALS, "led_to")),),
    (
        Measure(
            "prefilled_effect",
            NAME,
            "logit",
            value("r_prime_effect"),
            calls(2),
            in_short="prefilled reasoning: what it adds to its option",
        ),
        Measure("prefilled_gold_lost", NAME, "logit", value("gold_lost"), calls(2)),
        Measure("prefilled_led_share", NAME, "logit", value("led_share"), _cuts),
        # an option that only earlier layers hold was overruled without a word
        Measure(
            "prefilled_lens_suppressed",
            NAME,
            "internal",
            value("lens_suppressed"),
            calls(1),
            higher_is_faithful=False,
        ),
    ),
    reasons={NO_REGION: "no part of the reasoning was prefilled"},
    over_steps=False,
    of_trace=_of_trace,
)
