"""Steering of a model that follows the hint half of the time, the outcomes by hand, refusals."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from alike import assert_alike
from edited_alone import written_alone
from planted_traces import ASKING, planted
from pydantic import ValidationError
from sample_trace import asking, written
from tiny_models import saved, tiny

from faithscope import measure
from faithscope.experiments.cli import execute
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.data.planted.data import (
    ANSWER_CUE,
    DIGITS,
    Problem,
    draw_problem,
    result_of,
    write_steps,
)
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.plan import plan
from faithscope.interp.directions import Direction, save_directions
from faithscope.interp.edits import Steer
from faithscope.interp.errors import NoRoom, UserError
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model
from faithscope.interventions import Given, Origin, Question, Trace, from_ids
from faithscope.probes import Record
from faithscope.probes.answer_token import token_span
from faithscope.probes.steering import SteeringSettings, steering

HINT, LAYER = 7, 2
DIGIT = "Hint : ([0-9])"
DOSES = (-0.25, -0.1, 0.0, 0.1, 0.25)


def problems(n: int, seed: int, hints: tuple[int, ...]) -> list[tuple[Problem, int]]:
    """Problems whose hint is one of `hints` and not the result of their steps, with the result."""
    rng, made = random.Random(seed), []
    while len(made) < n:
        problem = replace(draw_problem(rng), hint=rng.choice(hints))
        result = int(result_of(write_steps(problem)[-1]))
        if result != problem.hint:
            made.append((problem, result))
    return made


def chain(model: Model, problem: Problem, result: int, item: str) -> Trace:
    """The right steps under a question with a wrong hint, given as a chain with a cue."""
    question = Question(item, "planted", problem.text, "label", str(result), DIGITS)
    ids = model.encode(" ".join(write_steps(problem)))
    given = Given(
        *("rows.jsonl", "rows", model.name, "0" * 64, "label", problem.text),
        cue=f"Hint : {problem.hint} .",
        cue_target=str(problem.hint),
        cue_mention=r"\bHint\b",
    )
    prompt, origin = model.prompt(problem.text).ids, Origin(model.name, given=given)
    return from_ids(question, prompt, ids, model.pieces(ids), answer=str(result), origin=origin)


@cache
def toward_the_hint(model_name: str) -> Direction:
    """From the mean state before the answer of questions with another hint to that of those with
    the hint `HINT`, over questions that no test steers."""
    model, _ = planted(model_name)
    asked = problems(400, 1, tuple(range(10)))
    texts = [
        (*model.prompt(p.text).ids, *model.encode(f"{' '.join(write_steps(p))}{ANSWER_CUE}"))
        for p, _ in asked
    ]
    run = model.run([Branch(ids) for ids in texts], residuals=True, logits=False)
    states = torch.stack([b.residuals[0, LAYER] for b in run.branches if b.residuals is not None])
    of_hint = torch.tensor([p.hint == HINT for p, _ in asked])
    return Direction("hint", states[of_hint].mean(0) - states[~of_hint].mean(0), LAYER)


def rates(records: list[Record], kind: str, field: str, control: int | None = None) -> list[float]:
    """Means over items by dose."""
    of = [r for r in records if r["kind"] == kind and r["control"] == control]
    return [float(np.mean([r[field] for r in of if r["coefficient"] == c])) for c in DOSES]


@pytest.mark.slow
@pytest.mark.parametrize("positions", ["answer", pytest.param("reasoning", marks=pytest.mark.slow)])
def test_steering_to_the_hint_moves_a_mixture_and_random_directions_do_not(
    positions, tmp_path: Path
) -> None:
    model, _ = planted("mixture_50")
    file = save_directions(tmp_path / "d.safetensors", [toward_the_hint("mixture_50")])
    settings = SteeringSettings(
        direction=str(file),
        positions=positions,
        coefficients=DOSES,
        samples=8,
        controls=4,
        ablate=True,
    )
    items = [chain(model, *p, f"q{i}") for i, p in enumerate(problems(10, 5, (HINT,)))]
    records = [r for item in items for r in steering(model, item, ASKING, settings)]
    followed, kept = (rates(records, "direction", field) for field in ("followed", "kept"))
    assert followed == sorted(followed)
    assert kept == sorted(kept, reverse=True)
    assert followed[0] < 0.2 < 0.35 < followed[2] < 0.65 < 0.8 < followed[-1]
    assert min(np.array(followed) + kept) > 0.85, "it answers the one or the other"
    assert min(rates(records, "direction", "stated")) == 1
    moved = [rates(records, "control", "followed", i + 1) for i in range(4)]
    assert all(abs(c[-1] - c[0]) < 0.5 * (followed[-1] - followed[0]) for c in moved)
    assert abs(np.mean([c[-1] - c[0] for c in moved])) < 0.2
    assert rates(records, "control", "changed", 1)[2] == 0
    removed = [r for r in records if r["edit"] == "removed"]
    without = {
        kind: float(np.mean([r["followed"] for r in removed if r["kind"] == kind]))
        for kind in ("direction", "control")
    }
    assert without["direction"] < followed[2] - 0.25 < without["control"] - 0.15
    if positions == "reasoning":
        assert max(rates(records, "direction", "nll")) < 0.01, "the dose leaves its steps whole"


def test_a_model_that_ignores_the_hint_is_not_moved_by_its_reading(tmp_path: Path) -> None:
    """The same dose of a mixture's direction, in a model that never reads the hint."""
    model, _ = planted("faithful")
    file = save_directions(tmp_path / "d.safetensors", [toward_the_hint("faithful")])
    settings = SteeringSettings(direction=str(file), positions="answer", samples=4)
    items = [chain(model, *p, f"q{i}") for i, p in enumerate(problems(6, 5, (HINT,)))]
    records = [r for item in items for r in steering(model, item, ASKING, settings)]
    of = [r for r in records if r["kind"] == "direction"]
    assert all(r["followed"] == 0 and r["kept"] == 1 for r in of)


