"""YAML that no config is: refused by name, at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_inputs import OVERRIDES, TEXTS

from faithscope.experiments.config.yaml_source import read_tree
from faithscope.interp.errors import UserError


@pytest.mark.parametrize(("text", "why"), TEXTS)
def test_a_file_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"c\.yaml: .*{why}"):
        read_tree(path, [])


@pytest.mark.parametrize("value", OVERRIDES)
def test_an_override_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("a: 1\n")
    with pytest.raises(UserError, match=r"--set a=.*is not YAML: "):
        read_tree(path, [f"a={value}"])
