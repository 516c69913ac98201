"""Where the parts of an output lie, and that a cut changes no token of it."""

from __future__ import annotations

import pytest
from chat_tokenizers import MARKED
from test_rfeval_injection import R_PRIME, family
from tiny_models import tiny

from faithscope.experiments.studies.rfeval.inside.layout import before_answer, layout, text_span
from faithscope.experiments.studies.rfeval.subjects.injection import forced
from faithscope.interp.control import encode_marks
from faithscope.interp.model import Model

REASONING, EXPLANATION = "No, it is 5. It is.", "\n\nSo five.\n\n**Answer:** "


def said(model: Model, *, closed: bool = True, answer: str = "B") -> tuple[int, ...]:
    reasoning = model.encode(REASONING)
    if not closed:
        return reasoning
    closer = encode_marks(model.tokenizer, model.format.closer)
    return (*reasoning, *closer, *model.encode(f"{EXPLANATION}{answer}"))


@pytest.mark.parametrize("name", MARKED)
def test_every_cut_keeps_every_token_before_it(name: str) -> None:
    model = family(name)
    start = forced(model, "What is 2 + 3?", R_PRIME)
    written = said(model)
    found = layout(model, start, written)
    whole = (*start.ids, *written)
    n = len(start.prompt.ids)
    grid = found.grid(1000)
    # with as many points as tokens there is a cut after every one but those of the closer
    closer = encode_marks(model.tokenizer, model.format.closer)
    assert found.resumed - found.reasoned == len(closer)
    assert grid == [c for c in range(found.end + 1) if not found.reasoned < c <= found.resumed]
    for cut in grid:
        ids = found.prefix(cut)
        assert ids[: n + cut] == whole[: n + cut]
        assert ids[n + cut :] == (tuple(closer) if cut <= found.reasoned else ())
    for cut in (-1, found.reasoned + 1, found.resumed, found.end + 1):
        with pytest.raises(ValueError, match="closer stands"):
            found.prefix(cut)
    assert found.between(0, found.end) == grid[1:-1]


@pytest.mark.parametrize("name", MARKED)
def test_each_part_ends_where_it_ends(name: str) -> None:
    model = family(name)
    written = said(model)
    found = layout(model, forced(model, "What is 2 + 3?", R_PRIME), written)
    ends = {part: model.decode(ids) for part, ids in found.after_parts.items()}
    bare, closer = model.decode(found.prompt_ids), model.format.closer
    assert list(ends) == ["none", "r_prime", "r", "e", "a"]
    assert ends["none"] == f"{bare}{closer}"
    assert ends["r_prime"] == f"{bare}{R_PRIME}{closer}"
    assert ends["r"] == f"{bare}{R_PRIME}{REASONING}{closer}"
    assert ends["e"] == f"{ends['r']}{EXPLANATION}"
    assert ends["a"] == f"{ends['e']}B"
    texts = {p: model.decode(found.written[a:b]) for p, (a, b) in found.spans.items()}
    assert texts == {"r_prime": R_PRIME, "r": REASONING, "e": EXPLANATION}
    assert found.last == found.end
    cut_off = layout(model, forced(model, "What is 2 + 3?"), written[:3])
    assert list(cut_off.after_parts) == ["none"]


def test_parts_that_are_not_there() -> None:
    model = family("qwen3")
    start = forced(model, "What is 2 + 3?", R_PRIME)
    before = len(start.r_prime_ids)
    bare = layout(model, forced(model, "What is 2 + 3?"), said(model))
    assert bare.n_r_prime == 0
    assert list(bare.spans) == ["r", "e"]
    cut_off = layout(model, start, said(model, closed=False), finished=False)
    assert cut_off.output.outcome == "truncated"
    assert cut_off.spans["r"] == (before, cut_off.end) == (before, cut_off.last)
    assert "e" not in cut_off.spans
    nothing = layout(model, start, ())
    assert nothing.grid(4)[-1] == nothing.last == before
    closer = encode_marks(model.tokenizer, model.format.closer)
    at_once = layout(model, start, (*model.encode("It is 5."), *closer, *model.encode("B")))
    # the answer cannot be told from an explanation: all of it is one
    assert at_once.output.answer == ""
    assert at_once.end == len(at_once.written)


def test_without_marks_all_before_the_answer_is_reasoning() -> None:
    model = tiny("llama")
    start = forced(model, "What?", "So it is 4.")
    found = layout(model, start, model.encode(" Wait, no.\nAnswer: 5"))
    assert model.decode(found.written[slice(*found.spans["r"])]) == " Wait, no.\nAnswer: "
    assert found.reasoned == found.resumed == found.end
    assert found.prefix(found.end) == (*start.prompt.ids, *found.written[: found.end])


def test_points_are_spread_over_each_part_with_its_end() -> None:
    model = family("qwen3")
    found = layout(model, forced(model, "What is 2 + 3?", R_PRIME), said(model))
    grid = found.grid(3)
    for a, b in found.spans.values():
        inside = [c for c in grid if a < c <= b]
        assert len(inside) == 3
        assert inside[-1] == b
    assert grid[0] == 0


def test_an_answer_that_is_a_letter_is_not_found_inside_a_word() -> None:
    model = tiny("llama")
    ids = model.encode("Answer: B\nBecause it is. Bah")
    assert model.decode(before_answer(model, ids, "B")) == "Answer: "
    assert model.decode(before_answer(model, ids, "ecause")) == "Answer: B\nB"
    assert before_answer(model, ids, "Z") == ids


def test_a_span_of_text_reaches_from_the_first_to_the_last_of_several() -> None:
    pieces = ("<s>", "Pas", "sage. ", "Why", "?", " A: x", "\n", "B: y", "<e>")
    assert text_span(pieces, ["Why?", "Passage.", "A: x\nB: y"]) == (1, 8)
    assert text_span(pieces, ["Why?", "", "not there"]) == (3, 5)
    assert text_span(pieces, ["not there", "Why?"]) is None
    assert text_span(pieces, ["", ""]) is None
