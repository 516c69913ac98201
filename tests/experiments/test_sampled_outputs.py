"""The readers of answers on outputs that the packaged models sampled, against what people read.

`sampled_outputs.jsonl.gz` has whole texts of SmolLM2-135M-Instruct and Qwen2.5-Coder-0.5B-Instruct
(both Apache-2.0) at temperature .7 and at most 160 tokens, under the prompts of the tasks, on
questions of GSM8K (MIT), AQuA (Apache-2.0), MedQA and LogiQA (both MIT), with the options that they
were shown. `states` is what the text states as its answer, written down by eye before any reader
was run: a number, a letter, `nothing`, `mentions` (no statement, but something that the rule of the
last mention may read), or `disputed` where people would differ, as in "The answer is (D), which is
not possible".
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from faithscope.experiments.data.answers import last_number
from faithscope.experiments.data.choices import last_choice

TEXTS = Path(__file__).with_name("sampled_outputs.jsonl.gz")
WORDS = ("nothing", "mentions", "disputed")


def outcome(row: dict[str, Any]) -> str:
    """What the reader of a text's kind made of it."""
    options = row.get("options")
    text = row["text"]
    read = last_choice(text, len(options), options) if options else last_number(text)
    if row["states"] in WORDS:
        return f"{row['states']}, {'read' if read else 'none'}"
    return "missed" if read is None else "right" if read == row["states"] else "wrong"


def test_no_sampled_output_is_read_as_another_answer_than_it_states() -> None:
    with gzip.open(TEXTS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    outcomes = [outcome(row) for row in rows]
    assert [r["item"] for r, of in zip(rows, outcomes, strict=True) if of == "wrong"] == []
    counts = Counter(outcomes)
    assert {of: counts[of] for of in ("right", "missed", "nothing, none", "nothing, read")} == {
        "right": 121,
        "missed": 11,
        "nothing, none": 96,
        "nothing, read": 6,
    }
