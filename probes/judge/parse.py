"""A judge's reply to the fields of its form, or the reason why there is no verdict.

Strict on purpose: a verdict is taken only where the reply says it in the form that was asked
for. What does not is asked again, and then kept as `unparsed` with its text. Where the JSON
object stands is found by structure; no field is renamed, filled in, rounded or read out of prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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

_ONE_FENCE = re.compile(r"\s*```\w*\n(.*)```\s*", re.S)
"""A reply that is one block; what stands between is looked at as a whole."""

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
    thought = strip_thinking(text)
    outcome, values, problem = "parsed", {}, ""
    if not thought.closed:
        outcome, problem = "unclosed_thinking", "the thinking has no end"
    elif cut:
        outcome, problem = "truncated", "the token limit ended the reply"
    elif isinstance(ask, Writing):
        outcome, problem = ("parsed", "") if thought.answer else ("unparsed", "the reply is empty")
    else:
        try:
            values = fields(ask, thought.answer)
        except Malformed as error:
            outcome, problem = "unparsed", str(error)
    return Reading(outcome, values, thought.answer, thought.thinking, problem)


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
        o, c = re.escape(opener), re.escape(closer)
        while blocks := list(re.finditer(f"{o}((?:(?!{o}|{c}).)*){c}", text, re.S | re.I)):
            thoughts += [block[1] for block in blocks]
            text = re.sub(f"{o}(?:(?!{o}|{c}).)*{c}", "", text, flags=re.S | re.I)
        if ends := list(re.finditer(c, text, re.I)):
            thoughts.append(re.sub(c, "", text[: ends[-1].start()], flags=re.I))
            text = text[ends[-1].end() :]
        if begins := re.search(o, text, re.I):
            thoughts.append(text[begins.end() :])
            return Thought(text[: begins.start()].strip(), _joined(thoughts), False)
    return Thought(text.strip(), _joined(thoughts), True)


def _joined(thoughts: list[str]) -> str:
    return "\n".join(t.strip() for t in thoughts if t.strip())


def fields(ask: Ask, answer: str) -> dict[str, Any]:
    """The fields of the form, from an answer without thinking.

    Raises:
        Malformed: no JSON object, several, or one whose names, types or range are not the form's.
    """
    by_path = {f.path: f for f in ask.form.fields}
    by_place = dict(_leaves(find_object(answer), by_path))
    if missing := [f.name for path, f in by_path.items() if path not in by_place]:
        raise Malformed(f"no field {missing[0]!r} in the JSON object")
    if extra := [path for path in by_place if path not in by_path]:
        raise Malformed(f"the form has no field {'.'.join(extra[0])[:80]!r}")
    return {f.name: _checked(ask, f, by_place[path]) for path, f in by_path.items()}


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


def find_object(text: str) -> dict[str, Any]:
    """The JSON object of an answer: all of it, its one fenced block, or the one it holds.

    Raises:
        Malformed: there is none, there are several, or something begun as an object is broken.
    """
    if not text.strip():
        raise Malformed("the reply is empty")
    if (whole := _whole_object(text)) is not None:
        return whole
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.S)
    fenced = [_whole_object(block) for block in blocks if block.lstrip().startswith("{")]
    objects = [o for o in fenced if o is not None]
    if not objects or len(objects) < len(fenced):
        objects = _objects(text)
    if not objects:
        raise Malformed("no JSON object in the reply")
    if len(objects) > 1:
        raise Malformed(f"{len(objects)} JSON objects in the reply, expected one")
    return objects[0]


def _objects(text: str) -> list[dict[str, Any]]:
    objects = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            # `\frac{1}{2}` is prose. An object that breaks off is not: one that stands inside
            # it, or after it, is not what the judge was going to say.
            if re.match(r'\{\s*"', text[at:]):
                raise Malformed(f"a broken JSON object: {error}"[:200]) from None
            end = at + 1
        else:
            # An empty pair of braces is LaTeX more often than a reply.
            if value:
                objects.append(value)
        at = text.find("{", end)
    return objects


def _whole_object(text: str) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(text.strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("a field stands twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


# Line breaks inside strings are let through: the rationale is prose, and they change no field.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, strict=False)
