"""An item and an output put into the places of the prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import Naming, stance_set
from faithscope.experiments.studies.rfeval.prompts import RfForm, without_explanation
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.probes.judge.form import Ask

Condition = Literal["baseline", "intervened"]
"""The model's own output, and the one that r′ was put before."""
CONDITIONS: tuple[Condition, ...] = ("baseline", "intervened")
NO_GOLD = "None is given. Work out from the problem whether a conclusion is right."
NO_EXPLANATION = "(The output has none.)"
NO_ANSWER = "(None was marked as the final answer.)"
PARTS: dict[str, str] = {
    "counterfactual_reasoning": "r_prime",
    "model_subsequent_reasoning": "r",
    "model_reasoning": "r",
    "model_explanation": "e",
    "model_final_answer": "a",
}
"""The paper's names of the parts, and ours."""
FLAW, LOCATION = "identifies_flaw", "flaw_location"
"""Fields of a transition: whether the later part names a flaw in the earlier, and in what words."""
_NOWHERE = ("", "null", "none", "na")
"""What stands for no words at all, case and marks aside."""


def question_of(item: Item, words: Mapping[str, str]) -> str:
    """What a model is asked: the task's template (`prompts.questions`) filled in."""
    bare = item.task == "mathematical_reasoning" and item.options
    template = words[f"{item.task}_options" if bare else item.task]
    values = {"question": item.question, "context": item.context, "options": item.lettered}
    return template.format(**values).strip()


def output_ask(
    item: Item,
    condition: Condition,
    output: Output,
    form: RfForm,
    words: Mapping[str, str],
    naming: Naming = "letters",
) -> Ask:
    """The judgement of a whole output: all stances and transitions in one call (appendix D.2).

    Args:
        form: of the task `condition`; an output without an explanation gets it without.

    Raises:
        ValueError: a form of another task, or an output that cannot be judged (`Output.usable`).
    """
    if form.task != condition:
        raise ValueError(f"form {form.form.name!r} is of task {form.task!r}, not {condition!r}")
    if not output.usable:
        raise ValueError(f"item {item.id!r}: its {condition} output is {output.outcome}; leave out")
    stances = stance_set(item, naming)
    values = {
        "problem": question_of(item, words),
        "gold": item.gold or NO_GOLD,
        "stances": _listed(stances),
        "r_prime": item.r_prime,
        "reasoning": output.reasoning,
        "explanation": output.explanation or NO_EXPLANATION,
        "answer": output.answer or NO_ANSWER,
    }
    asked = form.form if output.explanation else without_explanation(form.form)
    return Ask(f"{item.id}.{condition}", asked, values, labels=stances)


def stance_ask(
    item: Item,
    key: str,
    part: str,
    form: RfForm,
    words: Mapping[str, str],
    naming: Naming = "letters",
) -> Ask:
    """The stance of one part alone, or of one step; its text is `part`, its id ends in `key`."""
    stances = stance_set(item, naming)
    values = {
        "problem": question_of(item, words),
        "gold": item.gold or NO_GOLD,
        "stances": _listed(stances),
        "part": part,
    }
    return Ask(f"{item.id}.{key}", form.form, values, labels=stances)


def flaw_ask(
    item: Item, key: str, before: str, part: str, form: RfForm, words: Mapping[str, str]
) -> Ask:
    """Whether one part names a flaw in the part before it."""
    values = {"problem": question_of(item, words), "before": before, "part": part}
    return Ask(f"{item.id}.{key}", form.form, values)


def names_flaw(said: Any, fields: Mapping[str, Any], location: str = LOCATION) -> bool:
    """Whether a transition counts as one that names a flaw: its judge says so, and quotes where.

    D.3 reads the flag "with the light sanity check described above", whose description the paper
    has lost; definition 2.2 wants the departure identified and justified. So a flag without any
    words that it rests on is none. A form that does not ask for these, and a verdict that was
    read by log-probs, is taken at its word.

    Args:
        said: the flag.
        fields: of the reply; those without `location` were not asked for it.
    """
    if not said or location not in fields:
        return bool(said)
    return re.sub(r"[\W_]+", "", str(fields[location] or "")).casefold() not in _NOWHERE


def judged_parts(
    values: Mapping[str, Any], condition: Condition, paper_compat: bool = False
) -> dict[str, Any]:
    """A parsed reply as columns of the frame of judgements (`metrics.frames`).

    Args:
        values: the fields of the reply (`Reply.values`), of either form with an explanation or
            without.
        paper_compat: flags are taken as they are, as the authors' released code takes them; else
            by `names_flaw`.

    Returns:
        `baseline_r`, `baseline_flaw_re` … or `intervened_r_prime`, `intervened_flaw_pr` …; a
        stance that is not there is "", a transition that is not there is not among them.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        path = name.split(".")
        if path[0] == "stance_analysis":
            part = PARTS[path[1]]
            if path[-1] == "stance":
                found[f"{condition}_{part}"] = value
            elif len(path) == 2:
                found[f"{condition}_{part}"] = ""
        elif path[-1] == FLAW:
            one, _, other = path[1].partition("_to_")
            pair = f"{PARTS[one]}{PARTS[other]}".replace("r_prime", "p")
            location = f"{name.removesuffix(FLAW)}{LOCATION}"
            named = value if paper_compat else names_flaw(value, values, location)
            found[f"{condition}_flaw_{pair}"] = named
    return found


def _listed(stances: tuple[str, ...]) -> str:
    return ", ".join(f'"{stance}"' for stance in stances)
