"""Data sets of the Hugging Face hub, read from the hub or from a copy of their files."""

from __future__ import annotations

from dataclasses import dataclass

from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.rows import SourceRow, begin_file
from faithscope.experiments.data.tasks.task import LoadSettings
from faithscope.interp import hub
from faithscope.interp.errors import UserError

PARQUET = "refs/convert/parquet"
"""Branch to which the hub converts a repository's tables; those of a repository of scripts, which
`datasets` 4 and later do not run, can only be read there."""


@dataclass(frozen=True)
class HubData:
    """A data set of the hub that a task's rows come from."""

    task: str
    repository: str
    split: str
    """The split that is read if no other is asked for."""
    config: str | None = None
    revision: str | None = None
    """Branch of the repository; None is its main one. `PARQUET` where that holds a script."""

    @property
    def summary(self) -> str:
        """Description in one line for `faithscope list tasks`."""
        config = f", {self.config}" if self.config else ""
        return f"{self.repository}{config}, {self.split}; or data.path"

    def rows(self, settings: LoadSettings) -> list[SourceRow]:
        """The rows in the data's order, cut off at the limit.

        They are read from `settings.path` if that is set: a file, or a folder laid out like the
        hub's.

        Raises:
            UserError: the rows cannot be read; the message names repository, config, split and the
                remedy.
        """
        split = settings.split or self.split
        if settings.path is not None:
            return read_rows(settings.path, split, self.config)[: settings.limit]
        return self._from_hub(split)[: settings.limit]

    def _from_hub(self, split: str) -> list[SourceRow]:
        remedy = f"give a local copy: --set data.path.{self.task}=FILE_OR_FOLDER"
        try:
            from datasets import load_dataset  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise UserError(
                f"task {self.task!r} reads {self.repository} through the datasets package: "
                f"pip install 'faithscope[data]', or {remedy}"
            ) from error
        problem = hub.unreachable()
        try:
            rows = list(
                load_dataset(self.repository, self.config, split=split, revision=self.revision)
            )
        except MemoryError:
            raise
        except Exception as error:  # whatever the network, the hub or the files come up with
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            config = f"config {self.config}, " if self.config else ""
            raise UserError(
                f"task {self.task!r}: could not load {self.repository} ({config}split {split}) "
                f"from the hub: {problem or reason}; {remedy}"
            ) from error
        where = f"{self.repository}, {split}"
        read = begin_file(where)
        return [
            read.row(f"{split}-{i}", dict(r), f"{where}, row {i + 1}") for i, r in enumerate(rows)
        ]
