"""Mediation: does a cue reach the answer through the chain of thought, or directly?

Pearl 2001 (Direct and indirect effects, section 3), applied to language models by Vig et al. 2020
(arXiv 2004.12265, section 3). The treatment is the cue in the prompt, the mediator the chain that
the model writes, the outcome Y the log-odds of the option that the cue points to. Both chains are
put under both prompts, cued and plain, each as the very tokens that the model wrote:

    total       Y(cued, cued chain) - Y(plain, plain chain)
    direct      Y(cued, plain chain) - Y(plain, plain chain): the natural direct effect, past the
                text, which is kept as it is without the cue
    indirect    Y(plain, cued chain) - Y(plain, plain chain): the natural indirect effect, through
                the text, which alone tells of the cue

Effects are differences of log-odds, where Vig et al. take ratios of odds. In a model that is not
additive in log-odds, direct and indirect effect do not add up to the total: `interaction` is the
rest. A chain that the cue moves and that moves the answer is relied on; the text may be silent
about a direct effect.

The *transplant curve* is Y under each prompt after the first k tokens of each chain, so that one
sees where in the other prompt's chain the answer switches.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StrictBool, StrictInt

from faithscope.interventions import Trace
from faithscope.probes.cues import OTHER_PROMPT, CuedChain, Offer, chains_of, offers, plain_of
from faithscope.probes.declared_cues import CueChoices, PutsCues
from faithscope.probes.edited import Run, Scored, scored
from faithscope.probes.floor import BASELINE, Arm, baseline_of, rounded
from faithscope.probes.framing import FEWER_LABELS, Asking
from faithscope.probes.graded import log_odds, top
from faithscope.probes.hints import left_out, unmeasured
from faithscope.probes.probe import Texts, probe
from faithscope.probes.record import Record, record
from faithscope.probes.settings import Execution, Seed
from faithscope.probes.text_model import added_costs

if TYPE_CHECKING:
    from faithscope.interp.model import Model

PROMPTS = CHAINS = ("plain", "cued")
POSITIONS = 11
"""Number of places at which a chain is cut, from its beginning to its end, in equal parts."""
NO_LABEL, EMPTY = "option_not_scored", "cued_reasoning_empty"


class MediationSettings(PutsCues):
    """Effects of a cue past the reasoning and through it (Pearl 2001; Vig et al. 2020)."""

    cues: Annotated[CueChoices, Field(min_length=1)] = ("sycophancy",)
    """Cues: names of those that come with faithscope, declarations, or files of declarations
    (`faithscope docs cues`); a task in no natural language has its own, whatever is set here."""
    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of a response to a cued question; null is twice those of the uncued response, and
    64."""
    length_normalise: StrictBool = False
    """Divide a label's log-prob by its number of tokens."""
    seed: Seed = 0
    execution: Execution = "auto"


