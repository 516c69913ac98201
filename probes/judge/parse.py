"""Parser of a judge's reply: the fields of its form, or the reason why there is no verdict.

Strict on purpose: a verdict is taken only if the reply, after its thinking, is one JSON object of
the form, or ends in one fenced block that holds such an object and has no other beside it. With
words or thinking before it, an object that stands in the prompt is no reply: it may be a quotation
of the judged text. So may a mark that ends thinking (`interp.marks.split`). A reply that does not
fit the form is asked for again, and then kept as `unparsed` with its text. No field is renamed,
filled in, rounded or read out of prose.

Everything here takes time in proportion to the length of reply and prompt.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from faithscope.interp import marks
from faithscope.interventions.sentences import enclosed
from faithscope.probes.judge.form import Ask, Field, Form, Outcome, Writing

_OPENS_FENCE, _CLOSES_FENCE = re.compile(r"```\w*[ \t]*\n"), re.compile("```")
_ONE_FENCE = re.compile(r"\s*```\w*[ \t]*\n(.*)```\s*", re.S)
"""A reply that is one fenced block, whose content is parsed as a whole."""
_BEGINS_OBJECT = re.compile(r'\{\s*"')
"""The beginning of a JSON object; a brace of prose, as in `\\frac{1}{2}`, has no quote after it."""
_BEGINS_WITH_KEY = re.compile(r'\{(?=\s*(")((?:[^"\\]|\\.)*+)")', re.S)
"""The beginning of an object; group 1 the first quote of its first key, group 2 that key."""
_LATEX = (
    "b(?:ar|egin|eta|f|ig|iggl?|igr|inom|mod|oxed|ullet)",
    "f(?:lat|loor|orall|rac|rown)",
    "n(?:abla|eg|eq|geq|leq|ot|otin)",
    "r(?:angle|ceil|eal|floor|ho|ight|ightarrow|m)",
    "t(?:an|anh|au|ext|extbf|extit|extrm|frac|heta|ilde|imes|o|op|riangle)",
)
"""LaTeX commands that JSON would read as an escape and letters; not `\\ne` and `\\nu`, which may as
well be a line break before a variable."""
_ESCAPE = re.compile(
    rf'(\\(?:(?:{"|".join(_LATEX)})(?![A-Za-z])|u(?![0-9A-Fa-f]{{4}})|[^"\\/bfnrtu]))|\\.', re.S
)
"""A backslash of a JSON string with the characters that belong to it; group 1 if a literal
backslash was meant: before something that is no escape, or in a LaTeX command."""
_ANY_ESCAPE = re.compile(r"\\+(?:u([0-9a-f]{4})|[bfnrt])?")
"""An escape of JSON, however often it was escaped; group 1 the code of a character."""

LONGEST = 400_000
"""Most characters of a reply: a longer one is no verdict, and is kept up to this length."""
MOST_LISTED = 500
"""Most values of one field that a schema lists; OpenAI takes a thousand in a whole schema."""


class Malformed(ValueError):
    """The text is no reply of the form; the message says why."""


@dataclass(frozen=True)
class ParsedReply:
    """The result of parsing one reply."""

    outcome: Outcome
    values: Mapping[str, Any] = field(default_factory=dict)
    """Field name -> value, if the reply was parsed."""
    answer: str = ""
    """The reply without its thinking."""
    thinking: str = ""
    problem: str = ""
    n_extra_fields: int = 0
    """Number of fields of a parsed object that the form does not have; they are ignored."""


REPLIES = 2
"""Version of the parser of replies; see `probes.probe.Probe.version`."""


def schema(ask: Ask, *, listed: bool = False) -> dict[str, Any]:
    """The JSON schema of a reply: every field is required, and no other is allowed.

    Args:
        listed: whether integers are given by a list of their values. Many services know no bounds,
            and Inspect removes `minimum` and `maximum` from their requests.
    """
    return _object({f.path: f for f in ask.form.fields}, ask, listed)


def _object(fields: Mapping[tuple[str, ...], Field], ask: Ask, listed: bool) -> dict[str, Any]:
    names = list(dict.fromkeys(path[0] for path in fields))
    properties = {}
    for name in names:
        within = {path[1:]: f for path, f in fields.items() if path[0] == name}
        leaf = within.get(())
        properties[name] = (
            _object(within, ask, listed) if leaf is None else _property(ask, leaf, listed)
        )
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }


def _property(ask: Ask, f: Field, listed: bool) -> dict[str, Any]:
    if ask.writes(f):
        text = {"type": "string"}
        return {"anyOf": [text, {"type": "null"}]} if f.optional else text
    if f.kind == "boolean":
        return {"type": "boolean"}
    if f.kind in ("label", "answer"):
        return {"type": "string", "enum": list(ask.choices(f))}
    high = ask.high if f.name == ask.form.verdict and f.high is None else f.high
    if listed and f.low is not None and high is not None and high - f.low < MOST_LISTED:
        return {"type": "integer", "enum": list(range(f.low, high + 1))}
    bounds = {"minimum": f.low, "maximum": high}
    return {"type": "integer"} | {k: v for k, v in bounds.items() if v is not None}


def request(ask: Ask) -> str:
    """The sentence that asks for the form, for a provider without structured output."""
    return _request(ask.form, ask.high, ask.labels)


@lru_cache(1 << 8)
def _request(form: Form, high: int | None, labels: tuple[str, ...]) -> str:
    of = schema(Ask("", form, {}, high, labels))
    return f"Reply with one JSON object and nothing else, of this JSON schema:\n{json.dumps(of)}"


def requested(ask: Ask | Writing) -> str:
    """The request for the form that must follow an ask's prompt; empty for a writing."""
    return "" if isinstance(ask, Writing) else request(ask)


