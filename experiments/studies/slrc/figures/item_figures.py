"""Figures of one trace: values of a probe along its steps, whose texts a notebook shows below."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, PowerNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from faithscope.experiments.analysis.axes import (
    SMALL,
    Sheet,
    hatch_ground,
    plain_ticks,
    share_ticks,
    sheet,
    width,
)
from faithscope.experiments.analysis.charts import names_beside
from faithscope.experiments.analysis.colours import (
    AMOUNT,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    QUIET,
    SIGN,
    colour_map,
    ink_on,
)
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.picture import STYLE
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.wording import middle_cut
from faithscope.experiments.engine.traces.measured import Measured
from faithscope.experiments.numerals import significant
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Step, Trace
from faithscope.probes.record import ARRAYS, Record

if TYPE_CHECKING:
    from IPython.display import HTML

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
_MOST_CURVES = 8


def tracing_curve(trace: Trace | Measured, record: Record | Measured | None = None) -> StepFigure:
    """Probability of every answer along the tokens of a reasoning, with its steps. The highlighted
    answer is the one that the chain states, or the likeliest at the end if it states none.

    Args:
        trace: what `measure(model, trace, "tracing")` or `run.item("tracing", item)` returned;
            or a trace, with
        record: the record of its tracing.

    Raises:
        UserError: there is no trace, or no record of tracing.
    """
    trace, records = _trace_and_records("tracing_curve", trace, record)
    one = _with_field("tracing_curve", records, "p")
    (at, p), options = (np.asarray(one[ARRAYS][name]) for name in ("at", "p")), one["options"]
    with mpl.rc_context(STYLE):
        figure, ax = _over_steps(trace.counted_steps, height=2.6)
        stated = trace.unedited.answer
        final = options.index(stated) if stated in options else int(p[-1].argmax())
        # The chain's answer is drawn first, then the others by their highest probability.
        ends: list[tuple[float, float, str]] = []
        others = [i for i in np.argsort(-p.max(axis=0), kind="stable") if i != final]
        for rank, i in enumerate([final, *others[: _MOST_CURVES - 1]]):
            colour = _COLOURS[rank] if rank < len(_COLOURS) else GREY
            label = visible(options[i]) + (" (the chain's answer)" if i == final else "")
            ax.plot(at, p[:, i], color=colour, lw=1.8 if i == final else 1.1, label=label)
            ends.append((at[-1], p[-1, i], middle_cut(label)))
        for number, step in enumerate(trace.counted_steps, start=1):
            ax.axvline(step.tokens[0], color=GREY, lw=0.5, alpha=0.6)
            middle = sum(step.tokens) / 2
            ax.text(
                middle, 1.05, str(number), ha="center", va="bottom", fontsize=SMALL, color=QUIET
            )
        share_ticks(ax.yaxis)
        ax.set(xlim=(0, max(1, at[-1])), ylim=(-0.03, 1.04))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="tokens of reasoning given", ylabel="probability of the answer")
        names_beside(ax, *zip(*ends, strict=True))
        return figure


def step_map(
    trace: Trace | Measured,
    values: np.ndarray | Record | Measured | str,
    name: str = "",
    *,
    label: str = "",
    rows: str = "layer",
    first_row: int = 1,
    row_names: Sequence[object] | None = None,
    diverging: bool = False,
    limit: float | None = None,
) -> StepFigure:
    """Heat map over rows (layers) and counted steps.

    Args:
        trace: a trace; or what `measure` or `run.measured` returned, and then the name of one of
            its fields: `step_map(measured, "tv")`.
        values: (rows, steps), NaN is hatched; or a record of the trace, with
        name: one of its arrays, (rows, steps) or (rows, heads, steps), of whose heads the mean is
            drawn; or a list with a value for each step, of which every record is a row.
        label: quantity shown by colour, with its unit; by default the name of the field.
        first_row: number of the first row: layers count from 1, heads from 0.
        row_names: names of the rows, if these are not numbered consecutively.
        diverging: whether zero is the middle of the colours.
        limit: value at which the colours end; by default the greatest value.
    """
    if isinstance(values, str | Mapping | Measured) or not isinstance(trace, Trace):
        of_steps, name = (None, values) if isinstance(values, str) else (values, name)
        trace, records = _trace_and_records("step_map", trace, of_steps)
        values, names = _rows_of_steps(records, name, len(trace.counted_steps))
        row_names, rows = (names, "variant") if names else (row_names, rows)
        label = label or f"{name} ({records[0]['probe']})"
    steps = trace.counted_steps
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.shape[1] != len(steps):
        raise ValueError(f"values of shape {values.shape} for {len(steps)} counted steps")
    with mpl.rc_context(STYLE):
        height = min(6.0, max(2.2, 0.17 * len(values)))
        figure, ax = _over_steps(steps, height=height)
        most = limit or (float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0)
        drawn = ax.imshow(
            values,
            aspect="auto",
            origin="lower",
            interpolation="nearest",
            extent=(0.5, len(steps) + 0.5, first_row - 0.5, first_row + len(values) - 0.5),
            cmap=colour_map(SIGN if diverging else AMOUNT),
            vmin=-most if diverging else None,
            vmax=most if diverging else limit,
        )
        hatch_ground(ax)
        ax.set_xticks(range(1, len(steps) + 1))
        if row_names is None:
            ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        else:
            ax.set_yticks(range(first_row, first_row + len(values)), list(map(str, row_names)))
        ax.set(xlabel="step", ylabel=f"{rows}, from {first_row}" if row_names is None else rows)
        figure.colorbar(drawn, ax=ax, label=label, pad=0.01)
        plain_ticks(figure)
        return figure


def pattern_map(
    pieces: Sequence[str], pattern: np.ndarray, query: int, *, most: int = 15
) -> Figure:
    """Token × token attention of one head, beside the tokens that one query attends to most.

    Args:
        pieces: the text of every token (`model.pieces`).
        pattern: (queries, tokens) shares of attention; a row per token.
        query: index of the token whose row is drawn beside the map and marked in it; negative ones
            count from the end.
        most: number of tokens shown beside the map.
    """
    _no_record("pattern_map", pieces, "model.run([Branch(ids, ask=…)], rows=True) reads patterns")
    pattern = np.asarray(pattern, dtype=float)
    n = len(pieces)
    if pattern.shape != (n, n):
        raise ValueError(f"pattern of shape {pattern.shape} for {n} tokens")
    if not -n <= query < n:
        raise ValueError(f"query {query} lies outside a text of {n} tokens")
    query %= n
    shown = [visible(piece) for piece in pieces]
    with mpl.rc_context(STYLE):
        figure = sheet(2.8)
        left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
        # a first token that takes most of a row would hide all others on a linear scale
        seen = np.ma.masked_where(np.triu(np.ones((n, n), bool), 1), pattern)
        drawn = left.imshow(
            seen, norm=PowerNorm(0.4, 0, 1), interpolation="nearest", cmap=colour_map(AMOUNT)
        )
        left.axhline(query, color=ORANGE, lw=0.8)
        left.set(xlabel="token that is attended to", ylabel="token that attends (query)")
        figure.colorbar(drawn, ax=left, label="share of attention", pad=0.01)
        greatest = np.argsort(-pattern[query, : query + 1], kind="stable")[:most]
        right.barh(range(len(greatest)), pattern[query, greatest], color=BLUE)
        right.set_yticks(range(len(greatest)), [f"{shown[i]!r}  {i}" for i in greatest])
        right.invert_yaxis()
        share_ticks(right.xaxis)
        right.set(xlabel="share of attention", xlim=(0, 1))
        right.set_title(f"token {query}, {shown[query]!r}, attends to")
        return figure


def token_view(
    pieces: Sequence[str],
    values: np.ndarray,
    labels: Sequence[str] | None = None,
    *,
    title: str = "",
    unit: str = "",
) -> HTML:
    """Text coloured by a value per token, for notebooks; it needs no network and no script.

    All kinds have one scale, from 0 to the greatest value, or from minus to plus that if some are
    negative. A token's value stands under the pointer.

    Args:
        pieces: the text of every token (`model.pieces`).
        values: (tokens,), or (tokens, kinds), one text below the other; the first is open.
        labels: names of the kinds.
        title: what the values are.
        unit: their unit, in words, such as "share of attention".
    """
    from IPython.display import HTML

    _no_record("token_view", pieces, "give the pieces of a text and a value for each of them")
    values = np.asarray(values, dtype=float)
    if len(values) != len(pieces):
        raise ValueError(f"{len(values)} values for {len(pieces)} tokens")
    table = values.reshape(len(pieces), -1)
    named = list(labels or ["values", *(f"values {i}" for i in range(2, table.shape[1] + 1))])
    most = float(np.nanmax(np.abs(table), initial=0)) or 1.0
    least = -most if bool((table < 0).any()) else 0.0
    colours = colour_map(SIGN if least else AMOUNT)
    parts = significant(least), significant(most)
    stops = ", ".join(to_hex(colours(x)) for x in np.linspace(0, 1, 9))
    bar = f"display:inline-block;width:8em;height:.7em;background:linear-gradient(90deg,{stops})"
    scale = markup('{} <span style="{}"></span> {} {}', parts[0], bar, parts[1], unit)
    texts = [
        markup(
            "<details{}><summary>{}</summary><p style='white-space:pre-wrap'>{}</p></details>",
            markup(" open") if i == 0 else "",
            name,
            markup("").join(
                _token(s, v, colours, least, most) for s, v in zip(pieces, of, strict=True)
            ),
        )
        for i, (name, of) in enumerate(zip(named, table.T, strict=True))
    ]
    head = markup("<p><strong>{}</strong> {}</p>", title, scale)
    return HTML(str(markup("").join([head, *texts])))


def _token(piece: str, value: float, colours: Colormap, least: float, most: float) -> Markup:
    colour = to_hex(colours((value - least) / (most - least)))
    look = "" if math.isnan(value) else f"background:{colour};color:{ink_on(colour)}"
    # a line break stands after the token that holds it
    text = visible(piece).replace("\n", "↵\n")
    return markup('<span style="{}" title="{}">{}</span>', look, significant(value, 3), text)


def _no_record(figure: str, pieces: Any, remedy: str) -> None:
    """
    Raises:
        UserError: there is a trace or a record in place of a text's tokens.
    """
    if isinstance(pieces, Trace | Mapping | Measured):
        raise UserError(
            f"{figure} takes the texts of tokens (trace.pieces, model.pieces(ids)), not a "
            f"{type(pieces).__name__}; {remedy} (faithscope docs plot)"
        )


def _trace_and_records(
    figure: str, trace: Trace | Measured, records: Any
) -> tuple[Trace, list[Record]]:
    """The trace to draw, and its records, from what a figure was given.

    Raises:
        UserError: either is missing.
    """
    if isinstance(trace, Measured):
        trace, records = trace.trace or trace, trace
    found: list[Any] = [records] if isinstance(records, Mapping) else list(records or ())
    if not isinstance(trace, Trace) or not all(isinstance(r, Mapping) for r in found) or not found:
        raise UserError(
            f"{figure}: give all that faithscope.measure(model, trace, PROBE) or "
            "faithscope.load_run(FOLDER).item(PROBE, ITEM) returned, or a trace and one of its "
            f"records; got {type(trace).__name__} and {type(records).__name__}"
        )
    return trace, found


def _with_field(figure: str, records: Sequence[Record], array: str) -> Record:
    if array not in (records[0].get(ARRAYS) or {}):
        probe = figure.partition("_")[0]
        raise UserError(
            f"{figure}: the record of {records[0]['probe']} has no array {array!r}; "
            f"faithscope.measure(model, trace, {probe!r}) makes one that has"
        )
    return records[0]


def _rows_of_steps(
    records: Sequence[Record], name: str, n_steps: int
) -> tuple[np.ndarray, list[str]]:
    """(rows, steps) values of a field, and the names of the rows if each is a record.

    Raises:
        UserError: no such field has a value for each step; names those that do.
    """
    arrays = {
        key: x
        for key, x in (records[0].get(ARRAYS) or {}).items()
        if x.ndim in (2, 3) and x.shape[-1] == n_steps
    }
    lists = [
        key
        for key, x in records[0].items()
        if isinstance(x, list) and len(x) == n_steps and isinstance(x[0], int | float)
    ]
    if name in arrays and (len(records) == 1 or name not in lists):
        array = arrays[name]
        return (array.mean(axis=1) if array.ndim == 3 else array), []
    if name in lists:
        values = [r.get(name) or [None] * n_steps for r in records]
        return np.array(values, dtype=float), [r["variant"] or name for r in records]
    known = ", ".join(dict.fromkeys([*arrays, *lists])) or "none"
    raise UserError(
        f"step_map: no field {name!r} of {records[0]['probe']} has a value for each of the "
        f"{n_steps} steps; these have: {known}"
    )


class StepFigure(Sheet):
    """A figure over the steps of a chain, whose texts a notebook shows below it."""

    steps: Sequence[Step] = ()

    def _repr_html_(self) -> str:
        file = io.BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(file, format="png", dpi=160)
        image = base64.b64encode(file.getvalue()).decode()
        size = f"width:{round(96 * self.get_figwidth())}px;max-width:100%"
        items = markup("").join(markup("<li>{}</li>", visible(s.text.strip())) for s in self.steps)
        return markup(
            '<img src="data:image/png;base64,{}" alt="figure over the steps below" style="{}">'
            "<details open><summary>the steps</summary><ol>{}</ol></details>",
            *(image, size, items),
        )


def _over_steps(steps: Sequence[Step], height: float) -> tuple[StepFigure, Axes]:
    """A figure with one pair of axes, which knows the texts of its steps."""
    figure = StepFigure(figsize=(width(), height), layout="constrained")
    figure.steps = steps
    return figure, figure.add_subplot()
