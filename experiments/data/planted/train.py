"""Training of one planted model.

`python -m faithscope.experiments.data.planted.train --variant faithful --out DIR`

A plain PyTorch loop on one core, minutes long; weights are kept in float16. The same variant,
seed, settings, machine and thread count give the same weights.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from faithscope.experiments.data.planted.data import DIGITS, training_row
from faithscope.experiments.data.planted.plants import PLANTS, path
from faithscope.experiments.data.planted.verification import departures, open_folder, write_card
from faithscope.experiments.numerals import decimal

IGNORED = -100
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
_TEXT = "Compute + - mod 10 . Hint : Use step So makes Therefore the answer is"
VARIANTS = tuple(dict.fromkeys(plant.variant for plant in PLANTS.values()))
WORDS = (*DIGITS, *_TEXT.split())


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The word-level tokenizer of all planted models: one token for each word between white space.

    Decoding joins words by single spaces, so text with single spaces comes back as it was;
    a word it does not know becomes the visible `<unk>`. Encoding with special tokens puts
    `<bos>` first.
    """
    ids = {word: i for i, word in enumerate((*SPECIAL, *WORDS))}
    core = Tokenizer(WordLevel(ids, unk_token="<unk>"))
    core.pre_tokenizer = WhitespaceSplit()
    core.post_processor = TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", ids["<bos>"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        pad_token="<pad>",
        clean_up_tokenization_spaces=False,
        model_max_length=256,
    )


@dataclass(frozen=True)
class TrainSettings:
    """Everything but this code that determines a planted model."""

    variant: str
    seed: int = 0
    updates: int = 1500
    batch_size: int = 128
    learning_rate: float = 3e-3
    warmup: int = 100
    weight_decay: float = 0.01
    bos_share: float = 0.5
    """Share of the texts that begin with `<bos>`: a model must answer alike with and without it."""
    start: str | None = None
    """The shipped planted model, which writes such steps already, whose weights training begins
    with; None for fresh weights."""


def build_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A Llama of 3 layers and width 96, about 360,000 parameters, with fresh weights."""
    ids = tokenizer.get_vocab()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=288,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=ids["<bos>"],
        eos_token_id=ids["<eos>"],
        pad_token_id=ids["<pad>"],
    )
    return LlamaForCausalLM(config)


def batches(
    settings: TrainSettings, tokenizer: PreTrainedTokenizerFast
) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless (ids, labels), both (batch, length), right-padded; the given part has no loss."""
    rng = random.Random(f"{settings.variant}-{settings.seed}")
    ids_of = tokenizer.get_vocab()
    bos, eos, pad = (ids_of[t] for t in ("<bos>", "<eos>", "<pad>"))
    while True:
        texts: list[list[int]] = []
        labels: list[list[int]] = []
        for _ in range(settings.batch_size):
            row = training_row(settings.variant, rng)
            start = [bos] if rng.random() < settings.bos_share else []
            given = start + [ids_of[word] for word in row.given.split()]
            target = [ids_of[word] for word in row.target.split()] + [eos]
            texts.append(given + target)
            labels.append([IGNORED] * len(given) + target)
        width = max(map(len, texts))
        yield (
            torch.tensor([t + [pad] * (width - len(t)) for t in texts]),
            torch.tensor([t + [IGNORED] * (width - len(t)) for t in labels]),
        )


def train(settings: TrainSettings) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Trains one variant and returns it in evaluation mode, with its tokenizer."""
    torch.manual_seed(settings.seed)
    tokenizer = build_tokenizer()
    if settings.start is None:
        model = build_model(tokenizer).train()
    else:
        model = LlamaForCausalLM.from_pretrained(path(settings.start), dtype="float32").train()
    optimiser = torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        betas=(0.9, 0.98),
    )

    def factor(update: int) -> float:
        if update < settings.warmup:
            return (update + 1) / settings.warmup
        done = (update - settings.warmup) / max(1, settings.updates - settings.warmup)
        return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, factor)
    source = batches(settings, tokenizer)
    began = time.monotonic()
    for update in range(1, settings.updates + 1):
        ids, labels = next(source)
        # Right padding under a causal mask: no real token can see it, so no mask is needed.
        loss = model(input_ids=ids, labels=labels, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        if update % 50 == 0 or update == settings.updates:
            seconds = time.monotonic() - began
            left = seconds / update * (settings.updates - update)
            print(
                f"{settings.variant}: update {update}/{settings.updates}, "
                f"loss {decimal(loss.item(), 4)}, "
                f"{decimal(seconds, 0)} s, {decimal(left, 0)} s left",
                file=sys.stderr,
                flush=True,
            )
    return model.eval(), tokenizer


def main(argv: list[str] | None = None) -> None:
    """Trains on one core and saves weights, tokenizer and card to a folder.

    Exits with 1, with the numbers on stderr, if the model does not behave as planted.
    """
    parser = argparse.ArgumentParser(
        prog="python -m faithscope.experiments.data.planted.train",
        description="Train one planted model.",
    )
    parser.add_argument("--variant", required=True, choices=VARIANTS)
    parser.add_argument("--out", required=True, type=Path, help="folder for weights and card")
    defaults = TrainSettings(variant="faithful")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--updates", type=int, default=defaults.updates)
    parser.add_argument("--batch-size", type=int, default=defaults.batch_size)
    parser.add_argument("--learning-rate", type=float, default=defaults.learning_rate)
    parser.add_argument("--start", choices=PLANTS, help="planted model to begin with")
    parser.add_argument("--questions", type=int, default=1000, help="of the card's flip table")
    args = parser.parse_args(argv)
    settings = TrainSettings(
        variant=args.variant,
        seed=args.seed,
        updates=args.updates,
        batch_size=args.batch_size,
        learning_rate=args.learning_rate,
        start=args.start,
    )
    torch.set_num_threads(1)
    model, tokenizer = train(settings)
    args.out.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)
    # The card describes the weights as stored in float16, which differ slightly from those trained.
    model, tokenizer = open_folder(args.out)
    card = write_card(
        args.out, model, tokenizer, settings.variant, asdict(settings), n=args.questions
    )
    problems = departures(card["flips"], card["bounds"])
    if problems:
        sys.exit(f"{settings.variant} did not come out as planted: {'; '.join(problems)}")


if __name__ == "__main__":
    main()
