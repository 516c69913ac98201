"""A judge's reply to the fields of its form, or the reason why there is no verdict.

Strict on purpose: a verdict is taken only where the reply, after its thinking, is one JSON object
of the form, or ends in one fenced block that holds it and has no other object beside it. With words
before it, an object that stands in the prompt is no reply: it may be quoted from the text that is
judged. What is not of the form is asked again, and then kept as `unparsed` with its text. No field
is renamed, filled in, rounded or read out of prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from faithscope.interventions.sentences import enclosed
from faithscope.probes.judge.form import Ask, Field, Outcome, Writing

MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
)
"""What models write around their thinking where the server leaves it in the text: Qwen, DeepSeek
and others, Seed, Magistral, Kimi, gpt-oss."""

_OPENS_FENCE, _CLOSES_FENCE = re.compile(r"```\w*[ \t]*\n"), re.compile("```")
_ONE_FENCE = re.compile(r"\s*```\w*[ \t]*\n(.*)```\s*", re.S)
"""A reply that is one block; what stands between is looked at as a whole."""
_BEGINS_OBJECT = re.compile(r'\{\s*"')
"""`\\frac{1}{2}` is prose; this is the beginning of an object."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.S)
"""A string of JSON, to the end where it is left open."""
_LATEX = (
    "b(?:ar|egin|eta|f|ig|iggl?|igr|inom|mod|oxed|ullet)",
    "f(?:lat|loor|orall|rac|rown)",
    "n(?:abla|eg|eq|geq|leq|ot|otin)",
    "r(?:angle|ceil|eal|floor|ho|ight|ightarrow|m)",
    "t(?:an|anh|au|ext|extbf|extit|extrm|frac|heta|ilde|imes|o|op|riangle)",
)
"""Commands of LaTeX that JSON would read as an escape and letters; not `\\ne` and `\\nu`, which may
as well be a line that begins with a variable."""
_ESCAPE = re.compile(
    rf'(\\(?:(?:{"|".join(_LATEX)})(?![A-Za-z])|u(?![0-9A-Fa-f]{{4}})|[^"\\/bfnrtu]))|\\.', re.S
)
"""A backslash of a JSON string and what belongs to it; group 1 where it was meant for one, before
what is no escape, or in a command."""

LONGEST = 400_000
"""Characters of a reply: a longer one is no verdict, and is kept up to here."""
MOST_LISTED = 500
"""Values of one field; OpenAI takes a thousand in a whole schema."""


class Malformed(ValueError):
    """The text is no reply of the form; the message says why."""


@dataclass(frozen=True)
class Thought:
    """A reply taken apart."""

    answer: str
    thinking: str
    closed: bool
    """False where thinking begins and does not end: then there is no answer."""


@dataclass(frozen=True)
class Reading:
    """What one reply says."""

    outcome: Outcome
    values: Mapping[str, Any] = field(default_factory=dict)
    """The fields, where parsed."""
    answer: str = ""
    """The reply without its thinking."""
    thinking: str = ""
    problem: str = ""
    n_extra_fields: int = 0
    """Fields of a parsed object that the form has not; they are ignored."""


REPLIES = 1
"""Version of how replies are read; see `probes.probe.Probe.version`."""


