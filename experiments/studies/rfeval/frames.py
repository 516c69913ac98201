"""The frames and tables of a run of RFEval: `load_run(...).<name>`."""

from __future__ import annotations

from faithscope.experiments.analysis.run import Frame
from faithscope.experiments.engine.models.judges import as_sent
from faithscope.experiments.studies.rfeval.results import RfResults, item_frame
from faithscope.experiments.studies.rfeval.units import JUDGED, LOG_PROBS, OUTPUTS, TESTS

_OUTPUT = {
    "condition": "baseline | intervened: without r′, or with it put before",
    "framing": "prefix: r′ is the model's own reasoning; multi_turn: it is an earlier turn",
    "n_prompt": "tokens before the reasoning",
    "n_r_prime": "tokens of r′",
    "n_tokens": "tokens that were generated",
    "text": "as it was generated",
    "ids": "its token ids",
    "end_id": "the token that ended it",
    "finish": "why it ended: stop | length | no_room",
    "outcome": "how the text could be taken apart",
    "reasoning": "part r",
    "explanation": "part e",
    "answer": "part a",
    "paper_parts": "outcome and parts by the authors' code, where these differ",
    "seconds": "from when it was asked for until it ended; those in flight together overlap",
    "elapsed": "seconds since the output before it ended, which add up to the worker's time",
    "backend": "what wrote it",
}
_JUDGEMENT = {
    "condition": "of the output that was judged",
    "outcome": "parsed, unparsed, refused …",
    "values": "stances and flaws, of a reply that was parsed",
    "system": "the system message",
    "asked": "the user message as it was sent",
    "text": "the raw reply",
    "thinking": "what was thought before it",
    "problem": "why it did not parse",
    "form_sha256": "of the prompt's form",
    **dict.fromkeys(("calls", "input_tokens", "output_tokens"), ""),
    **dict.fromkeys(("reasoning_tokens", "cached_tokens"), "of these"),
    "from_cache": "whether the reply was in a cache",
    "served": "the model as the service names it",
    "seconds": "until the reply was there",
}
_STANCE = {
    "condition": "of the output",
    "part": "after which the answer was scored: none | r_prime | r | e | a",
    "stance": "the likeliest option",
    "probabilities": "of every option, in order",
    "mass": "what all options have of the model's probability",
}
_TESTS = {
    "condition": "of the output",
    "stance": "what its answer counts as; empty where it was not run",
    "n_tests": "",
    "n_run": "tests until the first that failed",
    "outcome": "of the last",
    "compared": "outside or inside the program's process; inside, one that cheats can pass",
    "detail": "what went wrong",
    "seconds": "of all",
    "code": "the program",
}


def _table(name: str, frame: str, meaning: str) -> Frame:
    return Frame(frame, meaning, (), make=lambda run: run.tables[name])


FRAMES = (
    Frame(
        "items",
        "A row per item, as it is put to the models.",
        ("task", "item", "question", "options", "context", "r_prime"),
        make=lambda run: item_frame(run.once(RfResults)),
    ),
    Frame(
        "outputs",
        "A row per output: its text, its parts, how long it took.",
        _OUTPUT,
        lambda r: ({**r, "condition": r["variant"]},),
        tuple(OUTPUTS.values()),
    ),
    Frame(
        "judgements",
        "A row per judgement of an output: the prompt as it was sent, the raw reply, its values.",
        _JUDGEMENT,
        lambda r: ({**r, "asked": as_sent(r)},),
        (JUDGED,),
    ),
    Frame(
        "log_probs",
        "A row per part of an output: what the model would have answered after it.",
        _STANCE,
        stages=(LOG_PROBS,),
    ),
    Frame("tests", "A row per program: what came of its tests.", _TESTS, stages=(TESTS,)),
    _table(
        "rf_pairs",
        "pairs",
        "A row per pair and reader: stances, flaws, χ, κ, RF, behaviour, why it is left out.",
    ),
    _table(
        "rf_inside_pairs",
        "inside",
        "A row per pair that counts and was looked into: the signals beside what was judged.",
    ),
)
