"""Bounds on what a GPU pays for, counted on an emulated device: launches and waits."""

from __future__ import annotations

from typing import Any

import emulated_devices
import forest
import launches
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from faithscope.interp import attention, decoding, execute, prefill, scoring
from faithscope.interp.edits import Knockout
from faithscope.interp.forest import Branch, Forest
from faithscope.interp.model import Model
from faithscope.interp.side_by_side import side_by_side


@pytest.fixture(scope="module")
def model() -> Model:
    emulated_devices.require()
    return launches.narrow("emulated:0", layers=6)


def small(n_steps: int) -> dict[str, list[list[int]]]:
    with pytest.MonkeyPatch.context() as patch:
        for name, tokens in {"QUESTION": 9, "STEP": 3, "SUFFIX": 2}.items():
            patch.setattr(forest, name, tokens)
        return forest.probe_set(n_steps, 256)


@pytest.fixture(scope="module")
def probes() -> dict[str, list[list[int]]]:
    return small(8)


def test_a_pack_costs_little_more_than_one_plain_forward(model: Model, probes):
    plain = launches.launches_of(model.device, lambda: launches.plain_forward(model, range(40)))
    assert plain.attention_calls == model.n_layers
    for name, sequences in probes.items():
        branches = [Branch(tuple(s)) for s in sequences]
        pack = launches.launches_of(model.device, lambda b=branches: model.run(b))
        assert pack.attention_calls == model.n_layers, name
        # each branch's readings are one operation more, however many layers there are
        assert pack.ops - len(branches) <= 1.3 * plain.ops, name


def test_nothing_in_the_forward_of_a_pack_waits(model: Model, probes):
    cut = Knockout(queries=(12, None), keys=(2, 9), heads=(0, 2))
    sequences = [*probes["full"], probes["full"][8]]
    edits = [()] * len(probes["full"]) + [(cut,)]
    trie = Forest.of(sequences, edits)
    asked = [int(path[-1]) for path in trie.paths]
    counted = launches.launches_of(
        model.device,
        lambda: execute.prefill(model, trie, asked, lambda *_: None, chunk=model.chunk),
    )
    assert counted.ops
    assert not counted.syncs


@pytest.mark.parametrize(("n_steps", "execution"), [(10, "auto"), (20, "flex")])
def test_what_probes_ask_waits_once_a_forward(model: Model, n_steps: int, execution: str):
    sequences = small(n_steps)["full"]
    plain = launches.launches_of(model.device, lambda: launches.plain_forward(model, range(40)))
    cut = [Knockout((30, None), (9 + 3 * i, 12 + 3 * i)) for i in range(n_steps)]
    asks = {
        "slrc": lambda: launches.asked(model, sequences, execution=execution),
        "knockout": lambda: launches.asked(
            model,
            [sequences[n_steps]] * (1 + n_steps),
            edits=[(), *((one,) for one in cut)],
            execution=execution,
        ),
    }
    with launches.flex_attention(model):
        # sets of tokens go to the device once
        launches.asked(model, sequences[:1])
        counts = {name: launches.launches_of(model.device, ask) for name, ask in asks.items()}
    for name, counted in counts.items():
        # the pack, and its baseline once more alone
        assert counted.forwards == 2, name
        assert counted.ops <= 1.4 * counted.forwards * plain.ops, name
        assert counted.syncs <= 2, name
        assert counted.copies <= 8, name


def test_one_group_is_planned_while_the_device_runs_the_other(model: Model, monkeypatch, probes):
    events: list[tuple[str, int]] = []
    usual, sequences = execute.prefill, list(probes.values())

    def started(*args: Any, **kwargs: Any) -> Any:
        cache = usual(*args, **kwargs)
        events.append(("start", counted.syncs))
        return cache

    def job(name: str, of: list[list[int]]) -> Any:
        def asks(m: Model) -> list[Any]:
            answers = []
            for n in (3, 2):
                events.append((name, counted.syncs))
                answers += launches.asked(m, of[:n])
            return answers

        return asks

    monkeypatch.setattr(execute, "prefill", started)
    jobs = [job(name, sequences[i % 3]) for i, name in enumerate("aabbb")]
    with launches.Launches(model.device) as counted:
        apart = side_by_side(model, jobs[:2]) + side_by_side(model, jobs[2:])
    alone = events.copy()
    events.clear()
    with launches.Launches(model.device) as counted:
        taking_turns = side_by_side(model, jobs, 2)
    names = [name for name, _ in events]
    # packs, and baselines once more, of each group and question
    assert names.count("start") == [name for name, _ in alone].count("start") == 8
    assert "".join(name for name in names if name != "start") == "aabbbaabbb"
    first = names.index("start")
    for i, (name, syncs) in enumerate(events[first:], first):
        if name != "start":
            # nothing has waited since the other group's pack was started
            before = max(j for j in range(i) if names[j] == "start")
            assert syncs == events[before][1]
    assert taking_turns == apart


