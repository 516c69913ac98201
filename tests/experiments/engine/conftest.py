"""What several files of tests hold broken runs against."""

from __future__ import annotations

import pytest
from bad_input import outputs, write

from faithscope.experiments.cli import execute


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The outputs of a run that nothing was wrong with."""
    folder = tmp_path_factory.mktemp("finished")
    assert execute(["run", write(folder)]) == 0
    return outputs(folder / "t")
