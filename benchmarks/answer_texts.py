"""Texts with the answer that a label says they state, of public files and repositories."""

from __future__ import annotations

import ast
import csv
import html
import io
import itertools
import json
import re
import string
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Rows = Callable[..., Iterator[Any]]
Kind = Literal["number", "choice", "label"]
MMLU_PRO = (
    "Meta-Llama-3_1-8B-Instruct",
    "Mistral-7B-Instruct-v0.2",
    "Qwen1.5-7B-Chat",
    "Yi-6b-Chat",
    "gemini-1.5-flash-002",
    "Llama-2-7b-hf",
)
"""Models of which every sixth reply to MMLU-Pro is read."""


@dataclass(frozen=True)
class Text:
    """A text and its label; `key` finds it again in its source."""

    key: str
    kind: Kind
    text: str
    label: str | None
    """What the source says that the text answers; None if it states nothing."""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Texts:
    """The texts of a source, and the file, or the repository and its commit, that they are of."""

    rows: Iterator[Text]
    at: str


class Absent(Exception):
    """A source that is not here, and why."""


def sources(data: Path, clones: Path) -> Iterator[tuple[str, Callable[[], Texts]]]:
    """Names of all sources, and how each is loaded (`Absent`)."""
    for name, (file, rows, how) in FILES.items():
        yield name, lambda file=file, rows=rows, how=how: _file(data, file, rows, how)
    for name, (repository, path, rows, how) in CHAINS.items():
        yield name, lambda at=(repository, path), rows=rows, how=how: _clone(clones, *at, rows, how)


def pairs(clones: Path) -> tuple[list[tuple[str, str, bool]], str]:
    """(gold, reply, whether math-verify's tests hold them for equal), of tests that hold one of two
    answers against another, and the repository's commit."""
    found = []
    names = ("all", "boxed", "numina_cases", "open_thoughts", "yujianll")
    at = ""
    for name in names:
        code, at = _shown(clones, "Math-Verify", f"tests/test_{name}.py")
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Tuple) and len(node.elts) >= 3:
                values = [_constant(e) for e in node.elts[:3]]
                if (
                    isinstance(values[0], str)
                    and isinstance(values[1], str)
                    and values[2] in (0, 1)
                ):
                    found.append((values[0], values[1], bool(values[2])))
    return found, at


