"""The marks that models write around their reasoning, and the parser of the blocks they make.

Works on text alone: `interp.formats` reads marks from a chat template, and `interp.responses` cuts
a response between token ids.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from faithscope.interp.errors import did_you_mean

_ATTRIBUTES = r"(?:\s[^<>]*+(?<!/))?"
"""Attributes of a tag, as in `<think signature="…">`; `<think />` opens nothing."""
_TURN = r"(?:<\|(?:end|call)\|>\s*+)?(?:<\|start\|>assistant)?"
_CHANNEL = r"(?:[ ][^<]*+)?(?:<\|constrain\|>[^<]*+)?<\|message\|>"
"""The end of a harmony header, a recipient and a content type included."""


_SEGMENT = r"(?:<\|end_message\|>\s*+)?(?:<\|message_model\|>)?"
"""The end of a typed segment of Inkling, and the header of the next one."""
_TO = r"(?:<\|eom\|>\s*+)?(?:<\|start\|>assistant\s*+)?\bto="
"""The header of a message of Muse up to its recipient, with the end of the message before it."""


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
    pairs_only: bool = False
    """Whether a closer counts only after an opener, since other texts hold it, too (`</details>`);
    otherwise a closer alone ends reasoning that a chat template had opened."""

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

    def written_in(self, template: str) -> Marks:
        """These marks as a chat template writes them, where the opener varies (`<think:6124c78e>`);
        else as they are."""
        varies = self.opener not in template and re.fullmatch(r"<[\w:]+>", self.opener)
        if varies and (found := re.search(self.patterns[0], template)):
            opener = found[0]
            return replace(self, opener=opener, closer=f"</{opener[1:]}")
        return self


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
    Marks(
        "kimi_k3_think",
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|>",
        answer_opener="<|open|>response<|sep|>",
        pattern=(
            re.escape("<|open|>think<|sep|>"),
            r"<\|close\|>think<\|sep\|>(?:\s*+<\|open\|>response<\|sep\|>)?",
        ),
    ),
    Marks(
        "content_thinking",
        "<|content_thinking|>",
        "<|end_message|><|message_model|><|content_text|>",
        answer_opener="<|content_text|>",
        pattern=(rf"{_SEGMENT}<\|content_thinking\|>", rf"{_SEGMENT}<\|content_text\|>"),
        nests=False,
        shown_by="<|content_",
    ),
    Marks(
        "muse_self",
        " to=self<|message|>",
        "<|eom|><|start|>assistant to=user<|message|>",
        answer_opener=" to=user<|message|>",
        pattern=(rf"[ ]?{_TO}self<\|message\|>", rf"[ ]?{_TO}user<\|message\|>"),
        nests=False,
        shown_by=" to=self<|message|>",
    ),
    Marks("mm_think", "<mm:think>", "</mm:think>"),
    Marks(
        "think_variant",
        "<think:opensource>",
        "</think:opensource>",
        pattern=(rf"<think:[\w-]++{_ATTRIBUTES}>", r"</think:[\w-]++\s*+>"),
        shown_by="<think:",
    ),
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
    Marks("pangu_think", "[unused16]", "[unused17]"),
    Marks(
        "details_block",
        '<details type="reasoning">',
        "</details>",
        breaks_line=True,
        pattern=(r"<details\s[^<>]*?\btype=[\"']?reasoning\b[^<>]*+>", r"</details\s*+>"),
        shown_by='<details type="reasoning"',
        pairs_only=True,
    ),
    Marks(
        "granite_prose",
        "Here is my thought process:",
        "Here is my response:",
        breaks_line=True,
        pattern=(r"\A\s*+Here(?: is|'s) my thought process:", r"Here(?: is|'s) my response:"),
        nests=False,
        pairs_only=True,
    ),
)
"""Marks of gpt-oss; Magistral and Ministral; Kimi K3; Inkling; Muse; MiniMax M3; Hunyuan; Qwen,
DeepSeek and most others; Seed-OSS; Command A; Kimi; Gemma 4; Sky-T1 and OpenThinker; Apertus;
EXAONE Deep; Claude's prompts; Reka; LongCat; Pangu; Open WebUI; Granite 3.2."""
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
    *("<｜end▁of▁sentence｜>", "<|end_of_solution|>", "<|END_RESPONSE|>", "<|eot|>", "<|eom|>"),
    *("<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>", "[unused10]"),
    *("<|end_message|>", "<|content_model_end_sampling|>"),
)
"""Control tokens that end a turn in a text decoded with its control tokens."""
_BARE_CHANNEL = re.compile(r"analysis(?=[^\s:,.;])")
"""Remainder of harmony's first header in a text decoded without its control tokens."""
_SUMMARY = re.compile(r"\s*<summary>(.*?)</summary>\s*", re.S)
_REDACTED = re.compile(r"\sredacted\s*=\s*[\"']?true\b", re.I)


