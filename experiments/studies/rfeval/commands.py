"""`faithscope review`: what people make of RFEval's r′, and of outputs, as sheets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from faithscope.experiments.console import to_output

review = typer.Typer(
    name="review",
    help="Sheets for people who review r′ or label outputs.",
    rich_markup_mode=None,
)
ItemsFrom = "RFEval items: a run folder, or a data file or folder."


@review.command("write")
def write(
    items: Annotated[str, typer.Argument(metavar="RUN|DATA", help=ItemsFrom)],
    reviewers: Annotated[str, typer.Option(metavar="A,B,C", help="Who reviews, by name.")],
    out: Annotated[Path, typer.Option(metavar="SHEET.csv", help="The sheet to be written.")],
    each: Annotated[int, typer.Option(help="Reviewers of each item.")] = 2,
    seed: Annotated[int, typer.Option(help="Of what is drawn, and of who gets what.")] = 0,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="N items of each task, drawn with the seed.")
    ] = None,
    of: Annotated[
        Literal["r_prime", "stances"],
        typer.Option(
            help="What is reviewed: the items' r′; or stances and flaws in the outputs of a run, "
            "as its config takes them back (annotations)."
        ),
    ] = "r_prime",
) -> int:
    """Write a CSV with a row per item and reviewer, decisions to be filled in; prints its path."""
    from faithscope.experiments.studies.rfeval.counterfactuals.review import drawn, names_in

    if of == "stances":
        from faithscope.experiments.studies.rfeval.counterfactuals.annotation_sheet import (
            write_annotation_sheet,
        )
        from faithscope.experiments.studies.rfeval.results import results

        write_annotation_sheet(out, results(items), names_in(reviewers), each, limit, seed)
    else:
        from faithscope.experiments.studies.rfeval.counterfactuals.review import (
            items_in,
            write_review,
        )

        chosen = drawn(items_in(items), limit, seed, lambda item: item.task)
        write_review(out, chosen, names_in(reviewers), each, seed)
    to_output(out)
    return 0


@review.command("read")
def read(
    sheet: Annotated[Path, typer.Argument(metavar="SHEET.csv", help="A sheet, filled in.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder for the tables as CSV, too.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="OUT.jsonl", help="Write the items that were accepted; with --from."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="RUN|DATA", help=f"Of --keep: {ItemsFrom}")
    ] = None,
) -> int:
    """Print how far reviewers agree, by task and over all, and which items they rejected."""
    from faithscope.experiments.analysis.textual import to_csv
    from faithscope.experiments.files import make_folder, write_atomically
    from faithscope.experiments.studies.rfeval.counterfactuals.review import (
        in_lines,
        keep_accepted,
        read_sheet,
        review_tables,
    )
    from faithscope.interp.errors import UserError

    if (keep is None) != (source is None):
        raise UserError(
            "faithscope review read: --keep writes items of --from; give both, or neither"
        )
    reviewed = read_sheet(sheet)
    tables = review_tables(reviewed)
    if out is not None:
        for name, table in tables.items():
            write_atomically(make_folder(out) / f"{name}.csv", to_csv(table))
    if keep is not None and source is not None:
        keep_accepted(reviewed, source, keep)
    to_output("\n".join(in_lines(reviewed, tables)))
    return 0
