"""Whatever is wrong with what a run is given: one line that helps, and nothing lost.

Exit code 2 where the run cannot be done as asked; 3 where single items cannot be, and all
others were.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import broken_models as broken
import pytest
import yaml
from bad_input import ITEMS, asking, refused, write
from hostile_inputs import CONFIGS, MODELS

from faithscope.experiments.engine.store import read_records


@pytest.mark.parametrize(("text", "expected"), CONFIGS)
def test_a_config_that_cannot_be_run(tmp_path: Path, text: str, expected: list[str]) -> None:
    whole = yaml.safe_load(Path(write(tmp_path)).read_text())
    if text.startswith("name:"):
        (tmp_path / "x.yaml").write_text(text)
    else:
        (tmp_path / "x.yaml").write_text(yaml.safe_dump(whole | yaml.safe_load(text)))
    line = refused("run", tmp_path / "x.yaml")
    assert all(part in line for part in ["x.yaml", *expected]), line
    assert not (tmp_path / "t").exists()


# --- the model


@pytest.mark.parametrize(("make", "expected"), MODELS)
@pytest.mark.in_time(3)
def test_a_model_that_cannot_be_read(
    tmp_path: Path, make: Callable[[Path], str], expected: str
) -> None:
    name = make(tmp_path / "model")
    path = asking(tmp_path, Path(name), ["What is 1 + 1?"])
    line = refused("run", path)
    assert name in line
    assert expected in line
    assert len(line) < 800


def test_a_packaged_model_with_a_wrong_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "cache/packaged/qwen2.5-coder-0.5b.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF, but another one")
    path = write(tmp_path, model={"name": "bundled:qwen2.5-coder-0.5b"}, tasks=["single_cue"])
    line = refused("run", path)
    assert f"{file} is damaged: its sha256 is " in line
    assert "run: faithscope fetch qwen2.5-coder-0.5b" in line


def test_thinking_asked_of_a_model_without_a_chat_template(tmp_path: Path) -> None:
    """A base model reads the plain prompt; only what a template alone can give is refused."""
    model = broken.random_llama(tmp_path / "model")
    path = asking(tmp_path, model, ["What is 1 + 1?"])
    line = refused("run", path, "--set", "model.thinking=true")
    assert "thinking=True, but this model's template marks no reasoning" in line
    assert "leave thinking unset" in line


@pytest.mark.slow
@pytest.mark.takes("a run with its outputs")
def test_a_model_that_cannot_be_used_does_not_cost_the_others(
    tmp_path: Path, finished: dict[str, bytes]
) -> None:
    names = [broken.truncated(tmp_path / "model"), "planted:faithful"]
    path = write(tmp_path, model={"name": names}, tasks=["planted", "single_cue"])
    assert names[0] in refused("run", path)
    assert len(read_records(tmp_path / "t", "slrc")) == ITEMS * 2
    assert (tmp_path / "t/report.html").is_file()
