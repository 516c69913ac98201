"""Command `faithscope docs`: pages of the documentation, from the installed package, and where in
them words are found.

Pages are Markdown files. A terminal shows them formatted, a pipe gets the file's text, and `--open`
writes all of them as HTML into the cache and opens one in a browser.
"""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from faithscope.experiments.console import DONE, in_columns, say, to_output
from faithscope.interp.errors import UserError, did_you_mean

FOLDER = Path(__file__).parents[2] / "docs"
MADE_BY_A_BUILD = {"api", "project", "tutorials"}
"""Folders of pages that only `make docs` makes, and the pages that do nothing but list them."""
_ONLY_FOR_THE_SITE = re.compile(r"^```\{toctree\}\n.*?^```\n+|^<!-- .+? -->\n", re.M | re.S)
_WORDS = re.compile(r"^<!-- words: (.+?) -->\n", re.M)
"""Words for which a section is the one to read, which it need not have itself: a line below its
heading."""
_STYLE = """body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
 padding: 0 1rem; color-scheme: light dark; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { border: 1px solid; padding: .25rem .5rem; text-align: left; }
pre { overflow-x: auto; } img { max-width: 100%; }"""

_LINK = re.compile(r"- \[.*?\]\((\w+)\.md\)", re.M)
_ENTRY = re.compile(r"^(.+)\n: (.+)", re.M)
"""An entry of the glossary: word, and the first line of what it means."""
_FOLDERS = ("measures", "studies", "papers")
_LONG = ("configuration", "columns", "deviations", "commands")
"""Pages made from code, which have a line on everything: they come after those that explain."""
_DECLARED = 100
"""Weight of a section that names the words as its own, above all other weights together."""
_FEW, _MOST = 4, 12
"""Pages below which more sections of each are shown, and most sections that are shown."""

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def docs(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAGE|WORD…",
            help="A page's name, to print it; or words to find; without either, lists all pages.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser instead of printing it.")
    ] = False,
) -> int:
    """Print a page of the documentation, or find words in it."""
    known = names()
    if not words and not browser:
        width = max(map(len, known))
        for group, pages in grouped(known).items():
            to_output(f"{group}:")
            to_output(in_columns([(f"{n:<{width}}", title(n)) for n in pages], "  "))
        say("faithscope docs PAGE prints one of them, faithscope docs WORD finds a word in all")
        return DONE
    page = words[0] if words and len(words) == 1 else None
    name = "index" if not words else named(page, known) if page else None
    if name is None:
        if browser:
            raise UserError(f"docs: no page {' '.join(words or [])!r}; --open needs a page's name")
        _show_found(words or [], known)
    elif browser:
        to_output(_opened(name, known))
    else:
        _show(text(name))
    return DONE


def grouped(known: list[str]) -> dict[str, list[str]]:
    """Heading -> names of pages below it: where to start, the groups of the guides, the reference,
    and the folders of pages. A page is listed once."""
    groups = {"Start here": ["index", "first_hour", "guides"]}
    for line in text("guides").splitlines():
        if line.startswith("## "):
            group = groups.setdefault(line.removeprefix("## "), [])
        elif link := _LINK.match(line):
            group.append(link[1])
    groups["Reference"] = ["reference", *_LINK.findall(text("reference"))]
    for name in known:
        folder = name.rpartition("/")[0] or name
        groups.setdefault(folder.capitalize() if folder in _FOLDERS else "More", []).append(name)
    left = set(known)
    once = {}
    for group, pages in groups.items():
        once[group] = [p for p in dict.fromkeys(pages) if p in left]
        left -= {*pages}
    return {group: pages for group, pages in once.items() if pages}


class Found(NamedTuple):
    """A section of a page that has all words that were looked for."""

    page: str
    heading: str
    line: str
    """The first of its sentences that has one of them."""
    weight: float


