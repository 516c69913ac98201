"""Small runs of RFEval: what a model writes and what a judge says of it, both made up by hand.

A `Case` is an item with both outputs and both judgements. The model behind `completions` writes
the outputs, token ids in and out; the judge behind `judges` gives the judgements. `chain_model`
writes outputs of its own, by weights: the last mark of the prompt decides which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import completions_server
import fault_server
import pytest
import torch
import yaml
from fault_server import KEY
from run_files import write_yaml
from tiny_models import byte_tokenizer, tiny

from faithscope.interp.loading import wrap
from faithscope.interp.model import Model

END = "<|im_end|>"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}" + END + "\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
POSITIONS = 2048
NEW_TOKENS = 300
R_PRIME = "He was away, so it is A."


@dataclass(frozen=True)
class Said:
    """One output: its stances in the order of its parts, and what is wrong with it, if anything."""

    stances: Sequence[str] = ("B", "B", "B")
    """Stances of r, e and a, in an intervened output preceded by that of r′; "" = no
    explanation."""
    flaws: Sequence[str] = ()
    """The links at which the later part names a flaw in the earlier: `pr`, `re`, `ea`, `ra`."""
    text: str | None = None
    """Text of the output; None = made from the stances."""
    ends: bool = True
    """Whether the model ends it, not the limit."""
    reply: str | None = None
    """Reply of the judge; None = made from the stances."""

    @property
    def written(self) -> str:
        if self.text is not None:
            return self.text
        r, e, a = self.stances[-3:]
        explained = f"It was {e}, I explain.\n\n" if e else ""
        return f"I think of {r}.</think>{explained}Answer: {a}"

    @property
    def judgement(self) -> str:
        if self.reply is not None:
            return self.reply
        names = ["model_reasoning", "model_explanation", "model_final_answer"]
        first = names[0]
        if len(self.stances) == 4:
            first = "model_subsequent_reasoning"
            names = ["counterfactual_reasoning", first, *names[1:]]
        e, a = "model_explanation", "model_final_answer"
        links = {"re": f"{first}_to_{e}", "ea": f"{e}_to_{a}", "ra": f"{first}_to_{a}"}
        if len(self.stances) == 4:
            links["pr"] = f"counterfactual_reasoning_to_{first}"
        parts = zip(names, self.stances, strict=True)
        return json.dumps(
            {
                "stance_analysis": {n: {"stance": s} if s else None for n, s in parts},
                "transition_analysis": {
                    name: {"identifies_flaw": link in self.flaws} for link, name in links.items()
                },
            }
        )


@dataclass(frozen=True)
class Case:
    """An item, and what becomes of it."""

    name: str
    baseline: Said = field(default_factory=Said)
    intervened: Said = field(default_factory=lambda: Said(("A", "A", "A", "A")))
    r_prime: str = R_PRIME
    task: str = "legal_decision"

    @property
    def item(self) -> str:
        return f"{self.task}/{self.name}"

    @property
    def row(self) -> dict[str, Any]:
        """The item as a row of the released data, whose question has a mark that servers know it
        by."""
        code, free = self.task == "code_generation", self.task == "mathematical_reasoning"
        tests = json.dumps([{"input": "3", "output": "6", "testtype": "stdin"}])
        content = {"source": "made up"} | ({"public_test_cases": tests} if code else {})
        return {
            "task": self.task,
            "id": self.name,
            "question": f"item={self.name}; Who?",
            "options": None if free or code else ["one", "two", "three"],
            "answer": "" if code else "17" if free else "B: two",
            "content": content,
            "r_prime": self.r_prime,
            "explanation": "He was there.",
        }


def thinking_tokenizer(*more: str) -> Any:
    """Bytes, the end of a turn, and further tokens; its chat template opens the reasoning."""
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens({"eos_token": END})
    tokenizer.add_tokens(list(more))
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def thinking_model() -> Model:
    """A tiny random model with a chat template; the scripted server only borrows its words."""
    model = tiny("llama", vocab_size=260, max_position_embeddings=POSITIONS)
    return wrap(model.hf, thinking_tokenizer(), name="tiny:thinking")


SPOKEN = {
    "\n": ("It is B.", "</think>", "So I say.\n\n", "Answer: B", END),
    ".": ("Then A.", "\n</think>", "As he said.\n\n", "Answer: A", END),
    "!": ("No, B.", " </think>", "That was wrong.\n\n", "Final answer: B", END),
    "?": ("Hm, hm, hm.", "Hm, hm, hm."),
}
"""Last mark of a prompt -> what the chain model writes after it. No token is in two of these but
the end: the next one hangs on the last alone."""


def chain_model() -> Model:
    """A model that writes what `SPOKEN` has, whatever it was asked."""
    steps = [pair for mark, sentences in SPOKEN.items() for pair in pairwise((mark, *sentences))]
    tokenizer = thinking_tokenizer(*dict.fromkeys(t for _, t in steps if t != END))
    model = tiny("llama", vocab_size=len(tokenizer), max_position_embeddings=POSITIONS)
    hf: Any = model.hf
    with torch.no_grad():
        for layer in hf.model.layers:
            layer.self_attn.o_proj.weight.mul_(0.02)
            layer.mlp.down_proj.weight.mul_(0.02)
        seen = hf.model.embed_tokens.weight
        hf.lm_head.weight.mul_(0.02)
        for before, after in steps:
            (last,) = tokenizer.encode(before, add_special_tokens=False)
            row = tokenizer.convert_tokens_to_ids(after)
            hf.lm_head.weight[row] += 3 * seen[last] / seen[last].norm()
    return wrap(hf, tokenizer, name="tiny:chain")


def short_prompts(folder: Path) -> Path:
    """Short forms without the fields that only explain: a byte is a token to a tiny judge."""
    path = folder / "prompts"
    path.mkdir(exist_ok=True)
    for condition in ("baseline", "intervened"):
        text = resources.files("faithscope.experiments.studies.rfeval.prompts").joinpath(
            f"rf_{condition}.yaml"
        )
        form = yaml.safe_load(text.read_text("utf-8"))
        form["fields"] = [f for f in form["fields"] if f["kind"] != "text"]
        shown = "{problem} {stances} {r_prime} {reasoning} {explanation} {answer}"
        if condition == "baseline":
            shown = shown.replace("{r_prime} ", "")
        form["template"] = f"{condition}: {shown}"
        (path / f"rf_{condition}.yaml").write_text(yaml.safe_dump(form))
    return path


def data(folder: Path, cases: Iterable[Case]) -> Path:
    """A file per task, as the benchmark is released."""
    path = folder / "data"
    path.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[str]] = {}
    for case in cases:
        rows.setdefault(case.task, []).append(json.dumps(case.row) + "\n")
    for task, of in rows.items():
        (path / f"{task}.jsonl").write_text("".join(of))
    return path


def config(folder: Path, cases: Iterable[Case], subject: str, **changes: Any) -> Path:
    """A run's config over these cases, with `subject` as model and judge if nothing else is
    said; of a section that is changed, the other keys stay."""
    values: dict[str, Any] = {
        "name": "rf",
        "benchmark": "rfeval",
        "out": str(folder / "runs"),
        "data": {"path": str(data(folder, cases))},
        "prompts": str(short_prompts(folder)),
        "model": {"name": subject, "device": "cpu"},
        "generate": {"max_new_tokens": NEW_TOKENS, "repetition_penalty": 1.0},
        "judge": {"model": subject, "max_tokens": 64, "batch_size": 2, "device": "cpu"},
        "log_probs": False,
        "report": {"bootstrap": 20, "pairs": 3},
    }
    for key, value in changes.items():
        default: Any = values.get(key)
        both = isinstance(value, dict) and isinstance(default, dict)
        values[key] = default | value if both else value
    return write_yaml(folder / f"{values['name']}.yaml", values)


@dataclass
class Servers:
    """The model that is measured and the judge, behind servers, by what the cases have."""

    model: str
    """The folder whose tokenizer the outputs are in."""
    completions: completions_server.CompletionsServer
    judge: fault_server.FaultServer
    refused: set[tuple[str, str]] = field(default_factory=set)
    """(item, condition) at which the model's server fails."""

    def config(self, folder: Path, cases: Sequence[Case], **changes: Any) -> Path:
        """A config of a run over the servers, which play these cases from now on."""
        self.plays(cases)
        generate = {"backend": "vllm-server", "endpoints": [self.completions.url]}
        judge = {"model": "api:openai/gpt-4.1", "base_url": self.judge.url, "max_retries": 0}
        judge |= {"structured": "prompt", "attempts": 1}
        both = {"generate": generate, "judge": judge}
        for section in both:
            both[section] |= changes.pop(section, {})
        return config(folder, cases, self.model, **both, **changes)

    def plays(self, cases: Sequence[Case]) -> None:
        """Let both servers act out the cases; each says which item it is by the mark in it."""
        by_name = {case.name: case for case in cases}
        speaks = self.completions.model

        def writes(handler: completions_server.Handler) -> None:
            asked = handler.asked
            prompt = speaks.decode(asked["prompt"])
            case = by_name[_MARK.search(prompt)[1]]  # pyright: ignore[reportOptionalSubscript]
            condition = "baseline" if prompt.endswith("<think>\n") else "intervened"
            if (case.name, condition) in self.refused:
                completions_server.fails(400, "no such luck")(handler)
                return
            output = getattr(case, condition)
            (end,) = asked["stop_token_ids"]
            ids = [*speaks.encode(output.written), end]
            if not output.ends:
                ids = list(speaks.encode("and on " * asked["max_tokens"]))[: asked["max_tokens"]]
            choice = {
                "index": 0,
                "text": "never read",
                "finish_reason": "stop" if output.ends else "length",
                "token_ids": ids,
                "prompt_token_ids": asked["prompt"],
            }
            whole = {"id": "x", "object": "text_completion", "created": 1, "model": asked["model"]}
            handler.send(200, whole | {"choices": [choice]})

        def judges(handler: fault_server.Handler) -> None:
            messages = json.dumps(handler.request_body["messages"])
            case = by_name[_MARK.search(messages)[1]]  # pyright: ignore[reportOptionalSubscript]
            output = case.intervened if "intervened: item=" in messages else case.baseline
            fault_server.says(output.judgement)(handler)

        # all that the run asks begins as the chat template does; the probe of `connect` does not
        first = speaks.encode(TEMPLATE[TEMPLATE.index("<|im_start|>") :][:1])[0]
        self.completions.plan[first] = [writes]
        self.judge.plan = {case.name: [judges] for case in cases}


_MARK = re.compile(r"item=([^;]*);")


@contextmanager
def serving(model: str) -> Iterator[Servers]:
    """Both servers until the block ends, with `KEY` as their key; `model` is `thinking_model`,
    saved."""
    with (
        pytest.MonkeyPatch.context() as patch,
        completions_server.CompletionsServer(thinking_model(), key=KEY, root=model) as completions,
        fault_server.FaultServer() as judge,
    ):
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("VLLM_API_KEY", KEY)
        yield Servers(model, completions, judge)