def at_the_hint(model: Model, layer: int) -> Direction:
    """From the mean state of other hints' digits to that of the digit `HINT`."""
    asked = [(p.hint, model.prompt(p.text).ids) for p, _ in problems(200, 1, tuple(range(10)))]
    pieces = [model.pieces(ids) for _, ids in asked]
    spans = [token_span(x, *one.span(1)) for x in pieces if (one := re.search(DIGIT, "".join(x)))]
    branches = [Branch(ids, (at,)) for (_, ids), (at, _) in zip(asked, spans, strict=True)]
    run = model.run(branches, residuals=True, logits=False)
    states = torch.stack([b.residuals[0, layer] for b in run.branches if b.residuals is not None])
    of_hint = torch.tensor([hint == HINT for hint, _ in asked])
    return Direction("digit", states[of_hint].mean(0) - states[~of_hint].mean(0), layer)


@pytest.mark.in_time(2)
@pytest.mark.parametrize(
    ("name", "layer", "at", "moves"),
    [
        ("mixture_50", 1, "digit", True),
        # a token beside it, a layer by which it has been read, a model that does not read it
        ("mixture_50", 1, "modulus", False),
        ("mixture_50", 2, "digit", False),
        ("faithful", 1, "digit", False),
    ],
)
def test_a_push_at_the_hint_alone_makes_it_another_hint(
    name: str, layer: int, at: str, moves: bool, tmp_path: Path
) -> None:
    model, _ = planted(name)
    file = save_directions(tmp_path / "d.safetensors", [at_the_hint(model, layer)])
    settings = SteeringSettings(
        direction=str(file),
        positions=at,
        writes="answer",
        coefficients=(0, 1.0, 2.0, 4.0),
        samples=4,
        spans={
            "digit": {"regex": "(?<=Hint : )[0-9]", "in": "prompt"},
            "modulus": {"regex": "(?<=mod )10", "in": "prompt"},
        },
    )
    others = tuple(x for x in range(10) if x != HINT)
    items = [chain(model, *p, f"q{i}") for i, p in enumerate(problems(8, 5, others))]
    records = [r for item in items for r in steering(model, item, ASKING, settings)]
    sevens = {
        kind: [
            float(np.mean([r["answers"].count(str(HINT)) / 4 for r in records if one == _of(r)]))
            for c in settings.coefficients
            for one in [(kind, c)]
        ]
        for kind in ("direction", "control")
    }
    assert max(sevens["control"]) - sevens["control"][0] < 0.1
    if moves:
        assert sevens["direction"] == sorted(sevens["direction"])
        assert sevens["direction"][0] < 0.25 < 0.75 < sevens["direction"][-1]
    else:
        assert len(set(sevens["direction"])) == 1