def schema(ask: Ask, *, listed: bool = False) -> dict[str, Any]:
    """The JSON schema of a reply: every field required, nothing beside them.

    Args:
        listed: integers by the list of their values. Many services know no bounds, and Inspect
            takes `minimum` and `maximum` out of what these are sent.
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
    if f.kind == "text":
        text = {"type": "string"}
        return {"anyOf": [text, {"type": "null"}]} if f.optional else text
    if f.kind == "boolean":
        return {"type": "boolean"}
    if f.kind == "label":
        return {"type": "string", "enum": list(ask.choices(f))}
    high = ask.high if f.name == ask.form.verdict and f.high is None else f.high
    if listed and f.low is not None and high is not None and high - f.low < MOST_LISTED:
        return {"type": "integer", "enum": list(range(f.low, high + 1))}
    bounds = {"minimum": f.low, "maximum": high}
    return {"type": "integer"} | {k: v for k, v in bounds.items() if v is not None}


def request(ask: Ask) -> str:
    """The sentence that asks for the form, for a provider without structured output."""
    return (
        "Reply with one JSON object and nothing else, of this JSON schema:\n"
        f"{json.dumps(schema(ask))}"
    )


def requested(ask: Ask | Writing) -> str:
    """What a prompt is not enough without: of an ask the request for its form."""
    return "" if isinstance(ask, Writing) else request(ask)


def sent(prompt: str, requested: str) -> str:
    """The user message, word for word: the prompt, and what asks for the form below it."""
    return f"{prompt}\n\n{requested}" if requested else prompt


def read(ask: Ask | Writing, text: str, cut: bool = False) -> Reading:
    """The verdict of one raw reply; of a writing, its text without the thinking.

    Args:
        cut: the server said that the token limit ended the reply. Such a reply is never parsed,
            though an object may stand in it: what was still to come could have changed it.
    """
    if len(text) > LONGEST:
        problem = f"the reply has {len(text):,} characters, of which at most {LONGEST:,} are read"
        return Reading("unparsed", answer=text[:LONGEST], problem=problem)
    thought = strip_thinking(text)
    outcome, values, problem, extra = "parsed", {}, "", 0
    if not thought.closed:
        outcome, problem = "unclosed_thinking", "the thinking has no end"
    elif cut:
        outcome, problem = "truncated", "the token limit ended the reply"
    elif isinstance(ask, Writing):
        outcome, problem = ("parsed", "") if thought.answer else ("unparsed", "the reply is empty")
    else:
        try:
            values, extra = fields(ask, thought.answer)
        except Malformed as error:
            outcome, problem = "unparsed", str(error)
    return Reading(outcome, values, thought.answer, thought.thinking, problem, extra)


def strip_thinking(text: str) -> Thought:
    """Part the thinking of a reply from its answer.

    A closing mark without its opening one ends thinking that the chat template began. A reply
    that is a JSON object as it stands, fenced or not, holds no thinking, whatever its strings
    quote.
    """
    fence = _ONE_FENCE.fullmatch(text)
    if _whole_object(fence[1] if fence else text) is not None:
        return Thought(text.strip(), "", True)
    thoughts = []
    for opener, closer in MARKS:
        levels, at = [""], 0
        for mark in re.finditer(f"({re.escape(opener)})|{re.escape(closer)}", text, re.I):
            levels[-1] += text[at : mark.start()]
            at = mark.end()
            if mark[1]:
                levels.append("")
            else:
                thoughts.append(levels.pop())
                levels = levels or [""]
        levels[-1] += text[at:]
        text, *open_levels = levels
        if open_levels:
            return Thought(text.strip(), _joined([*thoughts, *open_levels]), False)
    return Thought(text.strip(), _joined(thoughts), True)


def _joined(thoughts: list[str]) -> str:
    return "\n".join(t.strip() for t in thoughts if t.strip())


def fields(ask: Ask, answer: str) -> tuple[dict[str, Any], int]:
    """The fields of the form, from an answer without thinking, and how many others there are.

    Raises:
        Malformed: the answer is not one JSON object, or its names, types or range are not the
            form's, or it may be quoted from the prompt.
    """
    by_path = {f.path: f for f in ask.form.fields}
    found, alone = find_object(answer)
    by_place = dict(_leaves(found, by_path))
    if missing := [f.name for path, f in by_path.items() if path not in by_place]:
        raise Malformed(f"no field {missing[0]!r} in the JSON object")
    values = {f.name: _checked(ask, f, by_place[path]) for path, f in by_path.items()}
    told = f"{ask.system or ''}\n{ask.prompt}"
    if not alone and _stands_in(told, found):
        raise Malformed("the JSON object may be quoted: it stands in the prompt, word for word")
    return values, len(by_place) - len(by_path)


def _leaves(
    tree: Mapping[str, Any], wanted: Mapping[tuple[str, ...], Field], at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What stands at the paths of the form, and at those that it has not."""
    for name, value in tree.items():
        path = (*at, name)
        inner = any(p[: len(path)] == path and p != path for p in wanted)
        if inner and isinstance(value, dict):
            yield from _leaves(value, wanted, path)
        else:
            yield path, value


def _checked(ask: Ask, f: Field, value: Any) -> Any:
    """The value, a label as the form writes it."""
    if f.kind == "label":
        label_text = _as_label(value) if isinstance(value, str) else None
        matching = [label for label in ask.choices(f) if _as_label(str(label)) == label_text]
        if label_text is None or len(matching) != 1:
            raise Malformed(f"{f.name!r} is {_shown(value)}, none of {_shown(ask.choices(f))}")
        return matching[0]
    if not (value is None and f.optional):
        _check(ask, f, value)
    return value


def _as_label(text: str) -> str:
    """Whatever its case, its apostrophes and the white space around and in it."""
    return " ".join(text.replace("’", "'").split()).casefold()


def _check(ask: Ask, f: Field, value: Any) -> None:
    if f.kind == "text":
        if not isinstance(value, str):
            raise Malformed(f"{f.name!r} is {_shown(value)}, not a text")
        return
    if f.kind == "boolean":
        if not isinstance(value, bool):
            raise Malformed(f"{f.name!r} is {_shown(value)}, neither true nor false")
        return
    # A bool is an int to Python, and 1.0 or "1" would be a guess.
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
        The object, and whether it is all of the answer.

    Raises:
        Malformed: there is none, there are several, it is broken, or there is text where only the
            object may stand.
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
    """Whether a JSON object stands in a text, whatever blanks it is laid out with."""
    names = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in value)
    longest = 200 + 4 * len(json.dumps(value))
    for begins in re.finditer(rf"\{{\s*(?:{names})", text):
        at = begins.start()
        try:
            found, _ = _DECODER.raw_decode(_with_latex(text[at : at + longest]))
        except (ValueError, RecursionError):
            continue
        if found == value:
            return True
    return False


def _whole_object(text: str) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(_with_latex(text.strip()))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _broken(text: str) -> str:
    """Why a text that begins as a JSON object is none."""
    try:
        _DECODER.raw_decode(_with_latex(text.strip()))
    except (ValueError, RecursionError) as error:
        return f"a broken JSON object: {error}"[:200]
    return "text after the JSON object, which could take it back"


def _with_latex(text: str) -> str:
    """JSON in whose strings backslashes that begin no escape, but LaTeX, stand for themselves.

    A rationale that quotes `\\(x = 2\\)` or `\\frac` without doubling the backslash is as it was
    written; no number, label or truth value can change by it.
    """

    def as_written(escape: re.Match[str]) -> str:
        return f"\\{escape[0]}" if escape[1] else escape[0]

    return _STRING.sub(lambda string: _ESCAPE.sub(as_written, string[0]), text)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("a field stands twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


# Line breaks inside strings are let through: the rationale is prose, and they change no field.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, strict=False)
