"""The open model as a judge that writes: real engine, weights that write a given text."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from chat_tokenizers import tokenizer
from judge_replies import replies_of
from tiny_models import byte_tokenizer, tiny
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from faithscope.interp.formats import detect_format
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.probes.judge.form import Ask, Field, Form, Reply
from faithscope.probes.judge.open_model import GeneratingJudge, GeneratingSettings, words
from faithscope.probes.judge.parse import sent

FORM = Form("f", "Is {x} so?", (Field("score", "integer", 0, 1),), "score")
GOOD = '{"score": 1}'


def asks(n: int = 5) -> list[Ask]:
    return [Ask(f"i{k}", FORM, {"x": str(k)}) for k in range(n)]


def writer(
    text: str,
    tokens: PreTrainedTokenizerFast | None = None,
    *,
    ties: dict[int, str] | None = None,
    thinking: bool | None = None,
) -> Model:
    """A model that replies `text` to every ask of `asks()`, whatever it reads.

    Its blocks add nothing and its tokens embed as zero, so that the next token hangs on the
    position alone: the k-th of the reply at the k-th position from the end of the prompt.

    Args:
        ties: reply position -> a character just as likely there as the one in `text`.
    """
    tokens = tokens or byte_tokenizer()
    end, size = 0, len(tokens)
    config = GPT2Config(
        vocab_size=size,
        n_embd=256,
        n_layer=1,
        n_head=2,
        n_positions=1400,
        bos_token_id=None,
        eos_token_id=None,
    )
    config.tie_word_embeddings = False
    torch.manual_seed(0)
    hf = GPT2LMHeadModel(config)
    model = wrap(hf, tokens, name="writer", verify_model=False)
    model = replace(model, end_ids=frozenset({end}), format=detect_format(tokens))
    ask = asks(1)[0]
    start = len(model.prompt(words(ask), ask.form.system, thinking).ids) - 1
    ids = [*tokens(text, add_special_tokens=False)["input_ids"], end]
    for name, weight in hf.named_parameters():
        if not name.startswith("transformer.ln_f"):
            weight.data.zero_()
    for k, token in enumerate(ids):
        hf.transformer.wpe.weight.data[start + k, k] = 1
        hf.lm_head.weight.data[token, k] = 8
        if ties and k in ties:
            (other,) = model.encode(ties[k])
            hf.lm_head.weight.data[other, k] = 8
    return model


def test_a_reply_of_the_form_is_a_verdict() -> None:
    model = writer(f"\n{GOOD}\n")
    found = replies_of(GeneratingJudge(model), asks())
    for ask in asks():
        reply = found[ask.id]
        assert (reply.outcome, reply.values, reply.text) == ("parsed", {"score": 1}, GOOD)
        assert reply.usage.calls == 1
        assert sent(ask.prompt, reply.requested) == words(ask) != ask.prompt
        assert reply.usage.input_tokens == len(model.prompt(words(ask)).ids)
        assert reply.usage.output_tokens == len(GOOD) + 2
        assert reply.usage.reasoning_tokens == 0
        assert reply.seconds > 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I think it is 1.", "no JSON object"),
        ('{"score": 2}', "outside 0..1"),
        (f"{GOOD} or {GOOD}", "text after the JSON object"),
    ],
)
def test_what_is_not_of_the_form_is_no_verdict(text: str, problem: str) -> None:
    for reply in replies_of(GeneratingJudge(writer(text)), asks()).values():
        assert (reply.outcome, dict(reply.values), reply.text) == ("unparsed", {}, text)
        assert problem in reply.problem


def test_what_the_token_limit_cuts_off_is_no_verdict_whatever_stands_in_it() -> None:
    model = writer(f"{GOOD} and so on")
    cut = GeneratingSettings(max_new_tokens=len(GOOD) + 3)
    for reply in replies_of(GeneratingJudge(model, cut), asks()).values():
        assert (reply.outcome, dict(reply.values)) == ("truncated", {})
        assert reply.text.startswith(GOOD)


@pytest.mark.in_time(2)
@pytest.mark.parametrize("family", ["qwen3", "ministral3_reasoning", "smollm3_spelled", "gpt_oss"])
def test_thinking_ends_where_the_models_own_marks_end_it(family: str) -> None:
    tokens = tokenizer(family)
    fmt = detect_format(tokens)
    thought = f"It says {GOOD}. Or 0"
    model = writer(f"{thought}{fmt.closer}{GOOD}", tokens)
    for reply in replies_of(GeneratingJudge(model), asks(3)).values():
        assert (reply.outcome, reply.values, reply.text) == ("parsed", {"score": 1}, GOOD)
        assert reply.thinking == thought
        assert 0 < reply.usage.reasoning_tokens < reply.usage.output_tokens

    unclosed = writer(f"It says {GOOD}", tokens)
    for reply in replies_of(GeneratingJudge(unclosed), asks(3)).values():
        assert (reply.outcome, dict(reply.values)) == ("unclosed_thinking", {})
        assert GOOD in reply.thinking
        assert reply.text == ""


def test_a_model_told_not_to_think_answers_at_once() -> None:
    model = writer(GOOD, tokenizer("qwen3"), thinking=False)
    judge = GeneratingJudge(model, GeneratingSettings(thinking=False))
    for reply in replies_of(judge, asks(3)).values():
        assert (reply.outcome, reply.thinking) == ("parsed", "")


def test_a_prompt_that_leaves_no_room_is_an_overflow_and_the_others_get_what_there_is() -> None:
    model = tiny("llama")
    (one,) = asks(1)
    limit = model.max_positions
    assert limit is not None
    spare = limit - len(model.prompt(words(one)).ids)
    sizes = {"fits": 0, "short": spare - 5, "last": spare - 1, "full": spare, "over": spare + 9}
    asked = [Ask(k, FORM, {"x": "0" + "1" * n}) for k, n in sizes.items()]
    found = replies_of(GeneratingJudge(model, GeneratingSettings(max_new_tokens=12)), asked)
    written = {k: r.usage.output_tokens for k, r in found.items()}
    assert written == {"fits": 12, "short": 5, "last": 1, "full": 0, "over": 0}
    for k in ("full", "over"):
        assert found[k].outcome == "overflow"
        assert f"do not fit the {limit} positions of tiny:llama" in found[k].problem


def plain(replies: dict[str, Reply]) -> dict[str, Reply]:
    return {k: replace(r, seconds=0) for k, r in replies.items()}


@pytest.mark.in_time(1)
@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_company_and_order_change_no_reply(temperature: float) -> None:
    model = tiny("llama")
    settings = GeneratingSettings(max_new_tokens=16, temperature=temperature, seed=4)
    whole = plain(replies_of(GeneratingJudge(model, settings), asks()))
    for size in (1, 2):
        judge = GeneratingJudge(model, replace(settings, batch_size=size))
        assert plain(replies_of(judge, asks()[::-1])) == whole
    # as after a resumed run: those that are there are not asked again
    assert plain(replies_of(GeneratingJudge(model, settings), asks()[2:])) == {
        k: r for k, r in whole.items() if k in {"i2", "i3", "i4"}
    }
    other = plain(replies_of(GeneratingJudge(model, replace(settings, seed=5)), asks()))
    assert (other == whole) == (temperature == 0)


def test_greedy_replies_are_what_the_model_writes_alone() -> None:
    model = tiny("llama")
    found = replies_of(GeneratingJudge(model, GeneratingSettings(max_new_tokens=16)), asks())
    for ask in asks():
        (alone,) = model.generate([model.prompt(words(ask)).ids], 16)
        assert found[ask.id].usage.output_tokens == len(alone.ids)
        assert found[ask.id].text == model.decode(alone.ids).strip()


def test_a_sampled_reply_that_does_not_parse_is_drawn_anew() -> None:
    at = GOOD.index("1")
    # verdict 1, or 7 which is no verdict, equally likely
    model = writer(GOOD, ties={at: "7"})
    settings = GeneratingSettings(temperature=1e-2, attempts=1, seed=1)
    once = replies_of(GeneratingJudge(model, settings), asks(10))
    outcomes = [r.outcome for r in once.values()]
    assert {"parsed", "unparsed"} == set(outcomes)
    often = replies_of(GeneratingJudge(model, replace(settings, attempts=12)), asks(10))
    assert {r.outcome for r in often.values()} == {"parsed"}
    for k, reply in often.items():
        assert (reply.usage.calls > 1) == (once[k].outcome == "unparsed")
        assert reply.usage.output_tokens == reply.usage.calls * len(GOOD)
        assert reply.usage.input_tokens == reply.usage.calls * once[k].usage.input_tokens


def test_an_error_while_storing_ends_the_asking() -> None:
    def full(ask: Ask, reply: Reply) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        GeneratingJudge(writer(GOOD)).ask_all(asks(), full)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"attempts": 2}, "attempts = 2 with temperature 0, which writes the same again"),
        ({"max_new_tokens": 0}, "max_new_tokens = 0; give 1 or more"),
        ({"batch_size": 0}, "batch_size = 0; give 1 or more"),
        ({"temperature": -1.0}, "temperature = -1.0; give 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        GeneratingSettings(**given)  # pyright: ignore