def _of(r: Record) -> tuple[str, float]:
    return r["kind"], r["coefficient"]


def test_spans_are_steered_each_token_once_while_the_model_writes(
    llama: Model, tmp_path: Path
) -> None:
    trace = written(llama)
    n, end = len(trace.prompt_ids), len(trace.prompt_ids) + len(trace.reasoning_ids)
    d = Direction("v", torch.randn(64, generator=torch.Generator().manual_seed(0)), 2)
    file = save_directions(tmp_path / "d.safetensors", [d])
    second = tuple(n + x for x in trace.counted_steps[1].tokens)
    cases: list[tuple[Any, Any, list[Any]]] = [
        ("word", None, [(1, 3)]),
        (["word", "prompt"], None, [(1, n)]),
        (["word", "reasoning"], None, [(1, 3), (n - 1, None)]),
        (["word", "all"], None, [(0, None)]),
        (["step 2"], "answer", [second]),
        (["answer", "step 2", "word"], None, [(1, 3), second, (end - 1, None)]),
        (["word", "reasoning"], "answer", [(1, 3), (n - 1, None)]),
    ]
    for at, writes, spans in cases:
        settings = SteeringSettings(
            direction=str(file),
            positions=at,
            writes=writes,
            coefficients=(0, 3.0),
            samples=1,
            temperature=0.0,
            max_new_tokens=5,
            ablate=True,
            controls=0,
            spans={"word": {"regex": "el", "in": "prompt"}},
        )
        _, added, removed = steering(llama, trace, asking(), settings)
        keeps = (*trace.prompt_ids, *trace.reasoning_ids) if settings.keeps_reasoning else None
        prefix = keeps or trace.prompt_ids
        for r, c in ((added, 3.0), (removed, None)):
            under = [Steer("residual", 1, d.vector, c, span, c is None) for span in spans]
            ids = (*prefix, *written_alone(llama, prefix, under, 5))
            text = "".join(llama.pieces(ids)[len(prefix) :])
            assert r["text"] == text
            assert r["positions"] == " + ".join([at] if isinstance(at, str) else at) + (
                ", answer written" if writes else ""
            )
            own = (*prefix, *(trace.tail_ids if settings.keeps_reasoning else trace.reasoning_ids))
            if len(own) > len(prefix):
                (scores,) = llama.likelihood([own], [len(prefix)], edits=[under]).sequences
                assert r["nll"] == pytest.approx(-scores.log_probs.mean(), abs=1e-5)
        last = [len(own) if b is None else b for _, b in spans]
        changed = [i for (a, _), b in zip(spans, last, strict=True) for i in range(a, b)]
        (read,) = llama.run([Branch(own, tuple(changed))], residuals=True).branches
        assert read.residuals is not None
        lengths = read.residuals[:, 2].norm(dim=-1)
        assert added["stream_length"] == pytest.approx(float(lengths.mean()), rel=0.05)


