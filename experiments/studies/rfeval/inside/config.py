"""What a run is told about looking inside models that r′ is forced on."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, StrictInt, StrictStr

from faithscope.experiments.config.base import AnyNumber, OneOrMany, Section
from faithscope.experiments.config.model import ModelName
from faithscope.probes.settings import Execution

Reading = Literal["trace", "attention", "lens"]
Place = Literal["asked", "written"]
CUE = "\n\nThe correct option is"


class InsideConfig(Section):
    """What models show inside between r′ and their answer; see `inside.looking`."""

    model: Annotated[list[ModelName], *AnyNumber] = Field(default=[])
    """Models whose insides are read, of those that wrote the outputs; none leaves this out."""
    signals: Annotated[list[Reading], *OneOrMany] = Field(default=list(get_args(Reading)))
    """`trace`: the options' probabilities through r′ and the continuation; `attention`: where the
    answer looks; `lens`: what each layer would answer."""
    points: StrictInt = Field(default=16, ge=2)
    """Cuts in each part (r′, own reasoning, explanation), equally spaced; a shorter part is cut
    after every token. So many for each part bounds the cost, however long it is."""
    refine: StrictInt = Field(default=16, ge=0)
    """Cuts put between the two where an option was last seen in the lead, again and again until
    the token is found; each time is one more packed call over the text. 0 leaves the turn
    where the equally spaced cuts show it."""
    cue: StrictStr = CUE
    """Put where an option is asked for, after the reasoning is closed; as `scored_stances`."""
    free_cue: StrictStr = "\n\nThe final answer is"
    """The same of items without options."""
    labels: Literal["letters", "words"] = "letters"
    """How an option is scored: by its letter, or by its words, of which long ones weigh less."""
    longest_answer: StrictInt = Field(default=24, ge=1)
    """Most tokens of a free answer that is traced."""
    places: Annotated[list[Place], *OneOrMany] = Field(default=list(get_args(Place)))
    """Where attention and lens are read: `asked`, at the cue after all that stands before the
    answer; `written`, at the token before the answer in the model's own text."""
    execution: Execution = "auto"
    """How forwards are run; `auto` is packed wherever the model allows."""