class Largest(TorchDispatchMode):
    """Notes the most rows of a tensor of logits on a device."""

    def __init__(self, n_ids: int) -> None:
        super().__init__()
        self._n_ids = n_ids
        self.rows = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            # masks, which may be as wide, have four dimensions or are of booleans
            if isinstance(x, torch.Tensor) and x.is_floating_point() and x.dim() in (2, 3):
                self.rows = max(self.rows, x.shape[-2] if x.shape[-1] == self._n_ids else 0)
        return out


@pytest.mark.in_time(1)
@pytest.mark.parametrize("rows", [13, 30])
def test_logits_of_a_forward_are_bounded(model: Model, monkeypatch, rows: int):
    sequences = small(10)["full"]
    branches = [Branch(tuple(s), ask=(-1, -3)) for s in sequences]
    one_more: list[int] = []
    usual = execute.one_more
    monkeypatch.setattr(
        execute, "one_more", lambda *a, **k: one_more.append(len(a[3])) or usual(*a, **k)
    )
    # what may follow a number is run wherever it is read
    monkeypatch.setattr(scoring, "LEAST_SHARE", 1e-99)
    monkeypatch.setattr(scoring, "LEAST_LIKELY", 1e-99)

    def everything() -> list[Any]:
        found = launches.asked(model, sequences)
        return [*found, *(x.logits.cpu() for x in model.run(branches).branches)]

    with Largest(model.n_ids) as usually:
        free = everything()
    assert one_more
    assert min(usually.rows, *one_more) > rows
    monkeypatch.setattr(execute, "LOGITS_ELSEWHERE", rows * model.n_ids)
    with Largest(model.n_ids) as noted:
        bounded = everything()
    assert noted.rows <= rows
    for one, other in zip(free, bounded, strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
        else:
            assert one.log_probs == pytest.approx(other.log_probs, abs=1e-5)
            assert [x.candidate for x in one.leads] == [x.candidate for x in other.leads]


def test_a_step_of_decoding_costs_little_more_than_one_of_a_padded_batch(model: Model, probes):
    prompts = probes["necessity"][:4]
    plain = launches.step_of(model.device, lambda n: launches.plain_decoding(model, prompts, n))
    for stop in (None, lambda text: False):
        step = launches.step_of(
            model.device,
            lambda n, stop=stop: model.generate(prompts, n, end_ids=frozenset({-1}), stop=stop),
        )
        assert step.ops <= 1.15 * plain.ops
        assert step.syncs <= 1
        assert step.attention_calls == plain.attention_calls == model.n_layers
    sampled = launches.step_of(
        model.device,
        lambda n: model.generate(prompts, n, end_ids=frozenset({-1}), temperature=1.0),
    )
    assert sampled.syncs <= 1


class Shapes(TorchDispatchMode):
    """Notes every operation on a device, with the shapes of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [x for x in tree_leaves([args, kwargs]) if isinstance(x, torch.Tensor)]
        if any(x.device.type != "cpu" for x in tensors):
            self.calls.append((str(func), *(tuple(x.shape) for x in tensors)))
        return func(*args, **(kwargs or {}))


def test_steps_of_a_block_of_columns_have_the_same_shapes(model: Model, probes):
    cache, paths, first = execute.prefill_prompts(model, probes["necessity"][:3])
    state = decoding.Decode(cache, paths, 16, model.structure.reaches, spend=True)
    steps = []
    with torch.inference_mode():
        tokens = first.argmax(-1)
        for _ in range(4):
            with Shapes() as noted:
                state.advance()
                logits = execute.forward(model, state, tokens, state.positions)
                tokens = logits.argmax(-1)
            steps.append(noted.calls)
    assert steps[1] == steps[2] == steps[3]


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
def test_masks_of_a_long_text_are_bounded(
    model: Model, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill, "_BLOCK_ELSEWHERE", 32)
    monkeypatch.setattr(prefill, "_ENTRIES_EAGER", 16 * 200)
    monkeypatch.setattr(model.hf.config, "_attn_implementation", attention.register(kernel))
    most = {"sdpa": 32, "eager": 16}[kernel]
    monkeypatch.setattr(model, "chunk", 100)
    with Shapes() as noted:
        model.run([Branch(tuple(range(200)))])
    masks = {s for _, *shapes in noted.calls for s in shapes if s[-1:] == (200,) and len(s) == 4}
    assert masks
    assert max(s[-2] for s in masks) <= most
