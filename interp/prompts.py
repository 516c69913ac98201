"""Rendering of a conversation to the exact token ids that a model continues.

Chat templates are rendered with `add_generation_prompt`, and what is to follow is appended
as token ids. Nothing is ever continued as assistant *content*: templates strip, trim and
re-wrap it (Qwen3 renders an empty think block and a second opener).
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transformers import PreTrainedTokenizerBase

from faithscope.interp import detokenise
from faithscope.interp.control import Masks, controls, encode_marks, encode_masked
from faithscope.interp.errors import UserError
from faithscope.interp.formats import NONE, TAGS, ReasoningFormat, template_of
from faithscope.interp.marks import MARKS
from faithscope.interp.resource_limits import OutOfBounds, bounded

TEMPLATE_SECONDS = 20.0
"""Time limit of a chat template, in seconds; templates take milliseconds."""
TEMPLATE_BYTES = 2 * 1024**3
"""Most memory that rendering a chat template may add to the process; most add a thousandth."""
TEMPLATE_CHARACTERS = 1_000_000
"""Most characters that a chat template may write beyond ten times those of its messages; the
longest templates write some ten thousand."""
Message = Mapping[str, str]

TODAY = datetime.date(2024, 7, 26)
"""The date that templates are given (Llama 3.2 and gpt-oss write one into every prompt): the
fallback of the Llama templates. A prompt must not depend on the day it is rendered."""

_SWITCHES = ("enable_thinking", "thinking")
_EFFORT = "reasoning_effort"
_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Prompt:
    """A rendered conversation, ready to be continued."""

    ids: tuple[int, ...]
    """Token ids up to where the model continues: after the reasoning opener, if it is to reason."""
    text: str
    """What `ids` decode to."""
    format: ReasoningFormat
    """The marks of reasoning in force; `formats.NONE` if thinking is off or the family has none."""
    opener_in_prompt: bool
    """Whether the model goes on inside its reasoning, since an opener stands in `ids`."""
    template_hash: str
    opener_by_template: bool = False
    """Whether the template put the opener there; otherwise `render` appended its ids."""

    @property
    def opener(self) -> str:
        return self.format.opener

    @property
    def closer(self) -> str:
        return self.format.closer


def render(
    tokenizer: PreTrainedTokenizerBase,
    fmt: ReasoningFormat,
    messages: Sequence[Message],
    thinking: bool | None = None,
    effort: str | None = None,
    prefix: str = "",
) -> Prompt:
    """Render a conversation that ends with a user turn, up to where the model goes on.

    Text in messages is data: control tokens that it spells (`<|im_end|>`) are encoded as
    ordinary text. Reasoning tags keep their meaning in system messages, which are the
    experimenter's own and where Magistral's recommended prompt uses them, and in assistant
    messages, where templates look for them to strip earlier reasoning. A conversation that
    spells no control token has the very ids of `apply_chat_template`.

    Where the template has no system role (Gemma 2 refuses it), the system text is put
    before the first user message with a blank line between, as Gemma 3's own template does.

    A base model without a template reads the plain text: the messages in order with a blank
    line between, a line break at the end unless the text brings white space of its own,
    and the BOS token if the tokenizer puts one before every text.

    Args:
        fmt: from `detect_format`.
        messages: `{"role": "system" | "user" | "assistant", "content": str}`; earlier
            turns serve as few-shot examples.
        thinking: True to reason; False for the template's own form without reasoning; None for the
            template's default.
        effort: effort of reasoning ("high"), for a template that writes one into the prompt
            (gpt-oss); None for the template's default.
        prefix: beginning of the assistant's turn, whose control tokens are obeyed. An opener in it
            opens the reasoning, and is not repeated where the template writes one; after any other
            prefix the model writes without marks. Only an empty prefix lets an opener be added.

    Raises:
        UserError: the messages cannot be rendered, or not within `TEMPLATE_SECONDS`,
            `TEMPLATE_BYTES` and `TEMPLATE_CHARACTERS`; the template leaves out or changes a
            user's message or a line of the system message; thinking is asked for where the template
            cannot give it (or cannot be turned off; `render_direct` can close it); or an
            effort where the template has none.
    """
    turns = _checked(messages)
    if thinking and not fmt.marks:
        raise UserError(
            "thinking=True, but this model's template marks no reasoning (no think tags, no "
            "channels); leave thinking unset, and ask for reasoning in the prompt"
        )
    masks = Masks.of(tokenizer, [t["content"] for t in turns])
    turns = [
        {**t, "content": masks.put(t["content"], () if t["role"] == "user" else TAGS)}
        for t in turns
    ]
    if template_of(tokenizer) is None:
        return _finish(tokenizer, NONE, _plain(tokenizer, turns, masks, prefix))
    if turns[0]["role"] == "system" and not takes_system(tokenizer):
        turns = _folded(turns)
    switch = _switch(tokenizer) if fmt.marks else None
    weighed = _weighed(tokenizer, effort)
    tag = fmt.opener.rstrip()
    opens = fmt.marks and prefix.startswith(tag) and fmt.closer not in prefix
    on = True if opens and thinking is None else thinking
    given = {} if switch is None or on is None else {switch: on}
    text = _rendered(tokenizer, turns, **weighed, **given)
    _check_kept(turns, text)
    end = text.rstrip()
    opened = fmt.marks and end.endswith(tag)
    if prefix:
        if opened and prefix.startswith(tag):
            text = end.removesuffix(tag)
        ids = encode_masked(tokenizer, text + prefix, masks)
        return _begun(tokenizer, fmt, ids, (tag if opened else "") + prefix, thinking)
    ids = encode_masked(tokenizer, text, masks)
    shut = fmt.marks and end.endswith((fmt.closer, fmt.answer_opener or fmt.closer))
    if opened or shut or not fmt.marks:
        thinks = opened
    else:
        thinks = switch is None or text == _rendered(tokenizer, turns, **weighed, **{switch: True})
    if thinking is not None and fmt.marks and thinks != thinking:
        raise UserError(_cannot(thinking, switch))
    if not thinks:
        return _finish(tokenizer, NONE, ids)
    if not opened:
        ids += encode_marks(tokenizer, fmt.opener)
    return _finish(tokenizer, fmt, ids, opened)


def render_direct(
    tokenizer: PreTrainedTokenizerBase, fmt: ReasoningFormat, messages: Sequence[Message]
) -> Prompt:
    """A prompt to be answered without reasoning.

    Uses the template's own form without reasoning if there is one; else the reasoning is opened and
    closed at once, with nothing in between.
    """
    prompt = render(tokenizer, fmt, messages)
    if not prompt.opener_in_prompt:
        return prompt
    if _switch(tokenizer) is not None:
        return render(tokenizer, fmt, messages, thinking=False)
    return _finish(tokenizer, NONE, prompt.ids + encode_marks(tokenizer, fmt.closer))


def render_raw(
    tokenizer: PreTrainedTokenizerBase,
    fmt: ReasoningFormat,
    text: str,
    prefix: str = "",
    thinking: bool | None = None,
) -> Prompt:
    """A prompt that is rendered already, token for token.

    Its control tokens are obeyed, and nothing is added but a BOS token that it lacks: where the
    family's template writes one, or, for a text that begins with an ordinary word, where the
    tokenizer puts one before every text.

    The reasoning is open if an opener stands in the assistant's turn without a closer after it. A
    turn without a word is the model's own to begin: it has the format of its family, with no opener
    in the prompt.

    Args:
        prefix: further text of the assistant's turn.
        thinking: as the turn must say; None takes what it says.

    Raises:
        UserError: the text spells control tokens of another family, or the turn says otherwise than
            `thinking`.
    """
    text += prefix
    known = controls(tokenizer).ids
    if foreign := next((t for t in _CONTROL.findall(text) if t not in known), None):
        raise UserError(
            f"a prompt as sent spells {foreign!r}, which is no control token of this model: it was "
            "rendered for another; let that one read it, or give the messages, which this "
            "model's own template renders"
        )
    bos, turn = _bos(tokenizer, text), prefix
    if template_of(tokenizer) is not None:
        probe = "zq7x"
        usual = _rendered(tokenizer, [{"role": "user", "content": probe}])
        if controls(tokenizer).pattern.match(text):
            written = str(tokenizer.bos_token or probe)
            lacks = usual.startswith(written) and not text.startswith(written)
            bos = [controls(tokenizer).ids[written]] if lacks else []
        header = usual.rpartition(probe)[2]
        header = (header.partition(fmt.opener.rstrip())[0] if fmt.marks else header).strip()
        turn = text.rpartition(header)[2] if header else text
    ids = (*bos, *tokenizer(text, add_special_tokens=False)["input_ids"])
    return _begun(tokenizer, fmt, ids, turn, thinking)


_CONTROL = re.compile(
    r"<[|｜][^<>|｜\s]{1,40}[|｜]>|\[/?(?:INST|SYSTEM_PROMPT)\]|<(?:start|end)_of_turn>"
)
"""Pattern of control tokens of chat templates, whoever's."""


