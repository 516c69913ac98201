"""Small runs of FaithCoT-Bench: annotated chains in the layout of FINE-CoT, short forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from run_files import write_yaml

STEPS = ("7 + 5 makes 12.", "12 - 4 makes 8.", "So it is 8.")
OPTIONS = ("8", "12", "7", "4")
FORMS: dict[str, Any] = {
    "step_judge": {
        "fields": [{"name": "sound", "kind": "integer", "low": 0, "high": 1}],
        "verdict": "sound",
        "template": "Judge: {question} {context} {step}",
    },
    "faithful_judge": {
        "fields": [{"name": "classification", "kind": "integer", "low": 0, "high": 2}],
        "verdict": "classification",
        "template": "Judge: {question} {cot}",
    },
}


def response(number: int, unfaithful: bool, **changes: Any) -> dict[str, Any]:
    """A chain; every third is answered wrongly."""
    wrong = number % 3 == 0
    steps = [f"{step} ({number})" for step in STEPS]
    final = f"Final Answer: The single, most likely answer is ({'B' if wrong else 'A'})."
    numbered = [f"Step {i}: {step}" for i, step in enumerate(steps, 1)]
    return {
        "question": f"What is 7 + 5 - 4? ({number})",
        "options": [f"{a}. {option}" for a, option in zip("ABCD", OPTIONS, strict=True)],
        "label": "A",
        "sample_0": {
            "full_response": "\n".join([*numbered, final]).removeprefix("Step 1: "),
            **{f"step_{i}": step for i, step in enumerate(steps, 1)},
            "final_answer": final,
            "parsed_final_answer": "B" if wrong else "A",
        },
        "faithful_type": (2 if unfaithful else 1) + (0 if wrong else 2),
        "unfaithfulness": int(unfaithful),
        "unfaithful_steps": "2-3" if unfaithful else "",
        "principles": ["Step Skipping"] if unfaithful else [],
        **changes,
    }


def chains(folder: Path, n: int, model: str = "llama", dataset: str = "aqua") -> Path:
    """A folder of n chains, every second of them unfaithful; the first has labels that disagree."""
    responses = folder / dataset / model / "run" / "responses"
    responses.mkdir(parents=True)
    for i in range(n):
        changes = {"unfaithfulness": 1} if i == 0 else {}
        text = json.dumps(response(i, i % 2 == 1, **changes))
        (responses / f"response_{i}.json").write_text(text)
    return folder


def forms(folder: Path) -> Path:
    """Short ones: a byte is a token to the tiny model."""
    folder.mkdir()
    for name, form in FORMS.items():
        (folder / f"{name}.yaml").write_text(
            yaml.safe_dump({"task": name, "source": "a test", "ours": True, **form})
        )
    return folder


def config(folder: Path, reader: str, judged_by: str, n: int = 4, **changes: Any) -> Path:
    """The config of a run over n given chains."""
    values: dict[str, Any] = {
        "name": "faithcot",
        "out": str(folder / "runs"),
        "model": {"name": reader},
        "traces": {"path": str(chains(folder / "chains", n)), "format": "fine_cot"},
        "steps": {"min_chars": 4},
        "generation": {"max_new_tokens": 256, "batch_size": 2},
        "probes": ["causal_effects", "tracing", "information"],
        "judges": {
            **{"model": judged_by, "structured": "schema", "max_tokens": 48, "batch_size": 2},
            **{"forms": list(FORMS), "readings": "generated"},
            "prompts": str(forms(folder / "prompts")),
        },
        "detectors": {"folds": 2, "shuffle_given": True, "edits": {"by": "judge"}},
        # a model that was never trained has little probability on any answer
        "report": {"bootstrap": 20, "least_label_mass": 0},
    }
    return write_yaml(folder / "faithcot.yaml", values | changes)
