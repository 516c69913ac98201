"""YAML that no config is: refused by name, at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithscope.experiments.config.yaml_source import read_tree
from faithscope.interp.errors import UserError

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))


TEXTS = [
    ("a: " + "[" * 5_000 + "]" * 5_000, "nested too deeply"),
    (BOMB, "more than 100,000 values"),
    ("a: &a\n  b: *a\n", "recursive"),
    ("a: \x1b", "not YAML"),
]


@pytest.mark.parametrize(("text", "why"), TEXTS)
def test_a_file_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"c\.yaml: .*{why}"):
        read_tree(path, [])


OVERRIDES = ["\x1b", "[" * 5_000 + "]" * 5_000, "&a [*a]"]


@pytest.mark.parametrize("value", OVERRIDES)
def test_an_override_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("a: 1\n")
    with pytest.raises(UserError, match=r"--set a=.*is not YAML: "):
        read_tree(path, [f"a={value}"])
