"""Writing under a cut: what a model says, and answers, when what it writes cannot look at a span.

The model writes on from where the cut begins to hold: from the end of the reasoning if only the
answer is cut off, else from the end of the keys, or of the prompt if they stand in it. Beside it,
from the same place and with the same random numbers, it writes without the cut. All texts of a
chain are written in one lockstep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope.interventions import Trace
from faithscope.probes.framing import Asking
from faithscope.probes.record import number
from faithscope.probes.resample import continuation, seed_of

if TYPE_CHECKING:
    from faithscope.interp.edits import Knockout
    from faithscope.interp.model import Model

ENDS = "cut_ends_before_the_text"
"""Why nothing is written under a cut: its queries end at a place of the given text, and what the
model writes has no such place."""
RESERVE = 64


@dataclass(frozen=True)
class _Text:
    ids: tuple[int, ...]
    text: str
    answer: str | None


def begins(trace: Trace, edits: Sequence[Knockout]) -> int | str:
    """Number of reasoning tokens that stand before what is written under a cut; or why nothing is
    (`ENDS`)."""
    n, end = len(trace.prompt_ids), len(trace.prompt_ids) + len(trace.reasoning_ids)
    if any(edit.queries[1] is not None for edit in edits):
        return ENDS
    at = max(n, *(max(edit.keys[1], edit.queries[0]) for edit in edits))
    # without a closer, the answer's queries begin with the last token of the reasoning
    return (end if at >= end - 1 else at) - n


def written_under(
    model: Model,
    trace: Trace,
    asking: Asking,
    cuts: Mapping[str, tuple[int, tuple[Knockout, ...]]],
    *,
    samples: int,
    temperature: float,
    max_new_tokens: int | None,
    seed: int,
) -> dict[str, dict[str, Any]]:
    """Name of a cut -> fields of a record of what is written under it:

        answers, control_answers  the answer of each draw, None where none could be read or the
                                  token limit cut the text off; `texts`, `control_texts`
        followed                  the chain's own answer, or else the most frequent one of control
        share, control_share      of the draws that give this answer, among all
        lost                      control_share minus share
        tv                        total variation between the answers of both, draws without one
                                  counted as one further answer; of few draws it is above 0 by
                                  chance alone
        same_text                 share of draws that are the control's of the same random numbers
        unanswered, control_unanswered  share of draws without an answer

    Args:
        cuts: name -> number of reasoning tokens before what is written, and the edits.
        max_new_tokens: most tokens of a text; None is twice those that the chain has after the
            place, and `RESERVE`. Fewer if the model has fewer positions left.
    """
    every = [((at, ()), at, ()) for at in sorted({at for at, _ in cuts.values()})]
    every += [((at, name), at, edits) for name, (at, edits) in cuts.items()]
    prompts, limits = [], []
    whole = len(trace.reasoning_ids) + len(trace.tail_ids)
    for _, at, _ in every:
        prompts.append(trace.prompt_ids + trace.reasoning_ids[:at])
        most = max_new_tokens or 2 * (whole - at) + RESERVE
        room = model.max_positions
        limits.append(most if room is None else max(1, min(most, room - len(prompts[-1]))))
    seeds = [seed_of(seed, trace, 0, draw, "cut") for draw in range(samples)]
    drawn = model.generate(
        [prompt for prompt in prompts for _ in seeds],
        [limit for limit in limits for _ in seeds],
        temperature=temperature,
        seed=seeds * len(every),
        edits=[edits for _, _, edits in every for _ in seeds],
    )
    texts: dict[Any, list[_Text]] = {}
    for i, (key, at, _) in enumerate(every):
        of = drawn[i * samples : (i + 1) * samples]
        texts[key] = []
        for text in of:
            pieces, _, answer = continuation(model, trace, asking, at, text)
            texts[key].append(_Text(tuple(text.ids), "".join(pieces), answer))
    n_written = sum(len(text.ids) for text in drawn)
    return {
        name: _compared(trace, texts[at, name], texts[at, ()])
        | {"samples": samples, "written_from": at, "n_calls": len(drawn), "n_written": n_written}
        for name, (at, _) in cuts.items()
    }


def _compared(trace: Trace, cut: Sequence[_Text], control: Sequence[_Text]) -> dict[str, Any]:
    answers, others = [t.answer for t in cut], [t.answer for t in control]
    known = Counter(x for x in others if x is not None)
    followed = trace.answer or next((x for x, _ in known.most_common(1)), None)
    p, q = Counter(answers), Counter(others)
    n = len(cut)
    shares: dict[str, Any] = dict.fromkeys(("share", "control_share", "lost"))
    if followed is not None:
        shares = {"share": p[followed] / n, "control_share": q[followed] / n}
        shares = {k: number(x) for k, x in shares.items()}
        shares["lost"] = number(shares["control_share"] - shares["share"])
    return {
        "answers": answers,
        "control_answers": others,
        "texts": [t.text for t in cut],
        "control_texts": [t.text for t in control],
        "followed": followed,
        **shares,
        "tv": number(0.5 * sum(abs(p[x] - q[x]) for x in {*p, *q}) / n),
        "same_text": number(sum(a.ids == b.ids for a, b in zip(cut, control, strict=True)) / n),
        "unanswered": number(p[None] / n),
        "control_unanswered": number(q[None] / n),
    }