def _begun(
    tokenizer: PreTrainedTokenizerBase,
    fmt: ReasoningFormat,
    ids: tuple[int, ...],
    turn: str,
    thinking: bool | None,
) -> Prompt:
    """A prompt whose assistant's turn begins with `turn`, in the format that this leads to."""
    opened = fmt.marks and turn.rfind(fmt.opener.rstrip()) > turn.rfind(fmt.closer)
    bare = fmt.marks and not turn.strip()
    if thinking is not None and fmt.marks and not bare and opened != thinking:
        raise UserError(
            f"thinking={thinking}, but the assistant's turn as sent ({turn[-40:]!r}) "
            f"{'opens' if opened else 'does not open'} the reasoning; leave thinking unset, or "
            "change the turn"
        )
    in_force = opened or (bare and thinking is not False)
    prompt = _finish(tokenizer, fmt if in_force else NONE, ids, by_template=opened)
    return replace(prompt, opener_in_prompt=opened)


def end_ids(tokenizer: PreTrainedTokenizerBase, generation_config: Any) -> frozenset[int]:
    """Ids that end the model's turn.

    They are the ids that the generation config and the tokenizer name, and the control token that
    the chat template writes after an assistant's message: converted checkpoints often name only the
    end of text, and a chat model then runs on into turns of its own making.
    """
    named = generation_config.eos_token_id if generation_config is not None else None
    ids: set[int] = {named} if isinstance(named, int) else set(named or ())
    if isinstance(tokenizer.eos_token_id, int):
        ids.add(tokenizer.eos_token_id)
    if template_of(tokenizer) is not None:
        probe = "zq7x"
        turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": probe}]
        try:
            text = _rendered(tokenizer, turns, add_generation_prompt=False)
        except UserError:
            text = ""
        after = text.rpartition(probe)[2].lstrip() if probe in text else ""
        known = controls(tokenizer)
        if (token := known.pattern.match(after)) is not None:
            ids.add(known.ids[token[0]])
    return frozenset(ids)


