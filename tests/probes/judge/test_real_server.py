"""A real model behind a real server says what the same weights say in this process."""

from __future__ import annotations

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from judge_replies import replies_of
from model_server import serving

from faithscope import interp
from faithscope.interp.sources import resolve
from faithscope.probes.judge.api import ApiJudge
from faithscope.probes.judge.form import Ask, Field, Form
from faithscope.probes.judge.open_model import GeneratingJudge, GeneratingSettings

MODEL = "bundled:smollm2-135m"
TOKENS = 48
FORM = Form(
    "follows",
    "Problem: {problem}\nStep: {step}\nDoes the step follow? Score 1 if it does, 0 if not.",
    (Field("score", "integer", 0, 1),),
    "score",
)
STEPS = ["12 + 7 = 19", "12 + 7 = 21", "So there are 84 cats.", "12 is even, 7 is odd."]
ASKS = [Ask(str(i), FORM, {"problem": "12 + 7 = ?", "step": s}) for i, s in enumerate(STEPS)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(resolve(MODEL).location, tmp_path_factory.mktemp("server")) as served:
        yield served


@pytest.fixture(scope="module")
def judge(server):
    url, name = server

    def make(**settings) -> ApiJudge:
        settings = {"attempts": 1} | settings
        config = {"max_tokens": TOKENS, "temperature": 0.0}
        return ApiJudge(f"openai-api/local/{name}", config, base_url=url, **settings)

    return make


@pytest.mark.slow
def test_the_server_says_what_the_weights_say(judge):
    served = replies_of(judge(), ASKS)
    model = interp.load(MODEL, dtype="float32", device="cpu", verify_model=False)
    here = replies_of(GeneratingJudge(model, GeneratingSettings(max_new_tokens=TOKENS)), ASKS)
    assert sorted(served) == sorted(here) == [ask.id for ask in ASKS]
    for name, reply in served.items():
        assert (reply.text, reply.outcome) == (here[name].text, here[name].outcome)
        assert reply.values == here[name].values
        assert reply.usage.calls == 1
        assert reply.usage.input_tokens == here[name].usage.input_tokens
        assert 0 < reply.usage.output_tokens <= TOKENS
