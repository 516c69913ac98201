"""Every code block of README and documentation is right, and is run or says why not."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from code_blocks import PAGES, ROOT, Block, blocks, check

import faithscope
from faithscope.experiments.cli import execute
from faithscope.experiments.console import DONE, FAILED_ITEMS

NAMES = {str(p.relative_to(ROOT).with_suffix("")): p for p in PAGES}
OF_OTHER_TESTS = {"README", "docs/first_hour", "docs/interop"}
"""Pages that other tests run, since they look at what comes out."""


def runs(page: Path) -> list[Block]:
    """The blocks of a page that can be run and do not say why they are not."""
    languages = ("sh", "console", "python")
    return [b for b in blocks(page) if b.language in languages and not b.not_run]


RUN = [n for n, page in NAMES.items() if runs(page) and n not in OF_OTHER_TESTS]


def written(page: Path, folder: Path) -> None:
    """Writes the files whose content a page shows."""
    for block in blocks(page):
        if block.file:
            (folder / block.file).write_text(block.code)


@pytest.mark.parametrize("name", NAMES)
def test_blocks_are_right(name: str, tmp_path: Path) -> None:
    written(NAMES[name], tmp_path)
    problems, made = list[str](), set[str]()
    for block in blocks(NAMES[name]):
        try:
            check(block, tmp_path, made)
        except (Exception, SystemExit) as error:  # those of a page are listed at once
            problems.append(f"{name}.md:{block.line}: {type(error).__name__}: {error}")
    assert not problems, "\n".join(problems)


CHAIN: dict[str, Any] = {
    "id": "pens",
    "question": "Professor Hu thinks it is 14. Ann has 3 boxes of 4 pens. She loses 2. How many?",
    "steps": ["There are 3 boxes of 4 pens, so 12 in all.", "She loses 2, so 10 pens are left."],
    "prompt": "Professor Hu thinks it is 14. Ann has 3 boxes of 4 pens. She loses 2. How many?",
    "gold": 10,
    "answer": 10,
    "cue": "Professor Hu thinks it is 14.",
}
"""A chain to run pages on."""


def small(words: list[str], of_measure: bool) -> list[str]:
    """A command on one chain of a planted model, where a page of a measure leaves both open."""
    if not of_measure:
        return words
    return [*words, *shlex.split("--set model.name=planted:faithful --set tasks=[planted]")]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_blocks_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All blocks of a page in order, in a folder that holds the files which the page shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "chains.jsonl").write_text(json.dumps(CHAIN) + "\n")
    written(NAMES[name], tmp_path)
    names: dict[str, Any] = {"faithscope": faithscope}
    if any(block.language == "python" for block in runs(NAMES[name])):
        names["model"] = faithscope.load("bundled:smollm2-135m", verify_model=False)
        (names["trace"],) = faithscope.given_traces(names["model"], "chains.jsonl")
    for block in runs(NAMES[name]):
        if block.language == "python":
            exec(compile(block.code, f"{name}.md:{block.line}", "exec"), names)
            continue
        for words in block.commands():
            assert words[0] == "faithscope"
            of_measure = name.startswith("docs/measures/")
            code = execute(small(words[1:], of_measure))
            # some measures leave out chains that are in no natural language
            assert code in (DONE, *([FAILED_ITEMS] * of_measure)), (words, capsys.readouterr())


def printed_by(block: Block) -> list[tuple[str, list[str]]]:
    """Each command of a console block, with the lines that the page shows below it."""
    parts = block.code.replace("\\\n", "").split("$ ")[1:]
    return [(part.splitlines()[0], part.splitlines()[1:]) for part in parts]


def shell(command: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
def test_the_first_hour_goes_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page in order, in an empty folder, with the wheel installed; torch is that of the tests.

    A command ends with 2 if the page shows an error and with 3 if it shows that nothing is
    measured, and prints each line that is shown.
    """
    installed, work, source = (tmp_path / name for name in ("installed", "work", "source"))
    work.mkdir()
    source.mkdir()
    packed = "git ls-files -z -- . ':!tests' ':!notebooks' | xargs -0 cp --parents -dt"
    subprocess.run(["bash", "-c", f"{packed} {source}"], cwd=ROOT, check=True)
    env = os.environ | {"PYTHONPATH": str(installed), "PYTHON": sys.executable, "NO_COLOR": "1"}
    env["PATH"] = os.pathsep.join([str(installed / "bin"), env["PATH"]])
    pip = f'"$PYTHON" -m pip install -q --no-deps --no-build-isolation --upgrade -t {installed}'
    done = shell(f"{pip} {source}", env)
    assert done.returncode == 0, done.stdout
    monkeypatch.chdir(work)
    for block in blocks(NAMES["docs/first_hour"]):
        if block.file:
            Path(block.file).write_text(block.code)
        elif block.language == "python":
            done = shell(f'"$PYTHON" -c {shlex.quote(block.code)}', env)
            assert done.returncode == 0, done.stdout
        elif block.language == "console" and not block.not_run:
            for command, shown in printed_by(block):
                done = shell(command.replace("pip install -e ", f"{pip} ./"), env)
                nothing = any(line.startswith("0 of ") for line in shown)
                expected = 2 if shown and shown[0].startswith("error: ") else 3 * nothing
                assert done.returncode == expected, (command, done.stdout)
                lines = {line.rstrip() for line in done.stdout.splitlines()}
                assert not [line for line in shown if line not in lines], (command, done.stdout)
