"""Token ids of a label or a number after a cue, looked up once for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faithscope.interventions import written

if TYPE_CHECKING:
    from faithscope.interp.model import Model


class LabelTokens:
    """A cache of the ids of labels and numbers in a model's tokens."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._known: dict[tuple[tuple[int, ...], str], tuple[int, ...]] = {}

    def after(self, before: tuple[int, ...], text: str) -> tuple[int, ...]:
        """Ids that read as `text` after `before`.

        Raises:
            ValueError: the tokenizer has no such ids.
        """
        if (before, text) not in self._known:
            encoded = written(text, before, self.model.encode, self.model.pieces)
            if encoded is None:
                raise ValueError(
                    f"{self.model.name}: its tokenizer gives no ids that read as {text!r} after "
                    f"the cue {self.model.decode(before)!r}; give the form another cue"
                )
            self._known[before, text] = encoded[0]
        return self._known[before, text]
