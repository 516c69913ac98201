"""Sphinx settings of the documentation; `make docs` builds it into `build/docs`.

Pages are the Markdown files of this folder. Before a build, the pages of the Python interface are
made from docstrings into `api`, and notebooks and texts from outside this folder are copied into
`tutorials` and `project`. Git ignores all three. Every page is also written as Markdown beside its
HTML, and `llms.txt` lists them. Pages of measures begin with a drawing, names break at `_`, and a
search for a word of the glossary finds its entry and the pages that the entry names.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

project = "faithscope"
copyright = "the faithscope authors"
extensions = ["myst_nb", "sphinx_copybutton"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["faithscope.css"]
html_js_files = [("quiet.js", {"priority": 10}), ("filter.js", {"defer": "defer"})]
html_context = {"default_mode": "auto"}
exclude_patterns = ["_templates", "_static"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "off"
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
highlight_language = "none"
# Lexers of languages that pages show with an elision (…) or a printed result.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "pydata_sphinx_theme"
html_title = "faithscope"
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc", "as-markdown"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```\n", re.M | re.S)
MARKS = re.compile(r"^<!-- (made: .+?|end) -->\n", re.M)


def _prepare(app: Sphinx) -> None:
    import api_pages

    api_pages.write(DOCS / "api")
    for folder in ("tutorials", "project"):
        shutil.rmtree(DOCS / folder, ignore_errors=True)
        (DOCS / folder).mkdir()
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        text = text.replace("](docs/", "](../")
        text = re.sub(r"`?docs/([\w/]+\.md)`?", _linked, text)
        if name == "CHANGELOG.md":
            # what a word once meant is no answer to a search for it
            text = f"---\nnosearch: true\n---\n{text}"
        (DOCS / "project" / name.lower()).write_text(text, encoding="utf-8")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        # jupytext's notebooks do not name their language, which highlighting needs
        notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "python"}
        nbformat.write(notebook, DOCS / "tutorials" / path.name)


def _dress(app: Sphinx, doctree: nodes.document) -> None:
    """Set the first list of the front page as cards, and beside a picture show its dark version, if
    there is one, to readers of dark pages."""
    if app.env.current_document.docname == "index":
        next(doctree.findall(nodes.bullet_list))["classes"].append("cards")
    for image in list(doctree.findall(nodes.image)):
        dark = image["uri"].replace(".png", "_dark.png")
        if dark != image["uri"] and (DOCS / dark).exists():
            other = image.deepcopy()
            other["uri"] = dark
            image["classes"].append("only-light")
            other["classes"].append("only-dark")
            image.parent.insert(image.parent.index(image) + 1, other)


def _list_words(app: Sphinx, doctree: nodes.document) -> None:
    """Enter the words of the glossary into the index, which a search looks into first."""
    page = app.env.current_document.docname
    places = dict.fromkeys(_words()[page], "")
    for term in doctree.findall(nodes.term) if page == "glossary" else ():
        term["ids"].append(f"word-{nodes.make_id(term.astext())}")
        for word in _words_of(term.astext()):
            places[word] = places.get(word) or term["ids"][0]
    if places:
        entries = [("single", word, place, "main", None) for word, place in places.items()]
        doctree.insert(0, addnodes.index(entries=entries))


def _words_of(term: str) -> list[str]:
    """The words that an entry of the glossary is about, without what a bracket adds."""
    return re.sub(r" \(.*", "", term).split(", ")


@cache
def _words() -> dict[str, list[str]]:
    """Page -> words of the glossary that are entered for it: all for the glossary, and for a page
    of a measure those whose entry links to it."""
    words = defaultdict[str, list[str]](list)
    entry = re.compile(r"^(\S.*)\n: (.+(?:\n  .+)*)", re.M)
    for word, meaning in entry.findall((DOCS / "glossary.md").read_text(encoding="utf-8")):
        for page in ("glossary", *re.findall(r"\]\((measures/\w+)\.md\)", meaning)):
            words[page] += _words_of(word)
    return words


def _linked(name: re.Match[str]) -> str:
    """A link to a page that is there; the changelog names pages that are gone."""
    return f"[{name[1]}](../{name[1]})" if (DOCS / name[1]).exists() else name[0]


def _title(app: Sphinx, page: str) -> str:
    return app.env.titles[page].astext()


def _markdown(app: Sphinx, page: str) -> str:
    """A page as Markdown: lists of pages become links, and a notebook its cells."""
    source = Path(app.env.doc2path(page))
    if source.suffix == ".ipynb":
        return "\n\n".join(_cell(cell) for cell in nbformat.read(source, as_version=4).cells) + "\n"
    text = MARKS.sub("", source.read_text(encoding="utf-8"))
    return TOCTREE.sub(lambda found: _links(app, found[1]), text)


def _links(app: Sphinx, entries: str) -> str:
    pages: list[str] = []
    for entry in entries.splitlines():
        if not entry.startswith(":") and entry.strip():
            pattern = re.compile(re.escape(entry.strip()).replace(r"\*", "[^/]+") + "$")
            pages += [p for p in sorted(app.env.found_docs) if pattern.match(p)]
    return "".join(f"- [{_title(app, page)}]({page}.md)\n" for page in pages)


def _cell(cell: nbformat.NotebookNode) -> str:
    if cell.cell_type != "code":
        return cell.source
    shown = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    printed = "".join(f"\n\n```text\n{text.rstrip()}\n```" for text in shown if text)
    return f"```python\n{cell.source}\n```{printed}"


def _first_sentence(app: Sphinx, page: str) -> str:
    """The first sentence of a page's first paragraph."""
    for paragraph in app.env.get_doctree(page).findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0]
    return ""


