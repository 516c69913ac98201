"""What probes of given chains will cost, said before a run: branches, tokens and memory.

Chains are at hand, and so are a model's tokenizer and config if the model is a folder or in a
cache; neither weights nor torch are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope.experiments.engine.listing import columns
from faithscope.experiments.engine.models.model_files import (
    CHARACTERS_PER_TOKEN,
    ModelFiles,
    files_of,
)
from faithscope.experiments.numerals import decimal
from faithscope.interventions.trace import Step, Trace
from faithscope.probes import PROBES
from faithscope.probes.probe import Size
from faithscope.probes.screening import ANEW

if TYPE_CHECKING:
    from faithscope.experiments.data.tasks import Task
    from faithscope.experiments.engine.traces.config import TracesConfig
    from faithscope.experiments.engine.traces.units import Item
    from faithscope.interventions.trace import Question
    from faithscope.probes.settings import Settings

BUDGET, CHUNK, WATCHED = 32_768, 1_024, 64
"""The engine's own numbers (`interp.loaded`, `interp.leads`): most tokens whose keys and values are
held, most tokens of a forward, and the last tokens of the chain that every pack runs again."""
LOGITS, BLOCK, LOGITS_ELSEWHERE = 1 << 24, 128, 1 << 27
"""Likewise (`interp.execute`, `interp.prefill`): most logits of a forward over tokens behind
numbers, the number of these tokens that it runs in any case, and most logits of any forward on an
accelerator."""
CODE, WEIGHTS = 470 * 2**20, 2**21
"""Bytes of Python and its libraries, and the most attention weights that a screen holds at once
(`interp.attention_sums`)."""


@dataclass(frozen=True)
class Work:
    """Work of one probe on one trace."""

    branches: int
    tokens: int | None
    """Tokens that forwards run, without those of written answers; None if not foretold."""
    forwards: int | None
    held: int | None
    """Most tokens whose keys and values are held at once."""
    longest: int = 0
    """Tokens of the longest text."""
    read: int = 0
    """Most tokens of a forward after which the next token is scored."""
    beside: int = 0
    """Bytes of ids and of a screen's numbers that are held besides."""
    states: int = 0
    """Numbers of hidden states that are read, and held twice while they are joined."""


def calls_of(probe: str, size: Size, settings: Settings, sample: int | None = None) -> int:
    """Number of a probe's branches on a trace of this size, of which `sample` steps are edited."""
    return PROBES[probe].calls(edited(probe, size, sample), settings)


def edited(probe: str, size: Size, sample: int | None) -> Size:
    """A size with the number of steps that the probe edits."""
    if sample is None or not PROBES[probe].samples_steps:
        return size
    return size._replace(steps=min(size.steps, sample))


