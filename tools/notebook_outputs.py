"""Runs the notebooks and stores their outputs: `python tools/notebook_outputs.py [NAME …]`.

A notebook is written by hand as `notebooks/NAME.py`; this makes `NAME.ipynb` of it, with what its
cells show, so that a forge and the documentation show it. Sliders and scripts need a kernel or a
browser that runs them: their outputs are left out, and a notebook draws a still picture beside
them.
"""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"
PNG = "image/png"
MINUTES = 60
"""Minutes after which a cell that hangs is given up."""


def executed(script: Path, minutes: int = MINUTES) -> NotebookNode:
    """The notebook of a script, run from top to bottom in a fresh kernel."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(script)
    resources = {"metadata": {"path": str(script.parent)}}
    return NotebookClient(
        notebook, timeout=60 * minutes, kernel_name="python3", resources=resources
    ).execute()


def storable(notebook: NotebookNode) -> NotebookNode:
    """The notebook with only those outputs that show without a kernel and without scripts."""
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        if cell.cell_type == "code":
            cell["outputs"] = [o for o in cell["outputs"] if shows(o)]
            for data in (o["data"] for o in cell["outputs"] if PNG in o.get("data", {})):
                if "<img" in data.get("text/html", ""):
                    del data[PNG]  # HTML that holds the same picture
                else:
                    data[PNG] = _small(data[PNG])
            cell["metadata"] = {}
    for made_by_the_run in ("language_info", "widgets"):
        notebook.metadata.pop(made_by_the_run, None)
    return notebook


def _small(png: str) -> str:
    """A picture with at most 256 colours, both encoded as base64."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    stored = io.BytesIO()
    picture.quantize(256).save(stored, "PNG", optimize=True)
    return base64.b64encode(stored.getvalue()).decode()


def shows(output: NotebookNode) -> bool:
    """Whether an output shows without a kernel and without scripts; standard error, which has
    progress and notes, is left out."""
    if output["output_type"] == "stream":
        return output["name"] == "stdout"
    data = output.get("data", {})
    return WIDGET not in data and "<script" not in data.get("text/html", "")


def main(names: list[str]) -> None:
    import jupytext

    scripts = [NOTEBOOKS / f"{Path(n).stem}.py" for n in names] or sorted(NOTEBOOKS.glob("*.py"))
    for script in scripts:
        jupytext.write(storable(executed(script)), script.with_suffix(".ipynb"))
        print(script.with_suffix(".ipynb").name)


if __name__ == "__main__":
    main(sys.argv[1:])
