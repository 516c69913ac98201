"""vLLM itself, as a server and in process, held against transformers token by token."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import vllm_here
from alike import assert_alike
from run_files import write_yaml

from faithscope import interp
from faithscope.experiments.cli import execute
from faithscope.experiments.engine.store import read_records
from faithscope.interp.answered import Answered
from faithscope.interp.backends.here import Here
from faithscope.interp.backends.server import connect
from faithscope.interp.generation import Generation, Sampling
from faithscope.interp.model import Model
from faithscope.interp.sources import DEFAULT, is_here, resolve

BUNDLED = f"bundled:{DEFAULT}"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_here(DEFAULT), reason=f"the model is not here: run faithscope fetch {DEFAULT}"
    ),
]

QUESTIONS = [
    "What is 17 + 25?",
    "Name three rivers of Europe and say where each begins.",
    "Is a tomato a fruit? Think step by step.",
    "Write one line about the sea.",
]


@pytest.fixture(scope="module")
def model() -> Model:
    return interp.load(BUNDLED, dtype="float32")


def asked(model: Model, penalty: float) -> tuple[list[tuple[int, ...]], Sampling]:
    prompts = [model.prompt(q).ids for q in QUESTIONS]
    return prompts, Sampling(tuple(model.end_ids), 48, repetition_penalty=penalty)


def test_a_server_of_vllm_writes_the_tokens_of_transformers(model: Model, tmp_path: Path):
    pytest.importorskip("openai")
    folder = Path(resolve(BUNDLED).location)
    with vllm_here.serving(folder, "smol", tmp_path / "log") as url:
        server = connect(BUNDLED, [url], location=str(folder))
        assert server.max_positions == 2048
        for penalty in (1.0, 1.2):
            prompts, sampling = asked(model, penalty)
            done: dict[int, Generation] = {}
            found = server.generate(prompts, sampling, done.__setitem__)
            assert found == Here(model).generate(prompts, sampling)
            assert found == [done[i] for i in range(len(prompts))]
            assert {g.finish for g in found} == {"stop", "length"}

        # who leaves early leaves nobody writing
        ends_at_once = Sampling((found[0].ids[0],), 1900, repetition_penalty=1.2)

        def stop(i: int, generation: Generation) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            server.generate(prompts, ends_at_once, stop)
        until = time.monotonic() + 10
        while running(url) and time.monotonic() < until:
            time.sleep(0.2)
        assert running(url) == 0


def test_a_server_of_vllm_writes_the_answers_of_forced_prefixes(model: Model, tmp_path: Path):
    pytest.importorskip("openai")
    folder = Path(resolve(BUNDLED).location)
    text = [*model.prompt(QUESTIONS[0]).ids, *model.encode("17 + 25 is 17 + 20 + 5. So it is 42.")]
    prefixes = [(*text[:n], *model.encode(" The answer is")) for n in range(40, len(text), 4)]
    labels = [[model.encode(" 42"), model.encode(" 37")]] * len(prefixes)

    def ends(text: str) -> bool:
        return "." in text

    def asked() -> list[Answered]:
        return model.ask(prefixes, labels, 70, stop=ends)

    here, generated = asked(), model.generate(prefixes[:2], 90, stop=ends)
    with vllm_here.serving(folder, "smol", tmp_path / "log") as url:
        model.writer = connect(BUNDLED, [url], location=str(folder))
        try:
            there, also = asked(), model.generate(prefixes[:2], 90, stop=ends)
        finally:
            model.writer = None
    assert also == generated
    assert [a.generated for a in there] == [a.generated for a in here]
    for a, b in zip(there, here, strict=True):
        assert a.log_probs == b.log_probs
        assert a.generated is not None
        assert b.generated is not None
        # of kernels of another kind
        assert a.generated.gaps == pytest.approx(b.generated.gaps, abs=1e-3)


def running(url: str) -> float:
    """Requests that a server is at work on."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/metrics", timeout=10) as page:
        text = page.read().decode()
    return sum(map(float, re.findall(r"^vllm:num_requests_running\{.*\} (\S+)$", text, re.M)))


OFFLINE = """
import json, sys
from faithscope.interp.backends.offline import load_offline
from faithscope.interp.generation import Sampling

if __name__ == "__main__":
    folder, prompts, stop_ids = sys.argv[1], *map(json.loads, sys.argv[2:])
    backend = load_offline("smol", folder, dtype="float32", max_model_len=2048, enforce_eager=True)
    sampling = Sampling(tuple(stop_ids), 48, repetition_penalty=1.2)
    led = backend.generate(prompts[:1], Sampling(tuple(stop_ids), 12, leads=True))
    print("LED", json.dumps([led[0].ids, led[0].gaps]))

    def full(i, generation):
        raise OSError("disk full")

    try:
        backend.generate(prompts[::-1], sampling, full)
    except OSError:
        pass
    order = []
    found = backend.generate(prompts, sampling, lambda i, g: order.append(i))
    said = [[g.ids, g.finish, g.end_id] for g in found]
    print("FOUND", json.dumps([said, order, dict(backend.describe())]))
"""