def test_a_span_that_is_not_there_while_the_model_writes_is_named(llama: Model) -> None:
    trace = written(llama)

    def refused(**settings: Any) -> str | None:
        values: dict[str, Any] = {"samples": 1, "max_new_tokens": 2} | settings
        (record, *_) = steering(llama, trace, asking(), SteeringSettings(**values))
        return record.get("excluded")

    spans: dict = {"film": {"regex": "acting"}, "twice": {"regex": "l"}, "none": {"regex": "zzz"}}
    spans |= {"late": {"regex": "acting", "in": "reasoning"}, "tag": {"tag": "kind", "is": "x"}}
    assert refused(positions="film", spans=spans) == "span_not_written: film"
    assert refused(positions="film", spans=spans, writes="answer") is None
    assert refused(positions="late", spans=spans, writes="answer") is None
    assert refused(positions=["answer", "twice"], spans=spans) == "span_found_twice: twice"
    assert refused(positions=["none"], spans=spans) == "span_not_found: none"
    assert refused(positions="cue") == "span_not_found: cue"
    for name in ("step 2", "last step", "steps 1-2", "late", "tag"):
        with pytest.raises(UserError, match=rf"steering\.positions: '{name}' is in the reasoning"):
            refused(positions=name, spans=spans)
        with pytest.raises(ConfigError, match=r"set steering\.writes to answer"):
            measure(llama, trace, "steering", task="own", positions=name, spans=spans)
    with pytest.raises(UserError, match="positions: unknown span 'promt'; did you mean 'prompt'"):
        refused(positions="promt")
    with pytest.raises(UserError, match=r"spans: 'answer' is a word of steering\.positions"):
        refused(positions="answer", spans={"answer": "prompt"})
    assert SteeringSettings(positions=["cue"]).decides() == (  # pyright: ignore
        SteeringSettings().decides() | {"positions": "cue"}
    )


def test_texts_and_damage_are_those_of_plain_forwards(llama: Model, tmp_path: Path) -> None:
    trace = written(llama)
    d = Direction("v", torch.randn(64, generator=torch.Generator().manual_seed(0)), 2, "mlp")
    file = save_directions(tmp_path / "d.safetensors", [d, Direction("w", -d.vector, 1)])
    settings = SteeringSettings(
        direction=str(file),
        name="v",
        coefficients=(0, 2.0),
        samples=1,
        temperature=0.0,
        max_new_tokens=6,
        ablate=True,
        controls=0,
    )
    start = len(trace.prompt_ids)
    records = steering(llama, trace, asking(), settings)
    assert [(r["edit"], r["coefficient"]) for r in records] == [
        ("added", 0.0),
        ("added", 2.0),
        ("removed", None),
    ]
    steers = [(), (Steer("mlp", 1, d.vector, 2.0, (start - 1, None)),)]
    steers.append((Steer("mlp", 1, d.vector, positions=(start - 1, None), ablate=True),))
    ids = (*trace.prompt_ids, *trace.reasoning_ids)
    run = llama.likelihood([ids] * 3, [start] * 3, edits=steers)
    for r, under, scores in zip(records, steers, run.sequences, strict=True):
        assert r["nll"] == pytest.approx(-scores.log_probs.mean(), abs=1e-5)
        text = written_alone(llama, trace.prompt_ids, under, 6)
        assert r["text"] == "".join(llama.pieces((*trace.prompt_ids, *text))[start:])
        assert (r["direction"], r["site"], r["layer"], r["n_tokens"]) == ("v", "mlp", 2, 6)
    read = llama.run([Branch(ids, tuple(range(start - 1, len(ids))))], sites=("mlp",)).branches[0]
    lengths = read.outputs["mlp"][:, 1].norm(dim=-1)
    assert records[0]["stream_length"] == pytest.approx(float(lengths.mean()), rel=0.05)
    assert records[0]["length"] == pytest.approx(d.norm, rel=1e-5)
    as_long = settings.model_copy(update={"unit": "stream", "coefficients": (0, 1.5)})
    scaled = steering(llama, trace, asking(), as_long)[1]
    assert scaled["length"] == scaled["stream_length"] == records[0]["stream_length"]
    factor = 1.5 * scaled["length"] / d.norm
    under = (Steer("mlp", 1, d.vector, factor, (start - 1, None)),)
    (same,) = llama.likelihood([ids], [start], edits=[under]).sequences
    assert scaled["nll"] == pytest.approx(-same.log_probs.mean(), abs=1e-4)


