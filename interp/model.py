"""`Model`: one open model, its tokenizer, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from jaxtyping import Float
from torch import Tensor

from faithscope.interp import answer, doors, generate, lens, likelihood, read
from faithscope.interp.answer import Boundary
from faithscope.interp.answered import Answered
from faithscope.interp.edits import Edit, Site
from faithscope.interp.execute import Execution
from faithscope.interp.forest import Branch
from faithscope.interp.generation import Generation
from faithscope.interp.likelihood import Likelihoods
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.read import ForestRun

if TYPE_CHECKING:
    from nnsight.modeling.transformers import TransformersModel
    from transformer_lens.model_bridge import TransformerBridge


class Model(LoadedModel):
    """A loaded causal language model. Made by `interp.load`."""

    def run(
        self,
        branches: Sequence[Branch],
        *,
        rows: bool = False,
        residuals: bool = False,
        sites: Sequence[Site] = (),
        logits: bool = True,
        execution: Execution = "auto",
    ) -> ForestRun:
        """Read branches at their asked positions; see `interp.read.read`."""
        return read.read(
            self,
            branches,
            rows=rows,
            residuals=residuals,
            sites=sites,
            logits=logits,
            execution=execution,
        )

    def likelihood(
        self,
        sequences: Sequence[Sequence[int]],
        starts: Sequence[int],
        *,
        execution: Execution = "auto",
    ) -> Likelihoods:
        """Log-probs and entropies of the tokens of texts; see `interp.likelihood.likelihood`."""
        return likelihood.likelihood(self, sequences, starts, execution=execution)

    def ask(
        self,
        prefixes: Sequence[Sequence[int]],
        labels: Sequence[Sequence[Sequence[int]]] | None = None,
        max_new_tokens: int | Sequence[int] = 0,
        *,
        stop: Callable[[str], bool] | None = None,
        boundary: Boundary | None = None,
        edits: Sequence[Sequence[Edit]] | None = None,
        repeat: Sequence[int] = (),
        execution: Execution = "auto",
    ) -> list[Answered]:
        """Score labels and decode answers after prefixes; see `interp.answer.ask`."""
        return answer.ask(
            self,
            prefixes,
            labels,
            max_new_tokens,
            stop=stop,
            boundary=boundary,
            edits=edits,
            repeat=repeat,
            execution=execution,
        )

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        max_new_tokens: int | Sequence[int] = 512,
        *,
        temperature: float = 0.0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        seed: int | Sequence[int] = 0,
        end_ids: frozenset[int] | None = None,
        stop: Callable[[str], bool] | None = None,
        on_done: Callable[[int, Generation], None] | None = None,
    ) -> list[Generation]:
        """Continue every prompt; see `interp.generate.generate`."""
        return generate.generate(
            self,
            prompts,
            max_new_tokens,
            temperature=temperature,
            top_p=top_p,
            repetition_penalty=repetition_penalty,
            seed=seed,
            end_ids=end_ids,
            stop=stop,
            on_done=on_done,
        )

    def lens(
        self, residuals: Float[Tensor, "*A D"], options: Sequence[int] | None = None
    ) -> Float[Tensor, "*A V"]:
        """Logit lens of residual streams; see `interp.lens.lens`."""
        return lens.lens(self, residuals, options)

    def to_transformer_lens(self, **options: Any) -> TransformerBridge:
        """A TransformerLens bridge over these weights; see `interp.doors`."""
        return doors.to_transformer_lens(self, **options)

    def to_nnsight(
        self, *, attention: Literal["sdpa", "eager"] | None = None, **options: Any
    ) -> TransformersModel:
        """An nnsight model over these weights; see `interp.doors`."""
        return doors.to_nnsight(self, attention=attention, **options)
