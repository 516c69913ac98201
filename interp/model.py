"""`Model`: one open model, its tokenizer, and what can be asked of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from interp import detokenise, execute, lens, prompts
from interp.errors import UserError
from interp.execute import Execution, Generation
from interp.forest import Branch, Forest, split_by_budget
from interp.structure import Structure

Boundary = Literal["digit"]


@dataclass(frozen=True)
class Answered:
    """What a model says at the end of one prefix."""

    log_probs: tuple[float, ...]
    """Per label, the sum of its tokens' log-probs (and of its boundary, if asked)."""
    label_lengths: tuple[int, ...]
    """Tokens per label, for length normalisation."""
    generated: Generation | None
    """The greedy continuation, if one was asked for."""


@dataclass(frozen=True)
class Read:
    """What one branch showed at its asked positions, in the order asked."""

    logits: Float[Tensor, "A V"]
    rows: tuple[Float[Tensor, "L H P"], ...] = ()
    """Per asked position: attention of every layer and head over the path to it."""
    residuals: Float[Tensor, "A L+1 D"] | None = None
    """Embeddings, then the stream after every layer, before the final norm."""


@dataclass(frozen=True)
class ForestRun:
    """The branches of one run, and what running them took."""

    branches: tuple[Read, ...]
    execution: Literal["packed", "dense", "loop"]
    reason: str | None
    """Why the loop was used, where it was."""
    trie_tokens: int
    naive_tokens: int


