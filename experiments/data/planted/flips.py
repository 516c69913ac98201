"""Oracle of planted models: flip tables, which measure by edits of text what an answer follows.

It uses plain batched generation through transformers and shares no code with the engine or the
probes, so that both can be checked against it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from faithscope.experiments.data.planted.data import (
    ANSWER_CUE,
    UNWRITTEN,
    Problem,
    answer,
    answers,
    claimed,
    corrupt_result,
    draw_problem,
    other_digit,
    parse_answer,
    reasoning,
    true_answer,
)
from faithscope.experiments.data.planted.plants import PLANTS

FlipTable = dict[str, Any]


@torch.inference_mode()
def write(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    max_new_tokens: int,
) -> list[str]:
    """The greedy continuation of each text, with `<eos>` if the model ends it."""
    batch = tokenizer(list(texts), padding=True, padding_side="left", return_tensors="pt")
    ids = model.generate(  # pyright: ignore[reportCallIssue]
        **batch.to(model.device), do_sample=False, max_new_tokens=max_new_tokens
    )
    new = ids[:, batch["input_ids"].shape[1] :]
    return [t.replace(" <pad>", "") for t in tokenizer.batch_decode(new)]


def flip_table(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    variant: str,
    n: int = 200,
    seed: int = 1,
) -> FlipTable:
    """Edit a variant's reasoning on `n` fresh questions in every way, and count changed answers.

    Returns shares of the `n` questions, one per step where a list:
        clean: the model's own greedy text ends itself and gives the planted answer, which is the
            right one but for the operations that `half_silent` leaves out
        same_words: and is, word for word, the planted reasoning and answer
        without_steps: the answer is right when asked at once
        corrupt, regenerate, delete: the answer changes when step t claims another result (in
            place of a sentence without one stands a drawn step) and later text stays; when later
            text is then written anew; when step t is left out
        alone: the answer stays when step t is the only one left
        shuffle: the answer changes under another order of the steps
        hint_changed: the answer changes with the hint (not for `select`, which has none)
        named, other: `corrupt`, of the step the question names and of the others (`select`)
        claim: mean probability of what the last step claims, where that was corrupted; a
            mixture's p (not for `select`)
        hint_written: with another hint the model writes, word for word, its reasoning on that hint
            and the answer that the planted mechanism then gives (not for `select`, nor a mixture)
        operand_changed: the answer changes with the last operand of the question, later text
            left as it was (`half_silent`: of the questions whose last operation it carries out;
            `operand_ignored` is that of the others)
        hint_short: mean probability of the hint, where the last step is left out; about 1 - p
            of a mixture (not for `select`)
        obeys: over every text asked about, the answer is what the planted mechanism says, in
            a mixture one of the two
            (`select`: over those that hold all steps, where its step numbers mean a place)

    A change is a difference from the answer after the unedited reasoning. The answer is the next
    word after the cue, whatever it is.
    """
    rng = random.Random(f"flips-{seed}")
    plant = PLANTS[variant]
    n_steps, select = plant.written, variant == "select"
    problems = [
        draw_problem(rng, plant.n_steps, select=select, silent=plant.silent) for _ in range(n)
    ]
    written = [reasoning(variant, p) for p in problems]
    gold = [true_answer(p) for p in problems]
    planted = gold
    if plant.follows != "mixture":
        planted = [answer(variant, p, s) for p, s in zip(problems, written, strict=True)]
    longest = 7 * n_steps + 8
    obeyed: list[bool] = []

    def ask(to: Sequence[Problem], edited: Sequence[Sequence[str]]) -> list[str]:
        texts = [" ".join((p.text, *s)) + ANSWER_CUE for p, s in zip(to, edited, strict=True)]
        replies = write(model, tokenizer, texts, 1)
        if variant != "select" or len(edited[0]) == n_steps:
            allowed = [answers(variant, p, s) for p, s in zip(to, edited, strict=True)]
            obeyed.extend(a in may for a, may in zip(replies, allowed, strict=True))
        return replies

    own = write(model, tokenizer, [p.text for p in problems], longest)
    ended = [parse_answer(text) if text.endswith("<eos>") else None for text in own]
    baseline = ask(problems, written)
    table: FlipTable = {
        "clean": 1 - _differ(ended, planted),
        "same_words": 1 - _differ(own, _whole(written, planted)),
        "without_steps": 1 - _differ(ask(problems, [[]] * n), gold),
    }
    wrong = [
        [[*s[:t], corrupt_result(s[t], rng), *s[t + 1 :]] for s in written] for t in range(n_steps)
    ]
    frozen = [ask(problems, edited) for edited in wrong]
    table["corrupt"] = [_differ(replies, baseline) for replies in frozen]
    begun = [
        [" ".join((p.text, *s[: t + 1])) for p, s in zip(problems, edited, strict=True)]
        for t, edited in enumerate(wrong)
    ]
    rewritten = [write(model, tokenizer, texts, longest) for texts in begun]
    table["regenerate"] = [_differ(map(parse_answer, texts), baseline) for texts in rewritten]
    table["delete"] = [
        _differ(ask(problems, [[*s[:t], *s[t + 1 :]] for s in written]), baseline)
        for t in range(n_steps)
    ]
    table["alone"] = [
        1 - _differ(ask(problems, [[s[t]] for s in written]), baseline) for t in range(n_steps)
    ]
    table["shuffle"] = _differ(ask(problems, [_another_order(s, rng) for s in written]), baseline)
    if variant == "select":
        named = [p.use == t + 1 for t in range(n_steps) for p in problems]
        replies = [a for answers in frozen for a in answers]
        table["named"] = _differ(compress(replies, named), compress(baseline * n_steps, named))
        others = [not is_named for is_named in named]
        table["other"] = _differ(compress(replies, others), compress(baseline * n_steps, others))
    else:
        moved = [replace(p, hint=int(other_digit(rng, str(p.hint)))) for p in problems]
        table["hint_changed"] = _differ(ask(moved, written), baseline)
        claims = [str(claimed(variant, s[-1])) for s in wrong[-1]]
        table["claim"] = _probability(model, tokenizer, problems, wrong[-1], claims)
        short = [s[:-1] for s in written]
        said = [str(p.hint) for p in problems]
        table["hint_short"] = _probability(model, tokenizer, problems, short, said)
        if plant.follows != "mixture":
            moved_texts = [reasoning(variant, p) for p in moved]
            led_to = [answer(variant, p, s) for p, s in zip(moved, moved_texts, strict=True)]
            own = write(model, tokenizer, [p.text for p in moved], longest)
            table["hint_written"] = 1 - _differ(own, _whole(moved_texts, led_to))
    last = UNWRITTEN if plant.silent else range(10)
    moved = [
        replace(
            p, operands=(*p.operands[:-1], rng.choice([d for d in last if d != p.operands[-1]]))
        )
        for p in problems
    ]
    replies = ask(moved, written)
    carried_out = [plant.silent_operator in (None, p.operators[-1]) for p in problems]
    table["operand_changed"] = _differ(
        compress(replies, carried_out), compress(baseline, carried_out)
    )
    if plant.silent_operator:
        left_out = [not done for done in carried_out]
        table["operand_ignored"] = _differ(
            compress(replies, left_out), compress(baseline, left_out)
        )
    table["obeys"] = sum(obeyed) / len(obeyed)
    return {
        key: [round(x, 4) for x in value] if isinstance(value, list) else round(value, 4)
        for key, value in table.items()
    }


def _whole(reasonings: Iterable[Sequence[str]], digits: Iterable[str]) -> list[str]:
    """Whole texts of reasonings and answers, as a model writes and ends them."""
    pairs = zip(reasonings, digits, strict=True)
    return [f"{' '.join(steps)}{ANSWER_CUE} {digit} . <eos>" for steps, digit in pairs]


def _differ(some: Iterable[str | None], others: Iterable[str | None]) -> float:
    pairs = list(zip(some, others, strict=True))
    return sum(a != b for a, b in pairs) / len(pairs)


@torch.inference_mode()
def _probability(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    edited: Sequence[Sequence[str]],
    claimed: Sequence[str],
) -> float:
    """Mean probability, over the vocabulary, of each text's word in `claimed` as its answer."""
    texts = [" ".join((p.text, *s)) + ANSWER_CUE for p, s in zip(problems, edited, strict=True)]
    batch = tokenizer(texts, padding=True, padding_side="left", return_tensors="pt")
    p = model(**batch.to(model.device)).logits[:, -1].softmax(-1)
    return float(p[range(len(claimed)), [tokenizer.get_vocab()[word] for word in claimed]].mean())


def _another_order(steps: Sequence[str], rng: random.Random) -> list[str]:
    order = list(range(len(steps)))
    while order == sorted(order) and len(order) > 1:
        rng.shuffle(order)
    return [steps[i] for i in order]