def work(
    probe: str,
    size: Size,
    settings: Settings,
    budget: int | None = None,
    sample: int | None = None,
    screen: int | None = None,
) -> Work:
    """The work of a probe on a trace of this size.

    Args:
        budget: most tokens whose keys and values are held at once, unless one text needs more.
        sample: most steps that are edited; None for all.
        screen: number of these that are found by estimates; None for none.
    """
    of, budget = PROBES[probe], budget or BUDGET
    states = 0
    if of.stored is not None:
        stored = of.stored(size, settings)
        states = stored.tokens * stored.sites * (size.layers + 1) * size.width
    changed = edited(probe, size, sample)
    calls = of.calls(changed, settings)
    branches = of.branches(changed, settings) if of.branches else None
    if branches is None:
        return Work(calls, None, None, None)
    after = size.cue + (size.labels if branches.scored else 0)
    whole, places = size.prompt + size.reasoning + after, max(1, changed.steps)
    own = [
        # as many steps lie after a step that is edited early as after one that is edited late
        *(size.tokens * (i % places * size.steps // places) + after for i in range(branches.late)),
        *[size.reasoning + after] * branches.other,
        *[size.tokens + after] * branches.steps,
        *[after] * branches.ends,
    ]
    if branches.repeated:
        packs, held = _packs(own, whole, budget)
        again = whole + (packs - 1) * (WATCHED + after)
    else:
        chain = [size.reasoning + after]
        if branches.ends:
            # each cut begins where the one before left the chain
            chain = [size.reasoning // branches.ends] * branches.ends
        packs, held = _packs([*chain, *own], size.prompt, budget)
        again = 0
    # ids of all texts that begin at different places
    tokens, beside = whole + sum(own) + again, 4 * sum(size.prompt + n for n in own)
    if branches.ends:
        beside = 2 * branches.ends * whole
    # of the chain itself nothing is read, but for cuts, each of which begins on it
    scored = (size.labels + 1) * len(own) if branches.scored else len(own)
    read = min(CHUNK, max(1, CHUNK * scored // max(1, sum(own))))
    if screen is not None and changed.steps < size.steps:
        # one reading of the chain, and for each step the tokens that its estimate computes anew
        near = size.tokens * ANEW.steps + after
        far = sum(ANEW.mediating(size.tokens * i) for i in range(size.steps))
        tokens += whole + size.steps * near + far
        # the attention of every token to every step, and of some queries by eager attention
        beside += 4 * whole * size.steps + 4 * 4 * WEIGHTS
    return Work(calls, tokens, -(-tokens // CHUNK) + packs, held, whole, read, beside, states)


def _packs(own: Sequence[int], shared: int, budget: int) -> tuple[int, int]:
    """Number of packs that branches of these tokens fall into, and the most tokens of any."""
    sizes: list[int] = []
    for tokens in own:
        if not sizes or sizes[-1] + tokens > budget:
            sizes.append(shared)
        sizes[-1] += tokens
    return max(1, len(sizes)), max(sizes, default=shared)


def size_of(
    model: str,
    task: Task,
    question: Question,
    prompt: str,
    parts: Sequence[tuple[str, bool]],
    answer: str | None = None,
) -> Size:
    """The size of a given chain in a model's tokens.

    Args:
        prompt: the message under which the model reads the chain.
        parts: (text, whether it counts as a step) of all stretches of the chain.
        answer: the chain's answer in canonical form, if known.
    """
    files = files_of(model)
    reasoning = files.count("".join(text for text, _ in parts))
    steps = max(1, sum(counted for _, counted in parts))
    chain = without_tokens(question, parts, answer)
    labels = {surface for _, surface in task.labels(question, chain)}
    tokens = max(1, round(reasoning / steps))
    return files.size(
        steps=steps,
        tokens=tokens,
        prompt=files.count(prompt),
        cue=files.count(task.answer_cue),
        labels=files.nodes(labels, whole=question.kind == "number"),
    )


def without_tokens(
    question: Question, parts: Sequence[tuple[str, bool]], answer: str | None
) -> Trace:
    """The trace of a chain, each stretch as one token: answers and their spellings, which are taken
    from the chain where they are numbers, depend on texts alone."""
    texts, steps, at = [text for text, _ in parts], [], 0
    for i, (text, counted) in enumerate(parts):
        steps.append(Step(i, text, (at, at + len(text)), (i, i + 1), counted))
        at += len(text)
    ids = tuple(range(len(texts)))
    return Trace(question, (), ids, tuple(texts), tuple(steps), answer=answer)


def work_lines(
    config: TracesConfig,
    sizes: Sequence[tuple[Item, Size]],
    left_out: Callable[[Item, str], object] = lambda item, probe: None,
) -> list[str]:
    """Lines of a table with the work on the longest item and on all items, a row for each model
    and probe; none without items.

    Args:
        left_out: function that tells whether a probe is known to leave an item out.
    """
    if not sizes:
        return []
    header = ("model", "probe", "tokens", "tokens of the longest", "its forwards", "its memory")
    unknown: list[str] = []
    table: list[tuple[str, ...]] = [header]
    for model in dict.fromkeys(item.model for item, _ in sizes):
        of_model, files = config.of(model), files_of(model)
        of_items = [(item, size) for item, size in sizes if item.model == model]
        # one screen serves all probes of an item
        screening = next((p for p in of_model.probes if PROBES[p].samples_steps), None)
        for probe in of_model.probes:
            own = [(item, size) for item, size in of_items if not left_out(item, probe)]
            if not own:
                continue
            long_item, longest = max(own, key=lambda of_item: of_item[1].reasoning)
            settings = of_model.settings(probe)
            screen = config.steps.screen if probe == screening else None
            limits = config.token_budget, config.steps.sample, screen
            all_work = [work(probe, size, settings, *limits) for _, size in own]
            most = work(probe, longest, settings, *limits)
            if most.tokens is None:
                unknown.append(probe)
                continue
            number = long_item.question.kind == "number" and PROBES[probe].reads_labels
            memory = memory_of(files, most, config.model.dtype, number=number)
            table.append(
                (
                    model,
                    probe,
                    f"{sum(w.tokens or 0 for w in all_work):,}",
                    f"{most.tokens:,}",
                    f"{most.forwards:,}",
                    "unknown" if memory is None else f"{decimal(memory / 2**30)} GiB",
                )
            )
    exact = all(files_of(item.model).counts for item, _ in sizes)
    guess = f"tokens counted as characters / {CHARACTERS_PER_TOKEN} where no tokenizer is at hand"
    logits = f"{decimal(3 * 4 * LOGITS_ELSEWHERE / 2**30, 1)} GiB"
    lines = [
        "",
        *columns(table),
        "memory: of the process on a CPU, at its peak; on an accelerator the logits that a forward "
        f"scores take at most {logits} with their copies",
    ]
    lines += [] if exact else [guess]
    if any(item.question.kind == "number" for item, _ in sizes):
        lines.append(
            "tokens that check where a number ends are not counted (a mark after 7, which may "
            "become 7.5): from few to twice all others, as the model finds likely"
        )
    if unknown:
        lines.append(f"not foretold: tokens of {', '.join(dict.fromkeys(unknown))}")
    return lines


def disk_lines(
    config: TracesConfig,
    sizes: Sequence[tuple[Item, Size]],
    left_out: Callable[[Item, str], object] = lambda item, probe: None,
) -> list[str]:
    """Lines of a table with the hidden states that probes store, a row for each model and probe;
    none if no probe stores any.

    Args:
        left_out: function that tells whether a probe is known to leave an item out.
    """
    table: list[tuple[str, ...]] = []
    for model in dict.fromkeys(item.model for item, _ in sizes):
        of_model = config.of(model)
        for probe in of_model.probes:
            if (stored := PROBES[probe].stored) is None:
                continue
            settings = of_model.settings(probe)
            own = [
                stored(size, settings).bytes
                for item, size in sizes
                if item.model == model and probe in item.probes and not left_out(item, probe)
            ]
            if own:
                table.append((model, probe, _bytes(sum(own) / len(own)), _bytes(sum(own))))
    if not table:
        return []
    header = ("model", "probe", "states of a chain", "of all")
    return [
        "",
        *columns([header, *table]),
        "on disk, once beside the records and once more in arrays/ when tables are written",
    ]


def _bytes(n: float) -> str:
    unit, of = next((u, x) for u, x in _UNITS.items() if n >= x / 2 or x == 1024)
    return f"{decimal(n / of)} {unit}"


_UNITS = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10}


def memory_of(files: ModelFiles, work: Work, dtype: str, *, number: bool = False) -> int | None:
    """Bytes of a process that does some work, at its peak: code, weights, keys and values, and
    what a forward makes on its way; None if not known.

    Args:
        dtype: the config's `model.dtype`; `auto` is taken for the CPU's, which holds the most.
        number: whether scored answers are numbers, behind which further tokens are run.
    """
    width = 4 if dtype in ("auto", "float32") else 2
    of_token, parameters = files.token_bytes(width), files.parameters
    if of_token is None or parameters is None or work.held is None:
        return None
    held = CODE + width * parameters + work.held * of_token + work.beside
    held += 2 * width * work.states
    behind = min(CHUNK, max(BLOCK, LOGITS // files.config["vocab_size"])) if number else 0
    return held + _made(files.config, work, max(work.read, behind), width)


def _made(c: Mapping[str, Any], work: Work, read: int, width: int) -> int:
    """Bytes that a forward makes: masks, the numbers of a layer, and the logits of `read`
    tokens with the two copies that scoring makes of them."""
    wide, deep = c.get("hidden_size", c.get("n_embd", 0)), c.get("intermediate_size") or 0
    # a large mask is one of booleans, and made from others
    masks = 3 * CHUNK * work.longest
    return masks + CHUNK * width * (6 * wide + 3 * deep) + 3 * 4 * read * c["vocab_size"]