def template_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """First 16 hex digits of the SHA-256 of the chat template; `plain` without one."""
    template = template_of(tokenizer)
    return "plain" if template is None else hashlib.sha256(template.encode()).hexdigest()[:16]


def _finish(
    tokenizer: PreTrainedTokenizerBase,
    fmt: ReasoningFormat,
    ids: tuple[int, ...],
    by_template: bool = False,
) -> Prompt:
    return Prompt(
        ids=ids,
        text=detokenise.decode(tokenizer, ids),
        format=fmt,
        opener_in_prompt=fmt.marks,
        template_hash=template_hash(tokenizer),
        opener_by_template=by_template,
    )


def _checked(messages: Sequence[Message]) -> list[dict[str, str]]:
    for i, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES or (role == "system" and i > 0):
            raise UserError(
                f"messages[{i}]: role {role!r}; use user and assistant, and system for the first"
            )
        if not isinstance(content, str):
            raise UserError(f"messages[{i}]: content {content!r} is not text; give a string")
    if not messages or messages[-1]["role"] != "user":
        raise UserError(
            "messages must end with a user turn; to go on from words of the model's own, append "
            "their token ids to the prompt's ids"
        )
    return [dict(m) for m in messages]


def _rendered(
    tokenizer: PreTrainedTokenizerBase,
    turns: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    **given: Any,
) -> str:
    try:
        with bounded(TEMPLATE_SECONDS, TEMPLATE_BYTES):
            text = tokenizer.apply_chat_template(
                list(map(dict, turns)),
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                chat_template=_dated(template_of(tokenizer)),
                **given,
            )
    except OutOfBounds as error:
        raise UserError(f"the chat template {error}; {_REPAIR}") from error
    except Exception as error:
        # a template is a program, and may raise any error
        roles = ", ".join(t["role"] for t in turns)
        reason = " ".join(str(error).split())[:400] or repr(error)
        raise UserError(
            f"the chat template refuses messages with the roles {roles}: {reason}"
        ) from error
    assert isinstance(text, str)
    if len(text) > TEMPLATE_CHARACTERS + 10 * sum(len(t["content"]) for t in turns):
        raise UserError(
            f"the chat template writes {len(text):,} characters around messages of "
            f"{sum(len(t['content']) for t in turns):,}; {_REPAIR}"
        )
    return text


