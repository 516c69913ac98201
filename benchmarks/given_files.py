"""Files of public repositories that hold chains of thought, read as they are.

`python benchmarks/given_files.py CLONES` reads each file below with one mapping of its columns and
writes a table into `benchmarks/results/given_files.md`: how many chains the file holds, counted
without the readers, how many are read, why others are left out, and which columns are not used.
CLONES has bare clones, `git clone --bare https://github.com/OWNER/NAME OWNER+NAME`, as folders or
with `repo` below. What is absent is said and left out.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.given.rules import ReadingRules
from faithscope.experiments.data.tasks.sources.rows import files_read
from faithscope.interp.errors import UserError

TABLE = Path(__file__).parent / "results/given_files.md"
MARKS = "<!-- given files -->", "<!-- end of given files -->"


def _lines(raw: bytes) -> int:
    return sum(bool(line.strip()) for line in raw.splitlines())


def _table(raw: bytes) -> int:
    return len(list(csv.DictReader(io.StringIO(raw.decode()))))


def _judged(raw: bytes) -> int:
    """Responses in a file of chainscope's faithfulness, those to reversed questions among them."""
    names = ("faithful_responses", "unfaithful_responses", "unknown_responses")
    turned = ("reversed_q_correct_responses", "reversed_q_incorrect_responses")
    questions = yaml.load(raw, yaml.CSafeLoader).values()
    own = (len(q.get(name) or {}) for q in questions for name in names)
    return sum(own) + sum(len(q["metadata"].get(n) or {}) for q in questions for n in turned)


@dataclass(frozen=True)
class Stored:
    """A file, or a folder of files, of one repository."""

    repository: str
    path: str
    count: Callable[[bytes], int] = _lines
    columns: dict[str, Any] = field(default_factory=dict)
    format: str = "auto"
    rules: ReadingRules = field(default_factory=ReadingRules)
    """What is said of the file beside its columns."""


_JOE = {"options": "choices", "gold": "ground_truth_letter"}
_LOVENYA = {"options": "choices", "gold": "correct_choice", "answer": "predicted_choice"}
_YES_NO = ReadingRules(options=("YES", "NO"))
FILES = (
    Stored(
        "Joe-Occhipinti/unfaithfulness_steering",
        "data/behavioural/baseline_2025-09-24.jsonl",
        columns={**_JOE, "reasoning": "baseline_generated_text", "answer": "answer_letter"},
    ),
    Stored(
        "Joe-Occhipinti/unfaithfulness_steering",
        "data/behavioural/hinted_2025-09-24.jsonl",
        lambda raw: 2 * _lines(raw),  # one without the hint, one with it
        {
            **_JOE,
            "reasoning": "baseline_generated_text",
            "answer": "baseline_answer_letter",
            "cued_reasoning": "biased_generated_text",
            "cued_answer": "hinted_answer_letter",
            "cue": "hint_template",
            "cue_target": "hint_letter",
            "cue_place": "=above",
            "labels": "bias_label",
        },
    ),
    Stored(
        "Joe-Occhipinti/unfaithfulness_steering",
        "data/annotated/annotated_hinted_2025-09-24.jsonl",
        columns={
            **_JOE,
            "reasoning": "biased_generated_text",
            "answer": "hinted_answer_letter",
            "cue_target": "hint_letter",
            "labels": ["faithfulness_classification", "bias_label"],
        },
    ),
    Stored(
        "lovenya/Measuring-Faithfulness-of-CoT-Reasoning-LALMs",
        "results/flamingo_hf/baseline/baseline_flamingo_hf_sakura-language.jsonl",
        columns={**_LOVENYA, "reasoning": "sanitized_cot", "labels": "is_correct"},
    ),
    Stored(
        "lovenya/Measuring-Faithfulness-of-CoT-Reasoning-LALMs",
        "results/qwen_omni/early_answering/early_answering_qwen_omni_mmar.jsonl",
        columns={
            **_LOVENYA,
            "id": ["id", "num_sentences_provided"],
            "reasoning": "sanitized_cot",
            "labels": "is_consistent_with_baseline",
        },
    ),
    Stored("uzaymacar/faithful-vs-unfaithful-reasoning", "data", _judged),
    Stored(
        "uzaymacar/faithful-vs-unfaithful-reasoning",
        "archive/results/deepseek_r1_cots_iphr_eval.json",
        lambda raw: len(json.loads(raw)),
        {
            "question": "question_text",
            "reasoning": "generated_cot",
            "answer": "eval_final_answer",
            "gold": "ground_truth_answer",
            "labels": "is_faithful_iphr",
        },
        rules=_YES_NO,
    ),
    Stored(
        "DenisLim95/unfaithful-reasoning",
        "data/responses/model_1.5B_responses.jsonl",
        columns={
            "id": ["pair_id", "variant"],
            "reasoning": "response",
            "model": "generation_config.model",
        },
    ),
    Stored(
        "ElleNajt/thought_anchors_and_unfaithful_CoT",
        "data_problems/20251006_142931_deepseek_r1/cot_responses.json",
        lambda raw: sum(len(row["hinted_samples"]) for row in json.loads(raw)),
        {
            "id": "question_id",
            "reasoning": "hinted_samples.*.cot",
            "answer": "hinted_samples.*.answer",
            "gold": "correct_answer",
            "cue_target": "hinted_answer",
        },
    ),
    Stored(
        "technion-cs-nlp/parametric-faithfulness",
        "annotation_data/sqa_LLaMA-3-8B_neg_bin.csv",
        _table,
        {
            "id": ["ID", "target_step_idx"],
            "steps": "segmented_cot",
            "gold": "correct_answer",
            "labels": ["flip", "dp"],
        },
        rules=ReadingRules(gold_is="index0"),
    ),
    Stored(
        "levavakian/cot-faith",
        ".cache/aime_base_responses.json",
        lambda raw: len(json.loads(raw)),
    ),
)


