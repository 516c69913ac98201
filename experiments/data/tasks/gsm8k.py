"""GSM8K: grade-school word problems (Cobbe et al., 2021; SLRC, 4.6), from the hub or a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks.kinds import number_task
from faithscope.experiments.data.tasks.sources.hub import HubData
from faithscope.experiments.data.tasks.sources.rows import SourceRow, column, text_of
from faithscope.experiments.data.tasks.task import LoadSettings
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

DATA = HubData("gsm8k", "openai/gsm8k", "test", "main")

_FINAL = re.compile(r"####[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_WORKED = re.compile(r"<<[^<>]*=([^<>=]*)>>")


def load(settings: LoadSettings) -> Iterator[Question]:
    """The problems in the data's order; ids are the split (or file) and the row's number.

    The gold answer follows `####`; intermediate results (`<<16-3-4=9>>9`) become candidates for the
    scored reading.

    Raises:
        UserError: the data cannot be read, or a row is not laid out like GSM8K's.
    """
    return map(question, DATA.rows(settings))


def question(row: SourceRow) -> Question:
    """The question of one row (`question`, `answer`).

    Raises:
        UserError: a column is missing, or the text after `####` in the answer is not one number.
    """
    answer = str(column(row, ("answer",)))
    finals = _FINAL.findall(answer) or ([answer] if len(answer) < 20 else [])
    golds = {canonical_number(final) for final in finals}
    gold = golds.pop() if len(golds) == 1 else None
    if gold is None:
        what = "several numbers" if len(golds) > 1 else "no number"
        raise UserError(
            f"{row.where}: {what} after '####' in the answer {answer[-40:]!r}; end it with one "
            "that can be read whole, as in '#### 18'"
        )
    on_the_way = [canonical_number(result) for result in _WORKED.findall(answer)]
    return Question(
        id=row.id,
        dataset="gsm8k",
        text=text_of(row, ("question",)),
        kind="number",
        gold=gold,
        candidates=tuple(dict.fromkeys(n for n in on_the_way if n is not None and n != gold)),
    )


GSM8K = number_task("gsm8k", f"grade-school word problems ({DATA.summary})", load)