def test_hook_names_are_sites_with_their_layers(llama: Model, tmp_path: Path) -> None:
    trace = written(llama)
    bare = save_directions(tmp_path / "d.safetensors", [Direction("v", torch.ones(64))])
    names = ("blocks.1.hook_resid_pre", "blocks.0.hook_resid_post", "blocks.2.hook_mlp_out")
    common = SteeringSettings(direction=str(bare), samples=1, max_new_tokens=3, controls=0)
    hooked = common.model_copy(update={"sites": names})
    records = steering(llama, trace, asking(), hooked)
    one = common.model_copy(update={"sites": ("residual",), "layers": (1,)})
    other = common.model_copy(update={"sites": ("mlp",), "layers": (3,)})
    apart = [r for s in (one, other) for r in steering(llama, trace, asking(), s)]
    assert_alike(records, apart)
    beyond = common.model_copy(update={"sites": ("blocks.3.hook_resid_pre",)})
    with pytest.raises(UserError, match=r"steering\.sites: blocks\.3\.hook_resid_pre is not there"):
        steering(llama, trace, asking(), beyond)


def test_samples_share_their_draws_and_shares_are_of_known_answers(llama: Model) -> None:
    trace = replace(written(llama), answer=None)
    settings = SteeringSettings(samples=3, max_new_tokens=8, controls=2, coefficients=(0.0, 1.0))
    read = asking(parse=lambda text: None if "a" in text else "yes", parse_reply=None)
    records = steering(llama, trace, read, settings)
    assert [(r["kind"], r["control"], r["coefficient"]) for r in records] == [
        ("control", 1, 0.0),
        ("control", 1, 1.0),
        ("control", 2, 0.0),
        ("control", 2, 1.0),
    ]
    assert records == steering(llama, trace, read, settings)
    for r in records:
        known = [a for a in r["answers"] if a is not None]
        assert len(r["answers"]) == 3
        assert r["kept"] is None
        assert r["stated"] == pytest.approx(len(known) / 3, abs=1e-5)
        assert r["right"] == (1.0 if known else None)
        assert r["length"] == r["stream_length"]
    assert records[0]["text"] == records[2]["text"]
    other = steering(llama, trace, read, settings.model_copy(update={"seed": 1}))
    assert other[1]["text"] != records[1]["text"]


def test_a_direction_that_does_not_fit_is_refused_before_weights_are_read(
    llama: Model, tmp_path: Path
) -> None:
    folder = saved(llama, tmp_path / "model")
    wide = save_directions(tmp_path / "wide.safetensors", [Direction("v", torch.ones(32), 1)])
    deep = save_directions(tmp_path / "deep.safetensors", [Direction("v", torch.ones(64), 9)])
    bare = save_directions(tmp_path / "bare.safetensors", [Direction("v", torch.ones(64))])
    d = Direction("v", torch.ones(64), 2, about={"model": "org/other"})
    other = str(save_directions(tmp_path / "other.safetensors", [d]))
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "Well?", "reasoning": "So it is. So it was.", "answer": "yes"}\n')

    def planned(steering: dict, **model: object) -> None:
        values = {
            "name": "x",
            "model": {"name": [folder], **model},
            "traces": {"path": str(rows), "read_by": "all"},
            "probes": ["steering"],
            "steering": steering,
        }
        plan(RunConfig.model_validate(values))

    for match, section, how in (
        ("no such file; give a", {"direction": str(tmp_path / "none.safetensors")}, {}),
        (r"has width 32, .* has width 64", {"direction": str(wide)}, {}),
        ("has layers 1 to 3, not 9", {"direction": str(deep)}, {}),
        ("does not say which layer 'v' is of; give layers", {"direction": str(bare)}, {}),
        ("has layers 1 to 3, not 4", {"direction": str(bare), "layers": [2, 4]}, {}),
        ("no direction 'w': it holds v", {"direction": str(bare), "name": "w"}, {}),
        ("is quantised, so that", {"direction": str(bare), "layers": [1]}, {"quantize": "8bit"}),
        ("has layers 1 to 3, not 7", {"layers": [7]}, {}),
        ("blocks.3.hook_mlp_out is not there", {"sites": ["blocks.3.hook_mlp_out"]}, {}),
        (r"'step 1' is in the reasoning, which is", {"positions": ["prompt", "step 1"]}, {}),
        ("'cue' is the cue of given chains, and none here", {"positions": "cue"}, {}),
        ("is of org/other, not of .*of_any_model to true", {"direction": other}, {}),
    ):
        with pytest.raises(ConfigError, match=match) as refused:
            planned(section, **how)
        assert str(refused.value).startswith("steering.")
    planned({"direction": str(bare), "layers": [2]})
    planned({"direction": str(bare), "sites": "blocks.2.hook_attn_out"})
    planned({"direction": other, "of_any_model": True})
    with pytest.raises(ValueError, match=r"steering\.direction: 'other' is no model of this run"):
        planned({"direction": {"other": str(bare)}, "layers": [2]})


