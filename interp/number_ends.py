"""Where a number that a model is writing ends: which next tokens make another number of it.

Tokens are read as they stand after a digit, since some tokenizers drop the blank of a token
that is decoded alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from faithscope.interp.language import Speaks

NUMBER_ENDS = 3
"""Version of where a scored number ends; raised where scores of numbers come to be others."""
CALCULATION = re.compile(
    r"[ \t]+(?:[*/−-](?![^\W\d]|\*)|x(?![\w-])|\\(?:times|div|cdot))|[ \t]*[+×÷=]"
)
"""What makes a number that stands right before it an operand: ` * 60` after "3". The answer is
what the calculation comes to. `**` ends an emphasis."""
SCALES = "hundred|thousand|million|billion|trillion|lakh|crore"
"""Words that multiply the number before them: "2 million"."""
SCALE_SIGNS = "[万萬亿億만억]|[百千천](?![克米瓦卡])"
"""Characters that multiply the number before them: 3万, but not 5千克 (kilograms)."""
SCALE_LETTERS = "[kKMBb]|[mb]n"
"""Letters that multiply an amount of money ("$5k"), as "m" does; "5k" alone may be kilos, too."""
VULGAR, RAISED = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺"
"""Fractions in one character, and the characters of exponents: "2½", "10³"."""
VARIABLES = "xyzwuvnqrijabcπθ"
"""Letters that stand for a factor right behind a number: "2x"."""
COMMANDS = (
    "sqrt|pi|[dt]?frac|log|ln|exp|sin|cos|tan|theta|alpha|beta|lambda|mu|infty|d?binom|pm|mp"
    "|varphi|phi|omega|sigma|mod|bmod|pmod"
)
r"""LaTeX commands that make the number before them a part of a formula: `5\sqrt{2}`."""
_MONEY = re.compile(r"[$€£¥₹₩฿]\s?-?[\d.,]+\Z")
_MILLION = r"m(?![\w'’-])"
_TO_COME = (
    (r"[,./:_*(–—−-]|\*\*|[ \u2009\u202f\u00a0]|[至到和と]", r"\d"),
    (r" ?\^\{?", r" ?\{?(?:[-+]?\d|[-+]\Z)"),
    (r"[eE]", r"[-+]?\d|[-+]\Z"),
    (r" ?\\", rf"(?:times|cdot|div|{COMMANDS})(?![a-z])"),
    (r" (?:or|to|and)", r" ?\$?\d| \$?\Z"),
)
"""Text of a token that may stand behind a number, and what that of the next one then begins with
where the two make it a part of something else: "70" + "," + "000", "3" + " to" + " 5"."""
_GOES_ON = re.compile(
    "|".join(
        (
            rf"\d|{CALCULATION.pattern}",
            *(f"(?:{one})(?:{other})" for one, other in _TO_COME),
            rf"\s?(?:{SCALES}|dozen)s?(?![\w-])|\s?(?:{SCALE_SIGNS})|\s?[{VULGAR}√π∞±‰]|[{RAISED}]",
            rf"(?:{SCALE_LETTERS}|[{VARIABLES}]|st|nd|rd|th)(?![\w'’-])",
        )
    )
)
"""What a token begins with that makes the number right before it a part of something else."""


@dataclass(frozen=True, eq=False)
class TokenSet:
    """Next tokens of which any may follow."""

    ids: Tensor
    _there: dict[torch.device, Tensor] = field(default_factory=dict, init=False, repr=False)
    """The ids on each device that has asked for them."""

    def logsumexp(self, logits: Tensor, rows: Tensor) -> Tensor:
        """The logsumexp of these ids' logits in rows of (A, V); minus infinity where there are no
        ids."""
        import torch

        from faithscope.interp.placement import sent

        device = logits.device
        if device not in self._there:
            self._there[device] = sent(self.ids, device)
        # by both indices at once: whole rows of logits are not copied
        return torch.logsumexp(logits[rows[:, None], self._there[device]], -1)


Continuation = tuple[tuple[int, ...], TokenSet | int]
"""Tokens that follow a label, and the next one, or those of which any then may."""


@dataclass(frozen=True)
class NumberEnds:
    """Tokens behind a number that make another number of it, or an operand, or a part of a range.

    A digit always does; a comma, a point or a blank only where a digit follows it, in the same
    token or in the next: "70, and" and "70." leave 70 as it is.
    """

    longer: TokenSet
    """Ids that do so by themselves."""
    millions: TokenSet
    """Ids that do so behind an amount of money alone: "$5" + "m"; "5" + "m" are metres."""
    to_come: tuple[Continuation, ...]
    """Ids that do so if one of a set follows."""

    @classmethod
    def of(cls, language: Speaks, n_ids: int) -> NumberEnds:
        """The ends of numbers among a tokenizer's first `n_ids` ids."""
        # Not at the top: reading answers, which needs the patterns, need not wait for torch.
        import torch

        anchor = language.encode("1")[-1]
        base = language.decode([anchor])
        after = language.tokenizer.batch_decode(
            [[anchor, i] for i in range(n_ids)],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        texts = [text[len(base) :] for text in after]

        def where(pattern: str | re.Pattern[str], *, whole: bool = False) -> list[int]:
            compiled = re.compile(pattern)
            matches = compiled.fullmatch if whole else compiled.match
            return [i for i, text in enumerate(texts) if matches(text)]

        def token_set(ids: list[int]) -> TokenSet:
            return TokenSet(torch.tensor(ids, dtype=torch.long))

        to_come: list[Continuation] = []
        for one, other in _TO_COME:
            following = token_set(where(other))
            if len(following.ids):
                to_come += [((i,), following) for i in where(one, whole=True)]
        return cls(token_set(where(_GOES_ON)), token_set(where(_MILLION)), tuple(to_come))

    def continuations(self, text: str) -> Iterator[Continuation]:
        """Every way in which the number that `text` ends with becomes another; no two overlap."""
        by_itself = [self.longer, *([self.millions] if _MONEY.search(text) else [])]
        yield from (((), ids) for ids in by_itself if len(ids.ids))
        yield from self.to_come
