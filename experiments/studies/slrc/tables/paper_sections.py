"""Numbers that the SLRC paper gives in its text, as tables of a run: other prompts (2.6), layers of
one model (2.7) and pairs of models from one lab (3.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.paper_table import PaperTable, or_dash, percent
from faithscope.experiments.analysis.tidy import distinct, only, renamed, rows, where, with_interval
from faithscope.experiments.studies.slrc.tables.layout import (
    MEASURED,
    WAY,
    own_tasks,
    table_of,
    text_of,
    title,
    way_of,
)

_OF_PROMPTS = {
    "necessity": ("Nec%", percent),
    "sufficiency": ("Suf%", percent),
    "accuracy": ("Acc%", percent),
    "steps": ("Steps", lambda v: or_dash(lambda x: f"{x:.1f}", v)),
}


def prompts(interventions: pd.DataFrame) -> PaperTable:
    """Section 2.6: every measure under the standard prompt and under another one, and what
    necessity gains."""
    keys = ["model", "task", "variant", *WAY]
    names = [*(f"{m}_standard" for m in _OF_PROMPTS), *_OF_PROMPTS, "gain"]
    data = []
    for key in distinct(interventions, *keys):
        of = {r["measure"]: r for r in rows(where(interventions, **key))}
        line = {"n": of["necessity"]["n"]} | renamed(of["necessity"], "difference", "gain")
        for measure, row in of.items():
            line |= renamed(row, "standard", f"{measure}_standard")
            line |= renamed(row, "changed", measure)
        data.append(key | line)
    headings = MEASURED | {"Task": text_of("task", title), "Prompt": text_of("variant")}
    for measure, (heading, say) in _OF_PROMPTS.items():
        headings[f"{heading}, standard"] = text_of(f"{measure}_standard", say)
        headings[heading] = text_of(measure, say)
    headings["Difference"] = text_of("gain", _points)
    return table_of("paper_section2_6", data, [*keys, "n", *with_interval(*names)], headings)


def layers(tables: Mapping[str, pd.DataFrame]) -> PaperTable:
    """Section 2.7: the layer from which the answer is settled, the answer's attention to reasoning
    and prompt, and the layer at which the reasoning is most like the answer.

    The paper's shares of attention add up to one and name question and reasoning alone, so ours are
    of the attention that goes to either: the question with the rest of the prompt, its first token
    included. The bounds are those of `attention`, divided by the same sum. Attention is of the
    chains of one unit of removal, and missing where a run has several.
    """
    parts = {name: own_tasks(tables[name]) for name in ("rigidity", "flow") if name in tables}
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for name, table in parts.items():
        for row in rows(table):
            if row.get("lens", "logit") == "logit":
                line = lines.setdefault((row["model"], row["task"]), {})
                line |= {"n": row["n"], "n_layers": row["n_layers"]}
                for old, new in _OF_LAYERS[name].items():
                    line |= renamed(row, old, new)
    read = "attention" in tables
    for (model, task), line in lines.items():
        attended = rows(where(tables["attention"], model=model, task=task)) if read else []
        line |= _shares(attended[0]) if len(attended) == 1 else {}
    names = ["stable_layer", "stable_depth", "reasoning", "prompt", "peak_layer", "peak_depth"]
    columns = ["model", "task", "n", "n_layers", *with_interval(*names, "peak_value")]
    data = [
        dict.fromkeys(columns, math.nan) | {"model": model, "task": task} | line
        for (model, task), line in lines.items()
    ]
    headings = {"Model": text_of("model"), "Task": text_of("task", title)}
    headings |= {heading: text_of(name, say) for heading, (name, say) in _LAYER_CELLS.items()}
    return table_of("paper_section2_7", data, columns, headings)


def _shares(row: Mapping[str, Any]) -> dict[str, float]:
    """Shares of reasoning and prompt in the attention that goes to either."""
    before = row["first_token"] + row["template"] + row["question"]
    both = row["real"] + before
    low, high = row["real_low"] / both, row["real_high"] / both
    reasoning = {"reasoning": row["real"] / both, "reasoning_low": low, "reasoning_high": high}
    return reasoning | {"prompt": before / both, "prompt_low": 1 - high, "prompt_high": 1 - low}


def model_pairs(pairs: pd.DataFrame) -> PaperTable:
    """Section 3.2: necessity of two models on the same items, and the difference."""
    of_necessity = where(pairs, measure="necessity")
    keys = ["pair", "model", "other", "task", *WAY]
    columns = [*keys, "n", *with_interval("first", "second", "difference")]
    headings = {
        "Pair": text_of("pair"),
        "Model": text_of("model"),
        "Other model": text_of("other"),
        "Task": text_of("task", title),
        "Measured": way_of,
        "Nec%": text_of("first", percent),
        "Nec%, other": text_of("second", percent),
        "Difference": text_of("difference", _points),
    }
    return table_of("paper_section3_2", rows(only(of_necessity, columns)), columns, headings)


def _points(value: float) -> str:
    return or_dash(lambda x: f"{100 * x:+.1f}pp", value)


def _layer(value: float) -> str:
    return or_dash(lambda x: f"{x:.1f}", value)


_OF_LAYERS = {
    "rigidity": {"stable_layer": "stable_layer", "depth": "stable_depth"},
    "flow": {name: name for name in ("peak_layer", "peak_depth", "peak_value")},
}
"""Table -> its columns -> the layout's columns."""
_LAYER_CELLS = {
    "Layers": ("n_layers", str),
    "Stable layer": ("stable_layer", _layer),
    "Stable depth": ("stable_depth", percent),
    "CoT": ("reasoning", percent),
    "Question": ("prompt", percent),
    "Peak layer": ("peak_layer", _layer),
    "Peak depth": ("peak_depth", percent),
    "Peak value": ("peak_value", lambda v: or_dash(lambda x: f"{x:.3f}", v)),
}
