"""Every registered study, and its runs that nothing disturbed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parent / "experiments"
for folder in ("engine", "studies/c2faith", "studies/slrc/detectors", "studies/rfeval"):
    sys.path.insert(0, str(EXPERIMENTS / folder))
sys.path.insert(0, str(HERE))

import toy  # noqa: E402
from cases import CASES, Case, Setting, asked, models, run_folder, serves  # noqa: E402
from fault_server import KEY, FaultServer  # noqa: E402
from processor_time import charged  # noqa: E402

from faithscope.experiments.cli import execute  # noqa: E402
from faithscope.experiments.config.study import register  # noqa: E402

register(toy.STUDY)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def case(study: str) -> Case:
    return CASES[study]


@pytest.fixture
def here(tmp_path: Path, tiny_models: dict[str, str]) -> Setting:
    """Setting of a run whose models are local."""
    return Setting(tmp_path, tiny_models)


@pytest.fixture(scope="session")
def undisturbed_of(
    tiny_models: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Callable[[str], Path]:
    done: dict[str, Path] = {}

    def run_of(study: str) -> Path:
        if study not in done:
            path = CASES[study].here(Setting(tmp_path_factory.mktemp(study), tiny_models))
            with charged(request.config, f"run of {study}"):
                assert execute(["run", str(path)]) == 0
            done[study] = run_folder(path)
        return done[study]

    return run_of


@pytest.fixture
def undisturbed(study: str, undisturbed_of: Callable[[str], Path]) -> Path:
    """The folder of a run with models here that nothing disturbed."""
    return undisturbed_of(study)


@pytest.fixture(scope="session")
def undisturbed_api_of(
    tiny_models: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Callable[[str], tuple[Path, Counter[str]]]:
    done: dict[str, tuple[Path, Counter[str]]] = {}

    def run_of(study: str) -> tuple[Path, Counter[str]]:
        if study not in done:
            with FaultServer() as server, charged(request.config, f"run of {study} over an API"):
                server.default = [serves(CASES[study])]
                folder = tmp_path_factory.mktemp(f"{study}_api")
                path = CASES[study].over_api(Setting(folder, tiny_models, server.url))
                assert execute(["run", str(path)]) == 0
                done[study] = run_folder(path), asked(server)
        return done[study]

    return run_of


@pytest.fixture
def undisturbed_api(
    study: str, undisturbed_api_of: Callable[[str], tuple[Path, Counter[str]]]
) -> tuple[Path, Counter[str]]:
    """The folder of a run with models behind the API that nothing disturbed; what it asked."""
    return undisturbed_api_of(study)


@pytest.fixture
def server(server: FaultServer, case: Case) -> FaultServer:
    """The API, with nothing wrong."""
    server.default = [serves(case)]
    return server


@pytest.fixture
def over_api(tmp_path: Path, tiny_models: dict[str, str], server: FaultServer) -> Setting:
    """Setting of a run whose models are behind the API of `server`."""
    return Setting(tmp_path, tiny_models, server.url)
