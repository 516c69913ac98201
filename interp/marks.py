"""The marks that models write around their reasoning, and the parser of the blocks they make.

Works on text alone: `interp.formats` reads marks from a chat template, and `interp.responses` cuts
a response between token ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from faithscope.interp.errors import did_you_mean

_ATTRIBUTES = r"(?:\s[^<>]*+(?<!/))?"
"""Attributes of a tag, as in `<think signature="…">`; `<think />` opens nothing."""
_TURN = r"(?:<\|(?:end|call)\|>\s*+)?(?:<\|start\|>assistant)?"
_CHANNEL = r"(?:[ ][^<]*+)?(?:<\|constrain\|>[^<]*+)?<\|message\|>"
"""The end of a harmony header, a recipient and a content type included."""


@dataclass(frozen=True)
class Marks:
    """One pair of marks around reasoning."""

    name: str
    opener: str
    """The opener as models write it, without the line break that may follow."""
    closer: str
    """The text that ends the reasoning, before the answer."""
    breaks_line: bool = False
    """Whether a line break follows the opener if no template shows it."""
    answer_opener: str = ""
    """The text that opens an answer without reasoning before it, in families that mark it."""
    pattern: tuple[str, str] = field(default=("", ""), repr=False)
    """Regular expressions of opener and closer in text; by default the marks themselves, with
    optional attributes if in angle brackets."""
    nests: bool = True
    """Whether a block may hold another block; if not, one closer ends all that was opened."""
    shown_by: str = ""
    """Text by which a chat template shows these marks; by default the opener or the closer."""

    @property
    def patterns(self) -> tuple[str, str]:
        if all(self.pattern):
            return self.pattern
        opener, closer = re.escape(self.opener), re.escape(self.closer)
        if re.fullmatch(r"<[\w:]+>", self.opener):
            opener, closer = f"{opener[:-1]}{_ATTRIBUTES}>", rf"{closer[:-1]}\s*+>"
        return opener, closer

    def shown_in(self, template: str) -> bool:
        """Whether a chat template names these marks."""
        if self.shown_by:
            return self.shown_by in template
        return self.opener in template or self.closer in template


def _tags(tag: str, breaks_line: bool = False) -> Marks:
    return Marks(f"{tag}_tags", f"<{tag}>", f"</{tag}>", breaks_line)


MARKS = (
    Marks(
        "harmony",
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
        answer_opener="<|channel|>final<|message|>",
        pattern=(
            rf"{_TURN}<\|channel\|>(?:analysis|commentary){_CHANNEL}",
            rf"{_TURN}<\|channel\|>final{_CHANNEL}",
        ),
        nests=False,
        shown_by="<|channel|>analysis",
    ),
    Marks("mistral_think", "[THINK]", "[/THINK]"),
    _tags("think", breaks_line=True),
    Marks("seed_think", "<seed:think>", "</seed:think>"),
    Marks(
        "cohere_thinking",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        answer_opener="<|START_RESPONSE|>",
        pattern=(
            re.escape("<|START_THINKING|>"),
            r"<\|END_THINKING\|>(?:\s*+<\|START_RESPONSE\|>)?",
        ),
    ),
    Marks("kimi_think", "◁think▷", "◁/think▷"),
    Marks(
        "gemma_thought",
        "<|channel>thought\n",
        "<channel|>",
        pattern=(r"<\|channel>thought\n?", re.escape("<channel|>")),
        shown_by="<|channel>",
    ),
    Marks(
        "begin_of_thought",
        "<|begin_of_thought|>",
        "<|end_of_thought|>",
        breaks_line=True,
        pattern=(
            re.escape("<|begin_of_thought|>"),
            r"<\|end_of_thought\|>(?:\s*+<\|begin_of_solution\|>)?",
        ),
    ),
    Marks("inner_prefix", "<|inner_prefix|>", "<|inner_suffix|>"),
    _tags("thought", breaks_line=True),
    _tags("thinking"),
    _tags("reasoning"),
    _tags("longcat_think", breaks_line=True),
)
"""Marks of gpt-oss; Magistral and Ministral; Qwen, DeepSeek and most others; Seed-OSS; Command A;
Kimi; Gemma 4; Sky-T1 and OpenThinker; Apertus; EXAONE Deep; Claude's prompts; Reka; LongCat."""
BY_NAME = {marks.name: marks for marks in MARKS}
NO_MARKS = "none"
StatedMarks = str | Sequence[str]
"""A user's statement of a model's marks: the name of known ones, `none`, or [OPENER, CLOSER]."""


