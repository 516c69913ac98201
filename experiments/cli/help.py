"""Help of `faithscope` itself: its commands in groups, each with an example."""

from __future__ import annotations

from typing import Any, NamedTuple

from typer.core import TyperGroup


class Part(NamedTuple):
    """A group of commands."""

    heading: str
    example: str
    """Arguments of a command line that shows what the group is for."""
    commands: tuple[str, ...]


PARTS = (
    Part("Start here", "docs first_hour", ("docs", "doctor", "init", "list", "fetch")),
    Part(
        "Measure",
        "run slrc --set model.name=Qwen/Qwen3-8B --dry-run",
        ("run", "status", "show", "report", "build", "prefetch", "merge", "verify", "repair"),
    ),
    Part(
        "Compare with other measures, labels and papers",
        "reproduce list slrc",
        ("compare", "view", "reproduce", "export"),
    ),
    Part(
        "On a cluster with Slurm",
        "submit slrc --shards 8",
        ("submit", "resubmit", "cancel"),
    ),
    Part("Train", "train train/planted", ("train",)),
    Part("Bring your own", "annotate chains.jsonl --as me", ("annotate", "new")),
)
OTHERS = "Of installed packages"
WHOLE = 1000
"""Characters of a command's sentence, which a narrow terminal breaks between words."""


class Grouped(TyperGroup):
    """Lists commands below the headings of `PARTS`, and those of no part at the end."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        named = {name for part in PARTS for name in part.commands}
        others = tuple(name for name in self.list_commands(ctx) if name not in named)
        width = max(map(len, self.commands))
        for part in (*PARTS, Part(OTHERS, "", others)):
            known = [(n, self.commands[n]) for n in part.commands if n in self.commands]
            if not known:
                continue
            rows = [(f"{n:<{width}}", c.get_short_help_str(WHOLE)) for n, c in known]
            with formatter.section(part.heading):
                formatter.write_dl(rows)
                if part.example:
                    formatter.write_text(f"e.g. faithscope {part.example}")
