"""Command `faithscope docs`: pages of the documentation, from the installed package.

Pages are Markdown files. A terminal shows them formatted, a pipe gets the file's text, and `--open`
writes all of them as HTML into the cache and opens one in a browser.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from faithscope.experiments.console import DONE, say, to_output
from faithscope.interp.errors import UserError, did_you_mean

FOLDER = Path(__file__).parents[2] / "docs"
MADE_BY_A_BUILD = {"api", "project", "tutorials"}
"""Folders of pages that only `make docs` makes, and the pages that do nothing but list them."""
_ONLY_FOR_THE_SITE = re.compile(
    r"^```\{toctree\}\n.*?^```\n+|^<!-- (?:made: .+?|end) -->\n", re.M | re.S
)
_STYLE = """body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
 padding: 0 1rem; color-scheme: light dark; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { border: 1px solid #8888; padding: .25rem .5rem; text-align: left; }
pre { overflow-x: auto; } img { max-width: 100%; }"""

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def docs(
    page: Annotated[
        str | None, typer.Argument(metavar="PAGE", help="A page's name; without it, lists all.")
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser instead of printing it.")
    ] = False,
) -> int:
    """List the pages of the documentation, or print one."""
    known = names()
    if page is None and not browser:
        width = max(map(len, known))
        for name in known:
            to_output(f"{name:<{width}}  {title(name)}")
        say("faithscope docs PAGE prints one of them")
        return DONE
    name = named(page or "index", known)
    if browser:
        to_output(_opened(name, known))
    else:
        _show(text(name))
    return DONE


def names() -> list[str]:
    """Names of all pages: `index`, `given`, `measures/filler`, …; those in folders last."""
    paths = (p.relative_to(FOLDER).with_suffix("").as_posix() for p in FOLDER.rglob("*.md"))
    shipped = [name for name in paths if name.partition("/")[0] not in MADE_BY_A_BUILD]
    return sorted(shipped, key=lambda name: ("/" in name, name))


def named(page: str, known: list[str]) -> str:
    """The name of the page that a user means by `given`, `docs/given.md` or `filler`.

    Raises:
        UserError: there is no such page, or several end in this name.
    """
    word = page.lower().removeprefix("docs/").removesuffix(".md")
    if word in known:
        return word
    ends = [name for name in known if name.endswith(f"/{word}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise UserError(f"docs: {page!r} may be {' or '.join(ends)}; give the whole name")
    guess = did_you_mean(word, [*known, *(name.rpartition("/")[2] for name in known)])
    raise UserError(f"docs: no page {page!r}{guess or '; `faithscope docs` lists all pages'}")


def title(name: str) -> str:
    """Title of a page: its first heading."""
    headings = (line for line in text(name).splitlines() if line.startswith("# "))
    return next(headings, f"# {name}").removeprefix("# ").replace("`", "")


def text(name: str) -> str:
    """Markdown of a page, without what only the site reads."""
    return _ONLY_FOR_THE_SITE.sub("", (FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def _show(markdown: str) -> None:
    if not sys.stdout.isatty():
        print(markdown, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(markdown))


def _opened(name: str, known: list[str]) -> Path:
    """The page as an HTML file in the cache, beside those that it links to, opened in a browser."""
    import shutil
    import webbrowser

    from markdown_it import MarkdownIt

    from faithscope.interp.sources import cache_dir

    out = cache_dir() / "docs"
    render = MarkdownIt("commonmark", {"html": False}).enable("table").render
    for page in known:
        body = re.sub(r'(href="[^":]+)\.md(?=["#])', r"\1.html", render(text(page)))
        file = out / f"{page}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        head = f"<!doctype html><meta charset=utf-8><title>{title(page)}</title>"
        view = '<meta name=viewport content="width=device-width">'
        file.write_text(f"{head}{view}<style>{_STYLE}</style>{body}", encoding="utf-8")
    for image in FOLDER.glob("*.png"):
        shutil.copy(image, out)
    opened = out / f"{name}.html"
    if not webbrowser.open(opened.as_uri()):
        say("no browser could be opened; the file is")
    return opened