def marks_problem(marks: StatedMarks) -> str | None:
    """Why a user's statement of marks is invalid; None if it is valid."""
    if isinstance(marks, str):
        known = [NO_MARKS, *BY_NAME]
        guess = did_you_mean(marks, known) or f"; known: {', '.join(known)}"
        return None if marks in known else f"unknown marks {marks!r}{guess}; or [OPENER, CLOSER]"
    if len(marks) == 2 and len({m.strip() for m in marks} - {""}) == 2:
        return None
    return f"marks {list(marks)!r}: give [OPENER, CLOSER], two different texts"


_ENDS = (
    *("<|end|>", "<|return|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>"),
    *("<｜end▁of▁sentence｜>", "<|end_of_solution|>", "<|END_RESPONSE|>"),
)
"""Control tokens that end a turn in a text decoded with its control tokens."""
_BARE_CHANNEL = re.compile(r"analysis(?=[^\s:,.;])")
"""Remainder of harmony's first header in a text decoded without its control tokens."""
_SUMMARY = re.compile(r"\s*<summary>(.*?)</summary>\s*", re.S)
_REDACTED = re.compile(r"\sredacted\s*=\s*[\"']?true\b", re.I)


@cache
def _pattern() -> re.Pattern[str]:
    """A pattern of any mark; the matching group is `o` or `c` with the pair's index in `MARKS`."""
    begins = "".join({marks.opener[0] for marks in MARKS} | {marks.closer[0] for marks in MARKS})
    groups = (
        f"(?P<{kind}{i}>{pattern})"
        for i, marks in enumerate(MARKS)
        for kind, pattern in zip("oc", marks.patterns, strict=True)
    )
    return re.compile(f"(?=[{re.escape(begins)}])(?:{'|'.join(groups)})", re.I)


@dataclass(frozen=True)
class _Mark:
    pair: int
    opens: bool
    start: int
    end: int

    @property
    def kind(self) -> tuple[int, bool]:
        return self.pair, self.opens


def _marks(text: str) -> Iterator[_Mark]:
    for found in _pattern().finditer(text):
        group = found.lastgroup or ""
        yield _Mark(int(group[1:]), group[0] == "o", *found.span())


def plain(text: str) -> str:
    """`text` with its marks of reasoning written as think tags; a channel opened twice gets one."""
    parts, at, opened = [], 0, False
    for mark in _marks(text):
        again = mark.opens and opened and not MARKS[mark.pair].nests
        tag = "<think>" if mark.opens else "</think>"
        parts += [text[at : mark.start], "" if again else tag]
        at, opened = mark.end, mark.opens
    return "".join([*parts, text[at:]])


@dataclass(frozen=True)
class Thought:
    """A text split into its reasoning and its answer."""

    answer: str
    """The text without its reasoning."""
    thinking: str = ""
    """The reasoning: blocks joined by a blank line, marks of nested blocks left in."""
    marked: bool = False
    """Whether any reasoning is marked."""
    closed: bool = True
    """False if some reasoning begins and does not end: all text from there on is reasoning."""
    withheld: bool = False
    """Whether some of the reasoning is encrypted, as its opener says."""
    unpaired: str = ""
    """The first mark that makes the extent of the reasoning doubtful: one that belongs to no block
    or leaves open where a block ends, or another pair's closer in a block that does not end. Empty
    if there is none."""