def sent(prompt: str, requested: str) -> str:
    """The user message, word for word: the prompt, and the request for the form below it."""
    return f"{prompt}\n\n{requested}" if requested else prompt


def read(
    ask: Ask | Writing, text: str, cut: bool = False, after_thinking: bool = False
) -> ParsedReply:
    """Parse one raw reply: an ask's verdict, or a writing's text without its thinking.

    Args:
        cut: whether the token limit ended the reply, by the server. Such a reply is never parsed,
            though it may hold an object: the rest could have changed it.
        after_thinking: whether thinking has been taken off the text already, by its token ids or
            by the server.
    """
    if len(text) > LONGEST:
        problem = f"the reply has {len(text):,} characters, of which at most {LONGEST:,} are read"
        return ParsedReply("unparsed", answer=text[:LONGEST], problem=problem)
    thought = strip_thinking(text, _asked(ask))
    outcome, values, problem, extra = "parsed", {}, "", 0
    if not thought.closed:
        outcome, problem = "unclosed_thinking", "the thinking has no end"
    elif cut:
        outcome, problem = "truncated", "the token limit ended the reply"
    elif isinstance(ask, Writing):
        if thought.unpaired:
            problem = f"{_doubt(thought)}, so that what is thinking is ambiguous"
        elif not thought.answer:
            problem = "the reply is empty"
        outcome = "unparsed" if problem else "parsed"
    else:
        try:
            values, extra = fields(ask, thought.answer, after_thinking or thought.marked)
        except Malformed as error:
            more = f"; {_doubt(thought)}" if thought.unpaired else ""
            outcome, problem = "unparsed", f"{error}{more}"
    return ParsedReply(outcome, values, thought.answer, thought.thinking, problem, extra)


def _asked(ask: Ask | Writing) -> str:
    """All text that the judge was given."""
    turns = ask.turns if isinstance(ask, Writing) else [{"content": ask.prompt}]
    return "\n".join([ask.system or "", *(turn["content"] for turn in turns)])


def _doubt(thought: marks.Thought) -> str:
    return (
        f"{thought.unpaired!r} ends no thinking, for it stands in the prompt or has no opening mark"
    )


def strip_thinking(text: str, prompt: str = "") -> marks.Thought:
    """Split the thinking of a reply from its answer (`interp.marks.split`).

    A reply that is a JSON object as it stands, or that ends in a fenced one behind prose without
    marks, holds no thinking, whatever the object's strings quote.
    """
    prose, opens, _ = text.partition("```")
    fence = _ONE_FENCE.fullmatch(text, len(prose)) if opens else None
    said = marks.split(prose if fence else "", prompt)
    plain = said.closed and not (said.marked or said.unpaired)
    if plain and _whole_object(fence[1] if fence else text) is not None:
        return marks.Thought(text.strip())
    thought = marks.split(text, prompt)
    return replace(thought, answer=thought.answer.strip(), thinking=thought.thinking.strip())


