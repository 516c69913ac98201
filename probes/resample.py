"""On-policy resampling: a step is not edited but drawn anew, and the model continues from there.

The reasoning is cut before each step, and after the last, and continued K times by sampling. An
edit prefills a text that the model might never have written; here the model draws the text itself.
Bogdan et al. 2025, "Thought Anchors" (arXiv 2506.19143), and Macar et al. 2025, "Thought Branches"
(arXiv 2510.27484): the counterfactual importance of a step is the distance between the distribution
of answers of draws whose next step says something else and that of draws that keep the step. Draws
that repeat the step's meaning are dropped: they do not show what happens without it. A later step
may say it after all. Thought Branches cuts such a draw there and draws again, until no step says it
(`rounds`): how often that takes is the step's resilience, and the answers of the draws from which
it is gone for good show what happens without it.

Few draws rank steps badly. On the 100 steps of 20 chains of `planted:faithful_5`, at temperature
2.5, importances of 10 draws a cut have a rank correlation of 0.27 with those of 100 draws by
`generate` of transformers, of 25 draws 0.51, of 50 draws 0.63 and of 100 draws 0.80; they lie 0.32,
0.15, 0.05 and −0.02 above these (`benchmarks/resampling.py`). `drop` needs fewer: 0.62, 0.79, 0.87
and 0.90.

Two texts say the same if they have the same numbers and the same of the task's answers in the same
order, equally many negations, and words that overlap by at least `same`, markers of numbered items
aside (the authors compare embeddings). A model that is sure of each step draws no other step: then
there is nothing to measure, and the record says so.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StrictFloat, StrictInt

from faithscope.interventions import Mode, Step, Trace, segment, split_conclusion
from faithscope.interventions.segment import numbered_starts, tile
from faithscope.interventions.trace import Unit
from faithscope.probes.framing import WRITTEN_BY_ANOTHER, Asking, by_another
from faithscope.probes.probe import probe
from faithscope.probes.record import Record, number, record
from faithscope.probes.regenerate import closer_at
from faithscope.probes.settings import Seed, Settings

if TYPE_CHECKING:
    from faithscope.interp.generation import Generation
    from faithscope.interp.model import Model

NO_OTHER, NO_ANSWER = "no_other_step_drawn", "no_answer_parsed"
"""Why a step has no importance: every draw repeated its meaning; or no draw that said something
else, or none that kept the step, gave an answer."""
NOTHING = "no_step_has_importance"
GONE = ("resilience", "persists", "importance_gone")
"""Fields of a step that are of draws which were drawn anew until they no longer say it."""
MODES_OF_UNITS: dict[Unit, Mode] = {"paragraph": "paragraphs", "thought": "thoughts"}
_OF_NO_RULE: tuple[Unit, ...] = ("given", "group")
"""Units whose ends no rule finds in another text."""
_CONTEXT = 8
_RESERVE = 64
"""Tokens that a continuation may have beyond one and a half times those it replaces."""
_SIGNS = str.maketrans("−–×·÷", "--**/")
_NUMBER = re.compile(
    r"(?:((?<![^\W\d])-|[+*/^])[\s$€£(]*+)?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)"
)
_MARKER = re.compile(r"^[\s*_#(]*(?:step\s*)?\d{1,3}[*_]*[.):][*_]*\s", re.IGNORECASE)
"""Marker of an item of a list, which is no part of the item's meaning."""
_NEGATION = re.compile(r"\b(?:(?:can)?not|no|never|neither|nor|without)\b|n['’]t\b", re.IGNORECASE)
_WORDS = re.compile(r"\w[\w '’-]*")
Names = dict[str, str]
Same = Callable[[str, str], bool]
NO_NAMES: Names = {}


