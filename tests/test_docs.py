"""The code on documentation pages runs as printed, and generated pages are up to date."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from faithscope import plot
from faithscope.experiments.cli import docs, execute
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
    assert len(shown) == 1
    for command, printed in shown:
        program, *arguments = shlex.split(command)
        assert program == "faithscope"
        assert execute(arguments) == 0
        assert capsys.readouterr().out == printed, command
    step = " ".join(f"Step {k} looks at box {k} again and finds 3 pens in it." for k in range(12))
    row = {"question": "Ann has 2 boxes of 3 pens and loses 1. How many are left?", "gold": 5}
    row["reasoning"] = (
        f"There are 2 boxes of 3 pens, 6 in all. {step} She loses 1, so 5 pens are left."
    )
    (tmp_path / "chains.jsonl").write_text(f"{json.dumps(row)}\n" * 300)
    (dry,) = re.findall(r"^faithscope (run chains .*)$", readme.read_text(), re.M)
    assert execute(shlex.split(dry)) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "H100" in line]
    assert rows[0] in readme.read_text().splitlines()
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
    assert f"```text\nedit {table}```" in readme.read_text()


@pytest.mark.parametrize("page", ["interop.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    left = runpy.run_path(str(code_of(ROOT / "docs" / page, tmp_path)))
    ours = left["model"].run([Branch(tuple(left["ids"]))], rows=True, residuals=True).branches[0]
    # the variables that the page leaves have the stated meaning
    near = {"atol": 1e-5, "rtol": 0.0}
    torch = left["torch"]
    torch.testing.assert_close(left["stream"][0, -1], ours.residuals[0, 2], **near)
    torch.testing.assert_close(left["pattern"][0, :, -1], ours.rows[0][1], **near)
    assert (left["without"][0, -1] - ours.logits[0]).abs().max() > 1e-3


def test_the_code_about_steering_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    left = runpy.run_path(str(code_of(ROOT / "docs/steering.md", tmp_path)))
    assert len({text.ids for text in left["texts"]}) > 1
    assert left["again"].about == left["hint"].about


def test_made_pages_are_what_the_code_declares() -> None:
    from faithscope.probes import PROBES

    pages = runpy.run_path(str(ROOT / "tools" / "reference.py"))["PAGES"]
    assert pages.keys() >= {"columns.md", "configuration.md", "measures.md", "symptoms.md"}
    assert pages.keys() >= {f"measures/{name}.md" for name in PROBES}
    for page, text in pages.items():
        made = text()
        assert made == (ROOT / "docs" / page).read_text(), "run `python tools/reference.py`"
        assert "|  |\n" not in made, f"{page}: a key or column without its meaning"


DOCS = ROOT / "docs"
MADE_BEFORE_A_BUILD = ("api/*", "project/*", "tutorials/*")
"""Pages that `docs/conf.py` makes, as the lists of pages name them."""


def pages() -> list[Path]:
    made = {pattern.removesuffix("/*") for pattern in MADE_BEFORE_A_BUILD}
    return [p for p in DOCS.rglob("*.md") if p.relative_to(DOCS).parts[0] not in made]


def listed(page: Path) -> Iterator[Path]:
    """The pages that a page lists, those that they list included."""
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
        for entry in block.splitlines():
            if entry and not entry.startswith(":") and entry not in MADE_BEFORE_A_BUILD:
                found = sorted(DOCS.glob(f"{entry}.md"))
                assert found, f"{page.name} lists {entry}, which is no page"
                for child in found:
                    yield from (child, *listed(child))


def test_every_page_can_be_reached_from_the_index() -> None:
    index = DOCS / "index.md"
    assert {index, *listed(index)} == set(pages())


def test_every_page_that_is_named_is_there() -> None:
    """Messages, docstrings and configs name pages as `faithscope docs PAGE`."""
    listed = ["git", "ls-files", "*.py", "*.yaml", "*.md", ":!tests"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = {
        (name, file)
        for file in files.split()
        for name in re.findall(r"faithscope docs ([a-z][\w/]*)", (ROOT / file).read_text("utf-8"))
    }
    assert ("given", "experiments/data/given/reading.py") in named
    assert [(name, file) for name, file in named if name not in docs.names()] == []


def test_pages_are_printed_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["docs"]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith("Start here:\n  index ")
    lines = [line for line in listed.splitlines() if line.startswith("  ")]
    pages = dict(re.split(r" {2,}", line.strip(), maxsplit=1) for line in lines)
    assert pages["given"] == "Chains that were written elsewhere"
    assert sorted(pages) == sorted(docs.names())
    assert len(lines) == len(pages), "a page is listed once"
    # titles stand below one another
    starts = {line.index(pages[line.split()[0]]) for line in lines}
    assert len(starts) == 1
    for name in ("measures/filler", "filler", "docs/measures/filler.md"):
        assert execute(["docs", name]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("# Filler tokens\n")
        assert "<!--" not in printed
    assert execute(["docs", "measures"]) == 0
    assert "toctree" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("givn", "no page 'givn', and no page has the word; did you mean 'given'?"),
        ("slrc", "'slrc' may be measures/slrc or papers/slrc; give the whole name"),
        ("zzz", "no page 'zzz', and no page has the word; `faithscope docs` lists all pages"),
    ],
)
def test_a_page_that_is_not_there(page: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["docs", page]) == 2
    assert capsys.readouterr().err == f"error: docs: {said}\n"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (["install"], "first_hour"),
        (["GPU"], "cluster"),
        (["jsonl"], "given"),
        (["qwen"], "rfeval_models"),
        (["slurm"], "cluster"),
        (["questions"], "own_questions"),
        (["necessity"], "glossary"),
        (["own", "cue"], "cues"),
        (["chain", "elsewhere"], "given"),
        (["free", "text"], "data"),
    ],
)
def test_words_are_found_on_the_pages_about_them(
    words: list[str], page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["docs", *words]) == 0
    found = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert page in found[:3]


def test_a_section_that_names_a_word_as_its_own_comes_first() -> None:
    """Each such word is of one section, and leads there."""
    known, of = docs.names(), dict[str, str]()
    for page in known:
        for line in re.findall(r"<!-- words: (.+?) -->", docs.text(page, with_words=True)):
            for word in line.split():
                assert of.setdefault(word, page) == page, f"{word} is of two pages"
    for word in ("resume", "plot", "csv", "cost"):
        first = docs.find([word], known)[0]
        assert first.page == of[word]
        assert first.line
        assert "<!--" not in first.line


def test_words_that_meet_nowhere_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["docs", "necessity", "zzz"]) == 2
    assert "no section of a page has all of 'necessity', 'zzz'" in capsys.readouterr().err


def test_a_page_opens_in_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path))
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert execute(["docs", "given", "--open"]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert opened == [page.as_uri()]
    assert '<a href="compare.html">' in page.read_text("utf-8")
    assert (page.parent / "compare.html").is_file()
    assert (page.parent / "explore.png").is_file()


LONGEST_STUDY = 40
"""Lines that the config of a published study may have."""


@pytest.mark.parametrize("page", sorted((DOCS / "studies").glob("*.md")), ids=lambda p: p.stem)
def test_configs_and_commands_of_a_study_are_accepted(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every `run` that a page shows can be carried out but for files that only others hold."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    configs = re.findall(r"^```yaml\n(name: (\w+)\n.*?)^```$", text, re.M | re.S)
    assert configs
    for config, name in configs:
        assert config.count("\n") <= LONGEST_STUDY
        Path(f"{name}.yaml").write_text(config)
    for other, file in re.findall(r"^```yaml\n(# (\w+\.yaml)\n.*?)^```$", text, re.M | re.S):
        Path(file).write_text(other)
    shown = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)).replace("\\\n", "")
    runs = [shlex.split(line, comments=True) for line in shown.splitlines() if " run " in line]
    assert {f"{name}.yaml" for _, name in configs} <= {run[2] for run in runs}
    for _, *run in runs:
        code = execute([*run, "--dry-run"])
        said = capsys.readouterr().err
        no_file = re.fullmatch(r"error: traces\.path: no such file or folder: .*\n", said)
        assert code == 0 or no_file, said


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", [*pages(), ROOT / "README.md"], ids=lambda p: p.stem)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        path, _, anchor = link.partition("#")
        if "://" in link or path.startswith(("tutorials/", "docs/tutorials/")):
            continue
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_every_public_name_has_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    pages = runpy.run_path(str(ROOT / "tools" / "api_pages.py"))
    pages["write"](tmp_path / "api")
    assert {p.stem for p in (tmp_path / "api").iterdir()} == set(pages["PACKAGES"])
    page = (tmp_path / "api" / "faithscope.plot.md").read_text("utf-8")
    assert re.findall(r"^## `(\w+)`", page, re.M) == sorted(plot.__all__)


def test_what_the_hosted_repository_calls_is_there() -> None:
    hosted = ROOT / ".github"
    (job,) = yaml.safe_load((hosted / "workflows/ci.yml").read_text())["jobs"].values()
    (called,) = [step["run"] for step in job["steps"] if "run" in step]
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.M))
    assert called.split()[0] == "make"
    assert set(called.split()[1:]) == {"lint", "test", "docs"} <= targets
    forms = [yaml.safe_load(file.read_text()) for file in hosted.glob("ISSUE_TEMPLATE/*.yml")]
    for form in forms:
        assert {"name", "description", "body"} == set(form)
        asked = [part["attributes"]["label"] for part in form["body"]]
        assert "Output of `faithscope doctor`" in asked
    assert len(forms) == 2


def test_every_config_says_first_who_uses_it_when() -> None:
    for config in (ROOT / "configs").glob("*.yaml"):
        assert config.read_text("utf-8").startswith("# When "), config.name
