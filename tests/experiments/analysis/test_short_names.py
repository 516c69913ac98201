"""Names in figures: short, and no two alike."""

from __future__ import annotations

from faithscope.experiments.analysis.wording import short_names


def test_names_stay_apart():
    names = ["a/gpt", "b/gpt", "x/" + "n" * 60 + "-small", "x/" + "n" * 60 + "-large"]
    said = short_names(names)
    assert list(said.values())[:2] == ["a/gpt", "b/gpt"]
    assert len(set(said.values())) == 4
    assert all(len(n) <= 34 for n in said.values())
    # alike at both ends: nothing is cut
    alike = ["y" * 40 + "1" + "z" * 40, "y" * 40 + "2" + "z" * 40]
    assert short_names(alike) == dict(zip(alike, alike, strict=True))
    assert "\x1b" not in short_names(["evil\x1b[31m"])["evil\x1b[31m"]
