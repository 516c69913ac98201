"""What is kept of the logits of a forward: log-probs of next tokens, and leads.

It is computed where the logits are, and comes to the host in one transfer.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

from faithscope.interp.execute import check_greatest
from faithscope.interp.leads import Lead
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.number_ends import TokenSet
from faithscope.interp.placement import Fetch, sent, sent_together

K = TypeVar("K", bound=Hashable)


class Kept(Generic[K]):
    """Log-probs of next tokens, and leads, of the named rows of (A, V) logits.

    All single tokens are read in one call, each token set in another, and all leads in one.
    """

    def __init__(
        self,
        model: LoadedModel,
        logits: Tensor,
        rows: Sequence[K],
        tokens: Mapping[K, Collection[int | TokenSet]],
        led: Collection[K] = (),
    ) -> None:
        """
        Args:
            rows: (A,) the name of each row.
            tokens: name -> the next tokens and token sets that are scored after it.
            led: names of the rows whose leads are wanted.
        """
        self._model = model
        self._scored = [name for name in rows if name in tokens]
        self._led = [name for name in rows if name in led]
        self._singles: list[tuple[int, int]] = []
        self._sets: dict[TokenSet, list[int]] = {}
        for i, name in enumerate(self._scored):
            for token in tokens[name]:
                if isinstance(token, TokenSet):
                    self._sets.setdefault(token, []).append(i)
                else:
                    self._singles.append((i, token))
        of_scored, of_led = (
            [i for i, name in enumerate(rows) if name in of] for of in (tokens, led)
        )
        places = [of_scored, of_led, *zip(*self._singles, strict=True), *self._sets.values()]
        at = sent_together([torch.tensor(x, dtype=torch.long) for x in places], logits.device)
        found: list[Tensor] = []
        if self._scored:
            # an index copies the logits, (A, V) floats
            own = logits if len(self._scored) == len(rows) else logits.index_select(0, at[0])
            own = own.float()
            totals = torch.logsumexp(own, -1)
            found.append(totals)
            if self._singles:
                found.append(own[at[2], at[3]] - totals[at[2]])
            for token_set, of_set in zip(self._sets, at[-len(self._sets) :], strict=False):
                found.append(token_set.logsumexp(own, of_set) - totals[of_set])
            del own
        if self._led:
            own = logits if len(self._led) == len(rows) else logits.index_select(0, at[1])
            own = own.float()
            found += [own.argmax(-1), own.topk(2).values]
        self._found = Fetch(found) if found else None

    def read(
        self, scores: dict[K, Mapping[int | TokenSet, float]], leads: dict[K, Lead] | None = None
    ) -> None:
        """Add name -> token -> its log-prob (nats) to `scores`, and name -> lead to `leads`.

        Raises:
            FloatingPointError: a logit is NaN or infinite (`execute.check_finite`).
        """
        found = iter(self._found.read() if self._found else ())
        of_rows: list[dict[int | TokenSet, float]] = [{} for _ in self._scored]
        if self._scored:
            # a logsumexp is NaN or infinite where a logit is
            check_greatest(self._model, next(found))
        if self._singles:
            for (i, token), x in zip(self._singles, next(found).tolist(), strict=True):
                of_rows[i][token] = x
        for token_set, of_set in self._sets.items():
            for i, x in zip(of_set, next(found).tolist(), strict=True):
                of_rows[i][token_set] = x
        scores.update(zip(self._scored, of_rows, strict=True))
        if self._led and leads is not None:
            candidates, best = found
            check_greatest(self._model, best[:, 0])
            of_led = map(Lead, candidates.tolist(), (best[:, 0] - best[:, 1]).tolist())
            leads.update(zip(self._led, of_led, strict=True))


def rows_of(logits: Tensor, at: Sequence[int]) -> Tensor:
    """Rows of (A, V) logits; all of them, in order, are not copied."""
    if list(at) == list(range(len(logits))):
        return logits
    return logits.index_select(0, sent(torch.tensor(at, dtype=torch.long), logits.device))