@dataclass
class Model:
    """A loaded causal language model. Made by `interp.load`."""

    name: str
    hf: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    structure: Structure
    format: prompts.ReasoningFormat
    end_ids: frozenset[int]
    revision: str | None = None
    tree_reason: str | None = None
    """Why the packed forest cannot serve this model; None if it can."""
    token_budget: int = 32_768
    """Most trie tokens whose keys and values are held at once."""
    chunk: int = 2_048
    """Most tokens in one forward."""
    checks: tuple[str, ...] = ()
    """What was verified at load, a line each."""
    _boundaries: dict[str, Tensor] = field(default_factory=dict, repr=False)

    @property
    def device(self) -> torch.device:
        return self.hf.get_input_embeddings().weight.device  # pyright: ignore

    @property
    def dtype(self) -> str:
        return str(self.hf.dtype).removeprefix("torch.")

    @property
    def n_layers(self) -> int:
        return self.structure.n_layers

    @property
    def supports_tree(self) -> bool:
        return self.tree_reason is None

    @property
    def max_positions(self) -> int | None:
        return getattr(self.hf.config.get_text_config(), "max_position_embeddings", None)

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of plain text: nothing added, control tokens in it not obeyed."""
        return tuple(
            self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        )

    def decode(self, ids: Sequence[int]) -> str:
        return detokenise.decode(self.tokenizer, ids)

    def pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text each id adds; see `interp.detokenise.pieces`."""
        return detokenise.pieces(self.tokenizer, ids)

    def prompt(
        self,
        user: str | Sequence[dict[str, str]],
        system: str | None = None,
        thinking: bool | None = None,
    ) -> prompts.Prompt:
        """Render one user turn (or a list of messages) up to where the model goes on."""
        messages = [{"role": "user", "content": user}] if isinstance(user, str) else list(user)
        if system is not None:
            messages = [{"role": "system", "content": system}, *messages]
        return prompts.render(self.tokenizer, self.format, messages, thinking)

    def run(
        self,
        branches: Sequence[Branch],
        *,
        rows: bool = False,
        residuals: bool = False,
        execution: Execution = "auto",
    ) -> ForestRun:
        """Read every branch at its asked positions, in one packed execution.

        Args:
            rows: also the attention rows of the asked tokens.
            residuals: also the residual streams at the asked tokens.
            execution: `packed` (one trie), `dense` (one trie under an N x N mask), `loop`
                (one by one), or `auto`: packed where the model allows.
        """
        ids = [b.ids for b in branches]
        how, reason = self._how(ids, execution)
        reads: list[Read | None] = [None] * len(branches)
        trie = 0
        groups = (
            [[i] for i in range(len(ids))]
            if how == "loop"
            else split_by_budget(ids, self.token_budget)
        )
        for group in groups:
            forest = Forest.of([ids[i] for i in group])
            trie += len(forest)
            at = [
                [int(path[p]) for p in branches[i].ask]
                for i, path in zip(group, forest.paths, strict=True)
            ]
            nodes = {n for asked in at for n in asked}
            if how == "loop" and not rows and not residuals:
                found = self._loop_logits(ids[group[0]], branches[group[0]].ask)
                reads[group[0]] = Read(logits=found)
                continue
            logits: dict[int, Tensor] = {}
            taps = execute.Taps(
                rows=frozenset(nodes if rows else ()),
                hidden=frozenset(nodes if residuals else ()),
            )
            execute.prefill(
                self,
                forest,
                sorted(nodes),
                lambda here, x, into=logits: into.update(zip(here, x.float(), strict=True)),
                chunk=self.chunk,
                taps=taps,
                dense=how == "dense",
            )
            for i, asked in zip(group, at, strict=True):
                reads[i] = Read(
                    logits=torch.stack([logits[n] for n in asked]),
                    rows=tuple(torch.stack(taps.row_weights[n]) for n in asked) if rows else (),
                    residuals=torch.stack([taps.residuals[n] for n in asked])
                    if residuals
                    else None,
                )
        return ForestRun(
            branches=tuple(r for r in reads if r is not None),
            execution=how,
            reason=reason,
            trie_tokens=trie,
            naive_tokens=sum(map(len, ids)),
        )

    def ask(
        self,
        prefixes: Sequence[Sequence[int]],
        labels: Sequence[Sequence[Sequence[int]]] | None = None,
        max_new_tokens: int = 0,
        *,
        stop: Callable[[str], bool] | None = None,
        boundary: Boundary | None = None,
        execution: Execution = "auto",
    ) -> list[Answered]:
        """Score labels and decode an answer after every prefix, from one packed cache.

        Args:
            prefixes: token ids up to where the answer begins.
            labels: per prefix, the ids of each label, scored whole: every token counts.
            max_new_tokens: length of the greedy continuation; 0 for none.
            stop: ends a continuation when true of its text so far.
            boundary: `digit` adds the log-prob that no further digit follows, so that
                "1" is not credited with what belongs to "10".
        """
        per = [[] for _ in prefixes] if labels is None else [list(x) for x in labels]
        if len(per) != len(prefixes):
            raise ValueError(f"{len(prefixes)} prefixes but labels for {len(per)} of them")
        how, _ = self._how([list(p) for p in prefixes], execution)
        out: list[Answered | None] = [None] * len(prefixes)
        groups = (
            [[i] for i in range(len(prefixes))]
            if how == "loop"
            else split_by_budget(prefixes, self.token_budget)
        )
        for group in groups:
            asked = _Asked.of([prefixes[i] for i in group], [per[i] for i in group], boundary)
            if how == "loop":
                answers = self._ask_loop(asked, max_new_tokens, stop)
            else:
                answers = self._ask_packed(asked, max_new_tokens, stop, dense=how == "dense")
            for i, answer in zip(group, answers, strict=True):
                out[i] = answer
        return [a for a in out if a is not None]

    def _ask_packed(
        self,
        asked: _Asked,
        max_new_tokens: int,
        stop: Callable[[str], bool] | None,
        dense: bool,
    ) -> list[Answered]:
        forest = Forest.of(asked.sequences)
        wants = asked.queries(forest.paths)
        ends = [
            int(forest.paths[i][n - 1]) for i, n in zip(asked.first, asked.lengths, strict=True)
        ]
        nodes = sorted({n for n, _ in wants} | set(ends))
        scores: dict[tuple[int, int], float] = {}
        by_node: dict[int, list[int]] = {}
        for n, token in wants:
            by_node.setdefault(n, []).append(token)
        firsts: dict[int, Tensor] = {}

        def reduce(here: list[int], logits: Tensor) -> None:
            for node, row in zip(here, logits, strict=True):
                row = row.float()
                if node in by_node:
                    scores.update(self._scored(node, row, by_node[node]))
                if max_new_tokens and node in ends_set:
                    firsts[node] = row

        ends_set = set(ends)
        cache = execute.prefill(self, forest, nodes, reduce, chunk=self.chunk, dense=dense)
        written: dict[int, Generation] = {}
        if max_new_tokens:
            unique = sorted(ends_set)
            found = execute.decode(
                self,
                cache,
                [forest.path(n).tolist() for n in unique],
                torch.stack([firsts[n] for n in unique]),
                max_new_tokens,
                stop=stop,
                group_tokens=self.token_budget,
            )
            written = dict(zip(unique, found, strict=True))
        totals = iter(asked.totals(scores, wants))
        return [
            Answered(
                log_probs=tuple(next(totals) for _ in sizes),
                label_lengths=tuple(sizes),
                generated=written.get(end),
            )
            for sizes, end in zip(asked.sizes, ends, strict=True)
        ]

    def _ask_loop(
        self, asked: _Asked, max_new_tokens: int, stop: Callable[[str], bool] | None
    ) -> list[Answered]:
        scores: dict[tuple[int, int], float] = {}
        offsets = np.cumsum([0, *(len(s) for s in asked.sequences)])
        paths = [np.arange(a, b) for a, b in itertools.pairwise(offsets)]
        wants = asked.queries(paths)
        by_node: dict[int, list[int]] = {}
        for n, token in wants:
            by_node.setdefault(n, []).append(token)
        for sequence, path in zip(asked.sequences, paths, strict=True):
            here = [int(n) for n in path if int(n) in by_node]
            if not here:
                continue
            logits = self._loop_logits(sequence, [n - int(path[0]) for n in here])
            for node, row in zip(here, logits, strict=True):
                scores.update(self._scored(node, row, by_node[node]))
        generated = [
            execute.continue_one_by_one(self, asked.sequences[i][:n], max_new_tokens, stop=stop)
            if max_new_tokens
            else None
            for i, n in zip(asked.first, asked.lengths, strict=True)
        ]
        totals = iter(asked.totals(scores, wants))
        return [
            Answered(tuple(next(totals) for _ in sizes), tuple(sizes), g)
            for sizes, g in zip(asked.sizes, generated, strict=True)
        ]

    def _loop_logits(self, ids: Sequence[int], ask: Sequence[int]) -> Tensor:
        found: list[Tensor] = []
        execute.one_by_one(self, [ids], [ask], lambda _, x: found.append(x.float()))
        return found[0]

    def _scored(self, node: int, logits: Tensor, tokens: list[int]) -> dict[tuple[int, int], float]:
        """Log-probs of `tokens` after `node`; -1 stands for "no further digit"."""
        if not torch.isfinite(logits).any() or torch.isnan(logits).any():
            raise FloatingPointError(
                f"{self.name}: NaN logits in {self.dtype}; load it in bfloat16 or float32"
            )
        total = torch.logsumexp(logits, -1)
        out = {}
        for token in set(tokens):
            if token == _NO_DIGIT:
                # 1 - p(digit) underflows when a digit is near certain; log1p keeps the tail
                p = torch.logsumexp(logits[self._digits(logits.device)], -1) - total
                value = torch.log1p(-p.double().exp().clamp(max=1 - 1e-12))
            else:
                value = logits[token] - total
            out[node, token] = float(value)
        return out

    def _digits(self, device: torch.device) -> Tensor:
        """Ids of tokens that would lengthen a number."""
        if "digit" not in self._boundaries:
            size = self.hf.get_input_embeddings().weight.shape[0]  # pyright: ignore
            texts = self.tokenizer.batch_decode(
                [[i] for i in range(min(size, len(self.tokenizer)))]
            )
            digits = [i for i, t in enumerate(texts) if t[:1].isdigit()]
            self._boundaries["digit"] = torch.tensor(digits, device=device)
        return self._boundaries["digit"].to(device)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        max_new_tokens: int = 512,
        *,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: Callable[[str], bool] | None = None,
        on_done: Callable[[int, Generation], None] | None = None,
    ) -> list[Generation]:
        """Continue every prompt: greedy, or sampled with a seed of each prompt's own.

        Prompts share the prefill of common prefixes and are decoded in lockstep; those
        that end leave the batch. `on_done(index, generation)` is called as each ends.
        """
        if not prompts:
            return []
        how, _ = self._how(prompts, "auto", room=max_new_tokens)
        choose = _sampler(len(prompts), temperature, top_p, seed) if temperature > 0 else None
        if how == "loop":
            out = []
            for i, prompt in enumerate(prompts):
                pick = None if choose is None else (lambda x, i=i: choose(x, [i]))
                out.append(
                    execute.continue_one_by_one(
                        self, prompt, max_new_tokens, choose=pick, stop=stop
                    )
                )
                if on_done:
                    on_done(i, out[-1])
            return out
        forest = Forest.of(prompts)
        firsts: dict[int, Tensor] = {}
        ends = [int(p[-1]) for p in forest.paths]
        cache = execute.prefill(
            self,
            forest,
            ends,
            lambda here, x: firsts.update(zip(here, x.float(), strict=True)),
            chunk=self.chunk,
        )
        return execute.decode(
            self,
            cache,
            [p.tolist() for p in forest.paths],
            torch.stack([firsts[n] for n in ends]),
            max_new_tokens,
            choose=choose,
            stop=stop,
            group_tokens=self.token_budget,
            on_done=on_done,
        )

    def lens(
        self, residuals: Float[Tensor, "*A D"], options: Sequence[int] | None = None
    ) -> Float[Tensor, "*A V"]:
        """Logit lens of residual streams; see `interp.lens.lens`."""
        return lens.lens(self, residuals, options)

    def _how(
        self, ids: Sequence[Sequence[int]], execution: Execution, room: int = 0
    ) -> tuple[Literal["packed", "dense", "loop"], str | None]:
        longest = max(map(len, ids)) + room
        limit = self.max_positions
        if limit is not None and longest > limit:
            raise UserError(
                f"{self.name}: a sequence of {longest} tokens does not fit its {limit} positions; "
                "shorten the text or lower max_new_tokens"
            )
        if execution == "loop":
            return "loop", "asked for"
        reason = self.tree_reason or _length_dependent_rope(self.hf.config, longest)
        if reason is None:
            return ("dense" if execution == "dense" else "packed"), None
        if execution == "auto":
            return "loop", reason
        raise UserError(f"{self.name}: execution {execution!r} is not possible: {reason}")


