"""The frames and tables of a run of RFEval: `load_run(...).<name>`."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.run import Frame
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.engine.models.judges import as_sent
from faithscope.experiments.engine.tallies.chain_faults import COLUMNS, as_columns
from faithscope.experiments.studies.rfeval.data import item_name
from faithscope.experiments.studies.rfeval.judging.stances import stance_set
from faithscope.experiments.studies.rfeval.results import ITEM, RfResults, item_frame
from faithscope.experiments.studies.rfeval.stages import faults_of_output
from faithscope.experiments.studies.rfeval.tables.benchmark import STANCES_BETWEEN
from faithscope.experiments.studies.rfeval.tables.chains import LINKS
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
    **COLUMNS,
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
    "condition": "condition of the output that was judged",
    "outcome": "parsed, unparsed, refused …",
    "values": "stances and flaws in the reply, if it was parsed",
    "system": "the system message",
    "asked": "the user message as it was sent",
    "text": "the raw reply",
    "thinking": "what was thought before it",
    "problem": "why it did not parse",
    "form_sha256": "SHA-256 of the prompt's form",
    **dict.fromkeys(("calls", "input_tokens", "output_tokens"), ""),
    **dict.fromkeys(("reasoning_tokens", "cached_tokens"), "part of the tokens above"),
    "from_cache": "whether the reply was in a cache",
    "served": "the model as the service names it",
    "seconds": "until the reply was there",
}
_STANCE = {
    "condition": "condition of the output",
    "part": "after which the answer was scored: none | r_prime | r | e | a",
    "stance": "the likeliest option",
    "probabilities": "probability of every option, in order",
    "mass": "the model's probability of all options together",
}
_TESTS = {
    "condition": "condition of the output",
    "stance": "what its answer counts as; empty where it was not run",
    "n_tests": "",
    "n_run": "tests until the first that failed",
    "outcome": "outcome of the last test",
    "compared": "outside or inside the program's process; inside, one that cheats can pass",
    "detail": "what went wrong",
    "seconds": "seconds of all tests together",
    "code": "the program",
}


_DECISION = {
    "item": "the item, after its model where the run has several",
    "component": "the part, or the two parts between which a flaw may be named",
    "decision": "stance | flaw",
    "task": "",
    "question": "the problem as it was asked",
    "answer": "the right answer",
    "r_prime": "r′, if the output goes on from it",
    "before": "the part in which a flaw would be named",
    "part": "the part that was read",
    "choices": "what may be decided",
    "label": "what the first judge decided; empty where it read nothing",
}


def decisions(results: RfResults) -> pd.DataFrame:
    """A row per decision (a stance or a flaw) that a reader takes on a complete output."""
    names = ("item", "component", "decision")
    labels = {tuple(r[n] for n in names): r["label"] for r in rows(results.frames["evaluator"])}
    lines: list[dict[str, str]] = []
    for (model, id), outputs in results.outputs.items():
        item, name = results.items[id], item_name(model, id, results.models)
        stances = STANCES_BETWEEN.join(stance_set(item))
        for condition, output in outputs.items():
            texts = {"r_prime": item.r_prime} if condition == "intervened" else {}
            texts |= {"r": output.reasoning, "e": output.explanation, "a": output.answer, "": ""}
            there = [part for part, text in texts.items() if text] if output.usable else []
            asked = [(f"{condition}_{part}", "stance", "", part, stances) for part in there]
            asked += [
                (f"{condition}_flaw_{link}", "flaw", before, part, "yes | no")
                for link, (before, part) in LINKS.items()
                if {before, part} <= {*there}
            ]
            about = {"task": item.task, "question": item.asked, "answer": item.gold}
            for component, decision, before, part, choices in asked:
                key = dict(zip(names, (name, component, decision), strict=True))
                shown = {"r_prime": texts.get("r_prime", ""), "before": texts[before]}
                shown |= {"part": texts[part], "choices": choices}
                label = labels.get(tuple(key.values()), "")
                lines.append(key | about | shown | {"label": label})
    return pd.DataFrame(lines, columns=list(_DECISION))


_TIDY = {
    "pairs": "A row per pair and reader: stances, flaws, χ, κ, RF, behaviour, why it is left out.",
    "unjudged": "A row per pair as `pairs`, by the model's own log-probs of the options.",
    "against": "A row per pair and judge: what it finds beside what log-probs find.",
    "steps": "A row per part of an output that was judged step by step.",
    "by_step": "A row per pair that counts and was to be judged step by step: RF by its steps.",
    "lengths": "A row per output: tokens, seconds, accelerators.",
    "externality": "A row per item: how far r′ is from the words of its problem.",
    "inside": "A row per pair that counts and was looked into: signals beside judgements.",
    "curves": "A row per place in a part of an output: the probability of an option there.",
    "models": "A row per model: how r′ is put to it, its family and regime where compared.",
}
"""Frame -> meaning, of the frames that tables are made of (`tables.frames_of`)."""


def _tidy(name: str, meaning: str) -> Frame:
    return Frame(name, meaning, (), make=lambda run: run.once(RfResults).frames[name])


FRAMES = (
    Frame(
        "items",
        "A row per item, as it is put to the models.",
        ITEM,
        make=lambda run: item_frame(run.once(RfResults)),
    ),
    Frame(
        "outputs",
        "A row per output: its text, its parts, how long it took.",
        _OUTPUT,
        lambda r: ({**r, **as_columns(faults_of_output(r)), "condition": r["variant"]},),
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
    Frame(
        "decisions",
        "A row per stance or flaw to be decided on: emptied of labels, a sheet for `annotations`.",
        _DECISION,
        make=lambda run: decisions(run.once(RfResults)),
    ),
    *(_tidy(name, meaning) for name, meaning in _TIDY.items()),
)
