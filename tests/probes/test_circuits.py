"""Shares of steps in attribution graphs: against every path of small graphs, one by one, and a
graph whose shares are counted by hand; files as circuit-tracer writes them; a package of its name
in another process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import torch
from chat_models import chat
from probe_records import table_of
from sample_trace import asking
from tiny_circuits import PACKAGE, Made

from faithscope.interp.circuits import Graph, read_graph, shares
from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.interventions import Question, Trace, from_ids
from faithscope.probes.circuits import CircuitsSettings, attributed, circuits
from faithscope.probes.framing import prefix_ids

ASKED = "Is the film good? yes or no."
CHAIN = "The acting was superb. So it is positive. That is the answer."
LEARNT = ("through", "tokens", "errors", "past")


@pytest.fixture(scope="module")
def model() -> Model:
    return chat("qwen3")


def chain(model: Model) -> Trace:
    question = Question("q1", "made", "Fine film.", "label", "yes", ("yes", "no"))
    ids = model.encode(CHAIN)
    return from_ids(question, model.prompt(ASKED).ids, ids, model.pieces(ids), answer="yes")


def of_trace(model: Model, more: tuple[int, ...] = ()) -> tuple[Made, float, list[int]]:
    """A graph of the chain's tokens, the probability of its answer, and where its steps begin. Half
    of the answer comes from a feature of the first step that only the question's first token feeds;
    a quarter each from the second step's first token and from an error at the last position."""
    trace = chain(model)
    asked = attributed(model, asking(), trace)
    assert not isinstance(asked, str)
    ids, target = asked
    # both labels begin with a blank, a token of its own
    assert ids == (*prefix_ids(model, asking(), trace), *model.encode(" "))
    assert model.decode([target]) == "y"
    with torch.inference_mode():
        chances = model.hf(input_ids=torch.tensor([ids])).logits[0, -1].double().softmax(-1)
    begin = [len(more) + len(trace.prompt_ids) + s.tokens[0] for s in trace.counted_steps]
    p = float(chances[target])
    tokens = (*more, *ids)
    graph = Made(tokens, [(0, begin[0]), (0, 0)], 1, [999, target], [0.5, p], {})
    graph.effects[graph.logit(1), 0] = -4.0
    graph.effects[graph.logit(1), graph.embedding(begin[1])] = 2.0
    graph.effects[graph.logit(1), graph.error(0, len(tokens) - 1)] = 2.0
    graph.effects[0, graph.embedding(len(more))] = 0.1
    return graph, p, begin


def every_path(made: Made, target: int, spans: list[tuple[int, int]]) -> dict[str, list[float]]:
    """The same shares from a list of all paths."""
    rows = made.matrix().double().abs()
    n, f = len(made.tokens), len(made.features)
    first = made.embedding(0)

    def position(node: int) -> int:
        return made.features[node][1] if node < f else (node - f) % n

    paths: list[tuple[float, list[int]]] = []

    def follow(node: int, weight: float, nodes: list[int]) -> None:
        total = float(rows[node].sum())
        if nodes and not total:
            paths.append((weight, nodes))
        for source in rows[node].nonzero().flatten().tolist():
            follow(source, weight * float(rows[node, source]) / total, [*nodes, source])

    follow(made.logit(target), 1.0, [])
    assert sum(weight for weight, _ in paths) == pytest.approx(1)
    found: dict[str, list[float]] = {name: [] for name in LEARNT}
    for a, b in spans:
        inside = [[a <= position(node) < b for node in nodes] for _, nodes in paths]
        ends = [(w, nodes[-1], at) for (w, nodes), at in zip(paths, inside, strict=True)]
        found["through"].append(sum(w for w, _, at in ends if any(at)))
        found["tokens"].append(sum(w for w, node, at in ends if at[-1] and node >= first))
        found["errors"].append(sum(w for w, node, at in ends if at[-1] and node < first))
        of_before = [x for x in ends if x[1] >= first and position(x[1]) < a]
        found["past"].append(sum(w for w, _, at in of_before if not any(at)))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_those_of_all_paths_one_by_one(seed: int, tmp_path: Path) -> None:
    torch.manual_seed(seed)
    n, layers = 5, 3
    drawn = torch.randint(n, (7,)).tolist()
    features = sorted((i % layers, at) for i, at in enumerate(drawn))
    made = Made([*range(n)], features, layers, [3, 4], [0.6, 0.3], {})
    for node, (layer, at) in enumerate(features):
        below = [i for i, (low, place) in enumerate(features) if low < layer and place <= at]
        errors = [made.error(low, place) for low in range(layer) for place in range(at + 1)]
        below += [*errors, *(made.embedding(place) for place in range(at + 1))]
        # one feature has no edge into it, as those at the first token of a real graph
        kept = [i for i in below if torch.rand(()) < 0.5] if node else []
        made.effects.update({(node, i): float(torch.randn(())) for i in kept})
    for logit in range(2):
        sources = torch.randperm(made.logit(0))[:9].tolist()
        made.effects.update({(made.logit(logit), i): float(torch.randn(())) for i in (0, *sources)})
    graph = read_graph(made.write(tmp_path / "g.pt", old=seed % 2 == 0))
    spans = [(1, 3), (3, 4), (0, 2), (2, 2), (0, 5)]
    for target in (0, 1):
        of, by_hand = shares(graph, target, spans), every_path(made, target, spans)
        assert of is not None
        for name in LEARNT:
            assert getattr(of, name) == pytest.approx(by_hand[name], abs=1e-6), name
        assert of.through[-1] == pytest.approx(1)