_NO_DIGIT = -1


@dataclass(frozen=True)
class _Asked:
    """Prefixes with their labels, flattened to sequences; one sequence per label."""

    sequences: list[list[int]]
    labels: list[list[int]]
    """Per sequence, the label scored on it (empty for a bare prefix)."""
    starts: list[int]
    """Per sequence, the length of its prefix."""
    first: list[int]
    """Per prefix, one of its sequences."""
    lengths: list[int]
    sizes: list[list[int]]
    """Per prefix, the length of each label."""

    @classmethod
    def of(
        cls,
        prefixes: Sequence[Sequence[int]],
        labels: Sequence[Sequence[Sequence[int]]],
        boundary: Boundary | None,
    ) -> _Asked:
        asked = cls(
            [], [], [], [], [len(p) for p in prefixes], [[len(x) for x in y] for y in labels]
        )
        for prefix, options in zip(prefixes, labels, strict=True):
            asked.first.append(len(asked.sequences))
            for label in options or [()]:
                if options and not label:
                    raise ValueError("a label without tokens cannot be scored")
                tokens = [*label, _NO_DIGIT] if boundary == "digit" and label else list(label)
                asked.sequences.append([*prefix, *tokens[:-1]])
                asked.labels.append(tokens)
                asked.starts.append(len(prefix))
        return asked

    def queries(self, paths: Sequence[Any]) -> list[tuple[int, int]]:
        """(node, next token) of every scored token, label after label."""
        return [
            (int(path[start - 1 + k]), token)
            for path, start, label in zip(paths, self.starts, self.labels, strict=True)
            for k, token in enumerate(label)
        ]

    def totals(
        self, scores: dict[tuple[int, int], float], wants: list[tuple[int, int]]
    ) -> list[float]:
        """Sum of each label's scores, in the order of `sequences`."""
        left = iter(wants)
        return [sum(scores[next(left)] for _ in label) for label in self.labels if label]


