"""A dry run says what given chains will cost: branches, tokens, keys and values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from default_probes import AS_THEY_ARE
from own_peak import peak_of
from tiny_models import saved, tiny

from faithscope import interp
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models.model_files import files_of
from faithscope.experiments.engine.traces.config import TracesConfig
from faithscope.experiments.engine.traces.forecast import (
    BLOCK,
    BUDGET,
    CHUNK,
    CODE,
    LOGITS,
    LOGITS_ELSEWHERE,
    WATCHED,
    WEIGHTS,
    Work,
    memory_of,
    work,
)
from faithscope.experiments.engine.traces.plan import TracePlan, plan
from faithscope.experiments.engine.traces.units import measure
from faithscope.experiments.engine.traces.work import given_trace, trace_settings
from faithscope.interp import attention_sums, execute, leads
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.model import Model
from faithscope.interp.prefill import block_on
from faithscope.probes import PROBES

SETTINGS = {
    "attention": {"shuffles": 1},
    # text that is written anew has no known length
    "slrc": {
        "framings": ["prefix"],
        "readings": ["scored"],
        "edits": ["remove"],
        "shuffles": 2,
    },
}
FORETOLD = [name for name in AS_THEY_ARE if PROBES[name].branches is not None]
STEPS = 14


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forecast")
    saved(tiny("llama", max_position_embeddings=4096), folder / "model")
    steps = [
        f"Film number {i} was long, and the acting in it was {i} times bad." for i in range(STEPS)
    ]
    rows = [
        {
            **{"id": "a", "question": "A dull film.", "steps": steps, "answer": "negative"},
            **{"gold": "positive", "prefilled": steps[0]},
        },
        {"id": "b", "question": "A dull film!", "steps": steps[:5], "answer": "negative"},
    ]
    (folder / "chains.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def planned(folder: Path, **more: Any) -> TracePlan:
    values = {
        "name": "forecast",
        "out": str(folder / "out"),
        "model": {"name": str(folder / "model")},
        "traces": {"path": str(folder / "chains.jsonl"), "task": "sst2"},
        "probes": FORETOLD,
        **SETTINGS,
        **more,
    }
    path = folder / "forecast.yaml"
    path.write_text(json.dumps(values))
    made = plan(load_config(path, must_be=TracesConfig))
    assert isinstance(made, TracePlan)
    return made


class Counts:
    """What a model is asked and runs, and the most nodes that a cache holds."""

    def __init__(self, model: Model, patch: pytest.MonkeyPatch) -> None:
        self.asked = self.tokens = self.held = 0
        model.hf.register_forward_pre_hook(self._forward, with_kwargs=True)
        for name in ("ask", "run"):
            patch.setattr(model, name, self._asking(getattr(model, name)), raising=False)
        init = KeyValues.__init__

        def made(cache: KeyValues, n_nodes: int, *args: Any) -> None:
            self.held = max(self.held, n_nodes)
            init(cache, n_nodes, *args)

        patch.setattr(execute.KeyValues, "__init__", made)

    def _forward(self, _: object, args: tuple, kwargs: dict) -> None:
        self.tokens += (kwargs["input_ids"] if "input_ids" in kwargs else args[0]).numel()

    def _asking(self, method: Any) -> Any:
        def asked(texts: Any, *args: Any, **options: Any) -> Any:
            self.asked += len(texts)
            return method(texts, *args, **options)

        return asked


@pytest.mark.in_time(1)
@pytest.mark.parametrize("budget", [32_768, 1_500])
@pytest.mark.parametrize("probe", FORETOLD)
def test_the_work_is_what_is_run(folder: Path, probe: str, budget: int, monkeypatch) -> None:
    made = planned(folder)
    item = made.items[0]
    model = interp.load(str(folder / "model"))
    model.token_budget = budget
    assert item.given is not None
    trace = given_trace(model, item.given, trace_settings(made.config))
    size = made.size(item)
    assert (size.steps, size.reasoning) == (
        len(trace.counted_steps),
        pytest.approx(len(trace.reasoning_ids), rel=0.05),
    )
    settings = made.config.settings(probe)
    foretold = work(probe, size, settings, budget)
    with monkeypatch.context() as patch:
        counts = Counts(model, patch)
        measure(probe, model, item.of, trace, made.config)
    assert foretold.tokens == pytest.approx(counts.tokens, rel=0.2)
    assert foretold.held == pytest.approx(counts.held, rel=0.2)
    assert foretold.branches == pytest.approx(counts.asked, rel=0.2)


@pytest.mark.slow
def test_spellings_of_a_chains_own_numbers_are_foretold(folder: Path, monkeypatch) -> None:
    steps = [f"${i}, and then {i * 13}.50 more are {i * 14}.50." for i in range(1, 12)]
    row = {"id": "a", "question": "How much is it?", "steps": steps, "answer": "$154.50"}
    (folder / "numbers.jsonl").write_text(json.dumps(row))
    traces = {"path": str(folder / "numbers.jsonl"), "kind": "number"}
    made = planned(folder, probes=["tracing"], traces=traces)
    item = made.items[0]
    model = interp.load(str(folder / "model"))
    assert item.given is not None
    trace = given_trace(model, item.given, trace_settings(made.config))
    size = made.size(item)
    counts = Counts(model, monkeypatch)
    measure("tracing", model, item.of, trace, made.config)
    foretold = work("tracing", size, made.config.settings("tracing"))
    assert foretold.held == pytest.approx(counts.held, rel=0.2)


@pytest.mark.slow
def test_the_work_of_a_screen_is_foretold(folder: Path, monkeypatch) -> None:
    whole = {"windows": 0}
    made = planned(folder, probes=["knockout"], knockout=whole, steps={"sample": 4, "screen": 2})
    item = made.items[0]
    model = interp.load(str(folder / "model"))
    assert item.given is not None
    trace = given_trace(model, item.given, trace_settings(made.config))
    size = made.size(item)
    settings = made.config.settings("knockout")
    plain, screened = (work("knockout", size, settings, None, 4, k) for k in (None, 2))
    counts = Counts(model, monkeypatch)
    measure("knockout", model, item.of, trace, made.config)
    assert screened.tokens == pytest.approx(counts.tokens, rel=0.2)
    assert plain.tokens is not None
    assert counts.tokens > 1.2 * plain.tokens
    assert "4 of a chain, 2 by estimated effect and 2 at random" in made.summary()


def test_a_dry_run_counts_the_branches_of_the_chains_themselves(folder: Path) -> None:
    told = planned(folder, probes=["slrc"]).summary()
    # per framing: the chain, each step removed and alone, the shuffles; and one without reasoning
    expected = sum(1 + 2 * n + 2 + 1 for n in (STEPS, 5))
    assert f" {expected}\n" in told
    assert "tokens of the longest" in told
    assert "GiB" in told
    assert "estimated at" not in told
    assert "tokens counted as characters" not in told


def test_stored_states_are_foretold_by_chain_and_in_all(folder: Path) -> None:
    mean = {"at": ["step"], "pool": "mean", "layers": None, "precision": "float32"}
    made = planned(folder, probes=["linear_probe", "states"], states=mean)
    told = made.summary()
    config = files_of(str(folder / "model")).config
    layers, width = config["num_hidden_layers"], config["hidden_size"]
    steps = STEPS + 5
    assert f"{steps * layers * width * 4 / 2**10:.2f} KiB" in told
    assert f"{2 * 6 * layers * width * 2 / 2**10:.2f} KiB" in told
    assert "states of a chain" in told
    read, plain = (
        work(p, made.size(made.items[0]), made.config.settings(p)) for p in ("states", "flow")
    )
    assert (read.states > 0, plain.states) == (True, 0)
    tasks = {"traces": {}, "tasks": ["single_cue"], "data": {"limit": 3}}
    assert "states of a chain" in planned(folder, probes=["linear_probe"], **tasks).summary()


def test_a_layer_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"states\.layers: layer 9 is not there; the model has"):
        planned(folder, probes=["states"], states={"layers": [1, 9]})


def test_what_cannot_be_foretold_is_named(folder: Path) -> None:
    told = planned(folder, probes=["information", "rigidity"]).summary()
    assert "not foretold: tokens of information" in told


def test_memory_is_that_of_weights_keys_and_values_and_of_a_forward(folder: Path) -> None:
    model, files = interp.load(str(folder / "model")), files_of(str(folder / "model"))
    assert files.parameters == pytest.approx(
        sum(p.numel() for p in model.hf.parameters()), rel=0.05
    )
    cache, _, _ = execute.prefill_prompts(model, [list(range(1, 101))])
    held = sum(x.nbytes for pair in cache.layers.values() for x in pair)
    assert files.token_bytes(4) == held // 100
    small, larger = (Work(1, 100, 1, 100, longest=n) for n in (100, 1_100))
    told = memory_of(files, small, "auto")
    assert told is not None
    assert told > CODE + held + 4 * (files.parameters or 0)
    # masks of booleans, for each of a forward's tokens
    assert memory_of(files, larger, "auto") == told + 3 * CHUNK * 1_000
    # the tokens behind numbers all have logits
    behind = 12 * CHUNK * files.config["vocab_size"]
    assert memory_of(files, small, "auto", number=True) == told + behind
    assert memory_of(files_of("nobody/nothing"), small, "auto") is None


def test_the_engines_numbers_are_those_that_are_foretold_with(llama: Model) -> None:
    assert (llama.token_budget, llama.chunk) == (BUDGET, CHUNK)
    assert (execute.LOGITS, block_on(llama.device)) == (LOGITS, BLOCK)
    assert (leads.WATCHED, attention_sums.WEIGHTS) == (WATCHED, WEIGHTS)
    assert execute.LOGITS_ELSEWHERE == LOGITS_ELSEWHERE


@pytest.mark.slow
@pytest.mark.parametrize("probe", ["tracing", "knockout"])
def test_the_memory_of_a_long_chain_is_what_its_process_takes(folder: Path, probe: str) -> None:
    steps = [f"{i} apples and {i + 2} pears are {2 * i + 2} of them." for i in range(120)]
    row = {"id": "a", "question": "How many?", "steps": steps, "answer": "240"}
    (folder / "long.jsonl").write_text(json.dumps(row))
    saved(tiny("llama", max_position_embeddings=16_384), folder / "long")
    changes = {
        "name": f"long-{probe}",
        "model": {"name": str(folder / "long")},
        "traces": {"path": str(folder / "long.jsonl"), "kind": "number"},
        "probes": [probe],
        # a model without training gives its answers no probability to speak of
        "report": {"least_label_mass": 0.0},
        **({"steps": {"sample": 10}} if probe == "knockout" else {}),
    }
    made = planned(folder, **changes)
    (size,) = [made.size(item) for item in made.items]
    foretold = work(probe, size, made.config.settings(probe), None, 10)
    told = memory_of(files_of(str(folder / "long")), foretold, "auto", number=True)
    measured = peak_of("run", str(folder / "forecast.yaml"), "--shard", "1/2")
    assert told == pytest.approx(measured, rel=0.2)
