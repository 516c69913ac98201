"""Where a number that a model is writing ends: which next tokens make another number of it.

Tokens are read as they stand after a digit, since some tokenizers drop the blank of a token
that is decoded alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from faithscope.interp.language import Speaks

CALCULATION = re.compile(
    r"[ \t]+(?:[*/−-](?![^\W\d]|\*)|x(?![\w-])|\\(?:times|div|cdot))|[ \t]*[+×÷=]"
)
"""What makes a number that stands right before it an operand: ` * 60` after "3". The answer is
what the calculation comes to. `**` ends an emphasis."""
_TAIL = re.compile(r"(?:[0-9][0-9,./]*)?\Z")


@dataclass(frozen=True, eq=False)
class TokenSet:
    """Next tokens of which any may follow."""

    ids: Tensor

    def logsumexp(self, logits: Tensor) -> Tensor:
        """The logsumexp of these ids' (…, V) logits; minus infinity where there are none."""
        import torch

        return torch.logsumexp(logits[..., self.ids.to(logits.device)], -1)


Continuation = tuple[tuple[int, ...], TokenSet]
"""Tokens that follow a label, and the next ones of which any then may."""


@dataclass(frozen=True)
class NumberEnds:
    """Token ids that lengthen a number, or make it the first operand of a calculation.

    A digit always lengthens; a comma, a point or a slash only where a digit follows it, in the
    same token (`joined`) or in the next (`lone`): "70, and" and "70." leave 70 as it is.
    """

    digits: TokenSet
    """Ids whose text begins with a digit."""
    calculates: TokenSet
    """Ids that begin with an operator."""
    joined: Mapping[str, TokenSet]
    """Per separator, ids whose text begins with it and a digit."""
    lone: Mapping[str, tuple[int, ...]]
    """Per separator, ids whose text is nothing else."""

    @classmethod
    def of(cls, language: Speaks, n_ids: int) -> NumberEnds:
        """The ends of numbers among a tokenizer's first `n_ids` ids."""
        # Not at the top: reading answers, which needs the pattern, need not wait for torch.
        import torch

        anchor = language.encode("1")[-1]
        base = language.decode([anchor])
        after = language.tokenizer.batch_decode(
            [[anchor, i] for i in range(n_ids)],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        texts = [text[len(base) :] for text in after]

        def where(pattern: str | re.Pattern[str]) -> TokenSet:
            matches = re.compile(pattern).match
            ids = [i for i, text in enumerate(texts) if matches(text)]
            return TokenSet(torch.tensor(ids, dtype=torch.long))

        return cls(
            digits=where(r"\d"),
            calculates=where(CALCULATION),
            joined={s: where(rf"{re.escape(s)}\d") for s in ",./"},
            lone={s: tuple(i for i, t in enumerate(texts) if t == s) for s in ",./"},
        )

    def continuations(self, text: str) -> Iterator[Continuation]:
        """Every way in which the number that `text` ends with becomes another; no two overlap.

        A number that has a point or a slash in it already ends there: "3.5." or "1/2, 3".
        """
        tail = _TAIL.search(text)
        number = tail.group() if tail else ""
        separators = "" if not number or {".", "/"} & set(number) else ",."
        one = [self.digits, self.calculates]
        for separator in separators + ("/" if number.isdigit() else ""):
            one.append(self.joined[separator])
            yield from (((token,), self.digits) for token in self.lone[separator])
        yield from (((), ids) for ids in one if len(ids.ids))