_REPAIR = "take the model's files anew, or repair chat_template.jinja or tokenizer_config.json"


def _check_kept(turns: Sequence[Message], text: str) -> None:
    """Check that a rendered conversation holds the text of its messages.

    A template may leave out lines of a system message with a switch in them (`/no_think`), which it
    obeys and deletes, and the reasoning of an assistant's message.
    """
    for i, turn in enumerate(turns):
        role, content = turn["role"], turn["content"]
        if role == "assistant":
            content = _CLOSER.split(content)[-1]
        parts = content.splitlines() if role == "system" else [content]
        kept = (p.strip() for p in parts if p.strip() not in text)
        if lost := [p for p in kept if not _SWITCH.search(p)]:
            raise UserError(
                f"the chat template leaves out or changes messages[{i}] ({role}): "
                f"{lost[0][:60]!r} does not stand in the prompt that it writes; {_REPAIR}"
            )


_CLOSER = re.compile("|".join(re.escape(m.closer) for m in MARKS if m.name != "harmony"))
_SWITCH = re.compile(r"(?<!\w)/(?:(?:no_?)?think|system_override)(?!\w)")


def _dated(template: str | None) -> str | None:
    """The template with its `strftime_now` shadowed by one that knows `TODAY` alone.

    Transformers turns functions given to a template into text, so the shadow is a macro. The line
    break after it ends the macro's line: the template's own first line stays first.
    """
    if template is None or "strftime_now" not in template:
        return template
    codes = {f"%{c}": TODAY.strftime(f"%{c}") for c in "YymBbdjAaHIMSp"}
    replacements = "".join(f"|replace({code!r}, {value!r})" for code, value in codes.items())
    macro = f"{{%- macro strftime_now(form) -%}}{{{{ form{replacements} }}}}{{%- endmacro %}}"
    return f"{macro}\n{template}"


def _plain(
    tokenizer: PreTrainedTokenizerBase, turns: Sequence[Message], masks: Masks, prefix: str
) -> tuple[int, ...]:
    text = "\n\n".join(t["content"] for t in turns)
    if not text[-1:].isspace():
        text += "\n"
    return (*_bos(tokenizer, text), *encode_masked(tokenizer, text + prefix, masks))


def _bos(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """The BOS token, if the tokenizer puts one before every text and this one does not have it."""
    empty, bos = tokenizer("")["input_ids"], str(tokenizer.bos_token or "")
    has = bool(bos) and text.startswith(bos)
    return empty[:1] if empty and empty[0] == tokenizer.bos_token_id and not has else []


def takes_system(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a system message comes through: some templates refuse it, some drop it.

    False without a template: plain text has no roles.
    """
    if template_of(tokenizer) is None:
        return False
    probe = "zq7x"
    turns = [{"role": "system", "content": probe}, {"role": "user", "content": "a"}]
    try:
        return probe in _rendered(tokenizer, turns)
    except UserError:
        return False


def _folded(turns: Sequence[Message]) -> list[dict[str, str]]:
    system, first, *rest = map(dict, turns)
    return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def _switch(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The template variable that turns reasoning on and off; None if there is none."""
    template = template_of(tokenizer) or ""
    turns = [{"role": "user", "content": "a"}]
    for name in _SWITCHES:
        if name in template:
            on, off = (_rendered(tokenizer, turns, **{name: x}) for x in (True, False))
            if on != off:
                return name
    return None


def _weighed(tokenizer: PreTrainedTokenizerBase, effort: str | None) -> dict[str, str]:
    """The template variable for the effort of reasoning, with its value; empty for no effort."""
    if effort is None:
        return {}
    if _EFFORT not in (template_of(tokenizer) or ""):
        raise UserError(
            f"effort={effort!r}, but this model's chat template knows no reasoning effort; leave "
            "effort unset"
        )
    return {_EFFORT: effort}


def _cannot(thinking: bool, switch: str | None) -> str:
    if switch is not None:
        return (
            f"thinking={thinking}, but the messages turn it {'off' if thinking else 'on'} "
            "themselves (/think, /no_think); take that out of them"
        )
    if thinking:
        return (
            "thinking=True, but this chat template always closes the reasoning and has no switch "
            "for it; use the model's original template"
        )
    return (
        "thinking=False, but this chat template has no form without reasoning; leave thinking "
        "unset, or use render_direct, which closes the reasoning at once"
    )
