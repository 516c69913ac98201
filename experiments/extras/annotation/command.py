"""Command `faithscope annotate`, which shows chains of thought to people who label them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithscope.experiments.console import to_output
from faithscope.interp.errors import UserError


def annotate(
    source: Annotated[str, typer.Argument(metavar="RUN|FILE", help="The chains to label.")],
    annotator: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Label as this annotator.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="For the first annotator: draw N chains.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", help="Write the labels both agree on, and exit."),
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option(
            "--label-studio", metavar="DIR", help="Write tasks for Label Studio, and exit."
        ),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(
            "--labelled",
            metavar="FILE",
            help="With --export: read the labels from Label Studio's JSON export.",
        ),
    ] = None,
) -> int:
    """Label chains of thought by hand: two annotators, three rounds.

    With --as, a page for one annotator is served until Ctrl-C. With --export, the agreement of the
    two is printed. The last line printed is the folder with the labels that both agree on, in the
    layout of FINE-CoT. With --label-studio, the files for a project of Label Studio are written;
    with --labelled FILE --export DIR, its labels become files for `faithscope compare --labels` and
    for traces.path.
    """
    from faithscope.experiments.analysis.exports import label_studio
    from faithscope.experiments.extras.annotation import server
    from faithscope.experiments.extras.annotation.export import in_lines

    if [annotator, out, tasks].count(None) != 2:
        raise UserError(
            "faithscope annotate: give --as NAME to label, --export DIR to write labels, or "
            "--label-studio DIR"
        )
    if labelled is not None and out is None:
        raise UserError("faithscope annotate: --labelled FILE goes with --export DIR")
    if tasks is not None:
        for path in label_studio.write(source, tasks.expanduser(), limit):
            to_output(path)
        return 0
    if labelled is not None and out is not None:
        said = label_studio.read(source, labelled.expanduser(), out.expanduser())
        to_output("\n".join([*said, "", str(out)]))
        return 0
    if annotator is not None:
        to_output(server.annotate(source, annotator, limit))
        return 0
    folder = server.export(source, out)
    to_output("\n".join([*in_lines(folder), "", str(folder)]))
    return 0
