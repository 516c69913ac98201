"""Sphinx settings of the documentation; `make docs` builds it into `build/docs`.

Pages are the Markdown files of this folder. Before a build, the pages of the Python interface are
made from docstrings into `api`, and notebooks and texts from outside this folder are copied into
`tutorials` and `project`. Git ignores all three. Every page is also written as Markdown beside its
HTML, and `llms.txt` lists them.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
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
        (DOCS / "project" / name.lower()).write_text(text, encoding="utf-8")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        # jupytext's notebooks do not name their language, which highlighting needs
        notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "python"}
        nbformat.write(notebook, DOCS / "tutorials" / path.name)


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


def _link_markdown(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    if page in app.env.found_docs:
        file = f"{page.rpartition('/')[2]}.md"
        context["markdown_file"] = file
        link = f'<link rel="alternate" type="text/markdown" href="{file}">'
        context["metatags"] = context.get("metatags", "") + link


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", _prepare)
    app.connect("html-page-context", _link_markdown)
    app.connect("build-finished", _write_markdown)