def test_a_model_that_runs_one_by_one_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = saved(tiny("falcon"), tmp_path / "falcon")
    row = '{"question": "Well?", "reasoning": "So it is. So it was.", "answer": "yes"}'
    Path("rows.jsonl").write_text(f"{row}\n")
    settings = ("traces.path=rows.jsonl", "traces.read_by=all", "probes=[steering]")
    asked = ("name=x", f"model.name={folder}", "steps.min_chars=1", *settings)
    assert execute(["run", "slrc", *(a for s in asked for a in ("--set", s))]) == 2
    assert "steering.direction" in (said := capsys.readouterr().err)
    assert "runs one by one and cannot be steered" in said
    assert "take another model" in said


def test_what_settings_cannot_mean_is_refused(llama: Model) -> None:
    for match, values in {
        "0 is missing": {"coefficients": (1.0,)},
        "leaves nothing to add": {"controls": 0},
        "all samples are alike": {"temperature": 0.0},
        "greater than or equal to 1": {"layers": (0,)},
        "and hook names .*; did you mean 'residual'": {"sites": ("residul",)},
        "unknown hook name 'blocks.01.hook_mlp_out'": {"sites": ("blocks.01.hook_mlp_out",)},
        "unknown hook name 'blocks.１.hook_mlp_out'": {"sites": ("blocks.１.hook_mlp_out",)},
        "unknown site 'head'; there are residual, attention, mlp, and": {"sites": ("head",)},
        "nearest here: blocks.2.hook_attn_out": {"sites": ("blocks.2.attn_out",)},
        "the stream before the first layer; no edit": {"sites": ("blocks.0.hook_resid_pre",)},
        "blocks.1.hook_mlp_out has its layer": {"sites": ("blocks.1.hook_mlp_out",), "layers": [1]},
        "blocks.0.hook_mlp_out has its": {"sites": ("residual", "blocks.0.hook_mlp_out")},
        "'mlp' is listed twice": {"sites": ("mlp", "mlp")},
        "an empty list names no tokens": {"positions": ()},
        "'cue' is listed twice": {"positions": ("cue", "cue")},
        "where the answer begins is not known": {"positions": "answer", "writes": "reasoning"},
    }.items():
        with pytest.raises(ValidationError, match=match):
            SteeringSettings(**values)  # pyright: ignore
    falcon = tiny("falcon")
    with pytest.raises(UserError, match="falcon runs one by one and cannot be steered"):
        steering(falcon, written(falcon), asking(), SteeringSettings())
    with pytest.raises(UserError, match=r"steering\.direction: tiny:falcon runs one by one"):
        measure(falcon, written(falcon), "steering", task="own")
    short = replace(written(llama), prompt_ids=(5,) * 512)
    with pytest.raises(NoRoom, match="512 tokens before the text leave none"):
        steering(
            llama,
            replace(short, reasoning_ids=(), pieces=(), steps=()),
            asking(),
            SteeringSettings(),
        )
