"""Probes through a model of which only replies are to be had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faithscope.interventions import Origin, Question, from_ids, keep_only_step, remove_step
from faithscope.probes.direct import DirectSettings
from faithscope.probes.direct import direct as direct_probe
from faithscope.probes.error_detection import ErrorDetectionSettings, error_detection
from faithscope.probes.framing import Asking
from faithscope.probes.judge.form import Reply
from faithscope.probes.slrc import SlrcSettings, slrc
from faithscope.probes.sycophancy import SycophancySettings, sycophancy
from faithscope.probes.text_model import Message, TextModel, Unanswered

TEXT = "Tom has 3 apples and buys 4 more. So he has 3 + 4 = 7 apples now. Then he eats 2 of them."


def asking() -> Asking:
    def number(text: str) -> str | None:
        words = [w.strip(".") for w in text.split()]
        return next((w for w in reversed(words) if w.isdigit()), None)

    return Asking(
        answer_cue="\nThe answer is",
        labels=(),
        parse=number,
        necessity_prompt=lambda r: f"Given: {r}",
        sufficiency_prompt=lambda s: f"Only: {s}",
        kind="number",
    )


class Speaker:
    """Writes what a function says, one message after the other, and keeps count."""

    def __init__(self, says):
        self.says, self.given = says, {}
        self.model = TextModel("api:x/y", self.given.get)

    def run(self, probe):
        rounds = 0
        while True:
            try:
                return probe(), rounds
            except Unanswered as open_:
                rounds += 1
                for message in open_.messages:
                    assert message not in self.given
                    self.given[message] = self.says(message)


def made(model: TextModel):
    question = Question("q1", "gsm8k", "How many?", "number", "5")
    ids = model.encode(TEXT)
    return from_ids(
        question,
        (),
        ids,
        model.pieces(ids),
        answer="5",
        tail_text=" The answer is 5.",
        origin=Origin("api:x/y"),
    )


SLRC = SlrcSettings(
    framings=("reprompt",), readings=("generated",), shuffles=2, edits=("remove", "corrupt")
)


def test_every_arm_of_slrc_is_asked_once_and_counted_as_the_replies_say():
    """Answers 5 only where the last step is there: necessary there, and sufficient there."""
    speaker = Speaker(
        lambda m: Reply("parsed", text="It is 5." if "eats 2" in m.user else "It is 7.")
    )
    trace = made(speaker.model)
    (record,), rounds = speaker.run(lambda: slrc(speaker.model, trace, asking(), SLRC))
    assert rounds == 1
    assert record["framing"] == "reprompt"
    assert record["reading"] == "generated"
    assert record["baseline"] == "5"
    assert record["correct"]
    assert record["necessary"] == [False, False, True]
    assert record["sufficient"] == [False, False, True]
    assert record["reordered"] == [False, False]
    assert record["execution"] == "api"
    assert record["n_replies"] == len(speaker.given)
    users = {m.user for m in speaker.given}
    assert f"Given: {TEXT}" in users
    assert f"Only: {keep_only_step(trace, 1).reasoning_text.strip()}" in users
    assert f"Given: {remove_step(trace, 2).reasoning_text.strip()}" in users


@pytest.mark.parametrize(
    "declining",
    [Reply("refused", text="No 5 from me: 5"), Reply("filtered"), Reply("truncated", text=" ")],
)
def test_a_branch_that_was_declined_neither_changes_the_answer_nor_keeps_it(declining: Reply):
    def says(m: Message) -> Reply:
        return Reply("parsed", text="5") if m.user == f"Given: {TEXT}" else declining

    speaker = Speaker(says)
    (record,), _ = speaker.run(lambda: slrc(speaker.model, made(speaker.model), asking(), SLRC))
    assert record["baseline"] == "5"
    assert not record["removed"]
    assert not record["necessary"]
    assert not record["sufficient"]
    assert record["n_unparsed"] == 0
    assert record["n_declined"] == len(speaker.given) - 1


def test_a_baseline_that_was_declined_excludes_the_item():
    speaker = Speaker(lambda m: Reply("filtered"))
    trace = made(speaker.model)
    (record,), _ = speaker.run(lambda: slrc(speaker.model, trace, asking(), SLRC))
    assert record["excluded"] == "reply_declined"
    (agreed,), _ = speaker.run(
        lambda: sycophancy(
            speaker.model, trace, asking(), SycophancySettings(readings=("generated",))
        )
    )
    assert agreed["excluded"] == "reply_declined"


def test_sycophancy_errors_and_direct_answers_are_read_as_from_any_model():
    speaker = Speaker(
        lambda m: (
            Reply("parsed", text="Yes, I agree.")
            if "Do you agree" in m.user
            else Reply("truncated", text="No, 3 + 4 is")
            if "Is this correct" in m.user
            else Reply("parsed", text="5")
        )
    )
    trace = made(speaker.model)
    (agreed,), _ = speaker.run(
        lambda: sycophancy(
            speaker.model, trace, asking(), SycophancySettings(readings=("generated",))
        )
    )
    assert agreed["agrees_wrong"]
    assert agreed["agrees_own"]
    (seen,), _ = speaker.run(
        lambda: error_detection(
            speaker.model, trace, asking(), ErrorDetectionSettings(readings=("generated",))
        )
    )
    assert seen["detected"]
    assert seen["false_alarm"]
    assert seen["cut_error"]
    (answered,), _ = speaker.run(
        lambda: direct_probe(
            speaker.model,
            trace,
            replace(
                asking(),
                parse=lambda text: text,
                direct_prompts={"system": Message("How many?", "Be brief.")},
            ),
            DirectSettings(readings=("generated",)),
        )
    )
    assert answered["answer"] == "5"
    assert answered["system"] == "role"


@pytest.mark.parametrize(
    "settings",
    [
        SlrcSettings(framings=("prefix",), readings=("generated",)),
        SlrcSettings(framings=("reprompt",), readings=("generated", "scored")),
    ],
)
def test_what_an_api_cannot_be_asked_is_refused_by_name(settings):
    model = TextModel("api:x/y", lambda m: None)
    with pytest.raises(ValueError, match=r"api:x/y.*reprompt framing and generated"):
        slrc(model, made(model), asking(), settings)
