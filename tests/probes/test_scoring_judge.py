"""The open model's verdicts by log-probs: against the whole logits, alone and in company."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from chat_tokenizers import FAMILIES, tokenizer
from judge_replies import replies_of
from tiny_models import tiny

from faithscope.interp.formats import detect_format
from faithscope.interp.model import Model
from faithscope.probes.judge.form import Ask, Field, Form
from faithscope.probes.judge.scoring import ScoringJudge, ScoringSettings
from faithscope.probes.messages import Message, message_ids

CUE = '{"score": '


def form(low: int, high: int | None, cue: str = CUE, system: str | None = None) -> Form:
    field = Field("score", "integer", low, high)
    return Form("f", "Rate {x}.", (field,), "score", cue, system)


SCALES = {"binary": (0, 1), "0-9": (0, 9), "0-100": (0, 100), "steps": (-1, 30)}


def asks(scale: str, n: int = 5) -> list[Ask]:
    low, high = SCALES[scale]
    if scale == "steps":
        # as many steps as the item has
        return [Ask(f"i{k}", form(low, None), {"x": "ab" * k}, high=6 * (k + 1)) for k in range(n)]
    return [Ask(f"i{k}", form(low, high), {"x": "ab" * k}) for k in range(n)]


def by_hand(model: Model, ask: Ask) -> torch.Tensor:
    """p(the verdict's own characters, then no longer number) of each verdict, plain forwards."""
    prompt = (*message_ids(model, Message(ask.prompt, ask.form.system)), *model.encode('{"score":'))
    digits, signs = list(model.encode("0123456789")), list(model.encode("+-"))
    alone = [*digits, *model.encode("+=abcijknqruvwxyzBKM")]
    marks = dict.fromkeys(model.encode(",./:_*(- "), digits)
    marks |= dict.fromkeys(model.encode("eE^"), digits + signs)

    def after(*texts: list[int]) -> torch.Tensor:
        with torch.inference_mode():
            logits = model.hf(torch.tensor(texts), use_cache=False).logits.double()
        return torch.softmax(logits, -1)

    out = []
    for verdict in ask.range:
        ids = [*prompt, *model.encode(f" {verdict}")]
        (p,) = after(ids)
        here = torch.stack([p[k - 1, ids[k]] for k in range(len(prompt), len(ids))])
        longer = p[-1, alone].sum()
        for (mark, following), then in zip(
            marks.items(), after(*([*ids, mark] for mark in marks)), strict=True
        ):
            longer += p[-1, mark] * then[-1, following].sum()
        out.append(here.prod() * (1 - longer))
    return torch.stack(out)


@pytest.mark.parametrize("scale", SCALES)
def test_probabilities_are_those_of_the_whole_logits(scale: str, everything_run: None) -> None:
    model = tiny("llama")
    asked = asks(scale, 1 if scale == "0-100" else 3)
    found = replies_of(ScoringJudge(model), asked)
    for ask in asked:
        reply = found[ask.id]
        p = by_hand(model, ask)
        assert len(reply.probabilities) == len(ask.range)
        assert sum(reply.probabilities) == pytest.approx(1)
        assert reply.probabilities == pytest.approx((p / p.sum()).tolist(), rel=1e-3, abs=1e-9)
        assert reply.mass == pytest.approx(float(p.sum()), rel=1e-3)
        assert reply.outcome == "parsed"
        assert reply.values == {"score": ask.range[int(p.argmax())]}
        assert reply.usage.calls == 1
        assert reply.usage.output_tokens == 0


@pytest.mark.parametrize("scale", SCALES)
def test_company_order_and_execution_change_no_probability(scale: str) -> None:
    model = tiny("llama")
    whole = replies_of(ScoringJudge(model), asks(scale))
    settings = [ScoringSettings(1), ScoringSettings(2), ScoringSettings(3, execution="dense")]
    # the loop runs every label by itself: ten of them will do
    settings += [ScoringSettings(4, execution="loop")] * (scale in {"binary", "0-9"})
    for each in settings:
        other = replies_of(ScoringJudge(model, each), asks(scale)[::-1])
        for k, reply in whole.items():
            assert other[k].probabilities == pytest.approx(reply.probabilities, abs=1e-5)
            assert other[k].values == reply.values


def test_a_small_budget_splits_a_call_and_changes_nothing() -> None:
    model = tiny("llama")
    whole = replies_of(ScoringJudge(model), asks("0-9"))
    split = replies_of(ScoringJudge(replace(model, token_budget=300)), asks("0-9"))
    for k, reply in whole.items():
        assert split[k].probabilities == pytest.approx(reply.probabilities, abs=1e-5)


def test_models_that_no_tree_serves(everything_run: None) -> None:
    model = tiny("qwen3_next")
    found = replies_of(ScoringJudge(model), asks("binary", 2))
    for ask in asks("binary", 2):
        p = by_hand(model, ask)
        assert found[ask.id].probabilities == pytest.approx((p / p.sum()).tolist(), rel=1e-3)


@pytest.mark.in_time(7)
@pytest.mark.parametrize("cue", [CUE, '{"score":', "Score:\n"])
@pytest.mark.parametrize("family", FAMILIES)
def test_verdicts_read_back_after_the_cue_with_every_tokenizer(family: str, cue: str) -> None:
    tokens = tokenizer(family)
    base = tiny("llama", vocab_size=len(tokens) + 8)
    model = replace(base, tokenizer=tokens, format=detect_format(tokens))
    judge = ScoringJudge(model)
    ask = Ask("i", form(-1, 100, cue), {"x": "it"})
    prefix, labels = judge._prefix(ask), judge._labels(ask)
    gap = cue[len(cue.rstrip()) :]
    assert len(set(labels)) == len(labels)
    for verdict, label in zip(ask.range, labels, strict=True):
        read = model.decode((*prefix, *label))
        assert read == f"{model.decode(prefix)}{gap}{verdict}"
    # where white space and number are cut apart or joined as in running text, it is the same
    if FAMILIES[family].kind == "bytes":
        joint = model.encode(cue.rstrip())
        for verdict, label in zip(ask.range, labels, strict=True):
            assert (*joint, *label) == model.encode(f"{cue}{verdict}")


def test_the_system_text_of_a_form_is_read() -> None:
    model = tiny("llama")
    (plain,) = asks("0-9", 1)
    told = replace(plain, form=replace(plain.form, system="Be strict."))
    one, other = (replies_of(ScoringJudge(model), [a])["i0"] for a in (plain, told))
    assert one.probabilities != pytest.approx(other.probabilities, abs=1e-4)
    assert other.usage.input_tokens > one.usage.input_tokens


def test_what_does_not_fit_is_an_overflow_and_holds_up_nothing_else() -> None:
    model = tiny("llama")
    long = Ask("long", form(0, 9), {"x": "ab" * 300})
    found = replies_of(ScoringJudge(model), [long, *asks("0-9", 2)])
    assert found["long"].outcome == "overflow"
    assert "do not fit the 512 positions of tiny:llama" in found["long"].problem
    assert found["i0"].outcome == found["i1"].outcome == "parsed"
    assert replies_of(ScoringJudge(model), [long])["long"].outcome == "overflow"


def test_a_form_without_a_cue_or_bounds_is_refused() -> None:
    model = tiny("llama")
    with pytest.raises(ValueError, match="judge form 'f' has no cue to read log-probs after"):
        replies_of(ScoringJudge(model), [Ask("i", form(0, 1, ""), {"x": "it"})])
    with pytest.raises(ValueError, match="the verdict 'score' has no bounds"):
        replies_of(ScoringJudge(model), [Ask("i", form(-1, None), {"x": "it"})])
    with pytest.raises(ValueError, match="batch_size = 0; give 1 or more"):
        ScoringSettings(0)


@pytest.mark.parametrize("cue", ['{"stance": ', '{"stance": "'])
def test_labels_are_scored_to_their_closing_quote(cue: str) -> None:
    model = tiny("llama")
    stance = Form("s", "Rate {x}.", (Field("stance", "label"),), "stance", cue)
    labels = ("A", "B", "I don't know")
    asked = [Ask(f"l{k}", stance, {"x": "ab" * k}, labels=labels) for k in range(3)]
    yes = Form("y", "Rate {x}.", (Field("yes", "boolean"),), "yes", '{"yes": ')
    mixed = [*asks("binary", 2), *asked, Ask("y0", yes, {"x": "it"})]
    found = replies_of(ScoringJudge(model), mixed)
    for ask in mixed:
        reply, choices = found[ask.id], ask.choices()
        assert reply.values[ask.form.verdict] in choices
        assert len(reply.probabilities) == len(choices)
    for ask in asked:
        prompt = (*message_ids(model, Message(ask.prompt)), *model.encode(cue.rstrip()))
        p = []
        for label in labels:
            text = f'{label}"' if cue.endswith('"') else f' "{label}"'
            ids = [*prompt, *model.encode(text)]
            with torch.inference_mode():
                logits = model.hf(torch.tensor([ids]), use_cache=False).logits[0].double()
            shares = torch.softmax(logits, -1)
            p.append(
                torch.stack([shares[k - 1, ids[k]] for k in range(len(prompt), len(ids))]).prod()
            )
        p = torch.stack(p)
        assert found[ask.id].probabilities == pytest.approx((p / p.sum()).tolist(), rel=1e-3)
        assert found[ask.id].mass == pytest.approx(p.sum().item(), rel=1e-3)
    assert found["y0"].values["yes"] in (True, False)
