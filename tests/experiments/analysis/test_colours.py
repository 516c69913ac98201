"""Colours have one home, readers can tell them apart, and text stands out on them."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import CSS4_COLORS, to_hex, to_rgb

from faithscope.experiments.analysis import colours as c

HERE = Path(__file__).parents[3]
HOME = "experiments/analysis/colours.py"
EXCEPTIONS = {
    "experiments/analysis/assets/uplot.css": "a library's own file",
    "experiments/analysis/assets/uplot.js": "a library's own file",
    "notebooks/05_compare_measures.py": "a reader's own drawing with plain matplotlib",
    "notebooks/12_cut_probe_steer.py": "a reader's own drawing with plain matplotlib",
}
HEX = re.compile(r"(?<![&\w])#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\b(?![-\w])", re.I)
FUNCTION = re.compile(r"\b(?:rgba?|hsla?|oklch|oklab|lab|lch)\(")
NAMED = re.compile(rf"(?:[:,( ]|^)({'|'.join(CSS4_COLORS)})(?=[\s;,)\"'%]|$)", re.I)
STYLED = re.compile(
    r"(?:color|background(?:-color)?|fill|stroke|border[\w-]*|outline|shadow|--[\w-]+)\s*[:=]([^;}]*)"
)
KEYS = re.compile(r"^(?:.*colou?rs?|[cemf]*c|mfc|mec|missing|background|fill|stroke)$")
CYCLE = re.compile(r"^(?:C\d|tab:\w+|0?\.\d+|1\.0)$")


def in_style(text: str) -> Iterator[str]:
    """Colours that a style sheet, a script or a template names."""
    yield from (found[0] for form in (HEX, FUNCTION) for found in form.finditer(text))
    for style in STYLED.finditer(text):
        yield from (name[1] for name in NAMED.finditer(style[1]))


def is_colour(node: ast.AST) -> bool:
    """Whether a value in the place of a colour is one."""
    if isinstance(node, ast.JoinedStr):
        first = node.values[0]
        return isinstance(first, ast.Constant) and first.value == "C"
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return node.value.lower() in CSS4_COLORS or bool(CYCLE.match(node.value))


def in_python(text: str) -> Iterator[str]:
    """Colours and colour maps that a module names, in its code and in styles that it holds."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if CYCLE.match(node.value) and not node.value[-1:].isdigit():
                yield node.value
            elif HEX.fullmatch(node.value) or "{" in node.value or "background" in node.value:
                yield from in_style(node.value)
        pairs: list[tuple[object, ast.expr]] = []
        if isinstance(node, ast.Call):
            pairs = [(k.arg, k.value) for k in node.keywords]
            if isinstance(node.func, ast.Name) and node.func.id == "Style" and node.args:
                pairs.append(("color", node.args[0]))
        elif isinstance(node, ast.Dict):
            named = zip(node.keys, node.values, strict=True)
            pairs = [(k.value, v) for k, v in named if isinstance(k, ast.Constant)]
        elif isinstance(node, ast.Subscript) and "colormaps" in ast.unparse(node.value):
            pairs = [("cmap", node.slice)]
        for key, value in pairs:
            is_map = key == "cmap" and isinstance(value, ast.Constant)
            if isinstance(key, str) and (is_map or (KEYS.match(key) and is_colour(value))):
                yield ast.unparse(value)


def named_in(name: str, text: str) -> list[str]:
    return list((in_python if name.endswith(".py") else in_style)(text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "ax.plot(x, color='#0072B2')"),
        ("a.py", "BLUE = '#07b'"),
        ("a.py", "Style('black', 'o', '')"),
        ("a.py", "Style(f'C{i}', '', '')"),
        ("a.py", "look = {'color': 'white'}"),
        ("a.py", "ax.plot(x, c='0.75')"),
        ("a.py", "ax.plot(x, mfc='tab:blue')"),
        ("a.py", "ax.imshow(x, cmap='RdBu')"),
        ("a.py", "look = {'cmap': 'viridis'}"),
        ("a.py", "mpl.colormaps['cividis']"),
        ("a.py", "STYLE = 'td { border: 1px solid #8888; }'"),
        ("a.js", "const low = [`rgb(${r},0,0)`];"),
        ("a.js", 'const COLOURS = ["#d55e00"];'),
        ("a.css", "p { color: red; }"),
        ("a.css", "p { border: 1px solid Black; }"),
        ("a.html.jinja", '<p style="background: hsl(10 20% 30%)">'),
    ],
)
def test_a_colour_is_seen_wherever_a_file_may_name_it(name: str, text: str) -> None:
    assert named_in(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "OPTIONS = ['red', 'green', 'blue', 'grey']  # answers of a task"),
        ("a.py", "ax.plot(x, color=BLUE, label='red')"),
        ("a.py", "counts = {'C1': 1}"),
        ("a.js", 'document.querySelector("#one")'),
        ("a.css", "p { color: var(--ink); border: 0; white-space: pre; }"),
        ("a.html.jinja", '<a href="#main">&#8203;</a>'),
    ],
)
def test_a_word_that_is_no_colour_is_left_alone(name: str, text: str) -> None:
    assert not named_in(name, text)