def _write_markdown(app: Sphinx, error: Exception | None) -> None:
    """Write every page as Markdown beside its HTML, and `llms.txt`."""
    if error or app.builder.format != "html":
        return
    out = Path(app.outdir)
    lines = ["# faithscope", "", f"> {_first_sentence(app, 'index')}", ""]
    for caption, pages in _sections(app):
        lines += [f"## {caption}", ""]
        for page in pages:
            lines.append(f"- [{_title(app, page)}]({page}.md): {_first_sentence(app, page)}")
        lines.append("")
    (out / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    for page in app.env.found_docs:
        file = out / f"{page}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_markdown(app, page), encoding="utf-8")


def _sections(app: Sphinx) -> list[tuple[str, list[str]]]:
    """Titles of the sections that the index lists with their pages, in order."""
    below = app.env.toctree_includes

    def whole(page: str) -> list[str]:
        return [page, *(inner for child in below.get(page, []) for inner in whole(child))]

    return [(_title(app, section), whole(section)) for section in below["index"]]


_CODE = re.compile(r'(?<=<span class="pre">)[^<]*?[_/][^<]*(?=</span>)')
_H1 = re.compile(r"</h1>\n?")


def _finish(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give a page its colours, its places where names break, its drawing and its Markdown."""
    from drawing import drawing
    from measure_pages import HEADS

    from faithscope.experiments.analysis.colours import properties

    body = context.get("body", "")
    body = _CODE.sub(lambda code: re.sub(r"(?<=[_/])(?=\w)", "<wbr>", code[0]), body)
    if head := HEADS.get(page.removeprefix("measures/")):
        chain = drawing(head["drawing"], head["asks"])
        body = _H1.sub(lambda end: f"{end[0]}{chain}\n", body, count=1)
    context["body"] = body
    # a browser asks for an icon that no page names
    context["metatags"] = context.get("metatags", "") + (
        f'<link rel="icon" href="data:,"><style>:root {{ {properties()} }}\n'
        f"html[data-theme=dark] {{ {properties(dark=True)} }}</style>"
    )
    if page in app.env.found_docs:
        file = f"{page.rpartition('/')[2]}.md"
        context["markdown_file"] = file
        link = f'<link rel="alternate" type="text/markdown" href="{file}">'
        context["metatags"] += link


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", _prepare)
    app.connect("doctree-read", _dress, priority=100)
    app.connect("doctree-read", _list_words)
    app.connect("html-page-context", _finish)
    app.connect("build-finished", _write_markdown)
