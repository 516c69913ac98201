"""The code of the documentation's pages runs as it is printed."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["doors.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S)
    assert blocks
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    left = runpy.run_path(str(script))
    ours = (
        left["model"]
        .run([left["interp"].Branch(tuple(left["ids"]))], rows=True, residuals=True)
        .branches[0]
    )
    # what the page leaves behind is what it says it is
    near = {"atol": 1e-5, "rtol": 0.0}
    torch = left["torch"]
    torch.testing.assert_close(left["stream"][0, -1], ours.residuals[0, 2], **near)
    torch.testing.assert_close(left["pattern"][0, :, -1], ours.rows[0][1], **near)
    assert (left["without"][0, -1] - ours.logits[0]).abs().max() > 1e-3