def _constant(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _file(data: Path, name: str, rows: Rows, how: Mapping[str, Any]) -> Texts:
    path = data / name
    if not path.exists():
        raise Absent(f"no file {name} in --data")
    return Texts(rows(path.read_bytes(), **how), name)


def _clone(clones: Path, name: str, path: str, rows: Rows, how: Mapping[str, Any]) -> Texts:
    raw, at = _shown(clones, name, path)
    return Texts(rows(raw, **how), at)


def _shown(clones: Path, name: str, path: str) -> tuple[bytes, str]:
    folder = clones / name
    if not folder.exists():
        raise Absent(f"no clone {name} in --clones")

    def git(*args: str) -> bytes:
        done = subprocess.run(["git", "-C", folder, *args], capture_output=True, check=False)
        if done.returncode:
            raise Absent(f"{name} has no {path}")
        return done.stdout

    return git("show", f"HEAD:{path}"), f"{name} {git('rev-parse', 'HEAD').decode()[:12]} {path}"


def _lines(raw: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((str(i), json.loads(line)) for i, line in enumerate(raw.splitlines()) if line.strip())


def _gsm8k(raw: bytes, bare: bool = False) -> Iterator[Text]:
    for key, row in _lines(raw):
        solution, _, label = row["answer"].partition("####")
        yield Text(key, "number", solution if bare else row["answer"], label.strip())


def _prm800k(raw: bytes, bare: bool = False) -> Iterator[Text]:
    for key, row in _lines(raw):
        chain = "\n".join(row["steps"])
        solution, mark, label = chain.partition("# Answer")
        if mark and label.strip():
            yield Text(key, "number", solution.rstrip() if bare else chain, label.strip())


def _aqua(raw: bytes) -> Iterator[Text]:
    for key, row in _lines(raw):
        options = tuple(o[2:].strip() for o in row["options"])
        yield Text(key, "choice", row["rationale"], row["correct"], options)


def _aqua_gpt4(raw: bytes) -> Iterator[Text]:
    for key, row in _lines(raw):
        said = re.match(r"\s*\(?([A-E])\b", row["generated_prediction"])
        options = tuple(re.sub(r"^\s*[A-E]\)", "", o).strip() for o in row["options"])
        rationale = row["rationale"]
        if len(rationale) > 40:
            yield Text(key, "choice", rationale, said[1] if said else None, options)


def _solutions(raw: bytes, bare: bool = False) -> Iterator[Text]:
    for key, row in _lines(raw):
        for model, of in row.items():
            if not isinstance(of, dict):
                continue
            solution, mark, label = of["solution"].rpartition("\nA: ")
            if mark and label.strip():
                kept = solution if bare else of["solution"]
                yield Text(f"{key} {model}", "number", kept, label.strip())


def _log(raw: bytes, kind: Kind) -> Iterator[Text]:
    items = re.split(r"^\d+st data\n", raw.decode(), flags=re.MULTILINE)[1:]
    for i, item in enumerate(items):
        found = re.search(r"^Q: (.*?)^A: (.*?)^pred_before :", item, re.DOTALL | re.MULTILINE)
        said = re.search(r"^pred_mode : (.*)", item, re.MULTILINE)
        if found is None or said is None:
            continue
        options = _listed(found[1]) if kind == "choice" else ()
        options = ("yes", "no") if kind == "label" else options
        yield Text(str(i), kind, found[2].strip(), said[1].strip() or None, options)


def _listed(question: str) -> tuple[str, ...]:
    listed = question.partition("Answer Choices:")[2]
    found = re.split(r"\(([A-Z])\)", listed)[1:]
    named = zip(string.ascii_uppercase, found[::2], found[1::2], strict=False)
    right = itertools.takewhile(lambda n: n[0] == n[1], named)
    return tuple(text.strip() for _, _, text in right)


def _tora(raw: bytes) -> Iterator[Text]:
    for key, row in _lines(raw):
        for j, (chain, said) in enumerate(zip(row["code"], row["pred"], strict=True)):
            yield Text(f"{key} {j}", "number", chain, str(said).strip() or None)


def _nota(raw: bytes) -> Iterator[Text]:
    for i, row in enumerate(csv.DictReader(io.StringIO(raw.decode()))):
        for name in ("no_cot", "original_cot", "noto"):
            prompt, said = row[f"{name}_prompt"], row[f"{name}_letter"].strip()
            options = tuple(re.findall(r"^[A-E]: (.*)", prompt, re.MULTILINE))
            yield Text(f"{i} {name}", "choice", row[f"{name}_response"], said or None, options)


_SAYS = re.compile(
    r"among A through [A-E], the answer is:?\s*\(?([A-E])\b(?!\)?,? (?:and|or) |, [A-E]\b)"
)


def _medical(raw: bytes) -> Iterator[Text]:
    """Cells of a page: question and options in one row, then a chain a cell, marked right or
    wrong."""
    options: tuple[str, ...] = ()
    gold = ""
    for i, cell in enumerate(re.findall(r"<td[^>]*>(.*?)</td>", raw.decode(), re.DOTALL)):
        if (right := re.search(r"^<strong>([A-E])\)", cell, re.MULTILINE)) is not None:
            gold = right[1]
            plain = html.unescape(re.sub(r"</?strong>", "", cell))
            options = tuple(re.findall(r"^[A-E]\) (.*)", plain, re.MULTILINE))
            continue
        chain = html.unescape(cell)
        is_right = chain.startswith("✅")
        said = _SAYS.findall(chain)
        if said and (said[-1] == gold) == is_right:
            yield Text(str(i), "choice", chain[1:].strip(), said[-1], options)


def _mmlu_pro(raw: bytes) -> Iterator[Text]:
    """Replies in which the repository's first pattern finds the letter; where it finds none, its
    label is a guess."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        rows = json.loads(archive.read(archive.namelist()[0]))
    for row in rows[::6]:
        reply = row.get("generated_text") or row.get("model_outputs") or ""
        said = re.search(r"answer is \(?([A-J])\)?", reply)
        if said and said[1] == row["pred"]:
            options = tuple(row["options"])
            yield Text(str(row["question_id"]), "choice", reply, said[1], options)


FILES: dict[str, tuple[str, Rows, Mapping[str, Any]]] = {
    "GSM8K, `####` kept": ("gsm8k/test.jsonl", _gsm8k, {}),
    "GSM8K, `####` removed": ("gsm8k/test.jsonl", _gsm8k, {"bare": True}),
    "PRM800K, heading kept": ("prm800k/subset.jsonl", _prm800k, {}),
    "PRM800K, heading removed": ("prm800k/subset.jsonl", _prm800k, {"bare": True}),
    "AQuA, rationales": ("aqua/test.jsonl", _aqua, {}),
}
"""Solutions of people, and chains of PRM800K: file in the folder of data, how it is read."""
_SOLVED = "grade_school_math/data/example_model_solutions.jsonl"
_TORA = "src/outputs/llm-agents/{}/gsm8k/test_tora_-1_seed0_t0.0_s0_e1319.jsonl"
_AQUA_GPT4 = "outputs/aqua_gpt4_s0_e-1_03_31_22_24.jsonl"
_MATH = "evaluation/data/eval_rm_maj_example/math_cot_100.jsonl"
_TASKS: dict[str, Kind] = {
    **dict.fromkeys(("gsm8k", "svamp", "multiarith", "singleeq", "addsub"), "number"),
    **dict.fromkeys(("aqua", "commonsensqa", "date_understanding", "shuffled_objects"), "choice"),
    **dict.fromkeys(("coin_flip", "strategyqa"), "label"),
}
CHAINS: dict[str, tuple[str, str, Rows, Mapping[str, Any]]] = {
    "GPT-3 on GSM8K, `A:` kept": ("grade-school-math", _SOLVED, _solutions, {}),
    "GPT-3 on GSM8K, `A:` removed": ("grade-school-math", _SOLVED, _solutions, {"bare": True}),
    **{
        f"InstructGPT on {task}": (
            "zero_shot_cot",
            f"log/{task}_zero_shot_cot.log",
            _log,
            {"kind": kind},
        )
        for task, kind in _TASKS.items()
    },
    **{
        f"InstructGPT on {name}": ("medical-reasoning", f"docs/samples/{name}.html", _medical, {})
        for name in ("usmle-valid", "medmcqa-wo-context", "pubmedqa")
    },
    "GPT-4o on MedQA": ("med-nota", "data/medqa_nato_results_gpt.csv", _nota, {}),
    "GPT-4 on AQuA": ("Program-of-Thoughts", _AQUA_GPT4, _aqua_gpt4, {}),
    "Qwen2.5-Math on MATH": ("Qwen2.5-Math", _MATH, _tora, {}),
    **{
        f"{model} on GSM8K": ("ToRA", _TORA.format(model), _tora, {})
        for model in ("tora-70b-v1.0", "tora-code-34b-v1.0")
    },
    **{
        f"{model} on MMLU-Pro": (
            "MMLU-Pro",
            f"eval_results/model_outputs_{model}_5shots.zip",
            _mmlu_pro,
            {},
        )
        for model in MMLU_PRO
    },
}
"""Chains of models: repository, file in it, how it is read."""
