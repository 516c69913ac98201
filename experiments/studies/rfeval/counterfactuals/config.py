"""What a run is told about having r′ written: the benchmark built (RFEval, 3.2 and B.3)."""

from __future__ import annotations

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.base import Section
from faithscope.experiments.config.judge import JudgeName


class CounterfactualConfig(Section):
    """Who writes r′ for the items of the data, and who decides which of it is fit."""

    written: StrictBool = False
    """Whether r′ is written: the items of the data need none then, and what they have of it is
    shown as an example at most."""
    writer: JudgeName | None = None
    """The model that writes; the paper's is api:openai/o3."""
    validator: JudgeName | None = None
    """Who holds each r′ against the four criteria; only what meets all becomes an item. The
    paper's is api:openai/gpt-5."""
    temperature: StrictFloat = Field(default=1.0, ge=0)
    """Of the writer, which writes once; models that know no temperature are not sent any. All
    else of how both are asked, the validator's temperature too, is `judge`'s."""
    shots: StrictInt = Field(default=3, ge=0)
    """Examples in each request, of the item's task, of its source where there are enough."""
    examples: StrictStr | None = None
    """A file or folder of items with r′ that examples are taken from; null takes other items of
    the data, which then have to have one."""

    @model_validator(mode="after")
    def _both_where_it_is_written(self) -> CounterfactualConfig:
        for name in ("writer", "validator"):
            if self.written and getattr(self, name) is None:
                raise ValueError(
                    f"written: true needs a {name}; name a model, as {name}: api:openai/o3"
                )
        return self
