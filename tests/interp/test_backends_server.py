"""Continuations written by servers over the completions API, on loopback."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from completions_server import CompletionsServer, changed, dies, fails, garbage, good
from tiny_models import tiny

from faithscope.interp.backends import BackendError
from faithscope.interp.backends.here import Here
from faithscope.interp.backends.offline import load_offline
from faithscope.interp.backends.server import VllmServer, connect
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation, Sampling
from faithscope.interp.model import Model

pytest.importorskip("openai")

PROMPTS = [[i, 7, 8, 9 + i] for i in range(10, 22)]
GREEDY = Sampling((), max_new_tokens=6)


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny("llama")


@pytest.fixture
def server(model: Model) -> Iterator[CompletionsServer]:
    with CompletionsServer(model) as made:
        yield made


@pytest.fixture
def other(model: Model) -> Iterator[CompletionsServer]:
    with CompletionsServer(model) as made:
        yield made


def quick(*servers: CompletionsServer, retries: int = 0) -> VllmServer:
    made = connect("org/m", [s.url for s in servers], retries=retries, in_flight=3)
    for s in servers:
        s.asked.clear()
    return made


@pytest.mark.parametrize(
    "sampling",
    [
        GREEDY,
        pytest.param(Sampling((), 9, repetition_penalty=1.2), marks=pytest.mark.slow),
        Sampling((), 9, temperature=1.0, top_p=0.9, repetition_penalty=1.1, seed=5),
    ],
    ids=["greedy", "penalty", "sampled"],
)
def test_two_servers_give_the_same_records_as_this_process(model, server, other, sampling):
    here = Here(model).generate(PROMPTS, sampling)
    # an end token that some do write, so that both ways to end are seen
    sampling = replace(sampling, stop_ids=(here[0].ids[3],))
    expected = Here(model).generate(PROMPTS, sampling)
    assert {g.finish for g in expected} == {"stop", "length"}
    done: dict[int, Generation] = {}
    found = quick(server, other).generate(PROMPTS, sampling, done.__setitem__)
    assert found == expected
    assert [done[i] for i in range(len(PROMPTS))] == found
    assert all(g.seconds is not None and g.seconds > 0 for g in found)
    assert len(server.asked) > 0
    assert len(other.asked) > 0
    assert sorted(a["prompt"] for a in server.asked + other.asked) == PROMPTS


def test_nothing_is_left_to_the_defaults_of_a_server(server):
    quick(server).generate(PROMPTS[:1], Sampling((3, 1), 6, seed=(11,)))
    (asked,) = server.asked
    assert asked == {
        "model": "m",
        "prompt": PROMPTS[0],
        "max_tokens": 6,
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": 11,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "repetition_penalty": 1.0,
        "stop_token_ids": [1, 3],
        "ignore_eos": True,
        "top_k": -1,
        "min_p": 0,
        "min_tokens": 0,
        "return_token_ids": True,
    }


def test_each_prompt_has_its_own_limit(model, server):
    sampling = Sampling((), 12, limits=tuple(1 + i for i in range(len(PROMPTS))))
    found = quick(server).generate(PROMPTS, sampling)
    assert found == Here(model).generate(PROMPTS, sampling)
    assert sorted(a["max_tokens"] for a in server.asked) == sorted(sampling.limits or ())


def test_what_a_server_is_and_not_where_it_is(server):
    made = connect("org/m", [server.url + "/"])
    assert made.max_positions == 512
    assert made.describe() == {
        "backend": "vllm-server",
        "vllm": "0.0.test",
        "endpoints": "1",
        "served_as": "m",
    }


def test_a_lost_server_leaves_its_prompts_to_the_other(model, server, other):
    server.plan = {p[0]: [dies] for p in PROMPTS}
    assert quick(server, other).generate(PROMPTS, GREEDY) == Here(model).generate(PROMPTS, GREEDY)
    assert sorted(a["prompt"] for a in other.asked) == PROMPTS


def test_no_server_left_is_said_and_what_was_written_is_handed_over(server):
    server.plan = {PROMPTS[5][0]: [dies]}
    done: dict[int, Generation] = {}
    with pytest.raises(UserError, match=r"no server of org/m answers any more \(http://127"):
        quick(server).generate(PROMPTS, GREEDY, done.__setitem__)
    assert 0 < len(done) < len(PROMPTS)


@pytest.mark.in_time(1)
@pytest.mark.parametrize("fault", [fails(500), fails(429), garbage], ids=["500", "429", "html"])
def test_a_fault_that_passes_is_tried_again(model, server, fault):
    server.plan = {PROMPTS[2][0]: [fault, good]}
    assert quick(server).generate(PROMPTS, GREEDY) == Here(model).generate(PROMPTS, GREEDY)


@pytest.mark.slow
def test_the_client_retries_by_itself(model, server):
    server.plan = {PROMPTS[0][0]: [fails(503), fails(503), fails(503), good]}
    found = quick(server, retries=3).generate(PROMPTS[:1], GREEDY)
    assert found == Here(model).generate(PROMPTS[:1], GREEDY)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (fails(500, "engine broke"), r"prompt 2: .* \(500\): .*engine broke"),
        (fails(400, "no such id"), r"prompt 2: .* \(400\): .*no such id"),
        (garbage, r"prompt 2: .* \(500\)"),
        (changed(token_ids=None), "prompt 2: .* gives no token_ids back; vLLM 0.10.2"),
        (changed(prompt_token_ids=[7, 8]), "prompt 2: .* read 2 tokens that are not the 4 sent"),
        (changed(token_ids=[1, 2]), "ended with 'length' after 2 of 6 tokens.*limits or stops"),
        (changed(finish_reason="stop"), r"ended with 'stop' after 6 of 6 tokens, the last \d+"),
        (changed(finish_reason="abort"), "ended with 'abort' after 6 of 6"),
    ],
)
@pytest.mark.in_time(3)
def test_other_than_what_was_asked_for_is_an_error(server, fault, said):
    server.plan = {PROMPTS[2][0]: [fault]}
    with pytest.raises(BackendError, match=said):
        quick(server).generate(PROMPTS, GREEDY)


def test_a_refused_key_ends_it(server, model, monkeypatch):
    server.plan = {PROMPTS[2][0]: [fails(401, "who are you")]}
    with pytest.raises(UserError, match=r"refuses \(401\): .*who are you"):
        quick(server).generate(PROMPTS, GREEDY)
    with CompletionsServer(model, key="right") as locked:
        with pytest.raises(UserError, match=r"refuses the key; .* into MY_KEY"):
            connect("org/m", [locked.url], key_variable="MY_KEY")
        monkeypatch.setenv("MY_KEY", "right")
        made = connect("org/m", [locked.url], key_variable="MY_KEY")
    assert "right" not in repr(made)


def test_a_slow_server_is_given_up(server):
    server.plan = {PROMPTS[0][0]: [lambda handler: time.sleep(1)]}
    made = replace(quick(server, retries=4), timeout_s=0.1)
    began = time.monotonic()
    with pytest.raises(BackendError, match=r"no reply within 0.1 s; raise timeout_s"):
        made.generate(PROMPTS[:1], GREEDY)
    assert time.monotonic() - began < 3


def test_an_error_of_the_caller_calls_back_what_is_in_flight(server):
    held = threading.Event()
    server.plan = {p[0]: [lambda handler: held.wait(30)] for p in PROMPTS[1:]}

    def full(i: int, generation: Generation) -> None:
        raise OSError("disk full")

    began = time.monotonic()
    with pytest.raises(OSError, match="disk full"):
        quick(server).generate(PROMPTS, GREEDY, full)
    assert time.monotonic() - began < 10
    assert "vllm-requests" not in {t.name for t in threading.enumerate()}
    held.set()


def test_servers_that_cannot_serve_are_refused(server, other, model):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(UserError, match=r"no vLLM server answers at .*; start one with: python"):
        connect("org/m", [server.url, nowhere])
    with pytest.raises(UserError, match="no endpoint given"):
        connect("org/m", [])
    with pytest.raises(UserError, match=r"serves 'm', not 'n'; set served_as"):
        connect("org/m", [server.url], served_as="n")
    other.names = ("Org/M",)
    with pytest.raises(UserError, match=r"different models \(Org/M, m\)"):
        connect("org/m", [server.url, other.url])
    server.plan = {1: [changed(token_ids=None)]}
    with pytest.raises(UserError, match=r"is of no use here: .*no token_ids"):
        connect("org/m", [server.url])


@pytest.mark.parametrize(
    ("name", "location", "served", "root"),
    [
        ("Qwen/Qwen3-8B", None, "Qwen/Qwen3-8B", ""),
        ("Qwen/Qwen3-8B", None, "qwen3-8b", ""),
        ("Qwen/Qwen3-8B", None, "mine", "/data/Qwen3-8B/"),
        ("/here/Qwen3-8B/", None, "Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-8B", None, "it", "/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c"),
        ("bundled:small", "/cache/converted/small-12ab-1", "s", "/there/small-12ab-1"),
        ("bundled:small", None, "small", ""),
    ],
)
def test_the_model_that_is_meant_is_found_by_its_name_or_its_folder(
    server, name, location, served, root
):
    server.names, server.root = (served,), root
    made = connect(name, [server.url], location=location)
    assert [e.served_as for e in made.endpoints] == [served]


def test_another_model_than_the_one_that_is_meant_is_refused(server):
    server.names, server.root = ("Qwen/Qwen3-32B",), "/data/Qwen3-32B"
    said = (
        r"serves 'Qwen/Qwen3-32B' \(/data/Qwen3-32B\), none of which is called so as "
        r"'Qwen/Qwen3-8B' is; .* served_as \(generate.served_as of a run\)"
    )
    with pytest.raises(UserError, match=said):
        connect("Qwen/Qwen3-8B", [server.url])
    # at the word of who says that it is the same
    made = connect("Qwen/Qwen3-8B", [server.url], served_as="Qwen/Qwen3-32B")
    assert made.endpoints[0].served_as == "Qwen/Qwen3-32B"
    # of a model and its adapters, or of quantised weights beside it, the one that is called so
    server.names, server.root = ("Qwen3-8B-AWQ", "Qwen3-8B", "poet"), ""
    assert connect("Qwen/Qwen3-8B", [server.url]).endpoints[0].served_as == "Qwen3-8B"
    server.names = ("Qwen/Qwen3-8B", "me/Qwen3-8B")
    with pytest.raises(UserError, match=r"several of which are called so as 'Qwen/Qwen3-8B' is"):
        connect("Qwen/Qwen3-8B", [server.url])


def test_a_prompt_without_room_is_refused_before_any_is_asked(server):
    made = quick(server)
    with pytest.raises(UserError, match=r"prompt 1 has 510 tokens.*passes the 512 positions"):
        made.generate([[1], [1] * 510], GREEDY)
    assert not server.asked
    assert made.generate([], GREEDY) == []


def test_vllm_that_is_not_here_names_the_ways_to_have_it():
    try:
        import vllm  # noqa: F401  # pyright: ignore
    except ImportError:
        with pytest.raises(UserError, match=r"faithscope\[vllm\].*backend 'vllm-server'"):
            load_offline("org/m", "org/m")
    else:
        pytest.skip("vLLM is here")
