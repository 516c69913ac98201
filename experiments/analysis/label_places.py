"""Names beside the points of a scatter plot, moved apart until each can be read.

A name stands near its point where it can, else farther off with a line that leads to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import GREY
from faithscope.experiments.analysis.plots import short

Boxes = Float[np.ndarray, "boxes 4"]
"""Left, bottom, right, top of each."""
ROUNDS = 5
"""How often every name is placed anew among the others."""
_LOOKED_AT = 80
"""Places whose lines are looked at."""
_LETTERS = 7
"""Points."""
_MARKER, _GAP = 4.5, 1.5
"""Half the width of a point's marker, and the least distance of a name from anything; pixels."""
_LEADER = 11.0
"""Pixels between a name and its point from which a line leads there."""
_NEARER = 7.0
"""By so many pixels a name without a line has to be nearer to its point than to any other."""


def name_points(ax: Axes, x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> None:
    """Write a name at every point, once the layout of the figure is settled.

    `Figure.draw_without_rendering` settles it; limits, titles and all that takes room stand
    already then. At another resolution all lengths grow alike, and places hold.
    """
    figure = ax.figure
    assert isinstance(figure, Figure)
    points = ax.transData.transform(np.column_stack([x, y]))
    sizes = np.array([_size(ax, name) for name in names]).reshape(-1, 2)
    corners = placed(points, sizes, np.array(ax.get_window_extent().extents))
    for name, a, b, point, corner, size in zip(names, x, y, points, corners, sizes, strict=True):
        nearest = _nearest(point, _boxes(corner[None], size))[0]
        led = np.linalg.norm(nearest - point) > _LEADER
        start = tuple((nearest - corner) / size)
        line = {"arrowstyle": "-", "color": GREY, "lw": 0.6, "relpos": start}
        note = ax.annotate(
            name,
            (a, b),
            tuple((corner - point) * 72 / figure.dpi),
            textcoords="offset points",
            size=_LETTERS,
            va="bottom",
            arrowprops=line | {"shrinkA": 0, "shrinkB": 2} if led else None,
        )
        note.set_in_layout(False)


def _size(ax: Axes, name: str) -> tuple[float, float]:
    """Width and height of a name in pixels."""
    text = ax.text(0, 0, name, size=_LETTERS)
    extent = text.get_window_extent()
    text.remove()
    return extent.width, extent.height


def placed(
    points: Float[np.ndarray, "n 2"],
    sizes: Float[np.ndarray, "n 2"],
    frame: Float[np.ndarray, " 4"],
) -> Float[np.ndarray, "n 2"]:
    """The lower left corner of every name, in pixels, so that names cover as little as can be.

    Each name in turn takes, of the places around its point, the one that costs least: what it
    covers of other names, points and lines, what its own line crosses, what sticks out of the
    frame, whether it could be taken for another point's, and how far off it is.

    Args:
        points, sizes: of the points, and of their names (width, height).
        frame: left, bottom, right, top.
    """
    markers = np.concatenate([points - _MARKER, points + _MARKER], axis=1)
    corners = np.full(points.shape, np.nan)
    near = np.sort(np.linalg.norm(points[:, None] - points[None], axis=2), axis=1)
    # The most crowded first: who has room finds some later, too.
    order = np.argsort(near[:, 1:4].mean(axis=1)) if len(points) > 1 else [0]
    for _ in range(ROUNDS):
        before = corners.copy()
        for i in order:
            others = [j for j in order if j != i and not np.isnan(corners[j, 0])]
            boxes = np.concatenate([corners[others], corners[others] + sizes[others]], axis=1)
            choice = points[i] + _around(*sizes[i])
            made = np.concatenate([choice - _GAP, choice + sizes[i] + _GAP], axis=1)
            cost = 20 * _covered(made, boxes) + 15 * _covered(made, markers)
            cost += 40 * _outside(made, frame)
            cost += 10 * _doubtful(points, i, choice, sizes[i])
            ends = _nearest(points[i], _boxes(choice, sizes[i]))
            cost += np.linalg.norm(ends - points[i], axis=1)
            # Lines take longest to look at: only those of places that are good otherwise.
            best = np.argsort(cost, kind="stable")[:_LOOKED_AT]
            lines = _lines(points, i, choice[best], sizes[i], points[others], boxes)
            corners[i] = choice[best[int(np.argmin(cost[best] + lines))]]
        if np.array_equal(before, corners):
            break
    return corners


def distinct_names(models: Sequence[str]) -> list[str]:
    """Of each model the short name, whole where two would have the same."""
    cut = [short(m) for m in models]
    return [
        name if cut.count(name) == 1 else model for model, name in zip(models, cut, strict=True)
    ]


def _around(width: float, height: float) -> Float[np.ndarray, "places 2"]:
    """Places of a name's lower left corner about its point, the nearest ones first."""
    gap = _MARKER + 2 * _GAP
    beside = np.arange(0, 136, 15) + gap
    up = np.arange(-12, 13) * 0.6 * height - height / 2
    across = np.linspace(-width, 0, 9)
    over = np.arange(0, 9) * 0.7 * height + gap
    grids = [
        np.meshgrid(beside, up),
        np.meshgrid(-beside - width, up),
        np.meshgrid(across, over),
        np.meshgrid(across, -over - height),
    ]
    return np.concatenate([np.column_stack([x.ravel(), y.ravel()]) for x, y in grids])


def _boxes(corners: np.ndarray, size: np.ndarray) -> Boxes:
    return np.concatenate([corners, corners + size], axis=1)


def _covered(made: Boxes, boxes: Boxes) -> Float[np.ndarray, " made"]:
    """Pixels of each box that the others cover, as the square root of the area: one covered
    wholly is no worse than two by half."""
    wide = np.minimum(made[:, None, 2], boxes[None, :, 2]) - np.maximum(
        made[:, None, 0], boxes[None, :, 0]
    )
    high = np.minimum(made[:, None, 3], boxes[None, :, 3]) - np.maximum(
        made[:, None, 1], boxes[None, :, 1]
    )
    return np.sqrt(wide.clip(0) * high.clip(0)).sum(axis=1)


def _outside(made: Boxes, frame: np.ndarray) -> Float[np.ndarray, " made"]:
    below = (frame[:2] - made[:, :2]).clip(0).sum(axis=1)
    return below + (made[:, 2:] - frame[2:]).clip(0).sum(axis=1)


def _nearest(point: np.ndarray, boxes: Boxes) -> np.ndarray:
    """The place on each box that is nearest to the point, or to its own point (boxes, 2)."""
    return np.clip(point, boxes[:, :2], boxes[:, 2:])


def _lines(
    points: np.ndarray,
    own: int,
    choice: np.ndarray,
    size: np.ndarray,
    named: np.ndarray,
    boxes: Boxes,
) -> Float[np.ndarray, " choices"]:
    """What the lines cost: each choice's own, over names, points and lines, and theirs over it.

    Args:
        named, boxes: the points whose names stand already, and those names.
    """
    ends = _nearest(points[own], _boxes(choice, size))
    far = np.linalg.norm(ends - points[own], axis=1) > _LEADER
    dots = _along(np.broadcast_to(points[own], ends.shape), ends)
    others = np.delete(points, own, axis=0)
    close = np.linalg.norm(dots[:, :, None] - others[None, None], axis=3) < _MARKER
    cost = far * 40.0 * close.any(axis=1).sum(axis=1)
    if not len(boxes):
        return cost
    theirs = _nearest(named, boxes)
    drawn = np.linalg.norm(theirs - named, axis=1) > _LEADER
    cost += far * 60 * _inside(dots, boxes).any(axis=1).sum(axis=1)
    over = _inside(_along(named, theirs)[drawn].reshape(1, -1, 2), _boxes(choice, size))
    cost += 60.0 * over[0].any(axis=0)
    crossed = _cross(points[own], ends, named[drawn], theirs[drawn])
    return cost + far * 30 * crossed.sum(axis=1)


def _along(start: np.ndarray, end: np.ndarray) -> Float[np.ndarray, "ways dots 2"]:
    """Dots on the way from each start to each end."""
    share = np.linspace(0, 1, 14)[None, :, None]
    return start[:, None] * (1 - share) + end[:, None] * share


def _inside(dots: np.ndarray, boxes: Boxes) -> np.ndarray:
    """Whether each dot (ways, dots) lies in each box (ways, dots, boxes)."""
    low, high = boxes[None, None, :, :2] - _GAP, boxes[None, None, :, 2:] + _GAP
    return np.asarray(((dots[:, :, None] > low) & (dots[:, :, None] < high)).all(axis=-1))


def _cross(
    start: np.ndarray, ends: np.ndarray, from_: np.ndarray, to: np.ndarray
) -> Bool[np.ndarray, "ends lines"]:
    """Whether the way from `start` to each end crosses each line."""

    def side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        u, v = b - a, c - a
        return np.sign(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])

    one, other = ends[:, None], start[None, None]
    apart = side(from_[None], to[None], one) != side(from_[None], to[None], other)
    return apart & (side(other, one, from_[None]) != side(other, one, to[None]))


def _doubtful(
    points: np.ndarray, own: int, choice: np.ndarray, size: np.ndarray
) -> Float[np.ndarray, " choices"]:
    """How far each choice without a line is from standing clearly at its own point, pixels."""
    low, high = choice[:, None], (choice + size)[:, None]
    far = np.linalg.norm(np.clip(points[None], low, high) - points[None], axis=2)
    others = np.delete(far, own, axis=1).min(axis=1, initial=np.inf)
    doubt = (far[:, own] + _NEARER - others).clip(0)
    return np.where(far[:, own] > _LEADER, 0, doubt)
