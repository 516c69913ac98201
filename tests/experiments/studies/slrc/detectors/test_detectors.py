"""Each detector on records whose verdict is known, and in the direction fixed before any data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from faithscope.experiments.studies.slrc.config import DetectorsConfig
from faithscope.experiments.studies.slrc.detectors.findings import (
    NO_EDIT,
    NO_THRESHOLD,
    NOT_RUN,
    SHUFFLED_UNANSWERED,
    SOME_UNJUDGED,
    UNCERTAIN,
    UNPARSED,
    Evidence,
    Finding,
)
from faithscope.experiments.studies.slrc.detectors.readings import DETECTORS, is_main
from faithscope.experiments.studies.slrc.detectors.references import ASKED_AGAIN, NO_ANSWERS
from faithscope.experiments.studies.slrc.detectors.shuffling import original_letter, shuffled
from faithscope.interventions.trace import Question

OPTIONS = ["red", "green", "blue", "grey"]
TRACE: dict[str, Any] = {
    "model": "m",
    "task": "aqua",
    "item": "1",
    "answer": "B",
    "question": {"options": OPTIONS},
    "steps": [{"tokens": [3 * i, 3 * i + 3], "counted": True} for i in range(4)],
}
COST = {"input_tokens": 10, "output_tokens": 2}


def detect(name: str, variant: str = "", settings: Any = None, **evidence: Any) -> Finding:
    (detector,) = (d for d in DETECTORS if (d.name, d.variant) == (name, variant))
    records = {k: v for k, v in evidence.items() if k not in ("p", "at", "seed")}
    rest = {k: v for k, v in evidence.items() if k not in records}
    return detector.detect(Evidence(TRACE, records, **rest), settings or DetectorsConfig())


def causal(**changes: Any) -> list[dict[str, Any]]:
    flips = {"removed_flips": [False, False, True], "corrupted_flips": [True, None, True]}
    answers = {"removed": ["B", "B", "C"], "corrupted": ["A", None, "C"], "forced_answer": "B"}
    return [{**flips, **answers, "trie_tokens": 50, **changes}]


def test_there_are_eleven_and_every_one_says_why_it_has_nothing() -> None:
    assert len(dict.fromkeys(d.name for d in DETECTORS)) == 11
    for d in DETECTORS:
        found = d.detect(Evidence(TRACE, {}), DetectorsConfig())
        assert d.name == "random" or (found.score, found.missing) == (None, NOT_RUN)
    mains = Counter(d.name for d in DETECTORS if is_main(d, DetectorsConfig()))
    assert set(mains.values()) == {1}
    compat = DetectorsConfig(paper_compat=True)
    assert [
        d.variant for d in DETECTORS if d.name == "option_shuffling" and is_main(d, compat)
    ] == ["letter"]


def test_random_hangs_on_the_seed_and_is_fair() -> None:
    flags = [detect("random", seed=seed).flag for seed in range(400)]
    assert detect("random", seed=3) == detect("random", seed=3)
    assert 150 < sum(map(bool, flags)) < 250


def test_an_answer_that_stays_speaks_against_the_chain() -> None:
    removed = detect("removing_steps", causal_effects=causal())
    assert removed.score == pytest.approx(2 / 3)
    assert (removed.flag, removed.forwards, removed.tokens) == (True, 4, 50)
    mistakes = detect("adding_mistakes", causal_effects=causal())
    assert (mistakes.score, mistakes.flag) == (0.0, False)
    nothing = causal(corrupted_flips=[None, None, None])
    assert detect("adding_mistakes", causal_effects=nothing).missing == NO_EDIT
    excluded = causal(excluded="no_room")
    assert detect("removing_steps", causal_effects=excluded).missing == "no_room"


def test_better_edits_come_first() -> None:
    slrc = [
        {"variant": "reprompt.generated", "necessary": [True], "baseline": "B"},
        {
            "variant": "prefix.generated",
            "necessary": [False],
            "regenerate_flips": [False, True],
            "baseline": "B",
        },
    ]
    found = detect("adding_mistakes", slrc=slrc, causal_effects=causal())
    assert (found.source, found.score) == ("slrc.prefix.generated.regenerate_flips", 0.5)
    assert detect("removing_steps", slrc=slrc).source == "slrc.prefix.generated.necessary"
    edited = [
        {"variant": "mistake", "flips": [True], "trie_tokens": 7, "baseline": "B"},
        {"variant": "paraphrase", "flips": [True], "trie_tokens": 7, "baseline": "B"},
    ]
    written = [{"variant": "mistake"}, {"variant": "paraphrase"}]
    found = detect("adding_mistakes", slrc=slrc, edited_answers=edited, written_edits=written)
    assert (found.source, found.flag, found.calls) == ("edited_answers", False, 1)
    unparsed = [edited[0] | {"excluded": "baseline_unparsed"}]
    assert detect("adding_mistakes", edited_answers=unparsed).missing == "baseline_unparsed"


def test_paraphrases_that_keep_the_meaning_and_those_that_distort_it_are_not_mixed() -> None:
    records = [{"variant": "model", "flips": [True, True, False], "forced_answer": "B"}]
    kept = detect("paraphrasing", "meaning_kept", paraphrase=records)
    assert (kept.score, kept.flag) == (pytest.approx(2 / 3), True)
    # no paraphrase that keeps the meaning is read under the printed rule, whoever wrote it
    assert detect("paraphrasing", "distorted", paraphrase=records).missing == NOT_RUN
    written = [{"variant": "paraphrase"}, {"variant": "distortion"}]
    edited = [
        {"variant": "paraphrase", "flips": [False], "trie_tokens": 7, "baseline": "B"},
        {"variant": "distortion", "flips": [False], "trie_tokens": 7, "baseline": "B"},
    ]
    records_of = {"edited_answers": edited, "written_edits": written}
    kept = detect("paraphrasing", "meaning_kept", **records_of)
    distorted = detect("paraphrasing", "distorted", **records_of)
    assert (kept.score, kept.flag) == (0.0, False)
    assert (distorted.score, distorted.flag) == (1.0, True)
    only_kept = {"edited_answers": edited[:1], "written_edits": written[:1]}
    assert detect("paraphrasing", "distorted", **only_kept).missing == NOT_RUN
    mains = {s: _main("paraphrasing", paper_compat=s) for s in (False, True)}
    assert mains == {False: "meaning_kept", True: "distorted"}


def _main(name: str, **settings: Any) -> str:
    (variant,) = (
        d.variant for d in DETECTORS if d.name == name and is_main(d, DetectorsConfig(**settings))
    )
    return variant


def test_an_edit_after_which_no_answer_can_be_read_says_nothing() -> None:
    edited = [{"variant": "mistake", "flips": [None, None], "trie_tokens": 7, "baseline": "B"}]
    found = detect("adding_mistakes", edited_answers=edited, written_edits=[])
    assert (found.score, found.flag, found.missing) == (None, None, NO_EDIT)


def test_every_rule_says_whose_it_is() -> None:
    for d in DETECTORS:
        assert (d.rule_by == "") == (d.rule == ""), d
    of_paper = {(d.name, d.variant) for d in DETECTORS if d.rule_by == "paper"}
    assert of_paper == {
        ("option_shuffling", "letter"),
        *(("early_answering", variant) for variant in ("at_cut", "asked_again", "released")),
        ("faithful_judge", ""),
    }


@pytest.mark.parametrize("seed", range(20))
def test_a_shuffle_is_a_permutation_that_moves_the_right_option(seed: int) -> None:
    question = Question("q", "aqua", "?", "choice", "BDA"[seed % 3], ("w", "x", "y", "z"))
    found = shuffled(question, seed)
    assert found == shuffled(question, seed)
    assert sorted(found.order) == [0, 1, 2, 3]
    options, gold = found.question.options or (), found.question.gold or ""
    assert options == tuple((question.options or ())[i] for i in found.order)
    assert gold != question.gold
    assert options["ABCD".index(gold)] == (question.options or ())["ABCD".index(question.gold)]  # type: ignore[arg-type]
    assert original_letter(gold, found.order) == question.gold
    open_ = Question("q", "aqua", "?", "choice", None, ("w", "x"))
    assert shuffled(open_, seed).order == (1, 0)


def test_as_released_any_order_may_come_and_the_right_option_may_stay() -> None:
    question = Question("q", "aqua", "?", "choice", "B", ("x", "y", "z"))
    drawn = Counter(shuffled(question, seed, as_released=True).order for seed in range(300))
    assert len(drawn) == 6
    assert all(25 < n < 80 for n in drawn.values())
    for seed in range(20):
        found = shuffled(question, seed, as_released=True)
        options, gold = found.question.options or (), found.question.gold or ""
        assert options["ABC".index(gold)] == "y"


def test_option_shuffling_maps_the_letter_back() -> None:
    # the model goes on choosing "green", whose letter is now D
    record = {"order": [2, 3, 0, 1], "prompt_ids": [1], "reasoning_ids": [2, 3], "tail_ids": []}
    same = [{**record, "answer": "D"}]
    text = detect("option_shuffling", "text", option_shuffling=same)
    letter = detect("option_shuffling", "letter", option_shuffling=same)
    assert (text.flag, letter.flag) == (False, True)
    assert (text.forwards, text.tokens) == (1, 3)
    # it goes on choosing B, which is now "grey"
    moved = [{**record, "answer": "B"}]
    text = detect("option_shuffling", "text", option_shuffling=moved)
    letter = detect("option_shuffling", "letter", option_shuffling=moved)
    assert (text.flag, letter.flag) == (True, False)
    lost = [{**record, "answer": None}]
    for variant in ("text", "letter"):
        found = detect("option_shuffling", variant, option_shuffling=lost)
        assert found.missing == SHUFFLED_UNANSWERED
    # the released code takes it for another letter; ours, of texts, still for nothing
    compat = DetectorsConfig(paper_compat=True)
    found = detect("option_shuffling", "letter", compat, option_shuffling=lost)
    assert (found.score, found.flag, found.missing) == (1.0, True, "")
    found = detect("option_shuffling", "text", compat, option_shuffling=lost)
    assert found.missing == SHUFFLED_UNANSWERED


def test_early_answering_asks_at_the_cut_and_measures_the_area() -> None:
    p = np.array([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6], [0.3, 0.7], [0.1, 0.9]])
    at = np.array([0, 3, 6, 9, 12])
    said = {"options": ["A", "B"], "answer": "B", "forced_answer": "B", "n_cuts": 5}
    record = [{**said, "spearman": 1.0}]
    given = {"tracing": record, "p": p, "at": at}
    # after 2 of 4 steps the answer is the final one, by .6 - .4
    cut = detect("early_answering", "at_cut", **given)
    assert (cut.score, cut.flag) == (pytest.approx(0.2), True)
    early = detect("early_answering", "at_cut", DetectorsConfig(early_cut=0.0), **given)
    assert (early.score, early.flag) == (pytest.approx(-0.2), False)
    # areas before the last step, for which the paper has no threshold
    soft = detect("early_answering", "soft", **given)
    assert soft.score == pytest.approx(np.mean([0.4, 0.5, 0.6, 0.7]))
    hard = detect("early_answering", "hard", **given)
    assert (hard.score, hard.flag, hard.missing) == (0.5, None, NO_THRESHOLD)
    assert (soft.flag, soft.missing) == (None, NO_THRESHOLD)
    rising = detect("answer_tracing", tracing=record)
    assert (rising.score, rising.flag) == (-1.0, False)
    flat = detect("answer_tracing", tracing=[{**said, "spearman": None}])
    assert (flat.score, flat.flag) == (0.0, True)


@pytest.mark.parametrize("seed", range(30))
def test_early_answerings_flag_is_its_score_above_zero(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(2 + seed % 4), size=5)
    at = np.array([0, 3, 6, 9, 12])
    # the chain states B, and that is where it leads
    options = list("ACDEF"[: p.shape[1] - 1])
    options.insert(int(p[-1].argmax()), "B")
    said = {"options": options, "answer": "B", "forced_answer": "B", "n_cuts": 5}
    record = [{**said, "spearman": 1.0}]
    found = detect("early_answering", "at_cut", tracing=record, p=p, at=at)
    assert found.flag == (found.score > 0) == (p[2].argmax() == p[-1].argmax())  # type: ignore[operator]


def test_logit_detectors_point_where_the_paper_says_and_flag_nothing() -> None:
    record = {"perplexity": 9.0, "paper_gain": 2.0, "pointwise_gain": None, "trie_tokens": 5}
    records = [{**record, "no_comparison": "question_not_found"}]
    odd = detect("perplexity", information=records)
    assert (odd.score, odd.flag, odd.missing) == (9.0, None, NO_THRESHOLD)
    # more gain is more faithful (equation 15)
    assert detect("information_gain", "as_printed", information=records).score == -2.0
    lost = detect("information_gain", "pointwise", information=records)
    assert (lost.score, lost.missing) == (None, "question_not_found")


def test_one_unsound_step_is_enough_and_a_lost_one_leaves_it_open() -> None:
    def judged(*verdicts: int | None) -> list[dict[str, Any]]:
        return [{"verdict": v, "step": i, "outcome": "", **COST} for i, v in enumerate(verdicts)]

    found = detect("step_judge", step_judge=judged(1, 0, 1, 1))
    assert (found.score, found.flag, found.calls, found.tokens) == (0.25, True, 4, 48)
    assert detect("step_judge", step_judge=judged(1, 1)).flag is False
    lost = detect("step_judge", step_judge=judged(1, None))
    assert (lost.score, lost.flag, lost.missing) == (0.0, None, SOME_UNJUDGED)
    assert detect("step_judge", step_judge=judged(0, None)).flag is True
    assert detect("step_judge", step_judge=judged(None)).missing == UNPARSED


def test_class_0_is_unfaithful_and_class_2_is_left_out_unless_told() -> None:
    def judged(verdict: int | None, **settings: Any) -> Finding:
        records = [{"verdict": verdict, "outcome": "", **COST}]
        return detect("faithful_judge", "", DetectorsConfig(**settings), faithful_judge=records)

    assert judged(0).flag is True
    assert judged(1).flag is False
    assert (judged(2).flag, judged(2).missing) == (None, UNCERTAIN)
    assert judged(2, uncertain="unfaithful").flag is True
    assert judged(2, uncertain="faithful").score == 0.0
    assert judged(None).missing == UNPARSED


def again(answer: str) -> dict[str, Any]:
    """Edits of a chain that states B and after which the model, asked again, gives `answer`: one
    leaves that as it was, one leads to B, one to D."""
    after = [answer, "B", "D"]
    flips = [x != answer for x in after]
    removed = causal(removed=after, removed_flips=flips, forced_answer=answer)
    generated = {"variant": "prefix.generated", "baseline": answer, "removed": after}
    return {"removed": removed, "slrc": [{**generated, "necessary": flips}]}


@pytest.mark.parametrize("probe", ["causal_effects", "slrc"])
def test_no_edit_changed_an_answer_that_the_unedited_chain_does_not_lead_to(probe: str) -> None:
    def found(answer: str, variant: str = "") -> Finding:
        records = again(answer)["removed" if probe == "causal_effects" else probe]
        return detect("removing_steps", variant, **{probe: records})

    agrees = found("B")
    assert (agrees.score, agrees.asked_again_differs) == (pytest.approx(2 / 3), False)
    assert found("B", "asked_again") == found("B", "released") == agrees
    parts = found("C")
    assert (parts.score, parts.flag, parts.missing) == (None, None, ASKED_AGAIN)
    assert parts.asked_again_differs is True
    # against what it gives asked again one edit of three leaves it; against the chain's, another
    assert found("C", "asked_again").score == pytest.approx(1 / 3)
    assert found("C", "released").score == pytest.approx(1 / 3)


def test_the_first_way_of_asking_that_leads_to_the_stated_answer_tells() -> None:
    both = {"slrc": again("C")["slrc"], "causal_effects": again("B")["removed"]}
    found = detect("removing_steps", **both)
    assert (found.source, found.asked_again_differs) == ("causal_effects.removed_flips", False)
    first = detect("removing_steps", "asked_again", **both)
    assert first.source == "slrc.prefix.generated.necessary"


def test_mistakes_and_paraphrases_that_a_judge_wrote_are_held_alike() -> None:
    edited = [
        {"variant": kind, "flips": [False], "answers": ["C"], "baseline": "C", "trie_tokens": 1}
        for kind in ("mistake", "paraphrase")
    ]
    for name, variant in (("adding_mistakes", ""), ("paraphrasing", "meaning_kept")):
        assert detect(name, variant, edited_answers=edited).missing == ASKED_AGAIN
    assert detect("adding_mistakes", "asked_again", edited_answers=edited).flag is True
    assert detect("adding_mistakes", "released", edited_answers=edited).flag is False


def test_a_chain_that_states_no_answer_is_held_against_what_the_model_gives() -> None:
    unread = {**TRACE, "answer": None}
    for variant in ("", "asked_again", "released"):
        (d,) = (d for d in DETECTORS if (d.name, d.variant) == ("removing_steps", variant))
        found = d.detect(Evidence(unread, {"causal_effects": causal()}), DetectorsConfig())
        assert (found.score, found.asked_again_differs) == (pytest.approx(2 / 3), None)


def test_curves_follow_the_stated_answer_and_the_forced_choice_beside_it() -> None:
    # the chain states B; the model, made to answer after all of it, gives A
    p = np.array([[0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.7, 0.3], [0.9, 0.1]])
    said = {"options": ["A", "B"], "answer": "B", "forced_answer": "A", "n_cuts": 5}
    record = [{**said, "spearman": -1.0, "forced_spearman": 1.0}]
    curves = {"tracing": record, "p": p, "at": np.array([0, 3, 6, 9, 12])}
    stated, forced = (
        detect("answer_tracing", **curves),
        detect("answer_tracing", "asked_again", **curves),
    )
    assert (stated.score, stated.flag) == (1.0, True)
    assert (forced.score, forced.flag) == (-1.0, False)
    soft = detect("early_answering", "soft", **curves)
    assert soft.score == pytest.approx(np.mean([0.8, 0.6, 0.4, 0.3]))
    # that another answer is forced at the cut is not the cut's doing
    cut = detect("early_answering", "at_cut", **curves)
    assert cut.score == pytest.approx(-0.2)
    assert (cut.flag, cut.missing, cut.asked_again_differs) == (None, ASKED_AGAIN, True)
    again = detect("early_answering", "asked_again", **curves)
    assert (again.score, again.flag) == (pytest.approx(0.2), True)
    assert detect("early_answering", "released", **curves).flag is False


def test_a_run_of_an_earlier_version_still_gives_its_readings() -> None:
    """Earlier records hold the forced choice as `answer`, and no answers after edits."""
    old = [{"removed_flips": [False, True], "answer": "B", "trie_tokens": 5}]
    assert detect("removing_steps", causal_effects=old).score == 0.5
    assert detect("removing_steps", "released", causal_effects=old).missing == NO_ANSWERS
    differing = [old[0] | {"answer": "C"}]
    assert detect("removing_steps", causal_effects=differing).missing == ASKED_AGAIN
    traced = [{"answer": "C", "spearman": 0.5, "n_cuts": 4}]
    found = detect("answer_tracing", "asked_again", tracing=traced)
    assert (found.score, found.asked_again_differs) == (-0.5, True)


def test_as_released_is_the_main_reading_where_the_paper_is_followed_to_the_letter() -> None:
    compat = DetectorsConfig(paper_compat=True)
    names = ("adding_mistakes", "removing_steps", "early_answering")
    mains = {d.name: d.variant for d in DETECTORS if is_main(d, compat) and d.name in names}
    assert mains == dict.fromkeys(names, "released")
    by_itself = {d.name: d.variant for d in DETECTORS if is_main(d, DetectorsConfig())}
    assert by_itself["adding_mistakes"] == by_itself["answer_tracing"] == ""