def test_what_is_counted_by_hand_is_in_the_record(model: Model, tmp_path: Path) -> None:
    graph, p, _ = of_trace(model)
    graph.write(tmp_path / "any name.pt")
    Made([1, 2], [], 1, [3], [1.0], {}).write(tmp_path / "another.pt")
    (found,) = circuits(model, chain(model), asking(), CircuitsSettings(graphs=str(tmp_path)))
    # the question's path passes the first step and counts for it, though its words add nothing
    assert found["through"] == pytest.approx([0.5, 0.25, 0])
    assert found["tokens"] == pytest.approx([0, 0.25, 0])
    assert found["carried"] == pytest.approx([0.5, 0, 0])
    assert found["errors"] == pytest.approx([0, 0, 0])
    assert (found["chain_through"], found["chain_tokens"]) == (0.75, 0.25)
    assert (found["question"], found["past"], found["unexplained"]) == (0.5, 0, 0.25)
    assert found["probability"] == pytest.approx(p, abs=1e-5)
    assert (found["n_features"], found["transcoders"]) == (2, "made/transcoders")


def test_a_special_token_before_the_text_moves_the_steps(model: Model, tmp_path: Path) -> None:
    of_trace(model, more=(7,))[0].write(tmp_path / "q1.pt", old=True)
    (found,) = circuits(model, chain(model), asking(), CircuitsSettings(graphs=str(tmp_path)))
    assert found["through"] == pytest.approx([0.5, 0.25, 0])
    assert (found["question"], found["transcoders"]) == (0.5, "made/0, made/1")


def test_an_item_is_left_out_with_its_reason(model: Model, tmp_path: Path) -> None:
    trace, (graph, p, _) = chain(model), of_trace(model)

    def reason(made: Made, name: str = "q1") -> str:
        for file in tmp_path.glob("*.pt"):
            file.unlink()
        made.write(tmp_path / f"{name}.pt")
        (found,) = circuits(model, trace, asking(), CircuitsSettings(graphs=str(tmp_path)))
        return found["excluded"]

    other = graph._replace(tokens=(*graph.tokens[:-1], 0))
    assert reason(other) == "graph_of_other_tokens"
    assert reason(graph._replace(tokens=(7, 7, *graph.tokens))) == "graph_of_other_tokens"
    assert reason(other, "x") == "no_graph_file"
    assert reason(graph._replace(targets=[998, 999])) == "answer_not_in_graph"
    far = p + 0.2 if p < 0.5 else p - 0.2
    assert reason(graph._replace(probabilities=[0.5, far])) == "graph_of_another_model"
    nan = graph._replace(probabilities=[0.5, float("nan")])
    assert reason(nan) == "graph_of_another_model"
    assert reason(graph._replace(effects={})) == "no_effect_on_answer"
    (found,) = circuits(model, trace, asking(), CircuitsSettings())
    assert found["excluded"] == "no_transcoders"
    for labels, expected in (
        ((("yes", " ab"), ("no", " ac"), ("so", " b")), "shared_first_token"),
        ((("yes", " a"), ("no", " ab")), "shared_first_token"),
        ((("a", " a"), ("b", " b")), "answer_unparsed"),
    ):
        assert attributed(model, asking(labels=labels), trace) == expected
    alone = attributed(model, asking(labels=(("yes", " a"),)), trace)
    assert alone[0] == prefix_ids(model, asking(), trace)


