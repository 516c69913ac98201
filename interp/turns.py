"""Signs in a text that it is a rendered prompt: control tokens of chat templates, and the speakers
of a dialogue in plain text, the last of whom is the model.

Works on text alone. A text that only quotes such signs within its sentences is none.
"""

from __future__ import annotations

import re

_CONTROL = (
    r"<[|｜](?=[^<>\s]*[|｜]>)[^<>\s]+>|<(?:start|end)_of_turn>|<\|turn>|<turn\|>|\[/?INST\]|<</?SYS>>"
    r"|\[/?SYSTEM_PROMPT\]|\[gMASK\]|<sop>|<bos>|<eos>|</?s>|\]~!?b(?:\[|\])|\[e~\[|\[unused\d+\]"
    r"|<ifm\|\w+>"
)
"""Control tokens of known chat templates, by their shape."""
_AT_AN_END = re.compile(rf"\A\s*(?:{_CONTROL})|(?:{_CONTROL})\s*\Z")
_HEADER = re.compile(
    r"<\|im_start\|>\s*\w+|<\|(?:start_header_id|header_start|start_of_role)\|>\s*\w+"
    r"|<start_of_turn>\s*(?:user|model)|<\|turn>\s*(?:user|model)|<\|start\|>(?:user|assistant|system)"
    r"|<[|｜](?:im_)?(?:user|assistant|human|bot|model)(?:_TOKEN)?[|｜]>"
    r"|<\|(?:CHATBOT|START_OF_TURN)_TOKEN\|>"
    r"|\[/INST\]|\]~b\](?:user|ai)|<\|message_(?:user|model)\|>|<\|open\|>message\b",
    re.I,
)
"""Headers of turns, wherever they stand."""
# "Question: … Answer:" is a usual form of a user's message, and no sign
_ASKS = r"(?:user|human|###\s*(?:instruction|user|human|input))"
_REPLIES = r"(?:assistant|ai|bot|model|gpt|###\s*(?:response|assistant))"
_DIALOGUE = re.compile(
    rf"^[ \t*]*{_ASKS}[*]*:.*^[ \t]*(?P<turn>[*]*{_REPLIES}[*]*:)(?P<begun>[^\n]*)\Z",
    re.I | re.M | re.S,
)
"""A text in which someone asks and which ends in the turn of the one who replies."""


def rendered_sign(text: str) -> str | None:
    """The sign that a text is a prompt as a model was sent it and no user's message: a control
    token at its beginning or end, the header of a turn, or the model's own turn at the end of a
    dialogue; None if there is none."""
    text = text.strip()
    for pattern in (_HEADER, _AT_AN_END):
        if found := pattern.search(text):
            return found[0].strip()
    dialogue = _DIALOGUE.search(text)
    return f"{dialogue['turn']}{dialogue['begun']}".strip() if dialogue else None


def refusal_of(sign: str, what: str) -> str:
    """The words in which a text with a sign of a rendered prompt is refused."""
    return (
        f"{what} holds {sign[:60]!r}, as a prompt that was rendered before, and would be put into "
        "a user's message once more; give it as prompt_raw (the exact prompt that the model was "
        "sent), or give the user's message alone"
    )