def find(words: Sequence[str], known: Sequence[str]) -> list[Found]:
    """The sections in which all words occur, the likeliest first: one of each page, or several
    where few pages have any. A word is found where it begins a word of the page.

    A section that names the words as its own comes first. Then titles count most, then headings,
    then how often the words occur in how short a section."""
    patterns = [
        re.compile(rf"(?<![^\W_]){re.escape(form)}", re.I)
        for form in (_stem(word) for word in words)
    ]
    found = []
    for page in known:
        of_page = f"{page} {title(page)}"
        for heading, body in _sections(text(page, with_words=True)):
            also = {_stem(word) for line in _WORDS.findall(f"{body}\n") for word in line.split()}
            whole = f"{of_page}\n{heading}\n{body}"
            if not all(pattern.search(whole) for pattern in patterns):
                continue
            is_one = also.issuperset(_stem(word.lower()) for word in words)
            body = _ONLY_FOR_THE_SITE.sub("", f"{body}\n")
            counts = [len(pattern.findall(body)) for pattern in patterns]
            in_titles = sum(bool(p.search(of_page)) for p in patterns)
            in_headings = sum(bool(p.search(heading)) for p in patterns)
            if not (min(counts) or in_headings or is_one):
                continue
            often = sum(math.log1p(n) for n in counts) / math.log2(64 + len(body) / 20)
            lines = [f"{word}: {meaning}" for word, meaning in _ENTRY.findall(body)]
            defined = next((x for x in lines if any(p.match(x) for p in patterns)), "")
            with_one = (x for x in _sentences(body) if any(p.search(x) for p in patterns))
            line = defined or next(with_one, next(_sentences(body), "") if is_one else "")
            found.append(
                Found(
                    page,
                    heading,
                    line,
                    _DECLARED * is_one
                    + 8 * (in_titles + 2 * bool(defined))
                    + 4 * in_headings
                    + 6 * often,
                )
            )
    found.sort(key=lambda of: (of.page in _LONG and of.weight < _DECLARED, -of.weight))
    first = {of.page: of for of in reversed(found)}
    best = [of for of in found if first[of.page] is of]
    return best if len(best) >= _FEW else [*best, *(of for of in found if first[of.page] is not of)]


def _stem(word: str) -> str:
    """The word without the ending of a plural, so that `judges` finds `judge`."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _sections(markdown: str) -> Iterator[tuple[str, str]]:
    """(heading, text below it) of a page; code counts as text."""
    heading, body, fenced = "", list[str](), False
    for line in markdown.splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            yield heading, "\n".join(body)
            heading, body = line.lstrip("# ").replace("`", ""), []
        else:
            body.append(line)
    yield heading, "\n".join(body)


def _sentences(body: str) -> Iterator[str]:
    """The sentences of a section, without those of tables and code."""
    for paragraph in body.split("\n\n"):
        if not paragraph.lstrip("\n").startswith(("|", "```", "    ", "<!--")):
            yield from re.split(r"(?<=[.:]) ", " ".join(paragraph.split()))


def _show_found(words: Sequence[str], known: list[str]) -> None:
    """Prints where words occur.

    Raises:
        UserError: they occur nowhere.
    """
    found = find(words, known)
    if not found:
        every = [*known, *(name.rpartition("/")[2] for name in known)]
        guess = did_you_mean(words[0].lower(), every) if len(words) == 1 else ""
        what = (
            f"no page {words[0]!r}, and no page has the word"
            if len(words) == 1
            else (f"no section of a page has all of {', '.join(map(repr, words))}")
        )
        raise UserError(f"docs: {what}{guess or '; `faithscope docs` lists all pages'}")
    rows = list[tuple[str, str]]()
    for of in found[:_MOST]:
        rows.append((of.page, of.heading))
        if of.line:
            rows.append(("", f"  {textwrap.shorten(of.line.strip(' -*>'), 76)}"))
    to_output(in_columns(rows))
    more = len(found) - _MOST
    say("faithscope docs PAGE prints one of them" + (f"; {more} more were found" * (more > 0)))


def names() -> list[str]:
    """Names of all pages: `index`, `given`, `papers/rfeval`, …; those in folders last."""
    paths = (p.relative_to(FOLDER).with_suffix("").as_posix() for p in FOLDER.rglob("*.md"))
    shipped = [name for name in paths if name.partition("/")[0] not in MADE_BY_A_BUILD]
    return sorted(shipped, key=lambda name: ("/" in name, name))


def named(page: str, known: list[str]) -> str | None:
    """The name of the page that a user means by `given`, `docs/given.md` or `rfeval`; None if
    there is none.

    Raises:
        UserError: several end in this name.
    """
    word = page.lower().removeprefix("docs/").removesuffix(".md")
    if word in known:
        return word
    ends = [name for name in known if name.endswith(f"/{word}")]
    if len(ends) > 1:
        raise UserError(f"docs: {page!r} may be {' or '.join(ends)}; give the whole name")
    return ends[0] if ends else None


def title(name: str) -> str:
    """Title of a page: its first heading."""
    headings = (line for line in text(name).splitlines() if line.startswith("# "))
    return next(headings, f"# {name}").removeprefix("# ").replace("`", "")


def text(name: str, with_words: bool = False) -> str:
    """Markdown of a page, without what only the site reads.

    Args:
        with_words: leave in which words a section is found by.
    """
    read = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    if not with_words:
        return _ONLY_FOR_THE_SITE.sub("", read)
    return _ONLY_FOR_THE_SITE.sub(lambda m: m[0] if _WORDS.match(m[0]) else "", read)


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
