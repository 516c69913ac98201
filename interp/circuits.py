"""Attribution graphs of circuit-tracer: computed, read from files, and summed over spans of tokens.

Source: Ameisen et al. 2025 (Circuit Tracing, transformer-circuits.pub/2025/attribution-graphs) and
`decoderesearch/circuit-tracer`, whose files we read; the code is our own. A graph has the direct
effect of every node on every other at one text: features of transcoders, errors (what these do not
explain of a layer's MLP at a position), token embeddings, and logits of the next token.

Influence is that of the authors' pruning: the effects on a node, absolute, are divided by their
sum, and the shares are multiplied along a path and summed over paths. So the edges into a node are
a distribution over where it comes from, and a path that is followed back from a logit ends at a
token's embedding or an error. The share *through* a span is that of the paths with a node of any
kind at its positions: each counts once, however many of its nodes lie there.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from faithscope.interp.errors import UserError

INSTALL = (
    "make it an environment of its own, since it needs older libraries: python -m venv circuits && "
    "circuits/bin/pip install git+https://github.com/decoderesearch/circuit-tracer"
)
WORKER = Path(__file__).with_name("circuit_worker.py")
_DATA = ("circuit_tracer.", "transformer_lens.")
"""Packages whose classes a file of a graph holds, as data: they are read without them."""
_UNREADABLE = (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError)
_UNREADABLE += (pickle.UnpicklingError,)
Span = tuple[int, int]


class Graph(NamedTuple):
    """What is read of an attribution graph; its nodes are features, errors by layer and position,
    embeddings by position, logits."""

    tokens: tuple[int, ...]
    targets: tuple[int, ...]
    """Token ids of the logits; beyond the vocabulary for another direction."""
    probabilities: tuple[float, ...]
    at: Int[Tensor, " F"]
    """Position of every feature."""
    effects: Float[Tensor, "N N"]
    """Direct effects, a row for a target and a column for a source."""
    transcoders: str
    """The transcoders' name in the file; "" if it has none."""


class Shares(NamedTuple):
    """Shares of the paths to one logit; lists have a value per span."""

    through: list[float]
    """With a node of any kind at the span's positions."""
    tokens: list[float]
    """That begin at the span's token embeddings."""
    errors: list[float]
    """That begin there at an error, or at a feature without any edge into it."""
    past: list[float]
    """That begin at a token embedding before the span and have no node in it."""


class _Data:
    """An object of a class that is not there: its arguments and its fields."""

    def __new__(cls, *args: Any) -> _Data:
        made = object.__new__(cls)
        made.args = args
        return made

    args: tuple[Any, ...]


def read_graph(path: Path) -> Graph:
    """The graph in a file that `Graph.to_pt` of circuit-tracer wrote, of 2025 or 2026. No code of
    the file is run, and the matrix stays on disk until it is used.

    Raises:
        UserError: it cannot be read, or is no such file.
    """
    try:
        unknown = get_unsafe_globals_in_checkpoint(path)
        if foreign := [name for name in unknown if not name.startswith(_DATA)]:
            raise ValueError(f"it holds {', '.join(sorted(foreign))}, which no graph does")
        # a class for each, since they are told apart by their object
        known = [(type("Data", (_Data,), {}), name) for name in unknown]
        with safe_globals(known):  # pyright: ignore[reportArgumentType]
            file = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return _graph(file)
    except _UNREADABLE as error:
        raise UserError(
            f"{path}: is no graph of circuit-tracer ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:200]}); write it with Graph.to_pt"
        ) from error


def _graph(file: dict[str, Any]) -> Graph:
    tokens = torch.as_tensor(file["input_tokens"]).flatten().tolist()
    # ids in 2025, then records of a token's text and id
    told = file["logit_targets"] if "logit_targets" in file else file["logit_tokens"]
    targets = told.tolist() if isinstance(told, Tensor) else [one.args[1] for one in told]
    at = file["active_features"][file["selected_features"], 1].long()
    effects, n = file["adjacency_matrix"], len(tokens)
    others = len(effects) - len(at) - len(targets)
    if effects.ndim != 2 or len(set(effects.shape)) > 1 or others < n or others % n:
        raise ValueError(
            f"{tuple(effects.shape)} effects of {len(at)} features, {n} tokens and {len(targets)} "
            "logits"
        )
    scan = file.get("scan") or ""
    name = scan if isinstance(scan, str) else ", ".join(scan)
    probabilities = tuple(file["logit_probabilities"].tolist())
    return Graph(tuple(tokens), tuple(targets), probabilities, at, effects, name)


