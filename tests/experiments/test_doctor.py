"""The doctor finds what is here, and says which command adds what is not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import faithscope.experiments.cli.doctor as doctor_module
from faithscope.experiments.cli.doctor import (
    BROKEN,
    EXTRAS,
    OK,
    OPTIONAL,
    check_model,
    doctor,
    report,
)
from faithscope.experiments.data.planted import plants


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path))
    return tmp_path


def test_every_missing_thing_comes_with_its_command(cache: Path) -> None:
    checks = {(check.area, check.name): check for check in report()}
    assert not [check for check in checks.values() if check.state == BROKEN]
    torch = checks["packages", "torch"]
    assert torch.finding.startswith("2.")
    assert "float32 1x" in checks["devices", "cpu"].finding
    assert {name for area, name in checks if area == "extras"} == set(EXTRAS)
    assert checks["extras", "planted"].state == OK
    for check in checks.values():
        if check.area == "extras" and check.state == OPTIONAL:
            assert f"[{check.name}]" in check.remedy
    absent = checks["models", "bundled:gemma3-270m"]
    assert (absent.state, absent.remedy) == (OPTIONAL, "faithscope fetch gemma3-270m")
    assert str(cache) in checks["cache", "folder"].finding


def test_extras_of_the_repository_are_not_offered_without_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_module, "ROOT", cache)
    # a checkout holds every planted model, a wheel the twins alone
    monkeypatch.setattr(plants, "__file__", str(cache / "plants.py"))
    extras = {check.name: check for check in report() if check.area == "extras"}
    assert set(extras) == set(EXTRAS) - {"docs", "dev"}
    assert extras["planted"].finding.endswith(f": {len(plants.PLANTS)} are not here")
    assert "[planted]" in extras["planted"].remedy


def test_every_extra_is_listed() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert set(EXTRAS) == set(project["project"]["optional-dependencies"])


def test_a_cache_that_cannot_be_used_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "file" / "cache"))
    assert doctor() == 3
    assert "set FAITHSCOPE_CACHE" in capsys.readouterr().out


def test_a_model_is_loaded_and_verified() -> None:
    lines = check_model("planted:hint")
    assert "3 layers, float32 on cpu" in lines[0]
    assert any("the packed forest equals plain transformers" in line for line in lines)
