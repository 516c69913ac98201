"""Cues as declarations: their places, targets and texts, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_models import LABELS, chat
from probe_records import table_of
from sample_trace import asking

from faithscope.experiments.studies.slrc.measures.hints import REPORT
from faithscope.interp.errors import UserError
from faithscope.interventions import Question, Trace, from_ids
from faithscope.interventions.trace import Origin
from faithscope.probes.cues import offers, write_chains
from faithscope.probes.declared_cues import DeclaredCue, shipped
from faithscope.probes.hints import HintsSettings, hints
from faithscope.probes.mediation import MediationSettings, mediation
from faithscope.probes.sycophancy import SycophancySettings, sycophancy

ASKED = "Which is a mammal?\nA. trout\nB. otter\nC. carp"
QUESTION = Question("q", "own", "Which is a mammal?", "choice", "B", ("trout", "otter", "carp"))
ASKING = replace(asking(), asked=ASKED, labels=tuple((x, f" {x}") for x in "ABC"))


def cue(text: str, place: str = "below", **more: Any) -> DeclaredCue:
    return DeclaredCue.model_validate({"name": "mine", "text": text, "place": place} | more)


def trace(answer: str | None = "B", question: Question = QUESTION) -> Trace:
    return from_ids(question, (), (1, 2), ("So it ", "is."), answer=answer)


def test_a_cue_stands_at_its_place() -> None:
    text = "The key says {{ target }} ({{ target_text }}); {{ labels | join('') }}."
    said = "The key says C (carp); ABC."
    put = {p: cue(text, p).put(QUESTION, ASKING, "C") for p in ("above", "below", "system")}
    assert put["above"].sent.user == f"{said}\n\n{ASKED}"
    assert put["below"].sent.user == f"{ASKED}\n\n{said}"
    assert (put["system"].sent.user, put["system"].sent.system) == (ASKED, said)
    before = cue("I say {{ target }}.", "turn_before").put(QUESTION, ASKING, "C").sent
    roles = [(t["role"], t["content"]) for t in before.turns]
    assert roles == [("user", ASKED), ("assistant", "I say C."), ("user", ASKED)]
    turns: Any = [{"user": "Hm?"}, {"assistant": "{{ target }}"}]
    shots = cue(turns, "turn_before").put(QUESTION, ASKING, "C")
    assert [t["content"] for t in shots.sent.turns] == ["Hm?", "C", ASKED]
    assert shots.text == "Hm?\n\nC"


@pytest.mark.parametrize(
    ("target", "own", "options"),
    [
        ("other", "A", {"B", "C"}),
        ("wrong", "A", {"C"}),
        ("gold", "A", {"B"}),
        ("fixed:C", "A", {"C"}),
        ("random", "A", {"B", "C", None}),
    ],
)
def test_a_target_is_drawn_by_the_seed(target: str, own: str, options: set[str | None]) -> None:
    made = cue("{{ target }}", target=target)
    drawn = [made.pointed(QUESTION, own, seed) for seed in range(30)]
    assert {option for option, _ in drawn} == options
    assert {why for option, why in drawn if option is None} <= {"cue_points_to_own_answer"}
    assert drawn == [made.pointed(QUESTION, own, seed) for seed in range(30)]


def test_why_a_cue_is_not_put() -> None:
    no_gold = replace(QUESTION, gold=None)
    number = Question("n", "own", "1 + 1?", "number", "2")
    cases = [
        ("gold", QUESTION, "B", "cue_points_to_own_answer"),
        ("wrong", no_gold, "B", "no_gold_answer"),
        ("other", number, "2", "no_options"),
        ("other", QUESTION, None, "answer_unparsed"),
    ]
    for target, question, own, reason in cases:
        made = offers(trace(own, question), ASKING, [cue("{{ target }}", target=target)], 0)
        assert (made["mine"].reason, made["mine"].cue) == (reason, None)
    near = cue("{{ target }}", target="wrong").pointed(number, "2", 0)[0]
    assert near is not None
    assert near != "2"
    fixed = [cue("{{ target }}", target="fixed:D")]
    with pytest.raises(UserError, match=r"'fixed:D'.*'q' are A, B, C"):
        offers(trace(), ASKING, fixed, 0)
    assert HintsSettings(cues=tuple(fixed)).misfit_of(QUESTION)
    assert HintsSettings(cues=tuple(fixed)).misfit_of(number) is None


BAD: list[tuple[dict[str, Any], str]] = [
    ({"place": None}, "place"),
    ({"text": " "}, "text: is empty"),
    ({"text": "{{ answer }}"}, "unknown place 'answer'"),
    ({"text": "{% if %}"}, "text: is no template"),
    ({"text": "none.jinja"}, "'none.jinja' cannot be read"),
    ({"target": "wrnog"}, "did you mean 'wrong'"),
    ({"target": "fixed:"}, "target"),
    ({"target": "none"}, "the text has a place for one"),
    ({"text": "Hear, hear."}, "put one in, or say target: none"),
    ({"mention": "("}, "no regular expression"),
    ({"text": [{"user": "a"}]}, "of place turn_before"),
    ({"text": [{"assistant": "{{ target }}"}, {"user": "b"}], "place": "turn_before"}, "user, as"),
    ({"name": "a b"}, "name"),
    ({"wher": 1}, "wher"),
]


@pytest.mark.parametrize(("change", "problem"), BAD)
def test_a_declaration_that_does_not_fit(change: dict[str, Any], problem: str) -> None:
    whole = {"name": "mine", "text": "{{ target }}", "place": "below"} | change
    with pytest.raises(ValueError, match=r"(?s)" + problem.replace("(", r"\(")):
        HintsSettings.model_validate({"cues": [whole]})


def test_cues_come_from_files_and_by_name_each_once(tmp_path: Path) -> None:
    (tmp_path / "note.jinja").write_text("A note: {{ target }}\n")
    (tmp_path / "cues.yaml").write_text(
        f"- {{name: note, text: {tmp_path}/note.jinja, place: above}}\n"
    )
    made = HintsSettings.model_validate({"cues": ["metadata", f"{tmp_path}/cues.yaml"]})
    assert made.cues[0] == "metadata"
    assert isinstance(made.cues[1], DeclaredCue)
    assert made.cues[1].text == "A note: {{ target }}"
    assert HintsSettings.model_validate(made.model_dump(mode="json")) == made
    with pytest.raises(ValueError, match="two cues have the name 'metadata'"):
        HintsSettings.model_validate({"cues": ["metadata", shipped()["metadata"]]})
    with pytest.raises(ValueError, match="unknown cue 'metdata'; did you mean 'metadata'"):
        HintsSettings.model_validate({"cues": "metdata"})


def test_what_decides_is_as_it_was_without_cues_of_ones_own() -> None:
    assert MediationSettings().decides()["cues"] == ["sycophancy"]
    assert "cues" not in SycophancySettings().decides()
    assert SycophancySettings(cues=("metadata",)).decides()["cues"] == ["metadata"]


def test_a_cue_that_names_no_answer_has_a_rate_of_change_and_none_of_following() -> None:
    model = chat("qwen3")
    film = Question("f", "made", "Fine film.", "label", "positive", ("positive", "negative"))
    words = replace(ASKING, asked="Good?", labels=LABELS, parse_reply=lambda text: "negative")
    ids = model.encode("Let me see. The acting was superb.")
    own = from_ids(film, model.prompt("Good?").ids, ids, model.pieces(ids), answer="positive")
    quiet = cue("It rained.", "system", target="none", mention="rain")
    short = {"cues": (quiet,), "max_new_tokens": 8}
    (hinted,) = hints(model, own, words, HintsSettings(**short))
    assert (hinted["option"], hinted["switched"], hinted["moved"]) == (None, None, None)
    (line,) = table_of("hints", [hinted]).to_dict("records")
    assert line["change_rate"] == 1
    assert line["switch_rate"] != line["switch_rate"]
    (account,) = REPORT.measures
    assert account.score([hinted]) is None
    (mediated,) = mediation(model, own, words, MediationSettings(**short))
    assert (mediated["option"], mediated["switched"]) == ("positive", None)
    assert mediated["total"] is not None


def test_a_chain_is_written_to_the_whole_conversation() -> None:
    model = chat("qwen3")
    put = cue("I say {{ target }}.", "turn_before").put(QUESTION, ASKING, "C")
    own = replace(trace(), prompt_ids=model.prompt(ASKED).ids)
    words = replace(ASKING, parse_reply=lambda text: text)
    written = write_chains(model, own, words, {"mine": put.sent}, 4)
    assert written is not None
    ids = model.prompt(put.sent.turns).ids
    assert written[0]["mine"].prompt_ids[: len(ids)] == ids


def test_to_a_sample_of_a_question_a_chain_is_drawn_as_the_sample_was() -> None:
    model = chat("qwen3")
    put = cue("I say {{ target }}.").put(QUESTION, ASKING, "C").sent
    words = replace(ASKING, parse_reply=lambda text: text)

    def written(question: Question, temperature: float = 1.0) -> str:
        sampling = {"temperature": temperature, "top_p": 1.0}
        origin = Origin("m", sampling=sampling, seed=3)
        own = replace(trace(question=question), prompt_ids=model.prompt(ASKED).ids, origin=origin)
        result = write_chains(model, own, words, {"mine": put}, 12)
        assert result is not None
        return result[0]["mine"].reasoning

    greedy = written(QUESTION)
    assert written(QUESTION.sampled("0"), temperature=0.0) == greedy
    drawn = [written(QUESTION.sampled(str(k))) for k in range(3)]
    assert len({greedy, *drawn}) == 4
    # the draw is the sample's own
    assert [written(QUESTION.sampled(str(k))) for k in range(3)] == drawn


def test_a_cue_supports_the_answer_that_sycophancy_says() -> None:
    model = chat("qwen3")
    own = replace(trace(), prompt_ids=model.prompt(ASKED).ids)
    with pytest.raises(ValueError, match="has the target 'gold'"):
        SycophancySettings(cues=(cue("{{ target }}", target="gold"),))
    settings = SycophancySettings(cues=("user_opinion",), readings=("scored",))
    plain, cued = sycophancy(model, own, ASKING, settings)
    (alone,) = sycophancy(model, own, ASKING, SycophancySettings(readings=("scored",)))
    assert plain == alone
    assert (cued["cue"], cued["variant"]) == ("user_opinion", "scored.user_opinion")
    assert cued["p_yes_wrong"] != plain["p_yes_wrong"]
    assert len(table_of("sycophancy", [plain, cued])) == 1
    assert table_of("sycophancy_cues", [plain, cued])["cue"].tolist() == ["user_opinion"]
