"""Parsing of a model's output into reasoning, explanation and answer (RFEval, appendix C.3).

On text, rule by rule in the paper's order. Where the reasoning ends is better known from token
ids (`interp.responses.split_response`): what that cut gives goes into `components`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from faithscope.experiments.data.latex import boxes
from faithscope.interp.marks import plain
from faithscope.interventions.conclusion import ANSWER_ELSEWHERE, first_response
from faithscope.interventions.sentences import Span, enclosed, next_visible, outside

PARTS = 4
"""Version of the rules that take outputs apart; see `probes.probe.Probe.version`."""
Thinking = Literal["opened", "written", "unmarked"]
"""Beginning of the reasoning. `opened`: the prompt opened its block (and put r′ there); `written`:
the model opens it itself; `unmarked`: the model's format has no block, and what comes before the
answer is its reasoning."""
Outcome = Literal[
    "complete",  # reasoning, and an answer or an explanation that may state one
    "empty",  # nothing was written
    "truncated",  # the token limit ended it
    "unclosed",  # the reasoning has no end, though the model stopped by itself
    "no_reasoning",
    "no_answer",  # neither an answer nor an explanation
    "refused",  # a model behind an API declined
    "filtered",  # its provider's content filter stopped it
]

_OPEN, _CLOSE = r"(?:<think>|\[think\])", r"(?:</think>|\[/think\])"
_SPECIAL = re.compile(r"<\|(?:end|return|im_end|eot_id|endoftext)\|>|</s>|<｜end▁of▁sentence｜>")
_OPENS, _CLOSES = re.compile(_OPEN, re.I), re.compile(_CLOSE, re.I)
_OPENS_OR_CLOSES = re.compile(f"({_OPEN})|{_CLOSE}", re.I)
_OPENS_ANSWER = re.compile(r"(?:<|\[)answer(?:>|\])", re.I)
_CLOSES_ANSWER = re.compile(r"(?:<|\[)/answer(?:>|\])", re.I)
_OPENS_CODE = re.compile(r"```(?:python|py|cpp)\b(?:(?!```)[^\n])*+\n?", re.I)
_OPENS_FENCE, _CLOSES_FENCE = re.compile(r"```([\w+#.-]*)[ \t]*\n"), re.compile("```")
_PROSE = ("", "text", "txt", "plaintext", "markdown", "md", "latex", "tex", "math")
"""Marks of a fence that may hold no program."""
_LABEL = re.compile(
    r"(?:\*\*\s*)?\b(?:final\s*answer|answer|decision)(?:\s*\*\*)?\s*:(?:\s*\*\*)?\s*", re.I
)
_PHRASE = re.compile(r"the\s+correct\s+answer\s+is\s*+:?\s*+\*\*", re.I)
_CLOSES_PHRASE = re.compile(r"\*\*")
_STATED = re.compile(
    r"(?:\bthe\s+(?:(?:correct|right|final|best)\s+)?(?:answer|option|choice)\s+is\s*:?[ \t]*"
    rf"(?:option[ \t]+)?|(?:{ANSWER_ELSEWHERE})[ \t]*)(\S[^\n]*?)(?=\.(?:\s|\Z)|。|\n|\Z)",
    re.I,
)
_SECTIONS = (
    "Explanation|Reasoning|Analysis|Solution|Notes?|References?|Proof|Derivation|Calculation|"
    "Discussion|Conclusion|Summary"
)
_BOUNDARY = re.compile(
    r"\n\s*\n"  # a blank line
    r"|^\s*#{1,6}\s+"  # a heading
    r"|^\s*```"
    r"|^\s*(?:-{3,}|\*{3,}|_{3,})\s*$"  # a rule
    r"|^\s*(?:[-*+]\s+|\d+[.)]\s+)"  # a list item
    rf"|^\s*(?:\*\*)?(?:{_SECTIONS})(?:\*\*)?\s*:"
    r"|</?(?:answer|think)>|\[/?(?:answer|think)\]"
    r"|\Z",
    re.I | re.M,
)
_CHOICE = re.compile(
    r"(?:\*\*\s*)?(?:([A-E])(?![A-Za-z'’])|((?i:yes|no|true|false))\b)[\s.:\-)\]*]*"
)
_ANOTHER = re.compile(r"[\s.:)\]*]*(?:,|/|&|\b(?:or|and)\b)\s*[(\[*]*[A-E](?![A-Za-z'’])")
"""A second letter behind the first: "B or C" is no choice."""
_CHOICE_ANY_CASE = re.compile(r"(?:\*\*\s*)?([A-E]|yes|no|true|false)\b[\s.:)\]-]*", re.I)
_WORD = re.compile(r"[^\W_]+")
_HEADINGS = ("", "answer", "the answer", "final answer", "the final answer", "solution")
_ARTICLE = re.compile(r"A[ \t]+[a-z]")


@dataclass(frozen=True)
class Output:
    """The components of an output; "" for a component that is missing."""

    reasoning: str
    """The model's own reasoning, r, without r′."""
    explanation: str
    """Prose after the reasoning, without the answer: e."""
    answer: str
    """The final answer as written: a."""
    outcome: Outcome

    @property
    def usable(self) -> bool:
        """Whether the output can be judged (RFEval, appendix C.4, the filters on the output
        itself).

        An output without an answer can where it has an explanation: the judge is told to find
        the answer there (appendix I.3).
        """
        return self.outcome == "complete"