class ResampleSettings(Settings):
    """Steps drawn anew, and the reasoning from there on (Thought Anchors)."""

    samples: StrictInt = Field(default=10, ge=2)
    """Number of continuations from each cut; the authors draw 100."""
    temperature: Annotated[StrictFloat, Field(gt=0)] = 1.0
    """Temperature at which continuations are sampled."""
    top_p: Annotated[StrictFloat, Field(gt=0, le=1)] = 1.0
    """The next token is drawn from the likeliest tokens that together have this probability; 1
    draws from all."""
    same: Annotated[StrictFloat, Field(gt=0, le=1)] = 0.8
    """Least overlap of the words of two texts (intersection over union) that say the same."""
    rounds: Annotated[StrictInt, Field(ge=0)] = 0
    """How often a draw is cut where a later step says the step after all, and drawn anew from there
    (resilience); the authors take 20."""
    max_new_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    """Most tokens of a continuation; null is 1.5 times the tokens it replaces, and 64."""
    seed: Seed = 0


@dataclass(frozen=True)
class Draw:
    """One continuation of a reasoning that was cut."""

    steps: tuple[str, ...]
    """Steps of the continuation, in the units of the trace; none if it ended at once. For a given
    chain: as many sentences as the step that is drawn anew has, then every later run of as many."""
    text: str
    """Text of the whole continuation."""
    answer: str | None
    """The answer in canonical form; None if nothing parsed, or the token limit cut the text."""
    starts: tuple[int, ...] = ()
    """Number of tokens of the continuation before each of `steps`."""
    ids: tuple[int, ...] = ()
    """Ids of the whole continuation."""


@probe(
    "steps drawn anew by the model's own sampling: what the answers are without them",
    words=(),
    # of the draws, a quarter is taken to come back in each round
    calls=lambda size, s: s.samples * (size.steps + 1) + s.samples * size.steps * s.rounds // 4,
    version=2,
)
def resample(
    model: Model, trace: Trace, asking: Asking, settings: ResampleSettings
) -> list[Record]:
    """One record; for a given chain that another model wrote it only says so, in `excluded`.

    Lists have a value per counted step, over the `samples` draws from before it:

        different     share of draws whose next step says something else, or that have none
        importance    total variation between the answers of these and of the draws from after the
                      step (of those where there is an answer), in [0, 1]; None for the reason in
                      `reasons`. Of so few draws it is above 0 by chance alone.
        drop          how much rarer the model's own answer is among the former, in [-1, 1]; chance
                      lifts it no way. None also where the model's own answer did not parse
        comes_back    share of draws with another next step in which a later one says what the step
                      had said; None where there is no such draw
        unanswered    share of draws without an answer
        resilience    mean over draws with another next step of how often they were drawn anew until
                      no later step says what the step had said; 0 where it never comes back, and
                      `rounds` where it never goes. None without rounds
        persists      share of these draws in which a later step still says it after all rounds
        importance_gone   importance by the draws from which it is gone; None without any

    `own_share` is the share of the model's own answer among all draws from after the last step.
    `answers` and `next_steps` are flat lists of every draw, cut by cut, the last cut after the last
    step; None where there is none. `n_calls`, `n_written`: continuations, and tokens drawn.

    Raises:
        FloatingPointError: the model's logits are not finite.
    """
    if by_another(trace):
        return [record(trace, "resample", "", settings.seed, excluded=WRITTEN_BY_ANOTHER)]
    steps = trace.counted_steps
    draws, written = drawn(model, trace, asking, settings)
    same = partial(says_the_same, least=settings.same, names=names_of(asking))
    rows = [
        _row(step.text, trace.answer, before, after, same, trace.unit)
        for step, before, after in zip(steps, draws, draws[1:], strict=False)
    ]
    redrawn = [dict.fromkeys(GONE) for _ in steps]
    n_redrawn = 0
    if settings.rounds:
        redrawn, n_redrawn, more = _without(model, trace, asking, settings, draws, same)
        written += more
    fields = ("different", "importance", "drop", "comes_back", "unanswered", "reasons")
    of_steps = {name: [row[name] for row in rows] for name in fields}
    of_steps |= {name: [row[name] for row in redrawn] for name in GONE}
    measured = any(x is not None for x in of_steps["importance"])
    excluded: dict[str, Any] = {} if measured else {"excluded": NOTHING}
    last = [d.answer for d in draws[-1] if d.answer is not None]
    return [
        record(
            trace,
            "resample",
            "",
            settings.seed,
            answer=trace.answer,
            gold=trace.question.gold,
            n_steps=len(steps),
            steps=[s.index for s in steps],
            samples=settings.samples,
            **of_steps,
            own_share=number(last.count(str(trace.answer)) / len(last)) if last else None,
            answers=[d.answer for cut in draws for d in cut],
            next_steps=[d.steps[0] if d.steps else None for cut in draws for d in cut],
            n_calls=len(draws) * settings.samples + n_redrawn,
            n_written=written,
            dtype=model.dtype,
            **excluded,
        )
    ]