def _length_dependent_rope(config: Any, longest: int) -> str | None:
    """LongRoPE and dynamic RoPE rescale every position once a batch is long enough."""
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    nested = [rope, *(v for v in rope.values() if isinstance(v, dict))]
    for entry in nested:
        kind = entry.get("rope_type", entry.get("type"))
        if kind not in ("longrope", "dynamic"):
            continue
        original = entry.get("original_max_position_embeddings") or getattr(
            text, "original_max_position_embeddings", text.max_position_embeddings
        )
        if longest > original:
            return (
                f"{kind} RoPE depends on the longest sequence of a pack "
                f"({longest} > {original} positions)"
            )
    return None


def _sampler(
    n: int, temperature: float, top_p: float, seed: int
) -> Callable[[Tensor, list[int]], Tensor]:
    """Each prompt draws from a generator of its own, whatever shares its batch."""
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + i) for i in range(n)]

    def choose(logits: Tensor, rows: list[int]) -> Tensor:
        p = torch.softmax(logits.float().cpu() / temperature, -1)
        if top_p < 1:
            ordered, index = p.sort(descending=True)
            ordered[ordered.cumsum(-1) - ordered > top_p] = 0
            p = torch.zeros_like(p).scatter_(-1, index, ordered)
        return torch.stack(
            [
                torch.multinomial(row, 1, generator=generators[i])[0]
                for row, i in zip(p, rows, strict=True)
            ]
        )

    return choose