def shares(graph: Graph, target: int, spans: Sequence[Span]) -> Shares | None:
    """Shares of the paths to the logit number `target` of a graph, by spans of its positions; None
    if nothing has an effect on it.

    Raises:
        FloatingPointError: an effect is not finite.
        UserError: effects go round in a circle.
    """
    n, f = len(graph.tokens), len(graph.at)
    end = len(graph.effects) - len(graph.targets)
    # of the sources, only features have sources of their own
    rows = torch.cat([graph.effects[:f, :end], graph.effects[end + target, None, :end]])
    rows = rows.float().abs_()
    if not torch.isfinite(rows).all():
        raise FloatingPointError("an effect in the graph is not finite")
    sums = rows.sum(1, keepdim=True)
    rows /= sums.clamp_min(torch.finfo(rows.dtype).tiny)
    if not sums[f]:
        return None
    # errors of every layer, then embeddings, each by position
    place = torch.arange(end - f) % n
    first, last = (torch.tensor([span[i] for span in spans])[:, None] for i in (0, 1))
    within = (torch.arange(n) >= first) & (torch.arange(n) < last)
    ends, _ = _followed(rows, torch.zeros(1, f, dtype=torch.bool))
    embedded = _sums(within, place[-n:], ends[:, end - n :])
    begun = _sums(within, torch.cat([graph.at, place]), ends)
    stops, passed = _followed(rows, within[:, graph.at])
    inside = _sums(within, torch.cat([graph.at, place]), stops)
    past = _sums(torch.arange(n) < first, place[-n:], stops[:, end - n :])
    through = (passed + inside).clamp(max=1)
    return Shares(*(x.tolist() for x in (through, embedded, begun - embedded, past)))


def _sums(
    within: Bool[Tensor, "S T"], at: Int[Tensor, " N"], ends: Float[Tensor, "S N"]
) -> Float[Tensor, " S"]:
    """What of `ends` lies within each span."""
    return (within[:, at] * ends).double().sum(1)


def _followed(
    rows: Float[Tensor, "F+1 N"], barred: Bool[Tensor, "S F"]
) -> tuple[Float[Tensor, "S N"], Float[Tensor, " S"]]:
    """Paths followed back from the last row, once for every set of barred features, at which they
    stop: the share that begins at each node, and the share that stopped at a barred one."""
    f = barred.shape[1]
    ends = rows[f].repeat(len(barred), 1)
    stopped = torch.zeros(len(barred), dtype=torch.double)
    dead = rows[:f].sum(1) == 0
    now = ends[:, :f].clone()
    ends[:, :f] = 0
    # a feature has only features of lower layers among its sources, so this ends
    for _ in range(f + 1):
        stopped += (now * barred).double().sum(1)
        now = now * ~barred
        ends[:, :f] += now * dead
        if not now.any():
            return ends, stopped
        step = now @ rows[:f]
        now = step[:, :f].clone()
        ends[:, f:] += step[:, f:]
    raise UserError("effects in the graph go round in a circle; it is none of circuit-tracer's")


class Tracer:
    """A process in which circuit-tracer holds a model and its transcoders."""

    def __init__(self, python: str, told: dict[str, Any]) -> None:
        """
        Raises:
            UserError: the interpreter cannot be started, lacks circuit-tracer, or this cannot load
                the model and its transcoders.
        """
        # open as long as the process lives
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self._what = f"{told['model']} with transcoders {told['transcoders']}"
        try:
            self._process = subprocess.Popen(
                [python, str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
            )
        except OSError as error:
            raise UserError(f"circuits.python: {python} cannot be started: {error}") from error
        # at the latest when this process ends; before, if no one has the tracer any more
        weakref.finalize(self, _end, self._process)
        answer = self._ask(told)
        if "missing" in answer:
            raise UserError(
                f"circuits.python: {python} has no circuit-tracer ({answer['missing']}); "
                f"{INSTALL}; then set circuits.python to circuits/bin/python"
            )

    def graph(self, ids: Sequence[int], target: int, path: Path) -> Graph:
        """The graph of the logit of token `target` after `ids`, written to `path`.

        Raises:
            UserError: circuit-tracer fails, in its words.
        """
        self._ask({"ids": list(ids), "target": target, "path": str(path)})
        return read_graph(path)

    def _ask(self, what: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            answer = {"error": f"its process ended, with {self._process.wait()}"}
        if "error" in answer:
            load_tracer.cache_clear()
            self._errors.seek(0)
            said = " ".join(self._errors.read()[-1000:].split())
            raise UserError(f"circuit-tracer, {self._what}: {answer['error']}; it said: {said}")
        return answer


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()


@lru_cache(maxsize=1)
def load_tracer(
    python: str,
    model: str,
    transcoders: str,
    backend: str,
    device: str,
    dtype: str,
    max_nodes: int | None,
    batch_size: int,
    offload: str | None,
) -> Tracer:
    """A process that traces circuits; it stays for further graphs."""
    told = {"model": model, "transcoders": transcoders, "backend": backend, "device": device}
    told |= {"dtype": dtype, "max_nodes": max_nodes, "batch_size": batch_size, "offload": offload}
    return Tracer(python, told)


def find_graph(folder: Path, ids: Sequence[int]) -> Graph | None:
    """The graph of a text among the files (`*.pt`) of a folder; None if there is none.

    Raises:
        UserError: there is no such folder, or a file of it is no graph.
    """
    if not folder.is_dir():
        raise UserError(f"circuits.graphs: {folder} is no folder; give one with files of graphs")
    for path in sorted(folder.glob("*.pt")):
        text = _text_of(path, path.stat().st_mtime_ns)
        if before(text, ids) is not None:
            return read_graph(path)
    return None


def before(text: Sequence[int], ids: Sequence[int]) -> int | None:
    """How many tokens a graph's text has before `ids`: none, or the one special token that
    circuit-tracer puts before a text that begins with none; None of another text."""
    more = len(text) - len(ids)
    return more if more in (0, 1) and tuple(text[more:]) == tuple(ids) else None


@lru_cache(maxsize=4096)
def _text_of(path: Path, changed: int) -> tuple[int, ...]:
    return read_graph(path).tokens
