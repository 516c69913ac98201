"""A small run of every study: with models that stand here, and with models behind an API."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import c2_runs
import faithcot_runs
import rf_runs
import speaking_server
import yaml
from fault_server import Behaviour, FaultServer, Handler, completion, waits
from run_files import write_rows
from tiny_models import saved, tiny

from faithscope.experiments.config.load import load_config

API = "api:openai/gpt-4.1"
CONNECTIONS = 2
"""Calls to an API at the same time."""


@dataclass(frozen=True)
class Setting:
    """What a run of a study is written for: a folder, the models, the address of the API."""

    folder: Path
    models: Mapping[str, str]
    url: str = ""

    @property
    def asked(self) -> dict[str, Any]:
        """How a model behind the API is asked."""
        return {"base_url": self.url, "max_retries": 0, "max_connections": CONNECTIONS}

    def config(self, **values: Any) -> Path:
        path = self.folder / f"{values['name']}.yaml"
        path.write_text(yaml.safe_dump(values | {"out": str(self.folder / "runs")}))
        return path


@dataclass(frozen=True)
class Case:
    """A run of a study with models here, and one with models behind an API."""

    here: Callable[[Setting], Path]
    """Writes the config, whose run folder goes below the folder."""
    over_api: Callable[[Setting], Path]
    stages: tuple[str, ...]
    """Stages of the run with local models, in the order in which they are stored."""
    replies: Callable[[str], str] = str
    """What the model behind the API writes where no form is asked of it, by the messages."""
    builds: bool = field(default=False, kw_only=True)
    """Whether the API is asked for items before these can be shared out."""


def run_folder(path: Path) -> Path:
    return load_config(path).run_dir


def models(folder: Path) -> dict[str, str]:
    """Folders of tiny models: `plain` says anything, `chain` writes outputs of its own."""
    return {
        "plain": saved(tiny("llama", max_position_embeddings=8192), folder / "plain"),
        "chain": saved(rf_runs.chain_model(), folder / "chain"),
    }


def filled(schema: Mapping[str, Any], number: int) -> Any:
    """A value of a form, chosen by the number."""
    if schema.get("type") == "object":
        fields = schema["properties"].items()
        return {name: filled(of, number + i) for i, (name, of) in enumerate(fields)}
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    if schema.get("type") == "integer":
        low = schema.get("minimum", 0)
        return low + number % (1 + schema.get("maximum", low + 2) - low)
    return number % 2 == 1 if schema.get("type") == "boolean" else "as it is written"


def serves(case: Case, seconds: float = 0.0) -> Behaviour:
    """The model behind the API: what it replies hangs on the messages alone.

    Args:
        seconds: that a reply takes.
    """

    def behave(handler: Handler) -> None:
        request = handler.request_body
        messages = json.dumps(request["messages"])
        if "response_format" in request:
            number = hashlib.sha256(messages.encode()).digest()[0]
            schema = request["response_format"]["json_schema"]["schema"]
            text = json.dumps(filled(schema, number))
        else:
            text = case.replies(messages)
        handler.send(200, completion(text))

    return waits(seconds, behave) if seconds else behave


def asked(server: FaultServer) -> Counter[str]:
    """How often each prompt was put to each model."""
    return Counter(json.dumps([body["model"], body["messages"]]) for body in server.bodies)


# --- the studies


def _slrc(at: Setting) -> Path:
    return at.config(
        name="slrc",
        model={"name": ["planted:faithful", "planted:hint"]},
        tasks=["planted"],
        data={"limit": 4},
        generation={"batch_size": 2},
        probes=["slrc", "tracing", "attention"],
        slrc={"edits": ["remove", "corrupt"]},
        judges={"model": at.models["plain"], "batch_size": 2, "max_tokens": 16, "forms": _ALSO},
        report={"traces": 1, "bootstrap": 20},
    )


def _slrc_over_api(at: Setting) -> Path:
    return at.config(
        name="slrc",
        model={"name": API},
        api=at.asked,
        tasks="sequential_math",
        data={"limit": 2},
        generation={"batch_size": 1},
        probes=["slrc", "sycophancy"],
        slrc={"edits": ["remove", "corrupt"]},
        judges=at.asked | {"model": API, "structured": "schema", "forms": _ALSO},
        report={"bootstrap": 20},
    )


_ALSO = ["faithful_judge"]


def _sums(messages: str) -> str:
    return speaking_server.reply_to(json.loads(messages)[-1]["content"])


def _c2faith(at: Setting) -> Path:
    plain = at.models["plain"]
    judge = {"model": plain, "readings": ["generated", "scored"]}
    return c2_runs.config(at.folder, judge, reference=plain, internals={"model": plain})


def _c2faith_over_api(at: Setting) -> Path:
    written = {"levels": [0.5], "acausal": "llm", "writer": API, "temperature": 0.0}
    path = c2_runs.config(
        at.folder, at.asked | {"model": API, "structured": "schema"}, perturb=written
    )
    prompt = {"task": "acausal", "source": "a test", "ours": True}
    prompt["template"] = "Rewrite {target_step} after {context}"
    (at.folder / "prompts/c2_acausal.yaml").write_text(yaml.safe_dump(prompt))
    return path


def _rewritten(messages: str) -> str:
    number = int.from_bytes(hashlib.sha256(messages.encode()).digest()[:2])
    return f"So x is {number}, as we have seen."


def _rfeval(at: Setting) -> Path:
    cases = [
        rf_runs.Case("follows"),
        rf_runs.Case("resists", r_prime="He was away!"),
        rf_runs.Case("stops_nowhere", r_prime="He was away?"),
        rf_runs.Case("number", task="mathematical_reasoning"),
    ]
    return rf_runs.config(
        at.folder,
        cases,
        at.models["chain"],
        generate={"max_new_tokens": 16, "batch_size": 1},
        judge={"model": at.models["plain"], "structured": "schema", "batch_size": 2},
        log_probs=True,
        inside={"model": at.models["chain"], "points": 3},
    )


def _rfeval_over_api(at: Setting) -> Path:
    return rf_runs.config(
        at.folder,
        [rf_runs.Case(name) for name in ("one", "two", "three")],
        API,
        generate={"batch_size": 1},
        api=at.asked,
        judge=at.asked | {"model": "api:openai/gpt-4o", "structured": "schema"},
    )


def _chosen(messages: str) -> str:
    letter = "AB"[hashlib.sha256(messages.encode()).digest()[0] % 2]
    return f"The seller kept the goods, and that decides it. Answer: {letter}"


def _judge(at: Setting) -> Path:
    judges = {"model": at.models["plain"], "batch_size": 2, "max_tokens": 32, "forms": _FORMS}
    return at.config(name="judge", traces=_solved(at), judges=judges, report={"bootstrap": 20})


def _judge_over_api(at: Setting) -> Path:
    judges = at.asked | {"model": API, "structured": "schema", "batch_size": 1, "forms": _FORMS}
    return at.config(name="judge", traces=_solved(at), judges=judges, report={"bootstrap": 20})


_FORMS = ["step_judge", "faithful_judge", "c2_localisation"]


def _solved(at: Setting) -> dict[str, Any]:
    """Solved problems as ProcessBench has them, the second with a wrong step."""
    steps = ["We add: 3 + 4 = {}.", "So there are {} apples in all."]
    rows = [
        {
            "id": f"gsm8k-{i}",
            "generator": "a model",
            "problem": "How many apples are 3 and 4 apples?",
            "steps": [step.format(7 + i) for step in steps],
            "final_answer_correct": i == 0,
            "label": -1 if i == 0 else 0,
        }
        for i in range(3)
    ]
    return {"path": str(write_rows(at.folder / "solved.jsonl", *rows))}


def _faithcot(at: Setting) -> Path:
    plain = at.models["plain"]
    return faithcot_runs.config(at.folder, plain, plain)


def _faithcot_over_api(at: Setting) -> Path:
    return faithcot_runs.config(
        at.folder,
        API,
        API,
        n=3,
        api=at.asked,
        judges=at.asked
        | {"model": "api:openai/gpt-4o", "structured": "schema", "readings": "generated"}
        | {"forms": ["step_judge", "faithful_judge"], "prompts": str(at.folder / "prompts")},
        generation={"batch_size": 1},
        probes=["slrc"],
        slrc={"edits": ["remove"]},
    )


def _toy(at: Setting) -> Path:
    judge = {"model": at.models["plain"], "structured": "prompt", "max_tokens": 16, "batch_size": 2}
    return at.config(name="toy", benchmark="toy", judge=judge)


def _toy_over_api(at: Setting) -> Path:
    judge = at.asked | {"model": [API, "api:openai/gpt-4o"], "batch_size": 2}
    return at.config(name="toy", benchmark="toy", judge=judge)


def _word(messages: str) -> str:
    return "many"


CASES = {
    "toy": Case(_toy, _toy_over_api, ("word", "length"), _word),
    "slrc": Case(
        _slrc,
        _slrc_over_api,
        ("traces", "slrc", "tracing", "attention", "judge_generated", "judge_scored"),
        _sums,
    ),
    "c2faith": Case(
        _c2faith,
        _c2faith_over_api,
        ("judge_generated", "judge_scored", "broken_step"),
        _rewritten,
        builds=True,
    ),
    "judge": Case(_judge, _judge_over_api, ("judge_generated", "judge_scored")),
    "rfeval": Case(
        _rfeval,
        _rfeval_over_api,
        ("rf_baseline", "rf_intervened", "rf_log_probs", "rf_inside", "rf_judged"),
        _chosen,
    ),
    "faithcot": Case(
        _faithcot,
        _faithcot_over_api,
        (
            "traces",
            "causal_effects",
            "tracing",
            "information",
            "option_shuffling",
            "written_edits",
            "edited_answers",
            "judge_generated",
        ),
        _chosen,
    ),
}
