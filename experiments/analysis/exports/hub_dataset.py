"""A run as datasets of Hugging Face `datasets`, and as a folder in the layout of the hub: a card,
and one Parquet file per configuration.

`load_dataset(FOLDER, "chains")` opens the folder, and `push` uploads it as it is, so that what
was looked at on the disk is what others get. The file of the configuration `chains` is also a file
of given chains (`traces.path`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from faithscope.experiments.analysis.comparison.scores import ITEMS, STEPS, Scores
from faithscope.experiments.analysis.exports.measured_chains import (
    MeasuredChain,
    measured_chains,
)
from faithscope.experiments.analysis.run import LABEL, Run
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine.environment import version
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.outputs import EXPORTS
from faithscope.experiments.engine.tallies.tally import tally_of_run
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.interp.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from datasets import Dataset

CHAINS = "chains"
CARD = "README.md"
_INSTALL = "a dataset is written by the package datasets: pip install 'faithscope[data]'"
_COLUMNS = {
    "id": "Identifier of the chain; `uuid` in logs of Inspect is `chain_id`.",
    "chain_id": "Digest of place and text: the same in every run in which the text stands there.",
    "dataset": "Data set of the question.",
    "task": "Task of the question.",
    "model": "The model that wrote the chain; empty if nobody knows.",
    "question": "The question alone.",
    "options": "Options of a choice, or the labels that an answer can be.",
    "kind": "Kind of the answer: choice, label or number; empty if nobody knows.",
    "gold": "The right answer.",
    "prompt": "The user message that the chain replies to.",
    "reasoning": "The chain of thought, exactly as it was written.",
    "steps": "The steps of the chain with their labels and scores, measure by measure.",
    "answer": "The answer that the chain states, as it was parsed.",
    "finish": "`length` if a token limit cut the chain off.",
    "tail": "Text after the reasoning.",
    "excluded": "Why the chain was not measured; empty for the others.",
    "scores": "Measure -> score.",
    f"{LABEL}NAME": "A label of the chain.",
}


def to_dataset(run: Run, name: str = CHAINS) -> Dataset:
    """One configuration of a run's data as a `datasets.Dataset`.

    Args:
        name: `chains` (a row per chain, with its steps, labels and scores), `scores` (a row per
            chain and measure), `step_scores` (a row per chain, measure and step), or the name of a
            table of the run.

    Raises:
        UserError: the package `datasets` is not installed, or the run has no data of that name.
    """
    known = configurations(run)
    if name not in known:
        guess = did_you_mean(name, known) or f"; it has {', '.join(known)}"
        raise UserError(f"{run.path}: has no data {name!r}{guess}")
    return _dataset(known[name])


def _dataset(frame: pd.DataFrame) -> Dataset:
    try:
        from datasets import Dataset
    except ImportError as error:
        raise UserError(_INSTALL) from error
    columns = frame.to_dict("list")
    return Dataset.from_dict({str(n): _of_one_type(values) for n, values in columns.items()})


def configurations(run: Run) -> dict[str, pd.DataFrame]:
    """Name -> frame of everything that is exported of a run: chains, scores, tables.

    Raises:
        UserError: the run holds no chains.
    """
    report = study_of(stored_config(run.path)).report()
    frames = {CHAINS: pd.DataFrame(_rows(measured_chains(run)))}
    if report.scores:
        scores: Scores = run.once(report.scores)
        frames |= {"scores": scores.items, "step_scores": scores.steps}
    frames |= {name: table for name, table in run.tables.items() if name not in frames}
    return {name: frame for name, frame in frames.items() if len(frame)}


def write_dataset(run: Run, folder: Path) -> list[Path]:
    """Write the card and a Parquet file per configuration; returns the paths.

    Raises:
        UserError: the run holds no chains, or the folder holds files that no export wrote.
    """
    frames = configurations(run)
    _check_folder(folder, {CARD, *(f"{name}.parquet" for name in frames)})
    try:
        from pyarrow.parquet import write_table
    except ImportError as error:
        raise UserError(_INSTALL) from error
    make_folder(folder)
    paths = [folder / f"{name}.parquet" for name in frames]
    sizes = {}
    for frame, path in zip(frames.values(), paths, strict=True):
        dataset = _dataset(frame)
        write_table(dataset.data.table, path)
        sizes[path.stem] = dataset.num_rows
    write_atomically(folder / CARD, _card(run, sizes))
    return [folder / CARD, *paths]


def push(run: Run, repo: str, *, private: bool = True, folder: Path | None = None) -> str:
    """Upload a run as a dataset of the Hugging Face hub; returns the address of its page.

    Args:
        repo: `ORGANISATION/NAME` of the dataset, which is made if there is none.
        private: whether a new dataset is private. An existing one keeps its visibility.
        folder: where the dataset is written first; by default `exports/dataset` in the run folder.

    Raises:
        UserError: the hub refuses the upload, or the run cannot be exported.
    """
    from huggingface_hub import HfApi

    folder = folder or run.path / EXPORTS / "dataset"
    written = write_dataset(run, folder)
    try:
        api = HfApi()
        api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=folder,
            allow_patterns=[path.name for path in written],
            commit_message=f"Run {run.path.resolve().name} of faithscope",
        )
        return f"{api.endpoint}/datasets/{repo}"
    except Exception as error:  # the hub's own errors, and those of whichever client it uses
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"{repo}: cannot be written on the hub ({reason}); the dataset lies in {folder}; log "
            "in with `hf auth login`, and check the name"
        ) from error


def _check_folder(folder: Path, own: set[str]) -> None:
    if not folder.is_dir() or (folder / CARD).is_file():
        return
    if strange := sorted({path.name for path in folder.glob("[!.]*")} - own):
        raise UserError(
            f"{folder}: holds {strange[0]!r}, which no export wrote; give another folder"
        )


def _rows(measured: Sequence[MeasuredChain]) -> list[dict[str, Any]]:
    """Rows of the configuration `chains`; what no chain has is left out, since Parquet takes no
    objects without fields."""
    steps = [step for of in measured for step in of.steps]
    fields = [name for name in ("labels", "scores") if any(getattr(s, name) for s in steps)]
    rows = [_row(of, fields) for of in measured]
    scored = any(of.values for of in measured)
    return [{name: x for name, x in row.items() if scored or name != "scores"} for row in rows]


def _row(measured: MeasuredChain, fields: Sequence[str]) -> dict[str, Any]:
    chain, place = measured.chain, measured.place
    return {
        "id": chain.id,
        "chain_id": measured.id,
        **{name: place[name] for name in ("dataset", "task", "model")},
        "question": chain.question,
        "options": None if chain.options is None else list(chain.options),
        "kind": chain.kind,
        "gold": chain.gold,
        "prompt": measured.message,
        "reasoning": chain.reasoning,
        "steps": [
            {"text": step.text, **{name: dict(getattr(step, name)) for name in fields}}
            for step in measured.steps
            if step.counted
        ],
        "answer": chain.answer,
        "finish": "length" if chain.cut else None,
        "tail": measured.tail,
        "excluded": measured.excluded,
        "scores": measured.values,
        **{f"{LABEL}{name}": _plain(value) for name, value in chain.labels.items()},
    }


def _plain(value: Any) -> Any:
    """A label as a cell of a table: objects and lists as JSON."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else json.dumps(value, ensure_ascii=False)


