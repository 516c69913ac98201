"""Every measure and parser gives the stored numbers of its version, so that no run mixes two.

A failure means that the numbers of a measure have changed on the same traces. If that is intended,
raise the version that the failure names (users' runs then measure again and never mix), and record
the new numbers: `FAITHSCOPE_WRITE_NUMBERS=1 pytest tests/test_versions.py`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from broken_chain import CHAIN
from planted_traces import ASKING, asking_of, planted
from rf_outputs import outputs
from rf_posed import TABLE
from sample_trace import asking, written
from tiny_models import DEVICE, tiny

from faithscope.experiments.data import answers, choices
from faithscope.experiments.studies.rfeval import units as rfeval
from faithscope.experiments.studies.rfeval.config_sections import InsideConfig
from faithscope.experiments.studies.rfeval.judging.scored_stances import scored_stances
from faithscope.experiments.studies.rfeval.subjects import parsing
from faithscope.experiments.studies.rfeval.subjects.inside import look_inside
from faithscope.interventions import Trace
from faithscope.interventions.segment import SEGMENTATION, segment
from faithscope.probes import PROBES
from faithscope.probes.broken_chain import BROKEN_STEP
from faithscope.probes.broken_step import BrokenStepSettings, broken_step
from faithscope.probes.judge import parse
from faithscope.probes.judge.form import Ask, Field, Form
from faithscope.probes.messages import Message
from faithscope.probes.probe import OtherChain, Probe

GOLDEN = Path(__file__).parent / "golden_numbers.json"
WRITE = "FAITHSCOPE_WRITE_NUMBERS"
RANKED = ("reader_", "receiver_")
"""Prefixes of fields that rank heads by stored numbers; left out, since two may nearly tie."""
FEW = 48
"""Longest list stored whole; of longer ones, and of arrays, length, sum, sum of squares and
middle."""
ASKED = {"asked": "Well?", "direct_prompts": {"short": Message("Well? Briefly.", None)}}
TEXTS = [
    "So 3 + 4 makes 7. The acting was superb!\n\nStep 2: now 1,234.5 - 0.5 = 1234. Hmm, well.",
    "1. First, it is dull.\n2. It is not good.\n3. So: negative.\nAnswer: \\boxed{\\frac{1}{2}}",
    "**Answer: B** or not (C)? The final answer is $-12$. positive, not negative",
    "三盒每盒四支笔，共十二支。丢了2支笔，还剩10支。答案是B。"
    "It would be positive if \\boxed{12\\text{ cm}^2}.",
    "**Answer: D**\n- Option A: incorrect, 2 fins\n#### 12 out of 20\n\nQuestion: 4 and 5?\n#### 9",
]
REPLIES = [
    '{"score": 3, "why": "so"}',
    'Well: {"score": 1, "why": "a"}',
    '<think>{"score": 0}</think>```json\n{"score": 2, "why": "\\(x\\)", "more": 1}\n```',
    '{"score": 9, "why": "out of range"}',
    '{"score": 1} and {"score": 2}',
    "I decline.",
    'It is 3.</think>{"score": 1, "why": "a"}',
    'It is 3.</think>{"score": 3, "why": "b"}',
]
OUTPUTS = [
    "<think>\nIt is A.</think>\nI explain.\n\nAnswer: B",
    "No block at all. The answer is C.",
    "<think>never ends",
    "<think>\nprogram</think>\n```python\nprint(1)\n```",
    "<think>It may write <think>12</think> there.</think>\nI explain.\n\nAnswer: B",
    "<seed:think>It is A.</seed:think>\nI explain.\n\nAnswer: B",
]


class Measured(NamedTuple):
    version: int
    raised_in: str
    records: Callable[[], Iterable[Mapping[str, Any]]]


def probed(name: str) -> list[dict[str, Any]]:
    """Records of a probe on planted models, with clear answers, and on random weights, without."""
    probe = PROBES[name]
    fields = probe.settings.model_fields
    short = {"answer_tokens": 4, "regenerate_tokens": 12, "points": 4}
    settings = probe.settings(**{k: v for k, v in short.items() if k in fields})
    given = [planted(kind) for kind in ("faithful", "mixture_50")]
    found = [
        r
        for model, traces in given
        for asked in [asking_of(traces[1]) if "cues" in probe.words else ASKING]
        for more in [beside(probe, traces[2:])]
        for r in probe.measure(model, prefilled(traces[1]), asked, settings, **more)
    ]
    llama = tiny("llama")
    chain, more = prefilled(written(llama)), beside(probe, planted("faithful")[1])
    return [*found, *probe.measure(llama, chain, asking(**ASKED), settings, **more)]


def beside(probe: Probe, traces: Sequence[Trace]) -> dict[str, Any]:
    """The other chains that a probe takes."""
    others = [
        OtherChain(t.question.id, t.question.text, t.reasoning_text, t.answer) for t in traces
    ]
    return {"others": others[: probe.takes_others]} if probe.takes_others else {}


def prefilled(trace: Trace) -> Trace:
    """A chain whose first half counts as prefilled, of which only one probe makes anything."""
    n = len(trace.reasoning_ids) // 2
    return replace(trace, origin=replace(trace.origin, prefilled=n))


def segmented() -> Iterable[dict[str, Any]]:
    for text in TEXTS:
        pieces = text.split(" ")
        pieces = [*(f"{p} " for p in pieces[:-1]), pieces[-1]]
        for mode in ("auto", "numbered", "sentences", "paragraphs"):
            steps = segment(pieces, mode, min_chars=15)
            yield {"mode": mode, "steps": [[*s.tokens, s.counted] for s in steps]}


def answered() -> Iterable[dict[str, Any]]:
    words = ("positive", "negative")
    for text in TEXTS:
        yield {
            "label": [answers.last_label(text, words), answers.first_label(text, words)],
            "number": [answers.last_number(text), answers.first_number(text)],
            "choice": [choices.last_choice(text, 4), choices.first_choice(text, 4)],
        }


def replied() -> Iterable[dict[str, Any]]:
    fields = (Field("score", "integer", 0, 3), Field("why", "text"))
    ask = Ask(
        "x", Form("made", "How? {text}", fields, "score"), {"text": '{"score": 1, "why": "a"}'}
    )
    for text in REPLIES:
        reading = parse.read(ask, text)
        yield {"outcome": reading.outcome, "values": dict(reading.values)}


def taken_apart() -> Iterable[dict[str, Any]]:
    for text in OUTPUTS:
        for thinking in ("opened", "written", "unmarked"):
            output = parsing.parse_output(text, thinking)
            yield {"parts": [output.reasoning, output.explanation, output.answer, output.outcome]}


def measures() -> dict[str, Measured]:
    llama = cache(lambda: tiny("llama"))
    inside = InsideConfig(points=4)
    of = rfeval.VERSIONS
    units = "VERSIONS of experiments/studies/rfeval/units.py"
    return {
        **{
            name: Measured(
                probe.version,
                f"`@probe(…, version=…)` of probes/{name}.py",
                lambda name=name: probed(name),
            )
            for name, probe in PROBES.items()
        },
        "broken_step": Measured(
            BROKEN_STEP,
            "BROKEN_STEP of probes/broken_chain.py",
            lambda: broken_step(llama(), CHAIN, BrokenStepSettings()),
        ),
        "rf_log_probs": Measured(of[rfeval.LOG_PROBS], units, lambda: rf_stances(llama())),
        "rf_inside": Measured(
            of[rfeval.INSIDE], units, lambda: look_inside(llama(), TABLE, outputs(llama()), inside)
        ),
        "segmentation": Measured(
            SEGMENTATION, "SEGMENTATION of interventions/segment.py", segmented
        ),
        "answers": Measured(answers.ANSWERS, "ANSWERS of experiments/data/answers.py", answered),
        "replies": Measured(parse.REPLIES, "REPLIES of probes/judge/parse.py", replied),
        "rf_parts": Measured(
            parsing.PARTS, "PARTS of experiments/studies/rfeval/subjects/parsing.py", taken_apart
        ),
    }


def rf_stances(model: Any) -> Iterable[dict[str, Any]]:
    for start, generated in outputs(model).values():
        yield from scored_stances(model, TABLE, start, generated)


def plain(value: Any) -> Any:
    """A value in the form that is stored: short, without differences between machines."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items() if not str(k).startswith(RANKED)}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, str) and os.path.isabs(value):
        return Path(value).name
    if isinstance(value, tuple | list):
        if len(flat := numbers(value)) > FEW:
            squares = math.fsum(x * x for x in flat)
            return [len(flat), math.fsum(flat), squares, flat[len(flat) // 2]]
        return [plain(v) for v in value]
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


def numbers(value: Any) -> list[float]:
    if isinstance(value, tuple | list):
        return [x for v in value for x in numbers(v)]
    return [float(value)] if isinstance(value, int | float) and math.isfinite(value) else []


def record_of(measured: Measured) -> dict[str, Any]:
    found = [plain(r) for r in measured.records()]
    assert found
    return {"version": measured.version, "records": json.loads(json.dumps(found))}


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Places at which two records differ by more than rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = list(dict.fromkeys([*one, *other]))
        return [d for k in keys for d in differences(one.get(k), other.get(k), f"{at}.{k}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{at}[{i}]")]
    numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (one, other))
    if numeric and math.isclose(one, other, rel_tol=2e-3, abs_tol=2e-4):
        return []
    return [] if one == other else [f"{at}: {one!r} is {other!r} now"]


def golden() -> dict[str, Any]:
    return json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.is_file() else {}


NAMES = list(measures())
SLOW = {"fur": pytest.mark.slow}
"""It trains."""


@pytest.mark.skipif(DEVICE != "cpu", reason="the numbers are those of a CPU")
@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, ())) for n in NAMES])
def test_numbers_are_those_of_the_version(name: str) -> None:
    measured = measures()[name]
    known, now = golden().get(name, {}), record_of(measured)
    raised = known.get("version") != now["version"]
    found = differences(known.get("records"), now["records"], name)
    if raised and os.environ.get(WRITE):
        lines = golden() | {name: now}
        text = ",\n".join(f"{json.dumps(n)}: {json.dumps(lines[n])}" for n in sorted(lines))
        GOLDEN.write_text(f"{{\n{text}\n}}\n", "utf-8")
        return
    assert not raised, f"a new version of {name}: write its numbers down, with {WRITE}=1"
    assert not found, (
        f"numbers of {name} have changed, and its version has not ({found[:3]}); where that is "
        f"meant, raise {measured.raised_in}"
    )


def test_every_measure_is_written_down() -> None:
    assert sorted(golden()) == sorted(NAMES)
