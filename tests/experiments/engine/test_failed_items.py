"""Items that cannot be done are told with the reason, and all others are done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import broken_models as broken
import pytest
import torch
import yaml
from bad_input import asking, failed_items, lost, read_after, write

from faithscope.experiments.cli import execute
from faithscope.experiments.engine.store import read_records


def test_an_empty_generation(tmp_path: Path) -> None:
    model = broken.scripted(tmp_path / "model", "")
    assert execute(["run", asking(tmp_path, model, ["What is 1 + 1?"] * 2)]) == 3
    assert lost(tmp_path / "t") == {"total": 2, "empty_generation": 2, "included": 0}


@pytest.mark.slow
def test_a_reasoning_that_never_closes(tmp_path: Path) -> None:
    from chat_tokenizers import tokenizer

    text = "We add one and one to get two. "
    model = broken.scripted(tmp_path / "model", text, tokenizer=tokenizer("qwen3"))
    assert execute(["run", asking(tmp_path, model, ["What is 1 + 1?"])]) == 3
    assert lost(tmp_path / "t") == {"total": 1, "reasoning_unclosed": 1, "included": 0}


@pytest.mark.slow
def test_a_prompt_longer_than_the_context_window_fails_and_longer_probes_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = broken.scripted(tmp_path / "model", "We add one and one to get two. ", positions=360)
    questions = ["What is 1 + 1?", "What is " + "1 + " * 150 + "1?"]
    probes = ["slrc", "tracing", "causal_effects", "information"]
    path = asking(tmp_path, model, questions, framings=["reprompt"])
    # what the scripted model says after the cue is no number: no threshold on that here
    more = {"probes": probes, "report": {"least_label_mass": 0}}
    changed = yaml.safe_load(Path(path).read_text()) | more
    Path(path).write_text(yaml.safe_dump(changed))
    ((stage, reason),) = read_after(failed_items(capsys, path), tmp_path / "t")
    assert stage == "trace"
    assert "a prompt of 673 tokens leaves no room for a text: the model has 360 positions" in reason
    assert lost(tmp_path / "t") == {"total": 2, "failed": 1, "included": 1}
    for stage in ("slrc.reprompt.generated", "causal_effects", "information"):
        assert lost(tmp_path / "t", stage) == {"total": 1, "no_room": 1, "included": 0}
    assert lost(tmp_path / "t", "tracing") == {"total": 1, "included": 1}


@pytest.mark.takes("a run with its outputs")
def test_an_item_with_nan_logits_fails_and_spares_its_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = broken.with_a_nan_for(tmp_path / "model", "Z")
    path = asking(tmp_path, model, ["What is 1 + 1?", "What is Z + 1?", "What is 2 + 1?"])
    ((stage, reason),) = read_after(failed_items(capsys, path), tmp_path / "t")
    assert stage == "trace"
    assert "FloatingPointError: " in reason
    assert "NaN logits in float32; its weights, or what it makes of this text, are" in reason
    assert lost(tmp_path / "t")["failed"] == 1
    assert len(read_records(tmp_path / "t", "trace")) == 2


# --- memory


@pytest.mark.slow
def test_what_does_not_fit_with_the_least_budget_is_a_failed_item(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from faithscope.interp import execute as engine

    prefill = engine.prefill
    budgets = []

    def limited(model: Any, forest: Any, *args: Any, **options: Any) -> Any:
        if model.checks and len(read_records(tmp_path / "t", "slrc")) == 2:
            budgets.append(model.token_budget)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return prefill(model, forest, *args, **options)

    monkeypatch.setattr(engine, "prefill", limited)
    failures = read_after(failed_items(capsys, write(tmp_path)), tmp_path / "t")
    assert budgets[0] > budgets[1] > 256
    assert budgets[: len(budgets) // 2][-1] == 256
    assert budgets[len(budgets) // 2] == budgets[0], "put back for the next item"
    assert {stage for stage, _ in failures} == {"slrc"}
    assert "out of memory on cpu even with a token budget of 256; lower" in failures[0][1]
