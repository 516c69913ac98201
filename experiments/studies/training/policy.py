"""The model that is trained: an adapter over frozen weights, and its forwards with gradient.

Rollouts and branches are read by `interp`, without gradient. What is differentiated is computed
here, by plain batched forwards over token ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from faithscope.experiments.files import write_atomically
from faithscope.interp import attention
from faithscope.interp.adapted import weights_of
from faithscope.interp.adapters import BASE, TRAINED_ON, import_peft, without_deprecations
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Forest
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.masks import EVERYTHING, Reach
from faithscope.interp.model import Model
from faithscope.interp.prefill import Prefill, best_way, block_on

Sight = Literal["all", "update_mask", "gradient_mask"]
"""What the answer's tokens see of the prompt while the policy is updated (arXiv 2605.24286).
`update_mask`: nothing. `gradient_mask`: all of it, but no gradient flows back that way."""


@dataclass(frozen=True)
class Text:
    """A sequence of token ids of which a part is learned from."""

    ids: tuple[int, ...]
    learned: int
    """Number of ids at the end whose log-probability is wanted."""
    prompt: int = 0
    """Number of ids at the beginning that are the prompt."""
    answer: int = 0
    """Number of ids at the end that state the answer."""


class Choice(NamedTuple):
    """Answers that are weighed against each other after some prefixes."""

    prefixes: tuple[tuple[int, ...], ...]
    """Token ids up to where the answer begins."""
    labels: tuple[tuple[int, ...], ...]
    """Ids of each label."""
    names: tuple[str, ...]
    """The answer that each label stands for; labels of one answer add up."""


class Policy:
    """A loaded model with an adapter that is trained."""

    def __init__(self, model: Model, rank: int, alpha: int, targets: str | list[str], seed: int):
        """
        Args:
            model: the model, whose own weights stay as they are.
            rank: rank of the adapter's matrices (LoRA, arXiv 2106.09685).
            alpha: the adapter's update is multiplied by alpha / rank.
            targets: names of the linear modules that are adapted, or `all-linear`.
            seed: seed of the adapter's first weights; the adapter then still changes nothing.

        Raises:
            UserError: PEFT is missing, or the model has none of the targets.
        """
        peft = import_peft("training")
        self.model, self.hf = model, model.hf
        settings = peft.LoraConfig(
            r=rank, lora_alpha=alpha, target_modules=targets, lora_dropout=0.0
        )
        settings.base_model_name_or_path = model.name
        with torch.random.fork_rng(), without_deprecations():
            torch.manual_seed(seed)
            try:
                self.hf.add_adapter(settings)
            except ValueError as error:
                raise UserError(f"adapter.targets: {error}") from error
        self.hf.eval()
        self.parameters = [p for p in self.hf.parameters() if p.requires_grad]

    @contextmanager
    def reference(self) -> Iterator[None]:
        """A context in which the model is the one that training began with."""
        self.hf.disable_adapters()
        try:
            yield
        finally:
            self.hf.enable_adapters()

    @contextmanager
    def merged(self) -> Iterator[None]:
        """A context in which the adapter is added to the weights, so that forwards without gradient
        cost what those of the model itself do; quantized weights stay apart from it."""
        before: list[tuple[Tensor, Tensor]] = []
        layers = [m for m in self.hf.modules() if hasattr(m, "get_delta_weight")]
        weights: list[Tensor] = [layer.base_layer.weight for layer in layers]  # pyright: ignore
        if not all(weight.is_floating_point() for weight in weights):
            yield
            return
        with torch.no_grad():
            for layer, weight in zip(layers, weights, strict=True):
                before.append((weight, weight.data))
                (adapter,) = layer.active_adapters  # pyright: ignore
                weight.data = weight.data + layer.get_delta_weight(adapter)  # pyright: ignore
        try:
            with self.reference():
                yield
        finally:
            for weight, data in before:
                weight.data = data

    def save(self, folder: Path) -> None:
        """Write the adapter as PEFT does, into a folder that `faithscope.load` opens."""
        with without_deprecations():
            self.hf.save_pretrained(folder)
        settings = import_peft("training").LoraConfig.from_pretrained(folder)
        setattr(settings, BASE, self.model.name)
        # PEFT keeps names of modules as sets, whose order differs from process to process
        for key, value in vars(settings).items():
            setattr(settings, key, sorted(value) if isinstance(value, set) else value)
        settings.save_pretrained(folder)
        if (weights := weights_of(self.model)) is not None:
            write_atomically(folder / TRAINED_ON, json.dumps({"weights": weights}) + "\n")

    def log_probs(
        self, texts: Sequence[Text], sight: Sight = "all", temperature: float = 1.0
    ) -> list[Tensor]:
        """Per text, the (learned,) log-probabilities of its last ids, in nats, with gradient."""
        if sight == "all":
            logits = self._logits([text.ids for text in texts], [t.learned + 1 for t in texts])
        else:
            once = {text: self._seen(text, sight) for text in dict.fromkeys(texts)}
            logits = [once[text][-text.learned - 1 :] for text in texts]
        return [_of(of[:-1], text, temperature) for of, text in zip(logits, texts, strict=True)]

    def answers(self, choices: Sequence[Choice]) -> list[list[Tensor]]:
        """Per choice and prefix, the log distribution over answers, (A,), normalised over labels;
        all in one forward, in which labels share what stands before them."""
        # a label of one token is read behind the prefix, which all such labels share
        texts = [
            Text((*prefix, *label), len(label))
            for choice in choices
            for prefix in choice.prefixes
            for label in (choice.labels if _longer(choice) else [choice.labels[0]])
        ]
        logits = self._logits([text.ids[:-1] for text in texts], [t.learned for t in texts])
        rows = iter(zip(logits, texts, strict=True))
        return [[_weighed(choice, rows) for _ in choice.prefixes] for choice in choices]

    def _logits(self, texts: Sequence[tuple[int, ...]], last: Sequence[int]) -> list[Tensor]:
        """Per text, the (`last`, V) logits at its last ids. Each different text is run once; texts
        of which shared beginnings are half or more, as a forest; others padded on the right, where
        no token sees them."""
        once = list(dict.fromkeys(texts))
        width, forest = max(map(len, once)), Forest.of(once)
        if self.model.supports_tree and 2 * len(forest) <= width * len(once):
            paths = dict(zip(once, forest.paths, strict=True))
            return self._in(forest, [paths[t][-n:] for t, n in zip(texts, last, strict=True)])
        ids = torch.tensor([(*t, *[0] * (width - len(t))) for t in once], device=self.model.device)
        of = dict(zip(once, self.hf(input_ids=ids, use_cache=False).logits, strict=True))
        return [of[t][len(t) - n : len(t)] for t, n in zip(texts, last, strict=True)]

    def _in(self, forest: Forest, asked: Sequence[NDArray[np.int64]]) -> list[Tensor]:
        """The (n, V) logits at each of some groups of n nodes."""
        n, device = len(forest), self.model.device
        kept = np.unique(np.concatenate(asked)) if self.model.structure.keeps_logits else range(n)
        options = {"logits_to_keep": torch.tensor(kept, device=device)} if len(kept) < n else {}
        eager = attention.runs_eager(self.hf)
        session = Prefill(
            forest,
            _Passing(n),
            0,
            n,
            self.model.structure.reaches,
            way=best_way(device, n, n, chain=False, eager=eager, flexible=False),
            block=block_on(device),
        )
        tokens, depth = (
            torch.from_numpy(x).to(device)[None] for x in (forest.tokens, forest.depth)
        )
        with attention.session(session):
            out = self.hf(input_ids=tokens, position_ids=depth, use_cache=False, **options)
        places = [torch.from_numpy(np.searchsorted(kept, nodes)) for nodes in asked]
        return [out.logits[0][of_group.to(device)] for of_group in places]

    def _seen(self, text: Text, sight: Sight) -> Tensor:
        if self.model.tree_reason is not None:
            raise UserError(
                f"{self.model.name}: {sight} cannot be set up in this model "
                f"({self.model.tree_reason}); take another objective"
            )
        with attention.session(_Sight(text, sight, self.model.structure.reaches)):
            ids = torch.tensor([text.ids], device=self.model.device)
            return self.hf(input_ids=ids, use_cache=False).logits[0]


class _Passing(KeyValues):
    """The cache of a single forward, which hands on keys and values with their gradients."""

    def write(self, layer: int, start: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return key, value


def _of(logits: Tensor, text: Text, temperature: float) -> Tensor:
    """The log-probabilities of the ids that are learned from, of the logits before each."""
    of = (logits.float() / temperature).log_softmax(-1)
    ids = torch.tensor(text.ids[len(text.ids) - text.learned :], device=of.device)
    return of.gather(-1, ids[:, None])[:, 0]


def _longer(choice: Choice) -> bool:
    """Whether some label of a choice has more than one token."""
    return any(len(label) > 1 for label in choice.labels)


def _weighed(choice: Choice, rows: Iterator[tuple[Tensor, Text]]) -> Tensor:
    """The log distribution over the answers of a choice after its next prefix.

    Args:
        rows: logits before each id of a label, and the texts that end with the labels.
    """
    if _longer(choice):
        sums = [_of(logits, text, 1.0).sum() for logits, text in islice(rows, len(choice.labels))]
        scores = torch.stack(sums)
    else:
        logits, _ = next(rows)
        scores = logits[-1].float().log_softmax(-1)[[label[0] for label in choice.labels]]
    members = [
        [i for i, name in enumerate(choice.names) if name == answer]
        for answer in dict.fromkeys(choice.names)
    ]
    return torch.stack([scores[of].logsumexp(0) for of in members]).log_softmax(-1)


class _Sight:
    """Attention of a text whose answer does not see the prompt, or sends it no gradient."""

    def __init__(self, text: Text, sight: Sight, reaches: Mapping[int, Reach | None]) -> None:
        self.text, self.sight, self.reaches = text, sight, reaches

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        n, prompt = len(self.text.ids), self.text.prompt
        first = n - self.text.answer
        place = torch.arange(n, device=query.device)
        reach = self.reaches[module.layer_idx] or EVERYTHING  # pyright: ignore
        seen = reach.sees(place[:, None], place[None, :])
        if self.sight == "update_mask":
            seen &= ~((place[:, None] >= first) & (place[None, :] < prompt))
        hidden = torch.finfo(query.dtype).min
        mask = torch.zeros(n, n, dtype=query.dtype, device=query.device)
        mask = mask.masked_fill(~seen, hidden)[None, None]
        kernel: Callable[..., Any] = attention.kernel(module)
        out, _ = kernel(module, query, key, value, mask, **kwargs)
        if self.sight == "gradient_mask" and first < n:
            key, value = (
                torch.cat([x[:, :, :prompt].detach(), x[:, :, prompt:]], 2) for x in (key, value)
            )
            of_answer, _ = kernel(module, query, key, value, mask, **kwargs)
            out = torch.cat([out[:, :first], of_answer[:, first:]], 1)
        return out