def parse_output(
    text: str,
    thinking: Thinking = "opened",
    finished: bool = True,
    paper_compat: bool = False,
) -> Output:
    """Takes apart what was generated after the prompt, or after the prompt and r′.

    Args:
        finished: False where the token limit ended it.
        paper_compat: as the authors' released code does it: what holds no Latin letter counts
            as not there (`<answer>42</answer>`, a reasoning of figures), after a label
            `answer: a rectangle` is the choice "a", a reasoning without an end is none, and
            programs are searched for labels like prose.
    """
    text = _plain_marks(text)
    if thinking == "unmarked":
        explanation, answer = split_answer(text, paper_compat)
        return _judged(explanation, "", answer, finished, paper_compat)
    if thinking == "opened":
        text = f"<think>{text}"
    tail, blocks = _without_blocks(text, paper_compat)
    unclosed = re.search(_OPEN, tail, re.I)
    if unclosed and not (blocks and any(blocks)):
        reasoning = re.sub(_OPEN, "", tail[unclosed.start() :], flags=re.I).strip()
        if paper_compat:
            return Output("", "", "", "truncated" if not finished else "no_reasoning")
        outcome = "truncated" if not finished else "unclosed" if reasoning else "empty"
        return Output(reasoning, "", "", outcome)
    return components("\n\n".join(b for b in blocks if b), tail, finished, paper_compat)


def components(
    reasoning: str, tail: str, finished: bool = True, paper_compat: bool = False
) -> Output:
    """Takes an output apart where the cut between reasoning and the rest is known.

    Args:
        tail: what follows the reasoning; marks at its beginning are taken off, and reasoning that
            is opened and closed again in it is reasoning, too (rule 1).
        finished, paper_compat: see `parse_output`.
    """
    tail = re.sub(rf"^\s*{_CLOSE}", "", _plain_marks(tail), flags=re.I)
    tail, blocks = _without_blocks(tail, paper_compat)
    thought = [reasoning, *blocks]
    explanation, answer = split_answer(tail, paper_compat)
    bare = (re.sub(f"{_OPEN}|{_CLOSE}", "", part, flags=re.I).strip() for part in thought)
    reasoning = "\n\n".join(part for part in bare if part)
    return _judged(reasoning, explanation, answer, finished, paper_compat)


def _without_blocks(text: str, paper_compat: bool) -> tuple[str, list[str]]:
    """A text without the blocks of thinking that are closed in it, and what stands in these.

    A block within a block is part of it where all marks pair; the released code ends a block at
    the next mark that closes one.
    """
    rest, blocks, at = [], [], 0
    nested = None if paper_compat else _outermost(text)
    for opens, closes in enclosed(text, _OPENS, _CLOSES) if nested is None else nested:
        rest.append(text[at : opens.start()])
        blocks.append(text[opens.end() : closes.start()].strip())
        at = closes.end()
    return "".join([*rest, text[at:]]), blocks


def _outermost(text: str) -> list[tuple[re.Match[str], re.Match[str]]] | None:
    """Opener and closer of the blocks that no block holds; None where the marks do not pair."""
    opened: list[re.Match[str]] = []
    blocks = []
    for mark in _OPENS_OR_CLOSES.finditer(text):
        if mark[1]:
            opened.append(mark)
        elif not opened:
            return None
        else:
            opener = opened.pop()
            if not opened:
                blocks.append((opener, mark))
    return None if opened else blocks


def split_answer(text: str, paper_compat: bool = False) -> tuple[str, str]:
    """Explanation and answer in what follows the reasoning, by rules 2 to 4; "" for a missing one.

    A tag `<answer>` counts before anything else; then, of all labels ("Answer:", "Final Answer:",
    "Decision:"), phrases "the correct answer is **…**", `\\boxed{…}` and code blocks, the one
    that ends last; and where there is none of these, the last sentence "the answer is …" (ours).
    Where nothing is left beside the answer, or nothing but marks and a heading, the same is looked
    for inside it. Programs are not looked into (`answer: int = 0` is no label). Where the text goes
    on with a next question of its own ("Question: …"), it ends there.
    """
    program = False
    text = text if paper_compat or "```" in text else first_response(text)
    tags = enclosed(text, _OPENS_ANSWER, _CLOSES_ANSWER)
    tagged = ((text[a.end() : b.start()].strip(), a.start(), b.end()) for a, b in tags)
    if found := next((t for t in tagged if t[0] or paper_compat), None):
        answer, rest = found[0], text[: found[1]] + text[found[2] :]
    else:
        candidates = _candidates(text, paper_compat)
        if not candidates and not paper_compat:
            # nothing is marked: what is said in so many words
            candidates = [_Candidate(m.span(1), m.start(), m.end()) for m in _STATED.finditer(text)]
        if not candidates:
            return _said(text, paper_compat), ""
        last = max(candidates, key=lambda c: c.end)
        answer, left = _short(last, text, paper_compat)
        program = last.program and not paper_compat
        rest = text[: last.start] + left + text[last.end :]
    rest = _said(rest, paper_compat)
    inside = [] if rest or program else _candidates(answer, paper_compat, whole=True)
    if inside:
        last = max(inside, key=lambda c: c.end)
        rest = _said(answer[: last.start] + answer[last.end :], paper_compat)
        answer = last.text(answer)
    return rest, answer


