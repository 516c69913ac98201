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


def read_samples(tmp_path: Path, *samples: Any) -> Any:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, write_eval_log

    spec = EvalSpec(
        task="zoo",
        created="2025-01-01T00:00:00+00:00",
        dataset=EvalDataset(name="zoo"),
        model="m",
        config=EvalConfig(),
    )
    kept = [s.values["sample"].model_copy(update={"id": str(i)}) for i, s in enumerate(samples)]
    write_eval_log(EvalLog(eval=spec, samples=kept), str(tmp_path / "log.eval"))
    return read_chains(tmp_path / "log.eval")


def test_a_sample_with_tools_is_left_out_and_the_log_is_read(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser

    user = ChatMessageUser(content="Which swims?")
    reply = ChatMessageAssistant(content=f"<think>{THOUGHT}</think>{SAID}")
    with_tools = sample_of(user, ChatMessageTool(content="4"), reply)
    read = read_samples(tmp_path, with_tools, sample_of(user, reply))
    assert [c.reasoning for c in read.chains] == [THOUGHT]
    assert list(read.left_out.values()) == [1]
    with pytest.raises(UserError, match=r"every sample is left out \(tools were called"):
        read_samples(tmp_path, with_tools)


def test_conversations_and_pictures_in_logs_are_refused() -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        ContentImage,
        ContentText,
    )

    user, reply = ChatMessageUser(content="Which swims?"), ChatMessageAssistant(content=SAID)
    picture = [ContentText(text="What is it?"), ContentImage(image="data:image/png;base64,AAAA")]
    assert inspect_chain(sample_of(ChatMessageSystem(content="S"), user, reply)).prompt == (
        "S\n\nWhich swims?"
    )
    doubt = ChatMessageUser(content="Are you sure?")
    thought = ChatMessageAssistant(content=f"<think>{THOUGHT}</think>{SAID}")
    chain = inspect_chain(sample_of(ChatMessageSystem(content="S"), user, thought, doubt, thought))
    assert (chain.reasoning, chain.prompt) == (THOUGHT, None)
    assert chain.sent is not None
    turns = (
        ("system", "S"),
        ("user", "Which swims?"),
        ("assistant", SAID),
        ("user", "Are you sure?"),
    )
    assert chain.sent.prompt == turns
    for messages, problem in (
        ((reply, user, reply), "the roles of its messages are assistant, user, assistant"),
        ((ChatMessageUser(content=picture), reply), r"message 0 \(user\) holds .* type 'image'"),
        ((user, ChatMessageAssistant(content=picture)), r"message 1 \(assistant\) holds"),
    ):
        with pytest.raises(UserError, match=f"sample 1: .*{problem}"):
            inspect_chain(sample_of(*messages))


def test_summaries_and_blocks_held_as_text_are_reasoning() -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ContentReasoning

    blocks = (
        f'[{{"type": "reasoning.text", "text": "{THOUGHT}"}}, {{"type": "reasoning.encrypted"}}]'
    )
    for block in (
        ContentReasoning(reasoning="", summary=THOUGHT),
        ContentReasoning(reasoning="gAAA=", summary=THOUGHT, redacted=True),
        ContentReasoning(reasoning=THOUGHT, summary="In short."),
        ContentReasoning(reasoning=blocks),
    ):
        reply = ChatMessageAssistant(content=[block])
        chain = inspect_chain(sample_of(ChatMessageUser(content="Which swims?"), reply))
        assert chain.reasoning == THOUGHT


def test_metadata_of_a_score_are_labels(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.scorer import Score

    from faithscope.experiments.data.tasks.sources.rows import files_read
    from faithscope.experiments.engine.tallies.input_report import unused_columns

    metadata = {"faithful": 1, "note": "x" * 50}
    scores = {"g": Score(value=1, metadata=metadata), "h": Score(value={"a": 1, "b": 0})}
    with files_read() as files:
        chain = logged(tmp_path, "9", scores=scores)
    assert chain.labels == {"score_g": 1, "score_g_faithful": 1, "score_h_a": 1, "score_h_b": 0}
    assert list(unused_columns(files).values()) == [("scores.g.metadata.note",)]


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
