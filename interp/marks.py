"""The marks that models write around their reasoning, and the parser of the blocks they make.

Knows text alone: what a chat template says of marks is read by `interp.formats`, and where a
response is cut between token ids by `interp.responses`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from faithscope.interp.errors import did_you_mean

_ATTRIBUTES = r"(?:\s[^<>]*+(?<!/))?"
"""As in `<think signature="…">`; `<think />` opens nothing."""
_TURN = r"(?:<\|(?:end|call)\|>\s*+)?(?:<\|start\|>assistant)?"
_CHANNEL = r"(?:[ ][^<]*+)?(?:<\|constrain\|>[^<]*+)?<\|message\|>"
"""The end of a harmony header, a recipient and a content type included."""


@dataclass(frozen=True)
class Marks:
    """One pair of marks around reasoning."""

    name: str
    opener: str
    """As models write it, without the line break that may follow."""
    closer: str
    """What ends the reasoning and hands over to the answer."""
    breaks_line: bool = False
    """Whether a line break follows the opener where a template does not show it."""
    answer_opener: str = ""
    """What opens an answer that no reasoning precedes, where the family marks that."""
    pattern: tuple[str, str] = field(default=("", ""), repr=False)
    """Regular expressions of opener and closer in text; by default the marks themselves, those in
    angle brackets with attributes."""
    nests: bool = True
    """Whether a block may hold a block; otherwise one closer ends all that was opened."""
    shown_by: str = ""
    """What a chat template of such a model holds; by default the opener or the closer."""

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
"""What is known: gpt-oss; Magistral and Ministral; Qwen, DeepSeek and most others; Seed-OSS;
Command A; Kimi; Gemma 4; Sky-T1 and OpenThinker; Apertus; EXAONE Deep; Claude's prompts; Reka;
LongCat."""
BY_NAME = {marks.name: marks for marks in MARKS}
NO_MARKS = "none"
StatedMarks = str | Sequence[str]
"""How a user states a model's marks: a name of known ones, `none`, or [OPENER, CLOSER]."""


def marks_problem(marks: StatedMarks) -> str | None:
    """Why a statement of marks is none, or None if it is one."""
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
"""What ends a turn where a text was decoded with its control tokens."""
_BARE_CHANNEL = re.compile(r"analysis(?=[^\s:,.;])")
"""What is left of harmony's first header where a text was decoded without its control tokens."""
_SUMMARY = re.compile(r"\s*<summary>(.*?)</summary>\s*", re.S)
_REDACTED = re.compile(r"\sredacted\s*=\s*[\"']?true\b", re.I)


@cache
def _pattern() -> re.Pattern[str]:
    """Any mark; the group that matched is `o` or `c` and the place of its pair in `MARKS`."""
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
    """A text with every mark of reasoning written as a think tag; a channel opened twice, once."""
    parts, at, opened = [], 0, False
    for mark in _marks(text):
        again = mark.opens and opened and not MARKS[mark.pair].nests
        tag = "<think>" if mark.opens else "</think>"
        parts += [text[at : mark.start], "" if again else tag]
        at, opened = mark.end, mark.opens
    return "".join([*parts, text[at:]])


@dataclass(frozen=True)
class Thought:
    """A text taken apart into reasoning and what is said beside it."""

    answer: str
    """The text without its reasoning."""
    thinking: str = ""
    """The reasoning, blocks joined by a blank line, marks of nested ones left in."""
    marked: bool = False
    """Whether any reasoning is marked."""
    closed: bool = True
    """False where reasoning begins and does not end: all from there on is reasoning."""
    withheld: bool = False
    """Whether some of the reasoning is encrypted, as its opener says."""
    unpaired: str = ""
    """The first mark that belongs to no block, or leaves open where one ends, as does another
    pair's closer in a block that does not end: what is reasoning is then doubtful."""


def split(text: str, prompt: str = "") -> Thought:
    """Take a text apart into marked reasoning and the rest, in linear time.

    A block ends at the closer that pairs with its opener; the same marks within it nest, others
    are text. A closer without an opener ends reasoning that the chat template had opened: only
    the first unpaired mark does, and only where the text begins with no opener of its own. After
    the first block, blocks may follow anywhere.

    Args:
        prompt: what the text replies to. A mark that it holds may be quoted from there: outside
            of blocks such an opener opens a block only where the text begins with it, and such a
            closer ends nothing.
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
    """A reply of harmony with the headers that decoding without control tokens has bared."""
    if "assistantfinal" not in text or not (begins := _BARE_CHANNEL.match(text)):
        return text
    analysis, final = (f"<|channel|>{name}<|message|>" for name in ("analysis", "final"))
    bare = text[begins.end() :].replace("assistantanalysis", analysis)
    return f"{analysis}{bare.replace('assistantfinal', final, 1)}"


def _inside(opener: str, block: str) -> str:
    """The reasoning of a block: of one with attributes, without the summary that Inspect writes
    into it; where the reasoning itself is encrypted, the summary alone."""
    if not re.search(r"\s", opener.strip()):
        return block
    summary = _SUMMARY.match(block)
    if _REDACTED.search(opener):
        return summary[1] if summary else ""
    return block[summary.end() :] if summary else block


def _without_ends(text: str) -> str:
    """A text without the control tokens that ended its turn."""
    end = len(text.rstrip())
    while token := next((t for t in _ENDS if text.endswith(t, 0, end)), None):
        end -= len(token)
    return text[:end] if end < len(text.rstrip()) else text