def measured(stored: Stored, clones: Path) -> dict[str, Any]:
    """The row of one file.

    Raises:
        FileNotFoundError: the clone or the file is not there.
    """
    clone = clones / stored.repository.replace("/", "+")
    clone = clone / "repo" if (clone / "repo").exists() else clone

    def git(*args: str) -> bytes:
        done = subprocess.run(
            ["git", f"--git-dir={clone}", *args], capture_output=True, check=False
        )
        if done.returncode:
            raise FileNotFoundError(f"{stored.repository} {stored.path}: not in {clone}")
        return done.stdout

    listed = git("ls-tree", "-r", "--name-only", "HEAD", "--", stored.path).decode().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        raws = [git("show", f"HEAD:{name}") for name in listed]
        for name, raw in zip(listed, raws, strict=True):
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(raw)
        there, read, why = sum(map(stored.count, raws)), 0, "–"
        with files_read() as files:
            try:
                path = Path(folder) / stored.path
                chains = read_chains(
                    path, stored.format, columns=stored.columns, rules=stored.rules
                )
                empty = sum(not chain.reasoning.strip() for chain in chains.chains)
                read = chains.total - empty
                why = f"{empty} without a text" if empty else why
            except UserError as error:
                why = str(error).replace(f"{folder}/", "")
        unused = list(dict.fromkeys(name for file in files for name in file.unused))
    return {
        "repository": f"{stored.repository} {git('rev-parse', 'HEAD').decode()[:8]}",
        "file": stored.path,
        "chains": there,
        "read": read,
        "left out": why,
        "columns not used": ", ".join(unused) or "–",
    }


def main() -> None:
    clones, rows = Path(sys.argv[1]), []
    for stored in FILES:
        try:
            rows.append(measured(stored, clones))
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
    head = list(rows[0])
    table = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    table += [f"| {' | '.join(str(row[name]) for name in head)} |" for row in rows]
    before, _, rest = TABLE.read_text("utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    text = "\n".join([MARKS[0], "", *table, "", MARKS[1]])
    TABLE.write_text(f"{before}{text}{after}", "utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