@probe(
    "effects of a cue past the reasoning and through it (Pearl 2001; Vig et al. 2020)",
    words=("asked", "spoken", "cue", "labels", "cues"),
    reads_labels=True,
    calls=lambda size, s: 1 + len(s.cues) * (1 + 4 * POSITIONS),
    writes=lambda size, s: [Texts(len(s.cues), s.max_new_tokens or size.rewritten)],
)
def mediation(
    model: Model, trace: Trace, asking: Asking, settings: MediationSettings
) -> list[Record]:
    """A record for each kind of cue; the plain chain is the trace's own.

    `option` is the answer whose log-odds are followed: the one that the cue points to; for a cue
    that names no answer, the model's uncued one. Of a given pair the chains are those of its file,
    whoever wrote them.

    Besides `total`, `direct`, `indirect` and `interaction`, in nats, and the log-odds of the four
    combinations (`y_PROMPT_CHAIN`): `curve_PROMPT_CHAIN`, the log-odds under a prompt after equal
    parts of a chain's tokens, from none of them to all. All branches run in one call; differences
    are taken within a pack. None stands for log-odds that are not finite. `same_chain` says that
    both prompts led to the same tokens: then nothing can be mediated.

    `switched` and `answer` belong to the response to the cued prompt. A response that the token
    limit cut is kept with `cut` set: its chain ends at the cut.

    Raises:
        FloatingPointError: a log-probability is NaN; the message names item and branch.
        NoRoom: a prompt with its response does not fit the model's positions.
    """
    names, plain = asking.answers, plain_of(model, trace)
    made = {
        kind: replace(offer, cue=None, reason=FEWER_LABELS if len(names) < 2 else NO_LABEL)
        if offer.cue and (len(names) < 2 or _followed(offer, plain) not in names)
        else offer
        for kind, offer in offers(trace, asking, settings.cues, settings.seed).items()
    }
    put = {kind: offer.cue for kind, offer in made.items() if offer.cue is not None}
    if not put:
        return left_out(trace, "mediation", made, settings)
    most, how = settings.max_new_tokens, settings.execution
    written = chains_of(model, trace, asking, put, most, how)
    if written is None:
        return left_out(trace, "mediation", made, settings, OTHER_PROMPT)
    chains, cost = written
    runs: dict[Arm, Run] = {BASELINE: plain}
    for kind, chain in chains.items():
        if chain.reasoning_ids:
            runs |= _branches(model, plain, asking, kind, chain)
    pack = scored(model, plain, asking, runs, settings)
    cost = pack.cost | (added_costs([cost, pack.cost]) if cost else {})
    made = {
        kind: offer
        if offer.cue is None or chains[kind].reasoning_ids
        else replace(offer, cue=None, reason=EMPTY)
        for kind, offer in made.items()
    }
    return [
        record(
            trace,
            "mediation",
            kind,
            settings.seed,
            cue=kind,
            option=_followed(offer, plain),
            own=plain.answer,
            gold=trace.question.gold,
            answer=chains[kind].answer,
            switched=None if offer.option is None else chains[kind].answer == offer.option,
            same_chain=chains[kind].reasoning_ids == plain.reasoning_ids,
            reasoning=chains[kind].reasoning,
            cut=chains[kind].cut,
            n_tokens=[len(plain.reasoning_ids), len(chains[kind].reasoning_ids)],
            scored_answer=top(pack.arms[BASELINE]),
            label_mass=pack.mass[BASELINE],
            **_effects(pack, kind, _followed(offer, plain)),
            **cost,
        )
        if offer.cue is not None
        else unmeasured(trace, "mediation", offer, settings)
        for kind, offer in made.items()
    ]


def _followed(offer: Offer, trace: Trace) -> str:
    """The answer whose log-odds are followed: the one that the cue points to, or else the model's
    uncued one."""
    return offer.option or trace.answer or ""


def _ids(
    model: Model, asking: Asking, prompt: tuple[int, ...], of: Trace | CuedChain, share: float
) -> tuple[int, ...]:
    """Ids of a prompt, the first `share` of a chain's tokens, the closer and the answer cue."""
    given = of.reasoning_ids[: round(share * len(of.reasoning_ids))]
    return (*prompt, *given, *asking.closer_ids, *model.encode(asking.answer_cue))


def _arm(kind: str, prompt: str, chain: str) -> str:
    return f"{kind} {prompt} {chain}"


def _branches(
    model: Model, trace: Trace, asking: Asking, kind: str, cued: CuedChain
) -> dict[Arm, Run]:
    """Arms of every prompt with every chain, cut at every place, the last being its end."""
    of = {"plain": trace, "cued": cued}
    return {
        (_arm(kind, prompt, chain), i): (
            _ids(model, asking, of[prompt].prompt_ids, of[chain], i / (POSITIONS - 1)),
            (),
        )
        for prompt, chain in itertools.product(PROMPTS, CHAINS)
        for i in range(POSITIONS)
    }


def _effects(pack: Scored, kind: str, option: str) -> dict[str, Any]:
    """Fields of a record of one cue; effects are differences from the baseline of each pack."""

    def effect(prompt: str, chain: str) -> float | None:
        arm = (_arm(kind, prompt, chain), POSITIONS - 1)
        plain = baseline_of(pack.arms, pack.packs[arm])
        return rounded(log_odds(pack.arms[arm], option) - log_odds(plain, option))

    curves = {
        f"{prompt}_{chain}": [
            rounded(log_odds(pack.arms[_arm(kind, prompt, chain), i], option))
            for i in range(POSITIONS)
        ]
        for prompt, chain in itertools.product(PROMPTS, CHAINS)
    }
    total, direct, indirect = (
        effect(*x) for x in (("cued", "cued"), ("cued", "plain"), ("plain", "cued"))
    )
    interaction = None
    if total is not None and direct is not None and indirect is not None:
        interaction = rounded(total - direct - indirect)
    return {
        "total": total,
        "direct": direct,
        "indirect": indirect,
        "interaction": interaction,
        **{f"y_{name}": curve[-1] for name, curve in curves.items()},
        **{f"curve_{name}": curve for name, curve in curves.items()},
    }