@cache
def _pattern(pairs: tuple[Marks, ...]) -> re.Pattern[str]:
    """A pattern of any mark; the matching group is `o` or `c` with the pair's index in `pairs`."""
    own = {mark for marks in pairs for mark in (marks.opener, marks.closer)}
    own |= {mark.lstrip() for mark in own}
    # marks that begin with a letter or a blank are looked for by more than one character
    begins = {mark[:4] if mark[0].isalnum() or mark[0].isspace() else mark[0] for mark in own}
    heads = "|".join(map(re.escape, sorted(begins)))
    groups = (
        f"(?P<{kind}{i}>{pattern})"
        for i, marks in enumerate(pairs)
        for kind, pattern in zip("oc", marks.patterns, strict=True)
    )
    return re.compile(rf"(?={heads}|\A\s)(?:{'|'.join(groups)})", re.I)


@dataclass(frozen=True)
class _Mark:
    pair: int
    opens: bool
    start: int
    end: int

    @property
    def kind(self) -> tuple[int, bool]:
        return self.pair, self.opens


@cache
def _known() -> re.Pattern[str]:
    """The pattern of `MARKS`, without a hash of them all for every text."""
    return _pattern(MARKS)


def _marks(text: str, pairs: tuple[Marks, ...] = MARKS) -> Iterator[_Mark]:
    pattern = _known() if pairs is MARKS else _pattern(pairs)
    for found in pattern.finditer(text) if pairs else ():
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


