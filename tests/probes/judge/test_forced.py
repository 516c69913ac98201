"""A reply that is held to its form while it is written."""

from __future__ import annotations

import json

import pytest
import torch
from judge_replies import replies_of
from tiny_models import tiny

from faithscope.interp.model import Model
from faithscope.probes.judge.forced import SPARE, ForcedJudge, closing_quote, was_cut
from faithscope.probes.judge.form import Ask, Field, Form
from faithscope.probes.judge.open_model import GeneratingSettings
from faithscope.probes.judge.parse import read
from faithscope.probes.judge.scoring import ScoringJudge

BOTH = Form(
    "both",
    "Rate {item}.",
    (Field("reasoning", "text"), Field("index", "integer", -1), Field("score", "integer", 0, 1)),
    "index",
    cue='{"index": ',
)
NUMBER = Form("number", "Rate {item}.", (Field("score", "integer", 0, 12),), "score", '{"score": ')


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny("llama", max_position_embeddings=2048)


def asks(form: Form, n: int = 3) -> list[Ask]:
    return [Ask(str(i), form, {"item": f"item {i}"}, high=2 + i) for i in range(n)]


def test_every_reply_has_the_form_and_the_range(model: Model) -> None:
    found = replies_of(ForcedJudge(model, GeneratingSettings(max_new_tokens=8)), asks(BOTH))
    assert list(found) == ["0", "1", "2"]
    for ask in asks(BOTH):
        reply = found[ask.id]
        assert reply.outcome == "parsed"
        assert list(reply.values) == ["reasoning", "index", "score"]
        assert reply.values["index"] in ask.range
        assert reply.values["score"] in (0, 1)
        assert reply.text.startswith('{"reasoning": "')
        assert reply.text.endswith(
            f', "index": {reply.values["index"]}, "score": {reply.values["score"]}}}'
        )
        assert reply.problem == "'reasoning' ended by the limit of 8 tokens"
        assert was_cut(reply.problem)
        assert reply.usage.output_tokens > 8


def test_a_number_alone_is_what_its_log_probs_say(model: Model) -> None:
    given = asks(NUMBER)
    chosen, scored = replies_of(ForcedJudge(model), given), replies_of(ScoringJudge(model), given)
    for ask in given:
        assert chosen[ask.id].values == scored[ask.id].values
        assert json.loads(chosen[ask.id].text) == chosen[ask.id].values


def test_company_changes_nothing(model: Model) -> None:
    settings = GeneratingSettings(max_new_tokens=6, temperature=0.8, seed=3)
    together = replies_of(ForcedJudge(model, settings), asks(BOTH, 5))
    for ask in asks(BOTH, 5):
        (alone,) = replies_of(ForcedJudge(model, settings), [ask]).values()
        assert alone.values == together[ask.id].values
    other = GeneratingSettings(max_new_tokens=6, temperature=0.8, seed=4)
    assert any(
        replies_of(ForcedJudge(model, other), [ask])[ask.id].values != together[ask.id].values
        for ask in asks(BOTH, 5)
    )


def test_a_text_ends_at_its_quote(model: Model) -> None:
    """A model that says nothing but quotes."""
    eager = tiny("llama", max_position_embeddings=2048)
    (quote,) = eager.encode('"')
    head = eager.hf.get_output_embeddings()
    with torch.no_grad():
        head.weight.zero_()

    def only_quotes(_, __, out):
        out = out.clone()
        out[..., quote] += 50
        return out

    handle = head.register_forward_hook(only_quotes)
    found = replies_of(ForcedJudge(eager, GeneratingSettings(max_new_tokens=8)), asks(BOTH, 1))["0"]
    handle.remove()
    assert found.values["reasoning"] == ""
    assert found.text.startswith('{"reasoning": "", "index":')
    assert found.problem == ""
    assert not was_cut(found.problem)


@pytest.mark.parametrize(
    ("text", "at"),
    [('abc" x', 3), (r"a\"b", None), (r'a\\" b', 3), ("", None), (r"\frac{1}{2}", None)],
)
def test_the_closing_quote(text: str, at: int | None) -> None:
    assert closing_quote(text) == at


