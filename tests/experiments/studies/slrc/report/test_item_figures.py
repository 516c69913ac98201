"""One trace drawn: the numbers that were given, over its steps."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import pytest

import faithscope
from faithscope import interp
from faithscope.experiments.studies.slrc.figures.item_figures import (
    pattern_map,
    step_map,
    token_view,
    tracing_curve,
)
from faithscope.interp import Branch
from faithscope.interp.errors import UserError
from faithscope.interventions import Trace


@pytest.fixture(scope="module")
def model() -> interp.Model:
    return interp.load("planted:faithful")


@pytest.fixture(scope="module")
def trace(model: interp.Model) -> Trace:
    (made,) = faithscope.make_traces(model, faithscope.questions("planted", 1))
    return made


def test_a_curve_per_answer_with_boundaries_and_text_of_the_steps(
    model: interp.Model, trace: Trace
) -> None:
    measured = faithscope.measure(model, trace, "tracing")
    (record,) = measured
    p, options = record["arrays"]["p"], record["options"]
    figure = tracing_curve(trace, record)
    assert len(tracing_curve(measured).axes[0].lines) == len(figure.axes[0].lines)
    (ax,) = figure.axes
    final = next(line for line in ax.lines if "the chain's answer" in str(line.get_label()))
    np.testing.assert_array_equal(final.get_ydata(), p[:, options.index(record["answer"])])
    starts = {float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 2}  # pyright: ignore
    assert {float(s.tokens[0]) for s in trace.counted_steps} <= starts
    below = html.unescape(figure._repr_html_().partition("<ol>")[2])
    assert all(f"<li>{step.text.strip()}</li>" in below for step in trace.counted_steps)
    named = [text.get_text() for text in ax.texts][-len(options) :]
    assert f"{record['answer']} (the chain's answer)" in named


def test_a_map_of_layers_and_steps(model: interp.Model, trace: Trace) -> None:
    values = np.arange(6.0).reshape(2, 3)
    values[0, 1] = np.nan
    figure = step_map(trace, values, label="effect", diverging=True)
    (image,) = figure.axes[0].images
    shown = np.asarray(image.get_array())
    np.testing.assert_array_equal(shown[1], values[1])
    assert image.get_clim() == (-5.0, 5.0)
    # what was not measured is unlike zero: the hatched ground shows through
    assert figure.axes[0].patch.get_hatch()
    assert image.get_cmap()(np.ma.masked_invalid([np.nan]))[0, 3] == 0
    named = step_map(trace, values, label="share", row_names=[8, 30], diverging=True, limit=1)
    assert [t.get_text() for t in named.axes[0].get_yticklabels()] == ["8", "30"]
    assert named.axes[0].images[0].get_clim() == (-1.0, 1.0)
    with pytest.raises(ValueError, match=r"shape \(3, 2\) for 3 counted steps"):
        step_map(trace, values.T, label="effect")


def test_maps_take_what_measure_returns(model: interp.Model, trace: Trace) -> None:
    cut = faithscope.measure(model, trace, "knockout", queries=["later"])
    figure = step_map(cut, "tv")
    shown = np.asarray(figure.axes[0].images[0].get_array())
    np.testing.assert_allclose(shown, [r["tv"] for r in cut])
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [r["variant"] for r in cut]
    heads = faithscope.measure(model, trace, "attention")
    shown = np.asarray(step_map(trace, heads[0], "steps").axes[0].images[0].get_array())
    np.testing.assert_allclose(shown, heads[0]["arrays"]["steps"].mean(axis=1))
    plot: Any = (tracing_curve, step_map, token_view, pattern_map)
    for call, said in (
        (lambda: plot[0](heads), "attention has no array 'p'; faithscope.measure(model, trace, 't"),
        (lambda: plot[0](heads[0]), "tracing_curve: give all that faithscope.measure"),
        (lambda: plot[0](trace), "tracing_curve: give all that"),
        (lambda: plot[1](cut, "tvs"), "no field 'tvs' of knockout has a value for each of the 3"),
        (lambda: plot[1](cut[0], "tv"), "step_map: give all that"),
        (lambda: plot[2](heads, "steps"), "token_view takes the texts of tokens"),
        (lambda: plot[3](trace, cut, 0), "pattern_map takes the texts of tokens"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            call()


def test_a_map_of_tokens_and_the_row_of_one(model: interp.Model, trace: Trace) -> None:
    ids = trace.prompt_ids
    branch = Branch(ids, ask=tuple(range(len(ids))))
    pattern = model.run([branch], rows=True).branches[0].pattern[0].mean(0).numpy()
    figure = pattern_map(model.pieces(ids), pattern, -2, most=3)
    left, right = figure.axes[0], figure.axes[1]
    shown = np.ma.asarray(left.images[0].get_array())
    np.testing.assert_array_equal(shown.filled(0), pattern)
    assert shown.mask[0, 1]
    assert not shown.mask[1, 0]
    row = pattern[len(ids) - 2]
    widths = [bar.get_width() for bar in right.patches]  # pyright: ignore
    np.testing.assert_allclose(widths, np.sort(row)[::-1][:3])
    assert right.get_yticklabels()[0].get_text().endswith(f"  {row.argmax()}")
    with pytest.raises(ValueError, match="query 99 lies outside"):
        pattern_map(model.pieces(ids), pattern, 99)
    with pytest.raises(ValueError, match="for 1 tokens"):
        pattern_map(["a"], pattern, 0)


def test_tokens_are_coloured_without_a_network(model: interp.Model, trace: Trace) -> None:
    pieces = model.pieces(trace.reasoning_ids)
    view = str(token_view(pieces, np.arange(len(pieces)), title="Place", unit="tokens").data)
    assert not re.search("<script|http", view)
    assert f">{html.escape(pieces[1])}</span>" in view
    assert "<strong>Place</strong> 0 <span" in view
    assert f"</span> {len(pieces) - 1} tokens</p>" in view
    by_layer = str(token_view(pieces, -np.eye(len(pieces), 2), ["layer 1", "layer 2"]).data)
    assert "layer 2" in by_layer
    assert ">−1 " not in by_layer.partition("<details")[0].replace("<p><strong></strong> −1 ", "")
    hostile = str(token_view(["<b>", "\n"], np.zeros(2)).data)
    assert "<b>" not in hostile
    assert "↵" in hostile
    with pytest.raises(ValueError, match="2 values for"):
        token_view(pieces, np.zeros(2))