def split(text: str, prompt: str = "") -> Thought:
    """Split a text into marked reasoning and the rest, in linear time.

    A block ends at the closer that pairs with its opener; the same pair of marks nests within it,
    other marks are text. A closer without an opener ends reasoning that the chat template had
    opened, if it is the first unpaired mark and the text does not begin with an opener. After the
    first block, blocks may follow anywhere.

    Args:
        prompt: the prompt that the text replies to. A mark in the text that the prompt also holds
            may be a quotation: outside of blocks such an opener opens a block only at the text's
            beginning, and such a closer ends nothing.
    """
    text = _with_channels(text)
    in_prompt = {mark.kind for mark in _marks(prompt)} if prompt else set()
    answer: list[str] = []
    thoughts: list[str] = []
    doubtful: list[_Mark] = []
    ends_inside: list[_Mark] = []
    others = Counter[int]()
    opener: _Mark | None = None
    at = depth = 0
    quoted = begun = withheld = False
    for i, mark in enumerate(_marks(text)):
        if opener is not None:
            if mark.pair != opener.pair:
                others[mark.pair] += 1 if mark.opens else -1
                if others[mark.pair] < 0:
                    ends_inside.append(mark)
                continue
            nests = MARKS[mark.pair].nests
            depth += nests if mark.opens else -1
            if mark.opens and nests:
                continue
            if depth and not mark.opens:
                ends_inside.append(mark)
                continue
            if not quoted:
                thoughts.append(_inside(text[opener.start : opener.end], text[at : mark.start]))
                at = mark.end
            elif not mark.opens and mark.kind not in in_prompt:
                doubtful.append(mark)
            opener, ends_inside, others = mark if mark.opens else None, [], Counter()
        elif mark.opens:
            first = i == 0 and not text[: mark.start].strip()
            opener, depth, quoted = mark, 1, mark.kind in in_prompt and not first
            begun = begun or first
            if not quoted:
                answer.append(text[at : mark.start])
                at = mark.end
                withheld |= bool(_REDACTED.search(text, mark.start, mark.end))
        elif begun or doubtful or mark.kind in in_prompt:
            doubtful.append(mark)
        else:
            begun, thoughts, answer, at = True, [text[: mark.start]], [], mark.end
    closed = opener is None or quoted
    if closed:
        answer.append(text[at:])
    else:
        assert opener is not None
        thoughts.append(_inside(text[opener.start : opener.end], text[at:]))
        doubtful += ends_inside
    said = "".join(answer)
    return Thought(
        _without_ends(said) if thoughts else said,
        "\n\n".join(t for t in thoughts if t.strip()),
        bool(thoughts),
        closed,
        withheld,
        text[doubtful[0].start : doubtful[0].end] if doubtful else "",
    )


def _with_channels(text: str) -> str:
    """A harmony reply with channel marks restored from headers that lost their control tokens."""
    if "assistantfinal" not in text or not (begins := _BARE_CHANNEL.match(text)):
        return text
    analysis, final = (f"<|channel|>{name}<|message|>" for name in ("analysis", "final"))
    bare = text[begins.end() :].replace("assistantanalysis", analysis)
    return f"{analysis}{bare.replace('assistantfinal', final, 1)}"


def _inside(opener: str, block: str) -> str:
    """The reasoning of a block. In a block with attributes, the summary that Inspect writes is left
    out; if the reasoning itself is encrypted, the summary alone is returned."""
    if not re.search(r"\s", opener.strip()):
        return block
    summary = _SUMMARY.match(block)
    if _REDACTED.search(opener):
        return summary[1] if summary else ""
    return block[summary.end() :] if summary else block


def _without_ends(text: str) -> str:
    """`text` without the control tokens that ended its turn."""
    end = len(text.rstrip())
    while token := next((t for t in _ENDS if text.endswith(t, 0, end)), None):
        end -= len(token)
    return text[:end] if end < len(text.rstrip()) else text
