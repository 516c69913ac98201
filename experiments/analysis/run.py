"""A run folder, opened: what its study makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine.folder import existing_run, stored_config


def load_run(path: str | Path) -> Any:
    """Open a run folder: a `Run` of traces, a `C2Run` of C2-Faith, an `RfRun` of RFEval.

        faithscope.load_run("runs/quickstart").items
        faithscope.load_run("runs/c2faith").judgements
        faithscope.load_run("runs/rfeval").pairs

    Raises:
        UserError: `path` is none, or its config names a benchmark that there is not.
    """
    folder = existing_run(path)
    study = study_of(stored_config(folder))
    return getattr(study.part("frames"), study.run)(folder)