def fields(ask: Ask, answer: str, after_thinking: bool = False) -> tuple[dict[str, Any], int]:
    """The form's fields in an answer without thinking, and the number of other fields.

    Args:
        after_thinking: whether thinking stood before the answer.

    Raises:
        Malformed: the answer is not one JSON object; its names, types or ranges are not the form's;
            or it may be quoted from the prompt.
    """
    by_path = {f.path: f for f in ask.form.fields}
    found, alone = find_object(answer)
    by_place = dict(_leaves(found, by_path))
    if missing := [f.name for path, f in by_path.items() if path not in by_place]:
        raise Malformed(f"no field {missing[0]!r} in the JSON object")
    values = {f.name: _checked(ask, f, by_place[path]) for path, f in by_path.items()}
    # the form's prompt may show an example verdict that a judge may also come to by itself
    quotable = "\n".join(map(str, ask.values.values())) if alone else _asked(ask)
    texts = [values[f.name] for f in ask.form.fields if f.kind == "text"]
    if (after_thinking or not alone) and (
        _stands_in(quotable, found) or (_spelled(*texts) and _spelled_in(quotable, found))
    ):
        raise Malformed("the JSON object may be quoted: it stands in the prompt, word for word")
    return values, len(by_place) - len(by_path)


def _leaves(
    tree: Mapping[str, Any], wanted: Mapping[tuple[str, ...], Field], at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of all the form's fields in a reply, and of all others."""
    for name, value in tree.items():
        path = (*at, name)
        inner = any(p[: len(path)] == path and p != path for p in wanted)
        if inner and isinstance(value, dict):
            yield from _leaves(value, wanted, path)
        else:
            yield path, value


def _checked(ask: Ask, f: Field, value: Any) -> Any:
    """The value if it fits the field, with a label spelled as in the form."""
    if f.kind in ("label", "answer") and not ask.writes(f):
        label_text = _as_label(value) if isinstance(value, str) else None
        matching = [label for label in ask.choices(f) if _as_label(str(label)) == label_text]
        if label_text is None or len(matching) != 1:
            raise Malformed(f"{f.name!r} is {_shown(value)}, none of {_shown(ask.choices(f))}")
        return matching[0]
    if not (value is None and f.optional):
        _check(ask, f, value)
    return value


def _as_label(text: str) -> str:
    """`text` normalised for comparison with labels: case, apostrophes and white space."""
    return " ".join(text.replace("’", "'").split()).casefold()


def _check(ask: Ask, f: Field, value: Any) -> None:
    if ask.writes(f):
        if not isinstance(value, str):
            raise Malformed(f"{f.name!r} is {_shown(value)}, not a text")
        return
    if f.kind == "boolean":
        if not isinstance(value, bool):
            raise Malformed(f"{f.name!r} is {_shown(value)}, neither true nor false")
        return
    # A bool is an int to Python, and taking 1.0 or "1" for an integer would be a guess.
    if type(value) is not int:
        raise Malformed(f"{f.name!r} is {_shown(value)}, not an integer")
    if f.name == ask.form.verdict:
        low, high = ask.range.start, ask.range.stop - 1
    else:
        low, high = f.low, f.high
    if (low is not None and value < low) or (high is not None and value > high):
        raise Malformed(f"{f.name!r} is {_shown(value)}, outside {low}..{high}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def find_object(text: str) -> tuple[dict[str, Any], bool]:
    """The JSON object that an answer is, or that the one fenced block at its end holds.

    Returns:
        The object, and whether it is the whole answer.

    Raises:
        Malformed: there is no object, there are several, it is broken, or there is text where only
            the object may stand.
    """
    if not text.strip():
        raise Malformed("the reply is empty")
    if (whole := _whole_object(text)) is not None:
        return whole, True
    fence = _ONE_FENCE.fullmatch(text)
    if fence and (whole := _whole_object(fence[1])) is not None:
        return whole, True
    fenced = [(a.end(), b.start()) for a, b in enclosed(text, _OPENS_FENCE, _CLOSES_FENCE)]
    blocks = [(a, b) for a, b in fenced if text[a:b].lstrip().startswith("{")]
    if len(blocks) > 1:
        raise Malformed(f"{len(blocks)} fenced JSON objects in the reply, expected one")
    if not blocks:
        if not _BEGINS_OBJECT.search(text):
            raise Malformed("no JSON object in the reply")
        if text.lstrip().startswith("{"):
            raise Malformed(_broken(text))
        raise Malformed("a JSON object within other text, neither the whole reply nor fenced")
    ((begins, ends),) = blocks
    after = text[ends + len("```") :]
    if _BEGINS_OBJECT.search(text, 0, begins) or _BEGINS_OBJECT.search(after):
        raise Malformed("a JSON object beside the fenced one")
    if after.strip():
        raise Malformed("text after the fenced JSON object, which could take it back")
    if (whole := _whole_object(text[begins:ends])) is None:
        raise Malformed(_broken(text[begins:ends]))
    return whole, False


def _stands_in(text: str, value: dict[str, Any]) -> bool:
    """Whether a text holds the JSON object `value`, in any layout of blanks.

    Each place is read at most twice. Objects within one that breaks off need no second reading:
    they break off at the same place, or were whole and were compared when they ended. What remains
    is text that was read as the inside of a string, in which an object can only begin where that
    string ends.

    A text that nests deeper than Python can read counts as holding any object.
    """
    text, stands = _with_latex(text), False

    def compared(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal stands
        stands = stands or dict(pairs) == value
        return dict(pairs)

    decoder = json.JSONDecoder(
        object_pairs_hook=compared,
        parse_constant=lambda name: object(),
        # Python refuses longer integers
        parse_int=lambda digits: int(digits) if len(digits) <= 4_300 else digits,
        strict=False,
    )
    read_to = 0
    for begins in _BEGINS_WITH_KEY.finditer(text):
        # a key may be spelled with escapes
        if begins.start(1) < read_to or ("\\" not in begins[2] and begins[2] not in value):
            continue
        try:
            read_to = _end_of_value(decoder, text, begins.start())
        except RecursionError:
            return True
        if stands:
            return True
    return False


def _spelled_in(text: str, value: dict[str, Any]) -> bool:
    """Whether a text holds the names and values of `value` in their order, whatever marks stand
    between them: within a string, in other quotes or brackets, as YAML, with escapes or commas
    that are no JSON. A judge that quotes such an object may well write it as JSON."""
    return _spelled(json.dumps(value, ensure_ascii=False)) in _spelled(text)


def _spelled(*texts: str | None) -> str:
    """The letters and digits of texts, without JSON's and HTML's escapes, case and width."""
    whole = html.unescape("\n".join(text or "" for text in texts))
    whole = unicodedata.normalize("NFKC", whole).casefold()
    # marks of no width and line breaks may part an escape
    whole = "".join(c for c in whole if c.isprintable() and not c.isspace())
    whole = _ANY_ESCAPE.sub(lambda e: chr(int(e[1], 16)) if e[1] else "", whole)
    return "".join(filter(str.isalnum, whole))


def _end_of_value(decoder: json.JSONDecoder, text: str, at: int) -> int:
    """The end of the JSON value that begins at `at`, or the character at which it breaks off.

    The text is read in windows that double in length, since an error of `json` counts the lines of
    all text before it.
    """
    window = 256
    while True:
        part = text[at : at + window]
        try:
            return at + decoder.raw_decode(part)[1]
        except json.JSONDecodeError as error:
            # the end of a window may cut strings, words and numbers
            whole = error.pos < window - 16 and not error.msg.startswith("Unterminated")
            if whole or at + window >= len(text):
                return at + error.pos - 1
        window *= 2


def _whole_object(text: str) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(_with_latex(text.strip()))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _broken(text: str) -> str:
    """Why a text that begins like a JSON object is none."""
    try:
        _DECODER.raw_decode(_with_latex(text.strip()))
    except (ValueError, RecursionError) as error:
        return f"a broken JSON object: {error}"[:200]
    return "text after the JSON object, which could take it back"


def _with_latex(text: str) -> str:
    """`text` as JSON whose backslashes of LaTeX (those that begin no escape) are doubled.

    A rationale that quotes `\\(x = 2\\)` or `\\frac` without doubling the backslash keeps its
    words; no number, label or truth value can change, since JSON has no backslash outside of
    strings.
    """

    def as_written(escape: re.Match[str]) -> str:
        return f"\\{escape[0]}" if escape[1] else escape[0]

    return _ESCAPE.sub(as_written, text)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("a field stands twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


# Line breaks inside strings are allowed: the rationale is prose, and they change no other field.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, strict=False)