def test_no_other_file_names_a_colour_or_a_colour_map() -> None:
    asked = ["git", "ls-files", "experiments", "notebooks/*.py", "docs/_static", "docs/_templates"]
    listed = subprocess.run(asked, cwd=HERE, capture_output=True, text=True, check=True).stdout
    endings = (".py", ".css", ".js", ".jinja", ".html")
    files = {name for name in listed.split("\n") if name.endswith(endings)} - {HOME}
    assert EXCEPTIONS.keys() <= files
    found = {}
    for name in sorted(files - EXCEPTIONS.keys()):
        text = (HERE / name).read_text("utf-8")
        if not name.endswith(".py") or re.search(r"color|colour|cmap|Style|#[0-9a-fA-F]{3}", text):
            found[name] = named_in(name, text)
    assert not {name: of for name, of in found.items() if of}


def linear(colour: str) -> np.ndarray:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(*pair: str) -> float:
    """The ratio of WCAG 2.2, from 1 to 21."""
    low, high = sorted(float(linear(x) @ [0.2126, 0.7152, 0.0722]) + 0.05 for x in pair)
    return high / low


SEEN_BY = {
    "most": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
"""Colours as such readers see them, in linear sRGB (Machado, Oliveira and Fernandes 2009)."""
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def lab(colour: str, reader: str) -> tuple[float, float, float]:
    seen = np.clip(np.array(SEEN_BY[reader]) @ linear(colour), 0, 1)
    t = TO_XYZ @ seen / [0.95047, 1, 1.08883]
    x, y, z = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def delta_e(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """CIEDE2000, by Sharma, Wu and Dalal 2005."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    c7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    a1, a2 = (a * (1.5 - 0.5 * np.sqrt(c7 / (c7 + 25**7))) for a in (a1, a2))
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    across = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2)
    light, c_, h = (l1 + l2) / 2, (c1 + c2) / 2, h1 + turn / 2 if c1 * c2 else h1 + h2
    weights = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.2, 4, -63))
    t = 1 + sum(w * np.cos(np.radians(k * h + add)) for w, k, add in weights)
    s_l = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    d_l, d_c, d_h = (l2 - l1) / s_l, (c2 - c1) / (1 + 0.045 * c_), across / (1 + 0.015 * c_ * t)
    swing = 60 * np.exp(-(((h % 360 - 275) / 25) ** 2))
    r = -2 * np.sqrt(c_**7 / (c_**7 + 25**7)) * np.sin(np.radians(swing))
    return float(np.sqrt(d_l**2 + d_c**2 + d_h**2 + r * d_c * d_h))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_distance_is_the_published_one(one, other, expected) -> None:
    assert delta_e(one, other) == pytest.approx(expected, abs=1e-4)


def shades(dark: bool) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (\S+);", c.properties(dark)))


PLOTTED = [f"plot-{i}" for i in range(1, len(c.SERIES) + 1)]
APART = {
    "series of a figure": [*PLOTTED, f"plot-{len(PLOTTED) + 1}"],
    "steps of a chain": ["used-ground", "some-ground", "ignored-ground"],
    "credits of steps": ["used-ground", "ignored-ground", "against-ground"],
    "cells of a map of correlations": ["positive-ground", "card", "negative-ground"],
    "what passes and what fails": ["good-ground", "bad-ground"],
}
"""Colours that one page sets against each other."""
LEAST = 14.5
"""In CIEDE2000; a just noticeable difference is about 1."""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("together", APART)
def test_every_reader_tells_colours_apart_that_are_set_against_each_other(together, dark) -> None:
    of = shades(dark)
    near = {}
    for reader in SEEN_BY:
        for one, other in combinations(APART[together], 2):
            if (d := delta_e(lab(of[one], reader), lab(of[other], reader))) < LEAST:
                near[one, other, reader] = round(d, 1)
    assert not near


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_on_its_ground(dark: bool) -> None:
    of = shades(dark)
    grounds = [name for name in of if name.endswith("ground") or name == "card"]
    pairs = [("ink", ground) for ground in grounds]
    pairs += [(text, g) for text in ("quiet", "accent", "good", "bad") for g in ("ground", "card")]
    pairs += [("used", "used-ground"), ("used", "card"), ("good", "good-ground")]
    pairs += [("bad", "bad-ground"), ("quiet", "good-ground"), ("card", "accent")]
    low = {pair: round(r, 2) for pair in pairs if (r := contrast(*(of[p] for p in pair))) < 4.5}
    assert not low


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_series_stand_out_on_the_card_and_numbers_on_their_bars(dark: bool) -> None:
    of = shades(dark)
    assert min(contrast(of[name], of["card"]) for name in PLOTTED) >= 2.98
    for name, colour in zip(PLOTTED, c.SERIES, strict=True):
        ink = of["card"] if (ink := c.ink_on(colour)) == c.PAPER else ink
        assert contrast(ink, of[name]) >= 4.5, name


@pytest.mark.parametrize("stops", [c.SIGN, c.USE, c.AMOUNT])
def test_numbers_stand_out_on_every_cell_of_a_map(stops) -> None:
    cells = [to_hex(x) for x in c.colour_map(stops)(np.linspace(0, 1, 41)).tolist()]
    assert min(contrast(c.ink_on(x), x) for x in cells) >= 4.5


def test_families_and_verdicts_have_colours_and_markers_of_their_own() -> None:
    assert len({s.colour for s in c.FAMILY.values()}) == len(c.FAMILY)
    assert len({s.marker for s in c.FAMILY.values()}) == len(c.FAMILY)
    assert c.FAITHFUL != c.UNFAITHFUL
    known = {*c.SERIES, c.PALE, c.QUIET, c.PAPER, c.INK}
    assert known == c.in_page().keys(), "a figure's colour that no page has"
