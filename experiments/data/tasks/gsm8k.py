"""GSM8K: grade-school word problems (Cobbe et al., 2021; SLRC, 4.6), from the hub or a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks.kinds import number_task
from faithscope.experiments.data.tasks.sources.hub import HubData
from faithscope.experiments.data.tasks.sources.rows import Row, column, text_of
from faithscope.experiments.data.tasks.task import LoadSettings
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

DATA = HubData("gsm8k", "openai/gsm8k", "test", "main")

_FINAL = re.compile(r"####\s*(\S.*?)\s*$")
_WORKED = re.compile(r"<<[^<>]*=([^<>=]*)>>")


def load(settings: LoadSettings) -> Iterator[Question]:
    """The problems in their own order; ids are the split (or file) and the row's number.

    The gold answer follows `####`; the results on the way (`<<16-3-4=9>>9`) become
    candidates for the scored reading.

    Raises:
        UserError: the data cannot be read, or a row is not laid out like GSM8K's.
    """
    return map(question, DATA.rows(settings))


def question(row: Row) -> Question:
    """One row (`question`, `answer`) as a question.

    Raises:
        UserError: a column is missing, or the answer has no number after `####`.
    """
    answer = str(column(row, ("answer",)))
    final = _FINAL.search(answer)
    gold = canonical_number(final[1] if final else answer if len(answer) < 20 else "")
    if gold is None:
        raise UserError(
            f"{row.where}: no number after '####' in the answer {answer[-40:]!r}; end it with one"
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
