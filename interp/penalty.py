"""Repetition penalty of batched decoding.

As in arXiv 1909.05858 (CTRL, section 4.1) and transformers' `RepetitionPenaltyLogitsProcessor`:
the logit of every token that stands in the prompt or in what was written is divided by the
penalty where positive, multiplied by it where negative. vLLM counts the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from faithscope.interp.lockstep import Choose


class Penalty:
    """The tokens seen so far in each of several prompts, whose next logits it penalises."""

    def __init__(self, prompts: Sequence[Sequence[int]], penalty: float) -> None:
        self._prompts, self._penalty = prompts, penalty
        self._written: dict[int, list[int]] = {}
        # (V,) bool of the tokens seen, of the rows of the latest call alone
        self._seen: dict[int, Tensor] = {}

    def before(self, choose: Choose) -> Choose:
        """`choose` on penalised (B, V) float32 logits; the tokens it chooses then count as seen."""

        def chosen(logits: Tensor, rows: list[int]) -> Tensor:
            self._seen = {r: self._of(r, logits) for r in rows}
            seen = torch.stack([self._seen[r] for r in rows])
            x = logits.float()
            tokens = choose(
                torch.where(seen, torch.where(x < 0, x * self._penalty, x / self._penalty), x),
                rows,
            )
            for row, token in zip(rows, tokens.tolist(), strict=True):
                self._seen[row][token] = True
                self._written.setdefault(row, []).append(token)
            return tokens

        return chosen

    def _of(self, row: int, logits: Tensor) -> Tensor:
        if row in self._seen:
            return self._seen[row]
        seen = torch.zeros(logits.shape[-1], dtype=torch.bool, device=logits.device)
        ids = [*self._prompts[row], *self._written.get(row, ())]
        seen[torch.as_tensor(ids, device=logits.device)] = True
        return seen