def test_files_that_are_no_graphs_are_refused(model: Model, tmp_path: Path) -> None:
    graph, _, _ = of_trace(model)
    with pytest.raises(UserError, match=r"holds posix\.system, which no graph does"):
        read_graph(graph.write(tmp_path / "a.pt", scan=Told()))
    with pytest.raises(UserError, match="is no graph"):
        read_graph(graph.write(tmp_path / "b.pt", adjacency_matrix=torch.zeros(9, 9)))
    torch.save({"weights": torch.zeros(3)}, tmp_path / "c.pt")
    (tmp_path / "d.pt").write_text("text")
    for name in ("c.pt", "d.pt"):
        with pytest.raises(UserError, match=rf"{name}: is no graph of circuit-tracer"):
            read_graph(tmp_path / name)
    settings = CircuitsSettings(graphs=str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"circuits\.graphs: .* is no folder"):
        circuits(model, chain(model), asking(), settings)
    circle = torch.tensor([[0.0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    round_ = Graph((1,), (2,), (1.0,), torch.tensor([0, 0]), circle, "")
    with pytest.raises(UserError, match="circle"):
        shares(round_, 0, [(0, 1)])
    bad = Graph((1,), (2,), (1.0,), torch.tensor([0, 0]), circle * torch.nan, "")
    with pytest.raises(FloatingPointError):
        shares(bad, 0, [(0, 1)])


class Told:
    """An object whose file would run a command where it is read without care."""

    def __reduce__(self) -> tuple:
        return os.system, ("true",)


def test_settings_ask_for_one_source() -> None:
    assert [*CircuitsSettings().lacks()] == ["transcoders"]
    assert not CircuitsSettings(graphs="x").lacks()
    with pytest.raises(ValueError, match="set one"):
        CircuitsSettings(graphs="x", transcoders="y")


@pytest.mark.takes("processes that import torch")
def test_graphs_are_computed_by_another_python(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, (_, p, begin) = chain(model), of_trace(model)
    package = tmp_path / "packages/circuit_tracer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE)
    told = {"probability": p, "at": begin[1], "fails": False}
    (tmp_path / "told.json").write_text(json.dumps(told))
    settings = CircuitsSettings(transcoders=str(tmp_path), python=sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(UserError, match=r"has no circuit-tracer .*pip install git"):
        circuits(model, trace, asking(), settings)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    for _ in range(2):  # the process stays
        (found,) = circuits(model, trace, asking(), settings)
        # three quarters by a feature of the second step, fed by the first token of the text; the
        # rest by a feature after the chain, fed by an error of that step
        assert found["through"] == pytest.approx([0, 1, 0])
        assert found["carried"] == pytest.approx([0, 0.75, 0])
        assert found["errors"] == pytest.approx([0, 0.25, 0])
        assert (found["question"], found["unexplained"], found["n_features"]) == (0.75, 0.25, 2)
    (tmp_path / "fails").mkdir()
    (tmp_path / "fails/told.json").write_text(json.dumps(told | {"fails": True}))
    failing = CircuitsSettings(transcoders=str(tmp_path / "fails"), python=sys.executable)
    with pytest.raises(UserError, match="RuntimeError: CUDA out of memory"):
        circuits(model, trace, asking(), failing)
    absent = CircuitsSettings(transcoders=str(tmp_path), python=str(tmp_path / "python"))
    with pytest.raises(UserError, match=r"circuits\.python: .* cannot be started"):
        circuits(model, trace, asking(), absent)


def test_a_row_has_the_means_over_steps() -> None:
    row = {
        "model": "m", "task": "t", "item": "q", "probe": "circuits", "variant": "", "steps": [0, 1],
        "n_steps": 2, "through": [0.5, 0.1], "tokens": [0.1, 0.1], "errors": [0.2, 0.0],
        "carried": [0.2, 0.0], "chain_through": 0.55, "question": 0.4, "past": 0.1,
        "unexplained": 0.3, "n_features": 8,
    }  # fmt: skip
    (line,) = table_of("circuits", [row], resamples=20).to_dict("records")
    assert (line["through"], line["errors"]) == (pytest.approx(0.3), pytest.approx(0.1))
    assert (line["chain_through"], line["past"]) == (0.55, 0.1)
