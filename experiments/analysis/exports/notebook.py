"""Results as HTML in a notebook: blocks of a page, in the page's style, which stays within the
output.

All text is escaped as on the pages. A preview that drops styles, as that of a forge, still shows
the text and a sign for each step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from faithscope.experiments.analysis.colours import properties
from faithscope.experiments.analysis.html import style
from faithscope.experiments.analysis.page import Block, fragments

_OURS = ".faithscope" * 3
"""A selector of the output that outweighs JupyterLab's own rules for tables, which are of two
classes: they set text to the right, and columns to one width whatever they hold."""
_OWN = f"""
{_OURS} {{
  margin: 0; padding: .2rem .4rem; max-width: 64rem; border-radius: 8px;
  table {{ table-layout: auto; margin: 0; }}
  table, th, td {{ color: inherit; }}
  tbody tr {{ background: none; }}
  .steps summary {{ cursor: pointer; }}
  .steps, .question, .tail {{ max-height: 30rem; overflow-y: auto; }}
}}
"""


def html_of(blocks: Sequence[Block]) -> str:
    """Blocks that name no tables or figures of a page, as HTML for the output of a cell."""
    (body,) = fragments([blocks])
    return f'<style>{_style()}</style><div class="faithscope">{body}</div>'


@cache
def _style() -> str:
    """The style of the pages, nested so that it applies to nothing else in the notebook.

    The colours follow the notebook's own theme where it names one, else the system's.
    """
    nested = re.sub(r"(^\s*|\{ )(?::root|html|body) \{", r"\1& {", style(), flags=re.M)
    chosen = "".join(
        f'body[data-jp-theme-light="{is_light}"] {_OURS} {{ {properties(dark)} }}\n'
        for is_light, dark in (("true", False), ("false", True))
    )
    return f"{_OURS} {{\n{nested}\n}}\n{chosen}{_OWN}"
