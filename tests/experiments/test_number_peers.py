"""Our reading of answers against math-verify's, over forms that are put together by rule."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
import sympy
from math_verify import parse, verify

from faithscope.experiments.data.answers import last_number
from faithscope.experiments.data.numbers import canonical_form, canonical_number

INTEGERS = (0, 1, 3, 7, 12, 18, 45, 99, 100, 365, 500, 1234, 9801, 70000)
RATIOS = (
    (1, 2),
    (3, 4),
    (1, 3),
    (2, 5),
    (5, 6),
    (7, 12),
    (9, 8),
    (22, 7),
    (35, 100),
    (3, 8),
    (11, 6),
)
PROPER = tuple(r for r in RATIOS if r[0] < r[1])
SIGNS = ("", "-")
UNITS = ("cm", "dollars", "hours")
FRACTIONS = ("\\frac{{{0}}}{{{1}}}", "\\dfrac{{{0}}}{{{1}}}", "\\tfrac{{{0}}}{{{1}}}", "{0}/{1}")


def forms() -> dict[str, list[tuple[str, Fraction | None]]]:
    """Class -> (LaTeX, its value; None where it is no rational number)."""
    ratios = [(f.format(a, b), Fraction(a, b)) for f in FRACTIONS for a, b in RATIOS]
    signed = {"": 1, "-": -1}
    return {
        "integers": [(f"{s}{n}", Fraction(signed[s] * n)) for s in SIGNS for n in INTEGERS],
        "decimals": [
            (f"{s}{n}.{d}", Fraction(f"{s}{n}.{d}"))
            for s, n, d in itertools.product(SIGNS, INTEGERS, ("5", "25", "125", "0", "333"))
        ],
        "thousands": [
            (f"{s}{n:,}".replace(",", mark), Fraction(signed[s] * n))
            for s, mark in itertools.product(SIGNS, (",", "{,}", ",\\!"))
            for n in (1234, 9801, 70000, 250000, 1000000, 12345678)
        ],
        "fractions": [(f"{s}{text}", signed[s] * v) for s in SIGNS for text, v in ratios],
        "signed numerators": [
            (f"\\frac{{{s}{a}}}{{{b}}}", signed[s] * Fraction(a, b))
            for s in SIGNS
            for a, b in RATIOS
        ],
        "short fractions": [("\\frac12", Fraction(1, 2)), ("\\frac34", Fraction(3, 4))],
        "mixed": [
            (f"{s}{n}{f.format(a, b)}", signed[s] * (n + Fraction(a, b)))
            for s, n, f in itertools.product(SIGNS, (1, 2, 5, 17), FRACTIONS[:2])
            for a, b in PROPER
        ],
        "powers": [
            (f"{s}{a}^{e}", signed[s] * Fraction(a) ** int(e.strip("{}")))
            for s, a, e in itertools.product(SIGNS, (2, 3, 10), ("2", "3", "{2}", "{10}", "{-2}"))
        ],
        "powers of ten": [
            (f"{m} {times} 10^{{{e}}}", Fraction(m) * Fraction(10) ** e)
            for m, times, e in itertools.product(
                ("1.5", "3", "2.25"), ("\\times", "\\cdot"), (2, 3, 6, -2)
            )
        ],
        "units": [
            (f"{n}{gap}\\text{{{blank}{unit}}}", Fraction(n))
            for n, gap, blank, unit in itertools.product(
                (3, 12, 1234), ("", "\\,", " "), ("", " "), UNITS
            )
        ],
        "powers of units": [
            (f"{n}\\text{{ {unit}}}^{e}", Fraction(n))
            for n, unit, e in itertools.product((3, 12, 1234), ("cm", "m", "ft"), ("2", "{2}", "3"))
        ],
        "tied units": [(f"{n}~\\text{{{u}}}", Fraction(n)) for n in (3, 12, 1234) for u in UNITS],
        "fractions of units": [
            (f"{s}\\frac{{{a}}}{{{b}}}{gap}\\text{{ {unit}}}", signed[s] * Fraction(a, b))
            for s, gap, unit in itertools.product(SIGNS, ("", "\\,"), UNITS)
            for a, b in PROPER
        ],
        "equations": [
            (f"{x} = {s}{text}", signed[s] * v)
            for x, s in itertools.product(("x", "A", "x_1", "\\angle A"), SIGNS)
            for text, v in [("12", Fraction(12)), ("0.25", Fraction(1, 4)), *ratios[:4]]
        ],
        "mixed in plain text": [
            (f"{n} {a}/{b}", n + Fraction(a, b)) for n in (1, 2, 17) for a, b in PROPER
        ],
        "percent": [
            (f"{n}{p}", Fraction(n)) for n in (5, 12.5, 25, 100) for p in ("\\%", "%", " \\%")
        ],
        "currency": [(f"\\${n}", Fraction(n)) for n in INTEGERS],
        "degrees": [(f"{n}^{c}", Fraction(n)) for n in (30, 45) for c in ("\\circ", "{\\circ}")],
        "spacing": [
            (text.format(n), Fraction(n))
            for n in INTEGERS
            for text in (
                "\\text{{{0}}}",
                "\\mathbf{{{0}}}",
                "{{{0}}}",
                " {0} ",
                "\\,{0}\\,",
                "x = {0}",
            )
        ],
        "square roots of squares": [(f"\\sqrt{{{n * n}}}", Fraction(n)) for n in (2, 3, 12)],
        "roots": [
            (f"{s}{n}\\sqrt{{{r}}}", None)
            for s in SIGNS
            for n in ("", 2, 5, 12)
            for r in (2, 3, 7, 15)
        ],
        "roots in fractions": [
            (f"\\frac{{{a}}}{{{b}}}", None)
            for a, b in (("\\sqrt{2}", 2), ("\\sqrt{3}", 3), ("1", "\\sqrt{5}"), ("2\\sqrt{7}", 9))
        ],
        "pi": [
            (text.format(n), None)
            for n in (2, 3, 7, 12)
            for text in ("{0}\\pi", "\\frac{{\\pi}}{{{0}}}", "\\frac{{{0}\\pi}}{{5}}", "{0} + \\pi")
        ],
        "variables": [
            (text.format(n), None) for n in (2, 5) for text in ("{0}x", "x+{0}", "x^{0}", "{0}ab")
        ],
        "several": [
            (text.format(n), None)
            for n in (2, 5)
            for text in ("({0}, 7)", "{0}, 7", "\\{{{0}, 7\\}}", "[{0}, 7)", "{0} \\text{{ or }} 7")
        ],
    }


CLASSES = forms()
DISAGREE = {
    "mixed in plain text": (
        24,
        "math-verify has no mixed numbers without `\\frac`: `1 1/2` is 1 to it",
    ),
    "percent": (3, "math-verify does not find `12.5%` equal to 12.5, as it does whole percents"),
    "variables": (2, "math-verify takes `2ab` for 2 and a unit"),
}
"""Classes of which so many forms are read differently, and why; all others are read alike."""


def theirs(text: str, value: Fraction | None) -> bool:
    """Whether math-verify reads a form as its value, or as no rational number."""
    parsed = parse(f"${text}$")
    if value is None:
        return not any(isinstance(x, sympy.Basic) and x.is_rational for x in parsed)
    return verify([sympy.Rational(value.numerator, value.denominator)], parsed)


def test_there_are_about_a_thousand_forms() -> None:
    assert 900 <= sum(map(len, CLASSES.values())) <= 1100


@pytest.mark.parametrize("name", CLASSES)
def test_every_form_is_read_whole(name: str) -> None:
    for text, value in CLASSES[name]:
        expected = None if value is None else canonical_form(value)
        assert canonical_number(text) == expected, text
        assert last_number(f"It has 9 parts.\nThe answer is $\\boxed{{{text}}}$.") == expected, text


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.in_time(8)
def test_math_verify_reads_the_same(name: str) -> None:
    different = [text for text, value in CLASSES[name] if not theirs(text, value)]
    assert len(different) == DISAGREE.get(name, (0, ""))[0], different
