"""All scores of one item of a comparison, printed in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.textual import to_markdown
from faithscope.experiments.analysis.tidy import only
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.plain import visible

if TYPE_CHECKING:
    from rich.console import Console


def show_item(
    run_dir: Path, item: str, *, model: str | None, task: str | None, console: Console
) -> None:
    """Print the scores of an item, one trace after the other.

    Raises:
        UserError: there is no such item; names the nearest.
    """
    items = load_run(run_dir).items
    here = items.loc[items["item"].astype(str) == item]
    for name, wanted in (("model", model), ("task", task)):
        here = here if wanted is None else here.loc[here[name] == wanted]
    if here.empty:
        known = sorted(set(items["item"].astype(str)))
        raise UserError(f"no item {item!r} here{did_you_mean(item, known)}")
    for (of_model, of_task, trace), scores in here.groupby(["model", "task", "trace"], sort=True):
        console.print(visible(f"{of_task} · {item} · {of_model} · trace {trace}"), markup=False)
        shown = only(scores, ["measure", "family", "value", "higher_is_faithful", "missing"])
        console.print(visible(to_markdown(shown.reset_index(drop=True))), markup=False)
