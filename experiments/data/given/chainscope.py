"""Reader of chainscope's files (arXiv 2503.08679): YES/NO questions, several samples of each.

The repository keeps a file of responses for each model and set of questions, and the questions and
the instructions apart, in `questions/` and `instructions.yaml` of the folder that holds
`cot_responses/`. Its files of faithfulness hold, by question, the responses that it calls faithful,
unfaithful and neither, and those to the reversed question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from faithscope.experiments.data.given.cells import parsed, text
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.tasks.sources.files import rows_in
from faithscope.experiments.data.tasks.sources.rows import SourceRow, columns_called, each, usable
from faithscope.interp.errors import UserError

_RESPONSES, _PARAMS = "responses-by-qid", "ds-params"
_QUESTIONS, _INSTRUCTIONS = "question_by_qid", "instructions.yaml"
_PLACE = "{question}"
_UNFAITHFUL = {
    "faithful_responses": False,
    "unfaithful_responses": True,
    "unknown_responses": None,
}
_REVERSED = ("reversed_q_correct_responses", "reversed_q_incorrect_responses")
_OPTIONS = ("YES", "NO")


def chains(row: SourceRow) -> Iterator[GivenChain]:
    """The chains of one file: every response to every question.

    Raises:
        UserError: a part is missing or is not what it is in a released file.
    """
    return _judged(row) if _is_judged(row.cells.plain) else _responses(row)


def _judged(row: SourceRow) -> Iterator[GivenChain]:
    """The chains of a file of faithfulness, with the label `unfaithful` where it has a verdict.

    Its name is the set's, and its folder's is the model's.
    """
    model = Path(row.cells.file).parent.name
    for qid in row.values:
        held, where = parsed(row, qid, dict), f"{row.where}, question {qid}"
        about = held.get("metadata")
        if not isinstance(about, Mapping) or about.get("answer") not in _OPTIONS:
            raise UserError(f"{where}: has no 'metadata' with an answer YES or NO; give it whole")
        answer = str(about["answer"])
        of_question = _Asked(qid, about.get("q_str"), answer, held.get("prompt"), model, where)
        place, turned_place = (
            _in_pair({"x_name": about.get(x), "y_name": about.get(y)}, about)
            for x, y in (("x_name", "y_name"), ("y_name", "x_name"))
        )
        for name, unfaithful in _UNFAITHFUL.items():
            labels = {} if unfaithful is None else {"unfaithful": unfaithful}
            for one in of_question.chains(held.get(name) or {}, about.get("prop_id"), labels):
                yield replace(one, **place)
        (other,) = set(_OPTIONS) - {answer}
        turned = _Asked(
            str(about.get("reversed_q_id")), about.get("reversed_q_str"), other, None, model, where
        )
        for name in _REVERSED:
            for one in turned.chains(about.get(name) or {}, about.get("prop_id"), {}):
                yield replace(one, **turned_place)


@dataclass(frozen=True)
class _Asked:
    """One question, its right answer, and the words and the model that it was asked in."""

    qid: str
    text: Any
    gold: str
    prompt: str | None
    model: str
    where: str

    def chains(
        self, responses: Any, dataset: Any, labels: Mapping[str, Any]
    ) -> Iterator[GivenChain]:
        """A chain for each of some responses, by sample: a text, or an object with one."""
        if not isinstance(responses, Mapping):
            raise UserError(f"{self.where}: its responses are no object; give one by sample")
        for sample, said in responses.items():
            place = f"{self.where}, response {sample}"
            of = said if isinstance(said, Mapping) else {"response": said}
            if not isinstance(text := of.get("response"), str):
                raise UserError(f"{place}: is a {type(text).__name__}; give a text")
            answer = str(of.get("final_answer"))
            yield GivenChain(
                id=self.qid,
                sample=str(sample),
                dataset=str(dataset or "chainscope"),
                question=usable(self.text, "its text", SourceRow(self.qid, {}, place)),
                reasoning=text,
                kind="label",
                options=_OPTIONS,
                gold=self.gold,
                answer=answer if answer in _OPTIONS else None,
                model=self.model,
                prompt=self.prompt,
                labels=labels,
                where=place,
            )


def _responses(row: SourceRow) -> Iterator[GivenChain]:
    """The chains of a file of responses, whose right answer is that of its set.

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
        question = str(asked[qid].get("q_str") or "")
        prompt = None if instruction is None else instruction.replace(_PLACE, question)
        of_question = _Asked(qid, question, str(about["answer"]), prompt, model, where)
        pair = _in_pair(asked[qid], about)
        for one in of_question.chains(responses, about.get("prop-id"), {}):
            yield replace(one, **pair)


def _in_pair(question: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """The place of a question in its pair: the same two things are compared in either order."""
    names = [str(question.get(name) or "") for name in ("x_name", "y_name")]
    if not all(names):
        return {}
    of = about.get("prop-id", about.get("prop_id"))
    pair = f"{of} {about['comparison']}: {' / '.join(sorted(names))}"
    return {"pair": pair, "condition": "forward" if names == sorted(names) else "reversed"}


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


def _is_judged(row: Mapping[str, Any]) -> bool:
    held = list(row.values())
    return bool(held) and all(
        isinstance(of, Mapping) and "metadata" in of and _UNFAITHFUL.keys() & of.keys()
        for of in held
    )


def _is_one(row: Mapping[str, Any]) -> bool:
    about = SourceRow("", row, "")
    has_responses = all(columns_called(about, name) for name in (_RESPONSES, _PARAMS))
    return has_responses or _is_judged(row)


CHAINSCOPE = Reader(
    "chainscope",
    "chainscope's files (.yaml): YES/NO questions, several samples of each, with its verdicts",
    _is_one,
    lambda rows: (one for made in each(rows, lambda row: [*chains(row)]) for one in made),
)
