"""What several files of tests hold broken runs against."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import copied, outputs, write

from faithscope.experiments.cli import execute


@pytest.fixture(scope="session")
def finished_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that holds the run folder of an undisturbed run."""
    folder = tmp_path_factory.mktemp("finished")
    assert execute(["run", write(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def finished(finished_folder: Path) -> dict[str, bytes]:
    """The outputs of an undisturbed run."""
    return outputs(finished_folder / "t")


@pytest.fixture
def finished_copy(finished_folder: Path, tmp_path: Path) -> str:
    """The config of a finished run in the test's own folder."""
    return copied(finished_folder, tmp_path)
