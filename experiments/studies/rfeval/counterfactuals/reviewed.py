"""What people decided about counterfactual reasoning: tables, and the items that they let in."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.textual import to_csv, visible
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.studies.rfeval.counterfactuals.built import item_lines
from faithscope.experiments.studies.rfeval.counterfactuals.review import Sheet, items_in
from faithscope.experiments.studies.rfeval.metrics.review import (
    review_agreement,
    review_items,
    review_rates,
)
from faithscope.interp.errors import UserError


def review_tables(sheet: Sheet) -> dict[str, pd.DataFrame]:
    """Agreement, rates and items by file name (Tables 5 to 7).

    Raises:
        UserError: nothing is decided yet.
    """
    if sheet.reviews.empty:
        raise UserError(
            f"{sheet.path}: no decision in {sheet.open_rows} rows; fill in yes or no as 'decision'"
        )
    return {
        "rf_review_agreement": review_agreement(sheet.reviews),
        "rf_review_rates": review_rates(sheet.reviews),
        "rf_review_items": review_items(sheet.reviews),
    }


def write_tables(sheet: Sheet, folder: Path) -> None:
    """The tables as CSV.

    Raises:
        UserError: nothing is decided yet, or they cannot be written.
    """
    made = review_tables(sheet)
    for name, table in made.items():
        write_atomically(make_folder(folder) / f"{name}.csv", to_csv(table))


def told(sheet: Sheet) -> list[str]:
    """The tables in lines for a terminal: agreement, rates, the items that were not let in."""
    made = review_tables(sheet)
    agreed, rates, items = made.values()
    heads = ["task", "", "items", "double", "judgements", "agreement", "pabak", "fleiss_kappa"]
    names = ["n_items", "n_double", "n_judgements", "percent_agreement", "pabak", "fleiss_kappa"]
    lines = columns(
        [
            (*heads, "krippendorff_alpha"),
            *(
                (r["task"], "", *(_shown(r[n]) for n in (*names, "krippendorff_alpha")))
                for r in agreed.to_dict("records")
            ),
        ]
    )
    shares = ("n", "n_yes", "yes_rate", "yes_rate_low", "yes_rate_high")
    rows = [
        (r["task"], "", *(_shown(r[name]) for name in shares)) for r in rates.to_dict("records")
    ]
    lines += ["", *columns([("task", "", *shares), *rows])]
    for name in ("rejected", "disputed"):
        of = items.loc[items["decision"] == name].to_dict("records")
        lines += ["", f"{name}: {len(of)} of {len(items)} items"]
        lines += [f"  {visible(str(r['item']))}  {r['n_yes']} yes, {r['n_no']} no" for r in of]
    if sheet.open_rows:
        lines += ["", f"open: {sheet.open_rows} rows have no decision"]
    return lines


def keep_accepted(sheet: Sheet, source: str, path: Path) -> int:
    """Write the items that people accepted as JSON lines, which `data.path` takes; gives how many.

    Raises:
        UserError: an item of the sheet is not in `source` or has another r′ there, none was
            accepted, or the file is there already.
    """
    items = {item.id: item for item in items_in(source)}
    for name, (where, r_prime) in sheet.r_primes.items():
        if name not in items:
            raise UserError(
                f"{where}: item {name!r} is not in {source}; give what the sheet was written of "
                "as --from"
            )
        if items[name].r_prime.split() != r_prime.split():
            raise UserError(
                f"{where}: r_prime of item {name!r} is not that of {source}; give what the sheet "
                "was written of as --from, or restore the cell"
            )
    if path.exists():
        raise UserError(f"{path}: is there already; name another file")
    decided = review_tables(sheet)["rf_review_items"]
    accepted = set(decided.loc[decided["decision"] == "accepted", "item"])
    if not accepted:
        raise UserError(f"{sheet.path}: no item was accepted; there is nothing to keep")
    kept = [item for item in items.values() if item.id in accepted]
    write_atomically(path, item_lines(kept))
    return len(kept)


def _shown(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "–" if math.isnan(value) else f"{value:.3f}"
