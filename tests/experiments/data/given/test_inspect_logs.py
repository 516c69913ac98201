"""Logs of Inspect as given chains: replies, targets, choices and scores."""

from __future__ import annotations

import resource
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.inspect_log import chain as inspect_chain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.interp.errors import UserError

THOUGHT, SAID = "Owls fly. Otters swim.", "It is the otter."


def logged(path: Path, target: Any, choices: list[str] | None = None, **more: Any) -> GivenChain:
    """A sample of a log of Inspect, as it is read back."""
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalSample,
        EvalSpec,
        write_eval_log,
    )
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput

    reply = ChatMessageAssistant(content="<think>Fish swim.</think>A")
    output = ModelOutput.from_message(reply)
    sample = EvalSample(
        id="s",
        epoch=1,
        input="Which?",
        target=target,
        choices=choices,
        messages=[ChatMessageUser(content="Which?"), reply],
        output=output,
        **more,
    )
    spec = EvalSpec(
        task="zoo",
        created="2025-01-01T00:00:00+00:00",
        dataset=EvalDataset(name="zoo"),
        model="m",
        config=EvalConfig(),
    )
    write_eval_log(EvalLog(eval=spec, samples=[sample]), str(path / "log.eval"))
    (chain,) = read_chains(path / "log.eval").chains
    return chain


@pytest.mark.slow
def test_a_log_that_inspect_wrote(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
        ModelUsage,
        get_model,
    )
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    def reply(*content: Any) -> ModelOutput:
        message = ChatMessageAssistant(content=list(content))
        # with a usage of its own it counts no tokens, for which it would ask the network
        choices, usage = [ChatCompletionChoice(message=message)], ModelUsage(output_tokens=1)
        return ModelOutput(model="mockllm/model", choices=choices, usage=usage)

    long = "Otters swim well. " * 200  # longer than what a log keeps in place
    replies = [
        reply(ContentReasoning(reasoning=long), ContentText(text="ANSWER: B")),
        reply(ContentReasoning(reasoning="abc=", redacted=True), ContentText(text="ANSWER: A")),
    ]
    samples = [
        Sample(id=i, input="Which swims?", choices=["owl", "otter"], target="B") for i in "xy"
    ]
    task = Task(
        dataset=MemoryDataset(samples, name="zoo"), solver=multiple_choice(), scorer=choice()
    )
    model = get_model("mockllm/model", custom_outputs=replies)
    (log,) = eval(task, model=model, log_dir=str(tmp_path), display="none", max_samples=1)
    read = read_chains(Path(log.location.removeprefix("file://")))
    assert read.format == "inspect"
    thought, hidden = read.chains
    assert thought.reasoning == long
    assert (thought.kind, thought.options, thought.gold) == ("choice", ("owl", "otter"), "B")
    assert (thought.id, thought.dataset, thought.model) == ("x", "zoo", "mockllm/model")
    assert thought.labels == {"score_choice": "C"}
    assert hidden.labels == {"score_choice": "I"}
    assert thought.answer == "B"
    assert thought.question == "Which swims?"
    assert "Which swims?" in (thought.prompt or "")
    assert "A) owl" in (thought.prompt or "")
    # what a service keeps to itself is no reasoning
    assert hidden.reasoning == ""


@pytest.mark.parametrize(
    ("target", "choices", "gold", "kept"),
    [
        ("B", ["owl", "otter"], "B", None),
        (["B"], ["owl", "otter"], "B", None),
        (["B", "b "], ["owl", "otter"], "B", None),
        (["A", "C"], ["trout", "owl", "salmon"], None, ["A", "C"]),
        ([], ["owl", "otter"], None, None),
        ("", ["owl", "otter"], None, None),
        ("nan", ["owl", "otter"], None, None),
        ("None", ["owl", "None"], "B", None),
        ("B", ["(A) owl", "(B) otter"], "B", None),
        (["nine", "9"], None, "9", None),
        (["9", "9.0"], None, "9", None),
        (["9", "10"], None, None, ["9", "10"]),
        (["Paris", "paris"], None, "Paris", None),
        (["Paris", "Lutetia"], None, None, ["Paris", "Lutetia"]),
        ([], None, None, None),
        ("None", None, None, None),
    ],
)
def test_targets_of_inspect_are_one_answer_or_none(
    tmp_path: Path, target: Any, choices: list[str] | None, gold: str | None, kept: Any
) -> None:
    chain = logged(tmp_path, target, choices)
    assert (chain.gold, chain.labels.get("targets")) == (gold, kept)
    if choices is not None:
        assert chain.answer == "A"
        assert chain.options == tuple(c.removeprefix("(A) ").removeprefix("(B) ") for c in choices)


def test_choices_of_inspect_whose_letters_are_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="sample 's', epoch 1: the options that the data calls A, "):
        logged(tmp_path, "A", ["(B) owl", "(A) otter"])
    with pytest.raises(UserError, match="option B is empty"):
        logged(tmp_path, "A", ["owl", ""])


def test_a_score_of_inspect_that_is_nan_is_unknown(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.scorer import Score

    chain = logged(tmp_path, "9", scores={"g": Score(value=float("nan")), "h": Score(value=1)})
    assert chain.labels == {"score_g": None, "score_h": 1}


def sample_of(*messages: Any) -> SourceRow:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatCompletionChoice, ModelOutput

    output = ModelOutput(choices=[ChatCompletionChoice(message=messages[-1])])
    sample = EvalSample(
        id=1, epoch=1, input="Which?", target="otter", messages=list(messages), output=output
    )
    spec = SimpleNamespace(dataset=SimpleNamespace(name="zoo"), task="zoo", model="m")
    return SourceRow("1", {"sample": sample, "eval": spec}, "log.eval, sample 1")


def test_replies_in_logs_of_inspect() -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageTool,
        ChatMessageUser,
        ContentReasoning,
        ContentText,
    )

    user = ChatMessageUser(content="Which swims?")
    marked = ChatMessageAssistant(content=f"[THINK]{THOUGHT}[/THINK]{SAID}")
    parts = ChatMessageAssistant(content=[ContentReasoning(reasoning="Hm."), ContentText(text="")])
    chain = inspect_chain(sample_of(user, marked))
    assert (chain.reasoning, chain.answer) == (THOUGHT, SAID)
    chain = inspect_chain(sample_of(user, parts, marked))
    assert (chain.reasoning, chain.answer) == (f"Hm.\n\n{THOUGHT}", SAID)
    with pytest.raises(UserError, match=r"log\.eval, sample 1: message 1 is of a tool"):
        inspect_chain(sample_of(user, ChatMessageTool(content="4"), marked))


@pytest.mark.slow
def test_a_log_that_does_not_fit_into_memory_is_no_damaged_log(tmp_path: Path) -> None:
    logged(tmp_path, "2")
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path) as log:
        files = {entry.filename: log.read(entry) for entry in log.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as log:
        for name, content in files.items():
            blanks = b" " * (300 << 20) if name.startswith("samples/") else b""
            log.writestr(name, blanks + content)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + (200 << 20), hard))
    try:
        with pytest.raises(UserError, match="does not fit into the memory that is left"):
            read_chains(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