def _said(text: str, paper_compat: bool) -> str:
    """The text, or "" if it says nothing: brackets of a formula that was the answer, a full stop
    behind it, a heading above it. What is not said has no stance."""
    words = " ".join(_WORD.findall(text)).casefold()
    return "" if words in _HEADINGS and not paper_compat else text.strip()


@dataclass(frozen=True)
class _Candidate:
    """A place where an answer may stand. Candidates overlap: none is a text of its own."""

    inner: Span
    start: int
    end: int
    """End of all that goes with the answer: label, box, fence."""
    labelled: bool = False
    program: bool = False

    def text(self, source: str) -> str:
        inner = source[slice(*self.inner)].strip()
        # `**Answer: B**` closes after the answer what it opened before the label
        if self.labelled and inner.endswith("**") and inner.count("**") % 2:
            inner = inner[:-2].strip()
        return inner


def _candidates(text: str, paper_compat: bool, *, whole: bool = False) -> list[_Candidate]:
    """Candidates for the answer in a text; but in paper_compat none that stands inside a program.

    Args:
        whole: whether the text may itself be a program, its fence taken off.
    """
    candidates = [c for c in _marked(text) if _says_more(text, c)]
    if paper_compat:
        return candidates
    if whole and "```" not in text and _is_program(text):
        return []
    programs = [
        (opens.start(), closes.end())
        for opens, closes in enclosed(text, _OPENS_FENCE, _CLOSES_FENCE)
        if opens[1].lower() not in _PROSE or _is_program(text[opens.end() : closes.start()])
    ]
    return [c for c in candidates if outside(programs, c.start)]


def _says_more(text: str, candidate: _Candidate) -> bool:
    """Whether anything stands where an answer may; the end of an emphasis is nothing."""
    start, end = candidate.inner
    at = next_visible(text, start)
    if candidate.labelled and text.startswith("**", at):
        # if there is more than one mark, something stands between them
        return next_visible(text, at + 2) < end
    return at < end


def _is_program(text: str) -> bool:
    """Whether a text is Python that does something; a line `Answer: B` is Python, too."""
    try:
        with warnings.catch_warnings(action="ignore"):
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(s, _STATEMENTS) or _calls(s) for s in body)


_STATEMENTS = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Return),
)


def _calls(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign):
        return isinstance(statement.value, ast.Call)
    return False


def _marked(text: str) -> Iterator[_Candidate]:
    end = -1
    for label in _LABEL.finditer(text):
        if end < label.end():
            boundary = _BOUNDARY.search(text, label.end())
            end = boundary.start() if boundary else len(text)
        yield _Candidate((label.end(), end), label.start(), end, labelled=True)
    for opens, closes in enclosed(text, _PHRASE, _CLOSES_PHRASE, least=1):
        yield _Candidate((opens.end(), closes.start()), opens.start(), closes.end())
    for opens, closes in enclosed(text, _OPENS_CODE, _CLOSES_FENCE):
        inner = (opens.end(), closes.start())
        yield _Candidate(inner, opens.start(), closes.end(), program=True)
    for start, inner in boxes(text):
        yield _Candidate(inner, start, inner[1] + 1)


def _short(candidate: _Candidate, source: str, paper_compat: bool) -> tuple[str, str]:
    """The answer, and what followed it: after a label, a letter or a yes or no stands alone."""
    text = candidate.text(source)
    if not candidate.labelled:
        return text, ""
    if paper_compat:
        choice = _CHOICE_ANY_CASE.match(text)
    else:
        choice = None if _ARTICLE.match(text) else _CHOICE.match(text)
    if not choice:
        return text, ""
    group = next(i for i, found in enumerate(choice.groups(), 1) if found)
    if not paper_compat and _ANOTHER.match(text, choice.end(group)):
        return text, ""
    return choice[group], text[choice.end() :].strip()


def _judged(
    reasoning: str, explanation: str, answer: str, finished: bool, paper_compat: bool
) -> Output:
    def there(text: str) -> bool:
        return bool(re.search(r"[A-Za-z]", text) if paper_compat else text.strip())

    outcome: Outcome = "complete"
    if not any(map(str.strip, (reasoning, explanation, answer))):
        outcome = "empty"
    elif not finished:
        outcome = "truncated"
    elif not there(reasoning):
        outcome = "no_reasoning"
    elif not there(explanation) and not there(answer):
        outcome = "no_answer"
    return Output(reasoning, explanation, answer, outcome)


def _plain_marks(text: str) -> str:
    """The text with marks of reasoning as think tags, whoever writes them, and without end-of-text
    marks."""
    return _SPECIAL.sub("", plain(text))
