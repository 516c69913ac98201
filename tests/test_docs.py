"""The code of the documentation's pages runs as it is printed."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

from faithscope.interp import Branch

ROOT = Path(__file__).parents[1]


def code_of(page: Path, folder: Path) -> Path:
    """A script of all the Python that a page prints."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    assert blocks
    script = folder / "page.py"
    script.write_text("\n".join(blocks))
    return script


def answer_scores(text: str) -> list[dict[str, float]]:
    return [ast.literal_eval(line) for line in text.splitlines() if line.startswith("{'")]


@pytest.mark.slow
def test_the_readme_scores_both_versions_on_the_answers_that_it_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bundled model runs; what it prints differs from the page in the last digits alone."""
    readme = ROOT / "README.md"
    left = runpy.run_path(str(code_of(readme, tmp_path)))
    printed, shown = answer_scores(capsys.readouterr().out), answer_scores(readme.read_text())
    assert len(printed) == len(shown) == 2
    answers = list(printed[0])
    assert left["trace"].question.gold in answers
    for scores, on_page in zip(printed, shown, strict=True):
        assert list(scores) == list(on_page) == answers
        assert sum(scores.values()) == pytest.approx(1, abs=1e-2)
        # what the page concludes from the numbers must hold of those printed
        assert max(scores, key=scores.__getitem__) == max(on_page, key=on_page.__getitem__)


@pytest.mark.parametrize("page", ["doors.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    left = runpy.run_path(str(code_of(ROOT / "docs" / page, tmp_path)))
    ours = left["model"].run([Branch(tuple(left["ids"]))], rows=True, residuals=True).branches[0]
    # what the page leaves behind is what it says it is
    near = {"atol": 1e-5, "rtol": 0.0}
    torch = left["torch"]
    torch.testing.assert_close(left["stream"][0, -1], ours.residuals[0, 2], **near)
    torch.testing.assert_close(left["pattern"][0, :, -1], ours.rows[0][1], **near)
    assert (left["without"][0, -1] - ours.logits[0]).abs().max() > 1e-3


def test_the_pages_of_keys_and_columns_are_what_the_code_declares() -> None:
    for page, text in runpy.run_path(str(ROOT / "tools" / "reference.py"))["PAGES"].items():
        made = text()
        assert made == (ROOT / "docs" / page).read_text(), "run `python tools/reference.py`"
        assert "|  |\n" not in made or page == "columns.md"  # no key without its meaning
