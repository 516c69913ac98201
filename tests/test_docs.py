"""The code on documentation pages runs as printed, and generated pages are up to date."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
from pathlib import Path

import pytest

from faithscope.experiments.cli import execute
from faithscope.interp import Branch

ROOT = Path(__file__).parents[1]


def code_of(page: Path, folder: Path) -> Path:
    """Writes all Python code of a page to a script and returns its path."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    assert blocks
    script = folder / "page.py"
    script.write_text("\n".join(blocks))
    return script


def answer_scores(text: str) -> list[dict[str, float]]:
    return [ast.literal_eval(line) for line in text.splitlines() if line.startswith("{'")]


def commands(page: Path) -> list[tuple[str, str]]:
    """(command, printed output) of all console examples of a page."""
    blocks = re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.M | re.S)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M) if part]
    return [(first, printed) for first, _, printed in (p.partition("\n") for p in parts)]


@pytest.mark.slow
def test_the_readme_shows_what_its_examples_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bundled model runs; its output may differ from the page only in the last digits."""
    readme = ROOT / "README.md"
    monkeypatch.chdir(tmp_path)
    shown = commands(readme)
    assert len(shown) == 3
    for command, printed in shown:
        program, *arguments = shlex.split(command)
        assert program == "faithscope"
        assert execute(arguments) == 0
        assert capsys.readouterr().out == printed, command
    left = runpy.run_path(str(code_of(readme, tmp_path)))
    printed = capsys.readouterr().out
    answers, on_page = answer_scores(printed), answer_scores(readme.read_text())
    assert len(answers) == len(on_page) == 2
    assert left["trace"].question.gold in answers[0]
    for scores, expected in zip(answers, on_page, strict=True):
        assert list(scores) == list(expected) == list(answers[0])
        assert sum(scores.values()) == pytest.approx(1, abs=1e-2)
        # the conclusions on the page must hold for the printed numbers
        assert max(scores, key=scores.__getitem__) == max(expected, key=expected.__getitem__)
    _, _, table = printed.partition("edit ")
    assert f"```\nedit {table}```" in readme.read_text()


@pytest.mark.parametrize("page", ["doors.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    left = runpy.run_path(str(code_of(ROOT / "docs" / page, tmp_path)))
    ours = left["model"].run([Branch(tuple(left["ids"]))], rows=True, residuals=True).branches[0]
    # the variables that the page leaves have the stated meaning
    near = {"atol": 1e-5, "rtol": 0.0}
    torch = left["torch"]
    torch.testing.assert_close(left["stream"][0, -1], ours.residuals[0, 2], **near)
    torch.testing.assert_close(left["pattern"][0, :, -1], ours.rows[0][1], **near)
    assert (left["without"][0, -1] - ours.logits[0]).abs().max() > 1e-3


def test_the_pages_of_keys_and_columns_are_what_the_code_declares() -> None:
    for page, text in runpy.run_path(str(ROOT / "tools" / "reference.py"))["PAGES"].items():
        made = text()
        assert made == (ROOT / "docs" / page).read_text(), "run `python tools/reference.py`"
        assert "|  |\n" not in made, f"{page}: a key or column without its meaning"