def test_vllm_in_process_writes_the_tokens_of_transformers(model: Model, tmp_path: Path):
    prompts, sampling = asked(model, 1.2)
    python = vllm_here.python_of_vllm()
    script = tmp_path / "offline.py"
    script.write_text(OFFLINE)
    asking = [json.dumps(prompts), json.dumps(sampling.stop_ids)]
    done = subprocess.run(
        [str(python), str(script), str(resolve(BUNDLED).location), *asking],
        env=vllm_here.environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stderr[-3000:]
    (led,) = [line for line in done.stdout.splitlines() if line.startswith("LED ")]
    ids, gaps = json.loads(led.removeprefix("LED "))
    (here,) = Here(model).generate(
        prompts[:1], replace(sampling, max_new_tokens=12, repetition_penalty=1.0)
    )
    assert tuple(ids) == here.ids
    assert gaps == pytest.approx(here.gaps, abs=1e-3)
    said, order, what = json.loads(lines[0].removeprefix("FOUND "))
    found = [Generation(tuple(ids), finish, end) for ids, finish, end in said]
    assert found == Here(model).generate(prompts, sampling)
    # the short ones are handed over while the long ones are written
    assert sorted(order) == list(range(len(prompts)))
    lengths = [found[i].n_tokens for i in order]
    assert lengths == sorted(lengths)
    assert what["backend"] == "vllm"
    assert what["dtype"] == "float32"


RUN = """
import sys
from functools import partial

# what faithscope needs and vLLM does not bring
sys.path.append(sys.argv[1])

if __name__ == "__main__":
    from faithscope.interp.backends import offline

    # compiled, it takes minutes to start
    offline.load_offline = partial(offline.load_offline, enforce_eager=True)
    from faithscope.experiments.cli import execute

    sys.exit(execute(sys.argv[2:]))
"""
MARGINS = 2e-4
"""Most by which leads of answers may differ between kernels of two kinds, in nats."""


def test_a_run_by_vllm_in_process_has_the_texts_of_transformers(tmp_path: Path):
    """One engine writes traces, regenerated chains and forced answers beside the measured
    model."""
    values = {
        "name": "run",
        "model": {"name": BUNDLED, "dtype": "float32", "device": "cpu"},
        "tasks": ["word_problems"],
        "data": {"limit": 1},
        "probes": ["slrc"],
        "slrc": {
            "edits": ["remove", "regenerate"],
            "framings": ["prefix"],
            "regenerate_tokens": 32,
        },
        "generation": {"max_new_tokens": 96},
    }
    here = write_yaml(tmp_path / "here.yaml", values | {"out": str(tmp_path / "here")})
    generation = {"backend": "vllm", "probes": True, "max_model_len": 2048}
    elsewhere = values | {
        "out": str(tmp_path / "there"),
        "generation": values["generation"] | generation,
    }
    there = write_yaml(tmp_path / "there.yaml", elsewhere)
    part = ["--shard", "1/2"]
    assert execute(["run", str(here), *part]) == 0
    script = tmp_path / "run.py"
    script.write_text(RUN)
    site = str(Path(torch.__file__).parents[1])
    done = subprocess.run(
        [str(vllm_here.python_of_vllm()), str(script), site, "run", str(there), *part],
        env=vllm_here.environment(),
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (trace,), (same,) = (read_records(tmp_path / at / "run", "trace") for at in ("here", "there"))
    assert (trace["reasoning_ids"], trace["finish"]) == (same["reasoning_ids"], same["finish"])
    assert same["origin"]["sampling"]["backend"] == "vllm"
    records, others = (read_records(tmp_path / at / "run", "slrc") for at in ("here", "there"))
    assert len(records) == len(others) == 2
    for record, other in zip(records, others, strict=True):
        assert other.pop("texts_by") == "vllm 0.32.0"
        assert record.keys() == other.keys()
        for key in record:
            if isinstance(record[key], list) and "margin" in key:
                assert [x for x in other[key] if x is not None] == pytest.approx(
                    [x for x in record[key] if x is not None], abs=MARGINS
                )
                assert [x is None for x in other[key]] == [x is None for x in record[key]]
            elif key != "noise_floor":
                assert_alike(other[key], record[key])
