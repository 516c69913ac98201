"""GSM8K: grade-school word problems (Cobbe et al., 2021; SLRC, 4.6), from the hub or a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from experiments.numbers import canonical_number
from experiments.tasks.files import Row, column, read_rows
from experiments.tasks.numeric import number_task
from experiments.tasks.task import LoadSettings
from interp.errors import UserError
from interventions.trace import Question

HUB_NAME = "openai/gsm8k"
CONFIG = "main"
SPLIT = "test"

_FINAL = re.compile(r"####\s*(\S.*?)\s*$")
_WORKED = re.compile(r"<<[^<>]*=([^<>=]*)>>")


def load(settings: LoadSettings) -> Iterator[Question]:
    """The problems in their own order; ids are the split (or file) and the row's number.

    The gold answer follows `####`; the results on the way (`<<16-3-4=9>>9`) become
    candidates for the scored reading.

    Raises:
        UserError: the data cannot be read, or a row is not laid out like GSM8K's.
    """
    split = settings.split or SPLIT
    rows = read_rows(settings.path, split) if settings.path else _from_hub(split)
    where = settings.path or HUB_NAME
    for item, row in rows[: settings.limit]:
        yield question(item, row, f"{where}: {item}")


def question(item: str, row: Row, where: str) -> Question:
    """One row (`question`, `answer`) as a question.

    Raises:
        UserError: a column is missing, or the answer has no number after `####`.
    """
    answer = str(column(row, ("answer",), where))
    final = _FINAL.search(answer)
    gold = canonical_number(final[1] if final else answer if len(answer) < 20 else "")
    if gold is None:
        raise UserError(f"{where}: no number after '####' in the answer {answer[-40:]!r}")
    on_the_way = [canonical_number(result) for result in _WORKED.findall(answer)]
    return Question(
        id=item,
        dataset="gsm8k",
        text=str(column(row, ("question",), where)).strip(),
        kind="number",
        gold=gold,
        candidates=tuple(dict.fromkeys(n for n in on_the_way if n is not None and n != gold)),
    )


def _from_hub(split: str) -> list[tuple[str, Row]]:
    try:
        from datasets import load_dataset  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError(
            f"task 'gsm8k' reads {HUB_NAME} through the datasets package: "
            "pip install 'faithscope[data]', or give a local file: --set data.path=FILE"
        ) from error
    try:
        rows = load_dataset(HUB_NAME, CONFIG, split=split)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"could not load {HUB_NAME} (config {CONFIG}, split {split}) from the hub: "
            f"{type(error).__name__}: {reason}; give a local file: --set data.path=FILE"
        ) from error
    return [(f"{split}-{i}", dict(row)) for i, row in enumerate(rows)]  # pyright: ignore


GSM8K = number_task("gsm8k", "GSM8K word problems, from the hub or data.path", load)