@pytest.mark.parametrize("form", ["both", "nested"])
def test_texts_get_the_room_there_is_and_only_what_leaves_none_is_an_overflow(form: str) -> None:
    """A byte is a token: prompts that end ever nearer to where the model's positions do."""
    limit = 400
    model = tiny("llama", max_position_embeddings=limit)
    of = {"both": BOTH, "nested": NESTED}[form]
    labels = ("A", "B", "I don't know")
    lengths = range(0, limit, 11)
    given = [Ask(str(n), of, {"item": "x" * n}, high=2, labels=labels) for n in lengths]
    judge = ForcedJudge(model, GeneratingSettings(max_new_tokens=20, batch_size=8))
    found = replies_of(judge, given)
    outcomes = [found[ask.id].outcome for ask in given]
    n = outcomes.count("parsed")
    assert outcomes == ["parsed"] * n + ["overflow"] * (len(given) - n)
    usages = [found[ask.id].usage for ask in given[:n]]
    used = [usage.input_tokens + usage.output_tokens for usage in usages]
    assert max(used) <= limit
    # not used: a text's spare tokens, what a longer label would have taken, less than one step
    assert max(used) > limit - 2 * SPARE - 32
    whole, short = found["0"].problem, found[given[n - 1].id].problem
    assert "ended by the limit of 20 tokens" in whole
    assert "positions" not in whole
    assert f"ended by the last of the {limit} positions of {model.name}" in short
    assert was_cut(whole)
    assert was_cut(short)
    for ask in given[n - 3 : n]:
        (alone,) = replies_of(judge, [ask]).values()
        assert alone.values == found[ask.id].values


def test_a_number_without_bounds_cannot_be_chosen(model: Model) -> None:
    form = Form("open", "x", (Field("n", "integer"), Field("score", "integer", 0, 1)), "score", "{")
    with pytest.raises(ValueError, match="'n' has no bounds"):
        replies_of(ForcedJudge(model), [Ask("0", form, {})])


NESTED = Form(
    "nested",
    "Judge {item}.",
    (
        Field("stances.r.stance", "label"),
        Field("stances.r.why", "text"),
        Field("stances.a", "label", labels=("yes", "no")),
        Field("flaw.named", "boolean"),
        Field("flaw.where", "text", optional=True),
        Field("sure", "integer", 0, 3),
        Field("last.of.all", "boolean"),
    ),
    "stances.r.stance",
)


def test_objects_in_objects_with_labels_booleans_and_null(model: Model) -> None:
    """The strict parser reads the forced text back as the chosen values."""
    settings = GeneratingSettings(max_new_tokens=6, temperature=50.0)
    labels = ("A", "B", "I don't know")
    given = [Ask(str(i), NESTED, {"item": f"item {i}"}, labels=labels) for i in range(12)]
    found = replies_of(ForcedJudge(model, settings), given)
    null = set()
    for ask in given:
        values = found[ask.id].values
        assert list(values) == [f.name for f in NESTED.fields]
        for f in NESTED.fields:
            assert f.kind == "text" or values[f.name] in ask.choices(f)
        null.add(values["flaw.where"] is None)
        if "\\" not in f"{values['stances.r.why']}{values['flaw.where']}":
            reading = read(ask, found[ask.id].text)
            assert (reading.problem, dict(reading.values)) == ("", dict(values))
    assert null == {True, False}


def test_a_label_alone_is_what_its_log_probs_say(model: Model) -> None:
    form = Form("stance", "Judge {item}.", (Field("stance", "label"),), "stance", '{"stance": ')
    given = [Ask(str(i), form, {"item": "x" * i}, labels=("A", "B", "I don't")) for i in range(4)]
    chosen, scored = replies_of(ForcedJudge(model), given), replies_of(ScoringJudge(model), given)
    for ask in given:
        assert chosen[ask.id].values == scored[ask.id].values
