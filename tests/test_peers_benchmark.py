"""The benchmark of peers: every way gives the same, ratios have their range, and vLLM is asked with
an empty cache."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import peers as bench
import pytest
import vllm_here
import vllm_peer
from tiny_models import saved, tiny

from faithscope import interp
from faithscope.interp.errors import UserError
from faithscope.interp.sources import DEFAULT, is_here

WAYS = ("naive", "padded", "depth_first", "trunk_mask", "ours")


@pytest.mark.in_time(2)
@pytest.mark.parametrize("name", ["early_answers", "removal", "slrc", "decoding"])
def test_all_ways_of_a_measure_give_the_same(name: str) -> None:
    model = tiny("llama", max_position_embeddings=1024)
    table = bench.measure(model, None, 3, name, WAYS, repeats=2).set_index("way")
    assert list(table.index) == [
        way for way in WAYS if name != "decoding" or way not in bench.UNSHARED
    ]
    assert (table["same"] == 1).all() if name in bench.WRITTEN else (table["gap"] < 1e-4).all()
    # all rows are in one padded batch
    assert (table["timed_prefixes"] == table["prefixes"]).drop("naive").all()
    assert (table["repeats"] == 2).all()
    assert (table["ratio_least"] <= table["ratio"]).all()
    assert (table["ratio"] <= table["ratio_greatest"]).all()
    assert (table.loc["ours", ["ratio_least", "ratio", "ratio_greatest"]] == 1).all()


def test_plain_ways_that_take_long_are_timed_once() -> None:
    model = tiny("llama", max_position_embeddings=1024)
    table = bench.measure(model, None, 2, "slrc", WAYS, repeats=3, once_above=0.0)
    assert table["repeats"].tolist() == [1, 1, 1, 1, 3]


@pytest.mark.slow
def test_texts_that_end_early_are_refused() -> None:
    model = tiny("llama", max_position_embeddings=1024)
    prefixes, _ = bench.measures(model, 3, 5)["removal"]
    text = bench.continued(model, "ours", prefixes[:1], 24)[0]
    model.end_ids = frozenset({text[0]})
    with pytest.raises(
        RuntimeError, match=r"removal, ours: the text after prefix 0 has .* instead"
    ):
        bench.measure(model, None, 3, "removal", WAYS, repeats=1)


def test_a_vllm_that_does_not_start_is_noticed_at_once(tmp_path: Path) -> None:
    # this interpreter lacks vLLM
    model = interp.load(saved(tiny("llama"), tmp_path))
    began = time.monotonic()
    with (
        pytest.raises(UserError, match=r"(?s)vLLM ended with code 1.*No module named 'vllm'"),
        vllm_peer.in_process(Path(sys.executable), model, 64),
    ):
        pass
    assert time.monotonic() - began < 60


@pytest.mark.slow
@pytest.mark.skipif(
    not is_here(DEFAULT), reason=f"the model is not here: run faithscope fetch {DEFAULT}"
)
def test_vllm_itself_writes_the_same_from_an_empty_cache() -> None:
    model = interp.load(f"bundled:{DEFAULT}", dtype="float32")
    with vllm_peer.in_process(vllm_here.python_of_vllm(), model, 512) as vllm:
        for name in ("early_answers", "removal"):
            ways = ("naive", "vllm", "ours")
            table = bench.measure(model, vllm, 3, name, ways, repeats=2).set_index("way")
            assert table["same"]["vllm"] == 1
            # what the trie runs, and less than a block of every prefix again
            more = table["run_tokens"]["vllm"] - table["trie_tokens"]["vllm"]
            assert 0 <= more <= vllm_peer.CPU_BLOCK * table["prefixes"]["vllm"]
        prompts = [list(range(100, 200)), list(range(100, 180))]
        assert vllm.write(prompts, 1, None)[1] == 100 + 80 - 64
        assert vllm.write(prompts, 1, None)[1] == 100 + 80 - 64
        with pytest.raises(RuntimeError, match="cache was not emptied: it held 96 tokens of the"):
            vllm.write(prompts, 1, None, reset=False)
        os.kill(vllm.process.pid, signal.SIGKILL)
        with pytest.raises(UserError, match="vLLM ended with code -9"):
            vllm.write(prompts, 1, None)
