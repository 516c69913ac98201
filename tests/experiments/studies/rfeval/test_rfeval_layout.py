"""Layout of RFEval outputs: places of the parts, cuts that change no token, content of traces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from chat_tokenizers import MARKED
from test_rfeval_parsing import R_PRIME, family
from tiny_models import tiny

from faithscope.experiments.studies.rfeval.inside.layout import before_answer, layout, text_span
from faithscope.experiments.studies.rfeval.inside.trace_signals import (
    LENS_SIGNALS,
    POSITIONS,
    TRACE_SIGNALS,
    Traced,
    led_to,
    lens_signals,
    signals,
    trace_signals,
    turn,
)
from faithscope.experiments.studies.rfeval.subjects.subjects import forced
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
    parts = layout(model, start, written)
    whole = (*start.ids, *written)
    n = len(start.prompt.ids)
    grid = parts.grid(1000)
    # with as many points as tokens there is a cut after every one but those of the closer
    closer = encode_marks(model.tokenizer, model.format.closer)
    assert parts.resumed - parts.reasoned == len(closer)
    assert grid == [c for c in range(parts.end + 1) if not parts.reasoned < c <= parts.resumed]
    for cut in grid:
        ids = parts.prefix(cut)
        assert ids[: n + cut] == whole[: n + cut]
        assert ids[n + cut :] == (tuple(closer) if cut <= parts.reasoned else ())
    for cut in (-1, parts.reasoned + 1, parts.resumed, parts.end + 1):
        with pytest.raises(ValueError, match="closer stands"):
            parts.prefix(cut)
    assert parts.between(0, parts.end) == grid[1:-1]


@pytest.mark.parametrize("name", MARKED)
def test_each_part_ends_where_it_ends(name: str) -> None:
    model = family(name)
    written = said(model)
    parts = layout(model, forced(model, "What is 2 + 3?", R_PRIME), written)
    ends = {part: model.decode(ids) for part, ids in parts.after_parts.items()}
    bare, closer = model.decode(parts.prompt_ids), model.format.closer
    assert list(ends) == ["none", "r_prime", "r", "e", "a"]
    assert ends["none"] == f"{bare}{closer}"
    assert ends["r_prime"] == f"{bare}{R_PRIME}{closer}"
    assert ends["r"] == f"{bare}{R_PRIME}{REASONING}{closer}"
    assert ends["e"] == f"{ends['r']}{EXPLANATION}"
    assert ends["a"] == f"{ends['e']}B"
    texts = {p: model.decode(parts.written[a:b]) for p, (a, b) in parts.spans.items()}
    assert texts == {"r_prime": R_PRIME, "r": REASONING, "e": EXPLANATION}
    assert parts.last == parts.end
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
    parts = layout(model, start, model.encode(" Wait, no.\nAnswer: 5"))
    assert model.decode(parts.written[slice(*parts.spans["r"])]) == " Wait, no.\nAnswer: "
    assert parts.reasoned == parts.resumed == parts.end
    assert parts.prefix(parts.end) == (*start.prompt.ids, *parts.written[: parts.end])


def test_points_are_spread_over_each_part_with_its_end() -> None:
    model = family("qwen3")
    parts = layout(model, forced(model, "What is 2 + 3?", R_PRIME), said(model))
    grid = parts.grid(3)
    for a, b in parts.spans.values():
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


def trace(
    tops: str,
    cuts: list[int],
    *,
    r_prime: int = 4,
    reasoned: int = 8,
    resumed: int = 10,
    **more: Any,
) -> Traced:
    """The named option has .6, the two others .3 and .1 of A, B, C in order."""
    p = []
    for top in tops:
        rest = iter((0.3, 0.1))
        p.append([0.6 if option == top else next(rest) for option in "ABC"])
    coarse = more.get("coarse", [True] * len(cuts))
    return Traced(
        np.array(cuts), np.array(p), np.array(coarse), ("A", "B", "C"), r_prime, reasoned, resumed
    )


CUTS = [0, 2, 4, 6, 8, 12, 14]


def test_a_silent_correction_seen_as_it_happens() -> None:
    # r′ leads to A; the model leaves it in its own reasoning, between tokens 4 and 6
    values = trace_signals(trace("BAABBBB", CUTS), "A", "B")
    assert values["p_before"] == 0.3
    assert values["p_after_r_prime"] == values["p_peak"] == 0.6
    assert values["r_prime_effect"] == pytest.approx(0.3)
    assert values["peak_at"] == 2 / 14
    assert values["final_lead"] == pytest.approx(0.3 - 0.6)
    assert (values["followed"], values["ever_led"], values["flips"]) == (1, 1, 2)
    assert values["last_led"] == 4 / 14
    assert (values["turn"], values["turn_part"], values["turn_within"]) == (6, "r", 2)
    assert values["turn_at"] == 6 / 14
    assert values["turn_own"] == 2 / 10
    # of the ten tokens after r′ it leads along the first two
    assert values["led_share"] == 0.2
    assert values["steepest_fall"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("tops", "answer", "part", "at"),
    [
        ("BABBBBB", "B", "r_prime", 4),
        ("BAABBBB", "B", "r", 6),
        ("BAAAABB", "B", "e", 12),
        ("BAABAAB", "B", "e", 14),  # what turned back once more counts where it turns for good
        ("BAAAAAA", "B", "a", None),
        ("BAAAAAA", "A", "never_turned", None),
        ("BAAAAAA", None, "never_turned", None),
        ("BAAAAAA", "I don't know", "never_turned", None),
        ("ABBBBBB", "B", "never_led", None),
        ("BBBBBBB", "B", "never_led", None),
    ],
)
def test_where_it_turns(tops: str, answer: str | None, part: str, at: int | None) -> None:
    values = turn(trace(tops, CUTS), "A", answer)
    assert (values["turn_part"], values["turn"]) == (part, at)


def test_a_turn_right_after_the_closer_is_known_to_the_token() -> None:
    values = turn(trace("BAAABB", [0, 2, 4, 8, 11, 14]), "A", "B")
    # tokens 9 and 10 are the closer, where nothing is asked
    assert (values["turn"], values["turn_within"], values["turn_part"]) == (11, 1, "e")


def test_flips_and_falls_are_of_the_equally_spaced_cuts() -> None:
    cuts, tops = [0, 2, 4, 5, 6, 8, 12, 14], "BAABABBB"
    coarse = [True, True, True, False, False, True, True, True]
    values = trace_signals(trace(tops, cuts, coarse=coarse), "A")
    assert values["flips"] == 2
    assert values["turn"] == 8
    assert values["led_share"] == (1 + 2) / 10


def test_without_r_prime_or_without_text_of_its_own() -> None:
    bare = trace_signals(trace("BBB", [0, 4, 8], r_prime=0), "A")
    assert bare["p_after_r_prime"] is bare["r_prime_effect"] is bare["followed"] is None
    silent = trace_signals(trace("BA", [0, 4], reasoned=4, resumed=4), "A")
    assert silent["led_share"] is silent["steepest_fall"] is None
    assert silent["turn_part"] == "never_turned"
    assert set(TRACE_SIGNALS) <= set(bare)


def test_curves_go_through_the_cuts_of_their_part() -> None:
    traced = trace("BAABBBA", CUTS)
    assert traced.curve("r_prime", "A") == pytest.approx(
        np.interp(np.linspace(0, 4, POSITIONS), [0, 2, 4], [0.3, 0.6, 0.6])
    )
    # the explanation begins past the closer with what stood at the end of the reasoning
    assert traced.curve("e", "A") == pytest.approx(
        np.interp(np.linspace(10, 14, POSITIONS), [10, 12, 14], [0.3, 0.3, 0.6])
    )
    short = trace("BAA", [0, 2, 4], reasoned=4, resumed=4)
    assert np.isnan(short.curve("r", "A")).all()
    assert list(short.spans()) == ["r_prime"]


def test_where_r_prime_leads_by_the_model_is_the_likeliest_wrong_option_after_it() -> None:
    traced = trace("BBCBBBB", CUTS)  # after r′: C .6, A .3, B .1
    assert led_to(traced, gold="A") == "C"
    assert led_to(traced, gold="C") == "A"


def test_layers_that_lead_to_r_prime_and_are_overruled() -> None:
    p = np.array([[1, 0], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4], [0.1, 0.9]])
    assert lens_signals(p, ("A", "B"), "A") == {
        "lens_peak": 0.7,
        "lens_peak_depth": 0.5,
        "lens_led": 2 / 3,
        "lens_suppressed": 1,
    }
    assert lens_signals(p, ("A", "B"), "B")["lens_suppressed"] == 0
    assert lens_signals(p[:2], ("A", "B"), "A") == dict.fromkeys(LENS_SIGNALS)


def test_a_record_gives_its_signals_for_any_option() -> None:
    whole = trace("BAABBBB", CUTS)
    record = {
        **{"trace": "options", "options": ["A", "B", "C"], "cuts": CUTS, "coarse": [True] * 7},
        **{"p": whole.p.ravel().tolist(), "n_r_prime": 4, "reasoned": 8, "resumed": 10},
    }
    again = Traced.of(record)
    assert again is not None
    assert np.array_equal(again.p, whole.p)
    assert signals(record, "A", "B")["turn"] == 6
    assert signals(record, "C", "B")["turn_part"] == "never_led"
    assert "lens_led" not in signals(record, "A", "B")
    lens = record | {"asked_lens_p": [0.1, 0.2, 0.7] * 4}
    assert signals(lens, "C", None)["lens_led"] == 1
    assert Traced.of(record | {"trace": "free"}) is None
    assert not math.isnan(signals(record, "A", None)["p_final"])
