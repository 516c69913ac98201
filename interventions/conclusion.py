"""The cut between reasoning and answer statement in a response without a think block."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from faithscope.interventions.scripts import length_in_letters
from faithscope.interventions.segment import tokens_at
from faithscope.interventions.sentences import Span, sentence_starts, whole_spans

_SO = r"(?:\b(?:so|thus|hence|therefore|in conclusion|overall|finally|then|and)\b[, ]*){0,4}"

ANSWER_ELSEWHERE = (
    r"(?:(?:正确|正確|最终|最終|最后)?的?答案|正确选项|正確選項)\s*(?:应该|應該|应|應|就)?(?:是|为|為|[:：])|(?:答え|答|正解)(?:は|[:：])"
    r"|(?:정답|답)(?:은|는|:)|คำตอบ(?:ที่ถูกต้อง)?\s*(?:คือ|:)|ответ\s*(?:[-–—:])"
    r"|(?:الجواب|الإجابة|الاجابة)(?:\s+(?:الصحيحة|الصحيح|النهائية|النهائي))?\s*(?:هو|هي|:)"
)
"""Words that introduce a stated answer, in languages not written in Latin letters (a regular
expression, case ignored)."""
CONCLUSION_PATTERNS: tuple[str, ...] = (
    ANSWER_ELSEWHERE,
    _SO + r"\b(?:(?:the|my|our|its)\s+)?(?:(?:final|correct|right|best|overall|numerical|numeric|"
    r"exact|complete)\s+){0,6}answer\b"
    r"(?:\s+(?:to|for|of)\b[^.\n]{0,80}?)?(?:\s*\([^()\n]{1,40}\))?[*_\s]*"
    r"(?:\bis\b(?!\s+(?:not|clear|unclear)\b)|\bwould be\b|:|=)",
    r"\banswer[*_]*\s*:",
    r"####",
    r"\\boxed\s*\{",
    r"<(?:(?:final[ _-]?)?answer|final)\s*>(?![`'\"]?\s*(?:tags?|and)\b)",
    r"(?:^|[\r\n])[ \t]{0,3}\#{1,4}[ \t]*(?:final\s+)?answer[ \t]*(?:[\r\n]|$)",
    r"(?:^|[\r\n])[\s*_#]{0,40}(?:sentiment|label|category|class|classification|topic|verdict|"
    r"conclusion|prediction|result)[*_]*\s*:",
)
"""Statements of the final answer in any sentence (regular expressions, case ignored)."""

CLOSING_PATTERNS: tuple[str, ...] = (
    _SO + r"\b(?:the|this|its)\s+(?:\w+[ '’]+){0,3}?(?:sentiment|tone|review|label|category|class|"
    r"topic|option|choice|article|statement)\b[^.\n]{0,200}?\b(?:is|would be|belongs|falls)\b",
    r"\b(?:therefore|thus|hence|in conclusion|overall)\b"
    r"|因此|综上|綜上|よって|したがって|따라서|поэтому",
    r"(?:^|(?<=\s))[*_\"'(]*(?:positive|negative|neutral|yes|no|true|false|\(?[A-J]\)?)"
    r"[*_\"').]*\s*$",
)
"""Statements that are the final answer only in the last sentence of a response."""

_NEXT_QUESTION = re.compile(
    r"^[ \t>*_#]{0,9}(?:(?:next|new)\s)?(?:question|problem|q|article|review|passage|user|human"
    r"|instruction)(?:\s?\#?\d{1,3})?[*_]*\s?:"
    r"|^[ \t>*_#]{0,9}(?:问题|問題|题目|質問|질문|문제)\s?\d{0,3}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWERED = re.compile("|".join(f"(?:{p})" for p in CONCLUSION_PATTERNS), re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:\u2013\u2014]\s+|[，；：]")
_SHORT = 15


def first_response(text: str) -> str:
    """The part of `text` before it opens the template's next question, once an answer is given.

    A model that is not stopped continues with "Question: …" or "Problem: …" and answers that.
    """
    answered = _ANSWERED.search(text)
    opened = _NEXT_QUESTION.search(text, answered.end()) if answered else None
    return text[: opened.start()] if opened else text


def split_conclusion(
    pieces: Sequence[str],
    patterns: Sequence[str] = CONCLUSION_PATTERNS,
    closing: Sequence[str] = CLOSING_PATTERNS,
) -> int:
    """The token at which a response's answer statement begins.

    The rule: the last sentence that matches one of `patterns`, with the sentences right
    before it that match too ("The answer is 10.", then "#### 10"); where no sentence does,
    the last one if it matches one of `closing`. The cut is where that sentence begins, or
    at the last comma, colon or semicolon before the match where 15 or more visible
    characters of the sentence stand before that ("3 and 4 make 7, | so the answer is 7").
    A next question of the response's own (`first_response`) belongs to the tail with all after it.

    Args:
        pieces: the text each token of the response adds.

    Returns:
        Index of the first token of the statement, so that `ids[:i]` are the reasoning and
        `ids[i:]` the tail; `len(pieces)` where no statement is found.
    """
    text = first_response("".join(pieces))
    starts = sentence_starts(text)
    spans = list(pairwise((*starts, len(text))))
    whole = whole_spans(text)
    at = _last_statement(text, spans, whole, patterns)
    if at is None and spans:
        offset = _first_match(text[slice(*spans[-1])], closing)
        at = None if offset is None else _cut(text, spans[-1], whole, spans[-1][0] + offset)
    return len(pieces) if at is None else tokens_at(pieces, [at])[0]


def _last_statement(
    text: str, spans: Sequence[Span], whole: Sequence[Span], patterns: Sequence[str]
) -> int | None:
    at = None
    for span in reversed(spans):
        offset = _first_match(text[slice(*span)], patterns)
        if offset is not None:
            at = _cut(text, span, whole, span[0] + offset)
            if at > span[0]:
                break
        elif at is not None and length_in_letters(text[slice(*span)]) >= _SHORT:
            break
    return at


def _first_match(sentence: str, patterns: Sequence[str]) -> int | None:
    starts = [m.start() for p in patterns if (m := re.search(p, sentence, re.IGNORECASE))]
    return min(starts, default=None)


def _cut(text: str, span: Span, whole: Sequence[Span], match: int) -> int:
    i = bisect_right(whole, match, key=lambda w: w[0]) - 1
    if i >= 0 and match < whole[i][1]:
        match = max(span[0], whole[i][0])
    clauses = [m.end() for m in _CLAUSE.finditer(text, span[0], match)]
    cut = clauses[-1] if clauses else span[0]
    return cut if length_in_letters("".join(text[span[0] : cut].split())) >= _SHORT else span[0]
