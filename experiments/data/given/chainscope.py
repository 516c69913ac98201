"""Reader of chainscope's responses (arXiv 2503.08679): YES/NO questions, several samples of each.

The repository keeps a file of responses for each model and set of questions, and the questions and
the instructions apart, in `questions/` and `instructions.yaml` of the folder that holds
`cot_responses/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from faithscope.experiments.data.given.cells import parsed, text
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.tasks.sources.files import rows_in
from faithscope.experiments.data.tasks.sources.rows import SourceRow, columns_called, usable
from faithscope.interp.errors import UserError

_RESPONSES, _PARAMS = "responses-by-qid", "ds-params"
_QUESTIONS, _INSTRUCTIONS = "question_by_qid", "instructions.yaml"
_PLACE = "{question}"


def chains(row: SourceRow) -> Iterator[GivenChain]:
    """The chains of one file: every response to every question, whose right answer is that of its
    set.

    Raises:
        UserError: the file of the questions is not there, a question is not in it, or a response is
            no text.
    """
    about = parsed(row, _PARAMS, dict)
    name = _set_of(about, row)
    file = Path(row.cells.file)
    asked = _questions(_beside(file, name, row), row.where)
    instruction = _instruction(file, text(row, "instr-id"))
    model = text(row, "model-id") or ""
    for qid, responses in parsed(row, _RESPONSES, dict).items():
        where = f"{row.where}, question {qid}"
        if qid not in asked:
            raise UserError(f"{where}: is none of the questions of {name}; give the file it is in")
        question = usable(asked[qid].get("q_str"), "its 'q_str'", SourceRow(qid, {}, where))
        if not isinstance(responses, Mapping):
            raise UserError(f"{where}: its responses are no object; give one text by sample")
        for sample, said in responses.items():
            place = f"{where}, response {sample}"
            if not isinstance(said, str):
                raise UserError(f"{place}: is a {type(said).__name__}; give a text")
            yield GivenChain(
                id=f"{qid}.{sample}",
                dataset=str(about.get("prop-id", "chainscope")),
                question=question,
                reasoning=said,
                kind="label",
                options=("YES", "NO"),
                gold=str(about["answer"]),
                model=model,
                prompt=None if instruction is None else instruction.replace(_PLACE, question),
                where=place,
            )


def _set_of(about: Mapping[str, Any], row: SourceRow) -> str:
    """Name of the set of questions: `animals-speed_gt_NO_1_e497e70b`."""
    parts = [about.get(n) for n in ("prop-id", "comparison", "answer", "max-comparisons", "uuid")]
    if None in parts or str(about.get("answer")) not in ("YES", "NO"):
        raise UserError(
            f"{row.where}: {_PARAMS!r} do not name the set of questions by prop-id, comparison, "
            "answer (YES or NO), max-comparisons and uuid; give the file as it was released"
        )
    return "_".join(map(str, parts))


def _beside(file: Path, name: str, row: SourceRow) -> Path:
    of_kind = "_".join(name.rsplit("_", 4)[1:4])
    places = [folder / "questions" / of_kind / f"{name}.yaml" for folder in file.resolve().parents]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UserError(
            f"{row.where}: its questions are in another file of the repository, "
            f"questions/{of_kind}/{name}.yaml, which is in no folder above this one; put the "
            "folder 'questions' beside 'cot_responses'"
        )
    return found


@lru_cache(maxsize=64)
def _questions(file: Path, where: str) -> Mapping[str, Mapping[str, Any]]:
    for row in rows_in(file):
        return parsed(row, _QUESTIONS, dict)
    raise UserError(f"{where}: {file} holds no questions; give it as it was released")


def _instruction(file: Path, name: str | None) -> str | None:
    """The words around a question, if the repository's file of instructions is there."""
    for folder in file.resolve().parents:
        if (place := folder / _INSTRUCTIONS).is_file():
            held = next(iter(rows_in(place))).cells.plain.get(name or "")
            words = held.get("cot") if isinstance(held, Mapping) else None
            return words.strip() if isinstance(words, str) and _PLACE in words else None
    return None


def _is_one(row: Mapping[str, Any]) -> bool:
    about = SourceRow("", row, "")
    return all(columns_called(about, name) for name in (_RESPONSES, _PARAMS))


CHAINSCOPE = Reader(
    "chainscope",
    "chainscope's responses (.yaml): YES/NO questions, several samples of each",
    _is_one,
    lambda rows: (chain for row in rows for chain in chains(row)),
)