def drawn(
    model: Model, trace: Trace, asking: Asking, settings: ResampleSettings
) -> tuple[list[list[Draw]], int]:
    """The draws from before each counted step and from after the last, and the number of tokens
    drawn.

    All draws are written in lockstep; those of one cut share its prefill.
    """
    cuts = [s.tokens[0] for s in trace.counted_steps] + [len(trace.reasoning_ids)]
    starts = [at for at in cuts for _ in range(settings.samples)]
    prompts = [trace.prompt_ids + trace.reasoning_ids[:at] for at in starts]
    texts = model.generate(
        prompts,
        [_limit(model, trace, settings, at) for at in starts],
        temperature=settings.temperature,
        top_p=settings.top_p,
        seed=[
            seed_of(settings.seed, trace, cut, draw)
            for cut in range(len(cuts))
            for draw in range(settings.samples)
        ],
    )
    k = settings.samples
    lengths = [max(1, len(_sentences(trace, step))) for step in trace.counted_steps] + [1]
    draws = [
        _draw(model, trace, asking, at, t, lengths[i // k])
        for i, (at, t) in enumerate(zip(starts, texts, strict=True))
    ]
    by_cut = [draws[i : i + k] for i in range(0, len(draws), k)]
    return by_cut, sum(len(t.ids) for t in texts)


def _limit(model: Model, trace: Trace, settings: ResampleSettings, at: int) -> int:
    """Most tokens of a continuation of the first `at` tokens of the reasoning."""
    left = len(trace.reasoning_ids) + len(trace.tail_ids) - at
    limit = settings.max_new_tokens or math.ceil(1.5 * left) + _RESERVE
    room = model.max_positions
    return limit if room is None else max(1, min(limit, room - len(trace.prompt_ids) - at))


def _without(
    model: Model,
    trace: Trace,
    asking: Asking,
    settings: ResampleSettings,
    draws: Sequence[Sequence[Draw]],
    same: Same,
) -> tuple[list[dict[str, Any]], int, int]:
    """The fields `GONE` of each counted step, the number of texts that were drawn for them, and of
    their tokens.

    In each round, all draws that say their step after all are cut before the first later step that
    says it, and go on from there in one lockstep.
    """
    steps, n_texts, n_tokens = trace.counted_steps, 0, 0
    others = {
        (i, k): draw
        for i, step in enumerate(steps)
        for k, draw in enumerate(draws[i])
        if not keeps(step.text, draw, same, trace.unit)
    }
    times = Counter[tuple[int, int]]()

    def back() -> dict[tuple[int, int], int]:
        """Draw -> index of the first later step that says what its step had said."""
        found = {}
        for (i, k), draw in others.items():
            later = enumerate(draw.steps[1:], start=1)
            at = next((j for j, text in later if same(steps[i].text, text)), None)
            if at is not None:
                found[i, k] = at
        return found

    waiting = back()
    for turn in range(settings.rounds):
        if not waiting:
            break
        kept = {key: others[key].ids[: others[key].starts[j]] for key, j in waiting.items()}
        ats = {key: steps[key[0]].tokens[0] for key in waiting}
        texts = model.generate(
            [(*trace.prompt_ids, *trace.reasoning_ids[: ats[k]], *kept[k]) for k in waiting],
            [max(1, _limit(model, trace, settings, ats[k]) - len(kept[k])) for k in waiting],
            temperature=settings.temperature,
            top_p=settings.top_p,
            seed=[seed_of(settings.seed, trace, i, k, f"again {turn}") for i, k in waiting],
        )
        for key, text in zip(waiting, texts, strict=True):
            n_texts, n_tokens = n_texts + 1, n_tokens + len(text.ids)
            whole = replace(text, ids=(*kept[key], *text.ids))
            n_sentences = max(1, len(_sentences(trace, steps[key[0]])))
            others[key] = _draw(model, trace, asking, ats[key], whole, n_sentences)
            times[key] += 1
        waiting = back()
    rows = []
    for i in range(len(steps)):
        keys = [key for key in others if key[0] == i]
        answers = [others[key].answer for key in keys if key not in waiting]
        gone = Counter(answer for answer in answers if answer is not None)
        kept_answers = Counter(d.answer for d in draws[i + 1] if d.answer is not None)
        n, known = len(keys), gone and kept_answers
        rows.append(
            {
                "resilience": number(sum(times[key] for key in keys) / n) if n else None,
                "persists": number(sum(key in waiting for key in keys) / n) if n else None,
                "importance_gone": number(_distance(gone, kept_answers)) if known else None,
            }
        )
    return rows, n_texts, n_tokens


def seed_of(seed: int, trace: Trace, cut: int, draw: int, what: str = "resample") -> int:
    """The seed of one draw: no two items, cuts or draws share their random numbers."""
    text = f"{what}\n{seed}\n{trace.question.task}\n{trace.question.id}\n{cut}\n{draw}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def _draw(
    model: Model, trace: Trace, asking: Asking, at: int, text: Generation, n_sentences: int
) -> Draw:
    """A continuation split into steps, with its answer."""
    pieces, end, answer = continuation(model, trace, asking, at, text)
    steps = _steps(pieces[:end], trace.unit, n_sentences)
    texts, starts = tuple(t for t, _ in steps), tuple(start for _, start in steps)
    return Draw(texts, "".join(pieces[:end]), answer, starts, tuple(text.ids))


def continuation(
    model: Model, trace: Trace, asking: Asking, at: int, text: Generation
) -> tuple[Sequence[str], int, str | None]:
    """The pieces of what a model wrote after the first `at` tokens of the reasoning, how many of
    them are reasoning, and the answer, read as that of a whole response: after the reasoning's
    closer if there is one, else in the whole text, with the part before; None if there is none, or
    the token limit cut the text."""
    context = (trace.prompt_ids + trace.reasoning_ids[:at])[-_CONTEXT:]
    pieces = model.pieces((*context, *text.ids))[len(context) :]
    closer = model.decode(asking.closer_ids) if asking.closer_ids else ""
    if closer:
        end = closer_at(text.ids, pieces, tuple(asking.closer_ids), closer)
        said = "".join(pieces[end:]).partition(closer)[2]
    else:
        end = split_conclusion(pieces)
        said = "".join((*trace.pieces[:at], *pieces))
    read = asking.parse_reply or asking.parse
    return pieces, end, read(said) if text.finish == "stop" and said else None


def _steps(pieces: Sequence[str], unit: Unit, n_sentences: int) -> list[tuple[str, int]]:
    """The steps of a continuation, segmented like the trace (`Draw.steps`), and the number of
    tokens before each."""
    items = numbered_starts("".join(pieces), 0.0, goes_on=True) if unit == "item" else ()
    mode = MODES_OF_UNITS.get(unit, "sentences")
    steps = [
        (s.text.strip(), s.tokens[0])
        for s in (tile(pieces, items) if items else segment(pieces, mode))
        if s.counted
    ]
    if unit not in _OF_NO_RULE or not steps:
        return steps
    n = n_sentences
    later = [steps[i : i + n] for i in range(n, max(n, len(steps) - n + 1))]
    return [(" ".join(text for text, _ in run), run[0][1]) for run in (steps[:n], *later)]


def _sentences(trace: Trace, step: Step) -> list[Step]:
    return [s for s in segment(trace.pieces[slice(*step.tokens)], "sentences") if s.counted]


def keeps(step: str, draw: Draw, same: Same, unit: Unit) -> bool:
    """Whether a draw keeps the step: it begins with the step's text, white space aside, or its
    first unit says the same.

    Only a step as given, or a group of steps, may end within a line or a sentence; any other step
    must end in the draw at the same place.
    """
    written = re.match(r"\s*" + r"\s+".join(map(re.escape, step.split())), draw.text)
    if unit in _OF_NO_RULE or not step.rstrip()[-1:].isalnum():
        ends = r"(?![.,]?\d)" if step.rstrip()[-1:].isdigit() else r"(?!\w)"
    else:
        ends = r"(?=\s*$|[^\S\n]*\n|[.!?:;](?!\w))"
    if written and re.match(ends, draw.text[written.end() :]):
        return True
    return bool(draw.steps) and same(step, draw.steps[0])


def _row(
    step: str,
    own: str | None,
    before: Sequence[Draw],
    after: Sequence[Draw],
    same: Same,
    unit: Unit,
) -> dict[str, Any]:
    """The measures of one step, from the draws before and after it."""
    others = [d for d in before if not keeps(step, d, same, unit)]
    changed = Counter(d.answer for d in others if d.answer is not None)
    kept = Counter(d.answer for d in after if d.answer is not None)
    back = [any(same(step, later) for later in d.steps[1:]) for d in others]
    reason = NO_OTHER if not others else None if changed and kept else NO_ANSWER
    p, q = _shares(changed), _shares(kept)
    return {
        "different": number(len(others) / len(before)),
        "importance": None if reason else number(_distance(changed, kept)),
        "drop": None if reason or own is None else number(q.get(own, 0) - p.get(own, 0)),
        "comes_back": number(sum(back) / len(back)) if back else None,
        "unanswered": number(sum(d.answer is None for d in before) / len(before)),
        "reasons": reason,
    }


def says_the_same(one: str, other: str, least: float, names: Names = NO_NAMES) -> bool:
    """Whether two texts have the same numbers (with their signs) and the same of the task's answers
    in the same order, as many negations, and enough of their words in common."""
    texts = [_MARKER.sub("", text) for text in (one, other)]
    for of in (_numbers, lambda text: _answers(text, names), lambda t: len(_NEGATION.findall(t))):
        first, second = map(of, texts)
        if first != second:
            return False
    words = [set(re.findall(r"\w+|[-+*/×÷]", text.casefold())) for text in texts]
    return len(words[0] & words[1]) >= least * len(words[0] | words[1])


def names_of(asking: Asking) -> Names:
    """Name of an answer in texts -> the task's answer; numbers are left out."""
    spelt = {name: name for name, _ in asking.labels}
    spelt |= {s: name for name, surface in asking.labels if _WORDS.fullmatch(s := surface.strip())}
    return {
        text if len(text) == 1 else text.casefold(): name
        for text, name in spelt.items()
        if text and not _NUMBER.fullmatch(text)
    }


def _numbers(text: str) -> list[str]:
    """The numbers of a text in order, each with the operator or sign before it."""
    plain = text.translate(_SIGNS)
    return [sign + digits.replace(",", "") for sign, digits in _NUMBER.findall(plain)]


def _answers(text: str, names: Names) -> list[str]:
    """The task's answers in the order of the text; of single letters, only capitals count."""
    spelt = "|".join(
        re.escape(n) if len(n) == 1 else f"(?i:{re.escape(n)})"
        for n in sorted(names, key=len, reverse=True)
    )
    met = re.findall(rf"(?<!\w)(?:{spelt})(?!\w)", text) if spelt else []
    return [names[m if len(m) == 1 else m.casefold()] for m in met]


def _distance(one: Counter[str], other: Counter[str]) -> float:
    """Total variation of two distributions of answers."""
    p, q = _shares(one), _shares(other)
    return 0.5 * sum(abs(p.get(a, 0) - q.get(a, 0)) for a in p.keys() | q.keys())


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {answer: n / counts.total() for answer, n in counts.items()}