def _of_one_type(values: Sequence[Any]) -> list[Any]:
    """The values of a column as Parquet takes them: None for a value that is missing, and JSON
    where a column holds both texts and other values."""
    known = [None if _is_missing(value) else value for value in values]
    kinds = {type(value) for value in known if value is not None}
    if str not in kinds or kinds == {str}:
        return known
    known = [None if value == "" else value for value in known]
    if not any(isinstance(value, str) for value in known):
        return known
    return [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in known
    ]


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _card(run: Run, sizes: Mapping[str, int]) -> str:
    """The dataset's card: what was measured of what by what, and the meaning of each column."""
    return "\n".join([*_head(sizes), "", *_body(run, sizes), ""])


def _head(sizes: Mapping[str, int]) -> Iterator[str]:
    """Lines of the YAML block that tells the hub which file is which configuration."""
    yield from ("---", "tags:", "- faithscope", "- chain-of-thought", "- interpretability")
    yield "configs:"
    for name in sizes:
        yield f"- config_name: {name}"
        yield f"  data_files: {name}.parquet"
        if name == CHAINS:
            yield "  default: true"
    yield "---"


def _body(run: Run, sizes: Mapping[str, int]) -> Iterator[str]:
    study = study_of(stored_config(run.path)).name
    name = run.path.resolve().name
    yield f"# {escape(name)}"
    yield ""
    yield (
        f"Chains of thought, and how far their models use them: a run of the study `{study}` with "
        f"faithscope {version('faithscope') or ''}."
    )
    yield ""
    yield from (f"- {escape(line)}" for line in tally_of_run(run.path).lines())
    yield ""
    yield "| configuration | rows |"
    yield "|---|---|"
    yield from (f"| `{config}` | {rows:,} |" for config, rows in sizes.items())
    yield ""
    yield "```python"
    yield "from datasets import load_dataset"
    yield ""
    yield f'load_dataset("THIS_DATASET", "{CHAINS}")'
    yield "```"
    meanings = {CHAINS: _COLUMNS, "scores": ITEMS, "step_scores": STEPS}
    for config in sizes:
        columns = meanings.get(config)
        if columns is None:
            continue
        yield ""
        yield f"## {config}"
        yield ""
        yield "| column | meaning |"
        yield "|---|---|"
        yield from (f"| `{column}` | {escape(text)} |" for column, text in columns.items())
    yield ""
    yield "## Config"
    yield ""
    yield "```yaml"
    yield from (run.path / "config.yaml").read_text("utf-8").rstrip("\n").split("\n")
    yield "```"