def split(text: str, prompt: str = "", pairs: tuple[Marks, ...] = MARKS) -> Thought:
    """Split a text into marked reasoning and the rest, in linear time.

    A block ends at the closer that pairs with its opener; the same pair of marks nests within it,
    other marks are text. A closer without an opener ends reasoning that the chat template had
    opened, if it is the first unpaired mark and the text does not begin with an opener. After the
    first block, blocks may follow anywhere. One line break beside each mark belongs to the mark. A
    text whose marks are escaped as in HTML (`&lt;think&gt;`) is read unescaped.

    Args:
        prompt: the prompt that the text replies to. A mark in the text that the prompt also holds
            may be a quotation: outside of blocks such an opener opens a block only at the text's
            beginning, and such a closer ends nothing.
        pairs: the marks that count; others are text.
    """
    text = _unescaped(_with_channels(text), pairs)
    marks = [*_marks(text, pairs)]
    in_prompt = {mark.kind for mark in _marks(prompt, pairs)} if prompt and marks else set()
    answer: list[str] = []
    thoughts: list[str] = []
    doubtful: list[_Mark] = []
    ends_inside: list[_Mark] = []
    others = Counter[int]()
    opener: _Mark | None = None
    at = depth = 0
    quoted = begun = withheld = False
    for i, mark in enumerate(marks):
        inside = opener is not None and opener.pair == mark.pair
        if pairs[mark.pair].pairs_only and not mark.opens and not inside:
            continue
        if opener is not None:
            if mark.pair != opener.pair:
                others[mark.pair] += 1 if mark.opens else -1
                if others[mark.pair] < 0:
                    ends_inside.append(mark)
                continue
            nests = pairs[mark.pair].nests
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
            begun, answer, at = True, [], mark.end
            thoughts = [without_breaks(text[: mark.start])]
    closed = opener is None or quoted
    if closed:
        answer.append(text[at:])
    else:
        assert opener is not None
        thoughts.append(_inside(text[opener.start : opener.end], text[at:]))
        doubtful += ends_inside
    said = "".join(answer)
    return Thought(
        without_ends(said) if thoughts else said,
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


def _unescaped(text: str, pairs: tuple[Marks, ...]) -> str:
    """`text` unescaped as HTML if it has marks, one that closes among them, only then."""
    if "&lt;" not in text or any(_marks(text, pairs)):
        return text
    plain_text = html.unescape(text)
    return plain_text if any(not mark.opens for mark in _marks(plain_text, pairs)) else text


def _inside(opener: str, block: str) -> str:
    """The reasoning of a block, without the line breaks of its marks. In a block with attributes,
    the summary that Inspect or Open WebUI writes is left out; if the reasoning itself is encrypted,
    the summary alone is returned. Open WebUI quotes every line of the reasoning with `>`."""
    if re.match(r"\s*<\w[^<>|]*\s", opener):
        summary = _SUMMARY.match(block)
        if _REDACTED.search(opener):
            return summary[1] if summary else ""
        block = block[summary.end() :] if summary else block
        if opener.lstrip().startswith("<details"):
            block = _unquoted(block)
    return without_breaks(block)


def without_breaks(block: str) -> str:
    """`block` without one line break at its beginning and one at its end, which belong to the marks
    around it."""
    return re.sub(r"\A\r?\n|\r?\n\Z", "", block)


def _unquoted(block: str) -> str:
    lines = [line for line in block.splitlines() if line.strip()]
    if lines and all(line.startswith("&gt;") for line in lines):
        block = html.unescape(block)
    elif not lines or not all(line.startswith(">") for line in lines):
        return block
    return re.sub(r"^> ?", "", block, flags=re.M)


def between_marks(text: str, pairs: tuple[Marks, ...] = MARKS) -> tuple[str, str]:
    """`text` without openers at its beginning and a closer at its end, and that closer ("" for
    none): a step that stands first or last in a marked block may hold the block's mark."""
    marks, start, end, closer = [*_marks(text, pairs)], 0, len(text), ""
    for mark in marks:
        if mark.opens and not text[start : mark.start].strip():
            start = mark.end
    if marks and not marks[-1].opens and not text[marks[-1].end :].strip():
        end, closer = max(start, marks[-1].start), text[marks[-1].start : marks[-1].end]
    return (without_breaks(text[start:end]) if (start, end) != (0, len(text)) else text), closer


def without_opener(text: str, pairs: tuple[Marks, ...] = MARKS) -> str:
    """`text` without the opener that ends it, as a prompt does after which the reply begins inside
    its reasoning."""
    last = next((m for m in reversed([*_marks(text, pairs)]) if m.opens), None)
    return text[: last.start].rstrip() if last and not text[last.end :].strip() else text


def without_ends(text: str) -> str:
    """`text` without the control tokens that ended its turn."""
    end = len(text.rstrip())
    while text.endswith(_ENDS, 0, end):
        end -= len(next(t for t in _ENDS if text.endswith(t, 0, end)))
    return text[:end] if end < len(text.rstrip()) else text


_REASONS = "(?:think|thought|reason|scratchpad)"
_NO_SWITCH = r"(?![^<>\s]*(?:effort|budget))"
_LIKE_MARKS = re.compile(
    rf"<(?=[^<>\s]*[|｜])(?=[^<>\s]*+>)(?!./?no_?)[^<>\s]*{_REASONS}{_NO_SWITCH}[^<>\s]*>"
    rf"|</(?=[^<>\s]*+>)[^<>\s]*?{_REASONS}[^<>\s]*>|detailed thinking on"
    rf"|\[/(?=[^\[\]\s]*+\])[^\[\]\s]*?{_REASONS}[^\[\]\s]*\]|◁/[^◁▷\s]*▷",
    re.I,
)
"""Strings in a chat template that look like marks of reasoning: control tokens, ends of tags, and
the switch of Llama Nemotron, whose marks no template need name."""
_LIKE_OPENERS = re.compile(
    rf"<(?!no_?)[^<>\s/]*?{_REASONS}{_NO_SWITCH}[^<>\s]*>|\[(?=[^\[\]\s/]*+\])[^\[\]\s]*?{_REASONS}"
    r"[^\[\]\s]*\]",
    re.I,
)
"""Strings at the end of a rendered prompt, or at the beginning of a reply, that look like the
opener of reasoning."""


def unknown_marks(template: str) -> list[str]:
    """Strings in a chat template that look like marks of reasoning and belong to no known pair."""
    return list(dict.fromkeys(_LIKE_MARKS.findall(template)))


def unknown_openers(text: str) -> list[str]:
    """Strings in the end of a prompt that look like openers of reasoning."""
    return list(dict.fromkeys(_LIKE_OPENERS.findall(text)))


def unknown_in_reply(text: str) -> str | None:
    """The first string in a reply that looks like a mark of reasoning: an opener that begins it, or
    a mark that ends reasoning anywhere; None if there is none."""
    found = _LIKE_OPENERS.match(text.lstrip()) or _LIKE_MARKS.search(text)
    return found[0] if found else None


def stated_pairs(marks: StatedMarks | None) -> tuple[Marks, ...]:
    """The marks that count in a text where a user states `marks`; all known ones for None."""
    if marks is None:
        return MARKS
    if isinstance(marks, str):
        return (BY_NAME[marks],) if marks in BY_NAME else ()
    opener, closer = (mark.strip() for mark in marks)
    return (Marks("own", opener, closer),)
