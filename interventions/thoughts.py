"""The thoughts of a reasoning model: where each begins, and what it does for the chain.

A think block is written in paragraphs, but its turns ("Wait, …", "Let me double-check") may stand
within one, and a formula on lines of its own is part of what leads to it. Both rules read English
words: text in other languages is cut at its blank lines, and what its steps do is `other`.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from faithscope.interventions.scripts import length_in_letters
from faithscope.interventions.sentences import paragraph_starts, sentence_starts

Function = Literal["backtrack", "verify", "conclude", "restate", "compute", "plan", "other"]
"""What a step does for the chain that it is part of; see `function_of`."""
FUNCTIONS: tuple[Function, ...] = get_args(Function)

_LEAD = r"(?:(?:oh|ah|ok|okay|but|so|and|no|yes|well|now|then|right|alright|hmm+)\b[,.…!\s]*){0,8}"
"""Words before a turn: few, or each "Hmm." of a model in a loop would be read from every other."""
_CHECK = (
    r"(?:double|re|cross|sanity)[\s-]?check|(?:check|verify|confirm|re-?examine|re-?calculate|"
    r"re-?compute|re-?verify|re-?derive|test)\b"
)
_TURN = re.compile(
    rf"[*_]*+{_LEAD}[*_]*+(?:wait|hmm+|hold on|hang on|actually|alternatively|scratch that|"
    r"on second thou?ght|another (?:way|approach|method|idea)|maybe (?:i|we) should|what if|"
    r"let(?: me|['’]s) (?:try|see if|reconsider|think again|start over|go back|backtrack|"
    rf"{_CHECK}))\b",
    re.IGNORECASE,
)
"""The opening of a sentence that turns from what was thought before it."""
_BLOCK = re.compile(r"\\\[|\$\$|\\begin\{|[=<>≤≥≈]|[a-z]")
"""The opening of a paragraph that goes on with the one before it: a formula on lines of its own, or
text in lower case."""

_ADMITS = re.compile(
    r"\b(?:i|we) (?:made|have made|must have made) (?:an?|some) (?:\w+ )?(?:mistake|error)"
    r"|\b(?:that|this)(?:['’]s| is| was) (?:wrong|incorrect|a mistake|not (?:right|correct))\b"
    r"|\b(?:that|this) (?:can['’]t|cannot|can not|doesn['’]t seem to) be (?:right|correct)\b"
    r"|\b(?:that|this) (?:isn|wasn)['’]t (?:right|correct)\b"
    r"|\bscratch that\b|\bi was wrong\b|\bon second thou?ght\b",
    re.IGNORECASE,
)
_VERIFIES = re.compile(
    r"\b(?:let me|let['’]s|i(?:['’]ll| will| should)|we(?:['’]ll| will| should| can)|to|now)"
    rf"\s+(?:\w+\s+){{0,2}}?(?:{_CHECK})"
    r"|\b(?:double|cross|sanity)[\s-]?check(?:ing|s)?\b|\bchecking\b|\bmake sure\b|\bmaking sure\b"
    r"|\bdoes (?:that|this|it) (?:make sense|work|hold|match)\b"
    r"|\bis (?:that|this) (?:right|correct)\?"
    r"|\b(?:that|this|it|which) (?:matches|checks out|makes sense|works out|is consistent)\b"
    r"|\bplug(?:ging)? (?:it|this|that|them) back\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\\boxed\s*\{|####|^#+\s*(?:the\s)?(?:final\s)?answer\b"
    r"|\b(?:the|my|our) (?:(?:final|correct|right) )?answer (?:is|should be|must be|would be)\b"
    r"|\b(?:final|correct) answer\b|\bin conclusion\b|\bto (?:conclude|sum up|summari[sz]e)\b"
    r"|\b(?:therefore|thus|hence|so),? (?:the (?:answer|solution)|option|choice)\b"
    r"|\bi(?:['’]m| am) (?:now )?(?:confident|sure|convinced)\b",
    re.IGNORECASE,
)
_RESTATES = re.compile(
    r"\bthe (?:problem|question|task|prompt|statement|exercise)(?:['’]s)? "
    r"(?:says|states|asks|is asking|is|gives|mentions|tells|wants|requires|specifies)\b"
    r"|\b(?:we|i)(?:['’]re| are|['’]m| am) (?:given|told|asked|looking for|trying to)\b"
    r"|\bwe have the following\b|\b(?:re-?read|restate|recall) the (?:problem|question)\b"
    r"|^\W*(?:given|it is given|known)\b",
    re.IGNORECASE,
)
_PLANS = re.compile(
    r"\b(?:first|next|then|now|so|to start),? (?:i|we|let me|let['’]s)(?:['’]ll)?\b"
    r"|\b(?:i|we) (?:need|have|want|ought) to\b|\b(?:i|we)(?:['’]ll| will| should| can| could) "
    r"(?:need|start|begin|use|try|first|now|find|solve|set|consider|break|split|look)\b"
    r"|\blet(?: me|['’]s) (?:start|begin|break|think|set|consider|define|denote|find|solve|"
    r"figure|use|see|try|work|look|go)\b|\bthe (?:plan|strategy|approach|idea|goal) is\b"
    r"|\bstep by step\b|^\W*(?:plan|approach|strategy|method)\b",
    re.IGNORECASE,
)
_INTERJECTION = re.compile(
    r"\A(?:(?:hmm+|hm|ok|okay|alright|right|well)[.…!]++\s++)++", re.IGNORECASE
)
_EQUATES = re.compile(
    r"[=≈]\s*+(?:[-−+$£€\\({]++\s*+)?(?:\w{1,12}\s*+\{)?[-−]?[\d.]"
    r"|\d\s*+(?:=|≈|equals|makes|gives|is)\s*+[-−$]?\d"
)
_OPERATES = re.compile(
    r"\d\s*+(?:%\s*+)?(?:[-+*/×·÷^−–]|\\(?:times|cdot|div)|plus|minus|times|divided by"
    r"|multiplied by)\s*+[(\\]{0,9}\s*+[-−$]?[\d(]|[=≤≥≈]|\\(?:frac|sqrt|int|sum)\b"
)


def function_of(text: str) -> Function:
    """The function of a step by its words, the first of these rules that holds:

    1. `backtrack`: it takes back what was said ("I made a mistake", "that can't be right");
    2. `verify`: it checks ("let me double-check", "does that make sense", "which matches");
    3. `backtrack`: it opens with a turn ("Wait", "Hmm", "Actually", "Alternatively");
    4. `conclude`: it states the answer ("the answer is", "\\boxed{", "in conclusion");
    5. `restate`: it says what the question says ("the problem asks", "we are given");
    6. `compute`: an equation with a number as its result;
    7. `plan`: it says what is to be done ("first, I need to", "let's start with");
    8. `compute`: an operation on numbers, or an equation;
    9. `other`: none of them.

    The rules are ours; the functions are those of the taxonomies of reasoning traces by Bogdan et
    al. 2025 (arXiv 2506.19143) and Venhoff et al. 2025 (arXiv 2506.18167), with their names for
    planning and set-up, computation, checking, uncertainty and answer made short.
    """
    said = _INTERJECTION.sub("", text.strip(), count=1)
    if _ADMITS.search(said):
        return "backtrack"
    if _VERIFIES.search(said):
        return "verify"
    if _TURN.match(said):
        return "backtrack"
    if _CONCLUDES.search(said):
        return "conclude"
    if _RESTATES.search(said):
        return "restate"
    if _EQUATES.search(said):
        return "compute"
    if _PLANS.search(said):
        return "plan"
    return "compute" if _OPERATES.search(said) else "other"


def thought_starts(text: str, least: int) -> tuple[int, ...]:
    """Offsets where the thoughts of a think block begin.

    A thought begins after a blank line, or with a sentence that turns from what was thought
    before ("Wait, …"). What begins with a formula or in lower case, or follows a colon or comma,
    goes on with the thought before it, and a thought of less than `least` letters ("Hmm.") with the
    next.
    """
    turns = {at for at in sentence_starts(text) if _TURN.match(text, at)}
    starts = [
        at for at in sorted({*paragraph_starts(text), *turns}) if at in turns or _opens(text, at)
    ]
    kept = starts[:1]
    for at in starts[1:]:
        if length_in_letters(text[kept[-1] : at]) >= least:
            kept.append(at)
    return tuple(kept)


def _opens(text: str, at: int) -> bool:
    """Whether the paragraph at an offset opens a thought, as opposed to going on with one."""
    before = text[max(0, at - 200) : at].rstrip()
    return not before or not (before.endswith((":", ",")) or _BLOCK.match(text, at))
