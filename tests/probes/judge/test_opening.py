"""What a judge behind an API needs before its first call: provider, key, address, price."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import KEY

from faithscope.interp.errors import UserError
from faithscope.probes.judge import providers
from faithscope.probes.judge.api import ApiJudge
from faithscope.probes.judge.spend import Budget

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("opnai/gpt-4.1", {}, "did you mean 'openai'"),
        ("gpt-4.1", {}, "no such provider"),
        ("openai/", {}, "no such provider"),
        ("openai-api/own", {"base_url": "http://127.0.0.1/v1"}, "names no model"),
        ("anthropic/claude", {}, "export ANTHROPIC_API_KEY"),
        ("together/m", {}, "export TOGETHER_API_KEY"),
        ("openai/azure/gpt", {}, "AZUREAI_OPENAI_BASE_URL"),
        ("openai/azure/gpt", {"base_url": "https://x.test"}, "export AZUREAI_OPENAI_API_KEY or"),
        ("openai-api/own-box/m", {}, "give base_url, or set OWN_BOX_BASE_URL"),
        ("openai-api/own-box/m", {"base_url": "http://10.0.0.1/v1"}, "export OWN_BOX_API_KEY"),
        ("vllm/m", {}, "give base_url, or set VLLM_BASE_URL"),
        ("openai/m", {"base_url": "10.0.0.1:80"}, "base_url must be http"),
        ("openai/m", {"base_url": f"http://me:{KEY}@h/v1"}, "the environment only"),
        ("openai/m", {"base_url": f"http://h/v1?key={KEY}"}, "the environment only"),
        ("openai/m", {"base_url": f"http://h/v1#{KEY}"}, "the environment only"),
        ("openai/m", {"base_url": f"http://h/{KEY}/v1"}, "variable that is a key; keys are read"),
        ("openai/m", {"base_url": f"http://h/{KEY.replace('-', '%2D')}/v1"}, "that is a key"),
        ("openai/m", {"base_url": "http://[h/v1"}, "base_url must be http"),
        ("openai/m", {"attempts": 0}, "attempts=0: at least 1"),
        ("openai/m", {"budget": Budget(max_cost=1.0)}, "has no price"),
    ],
)
def test_what_would_fail_at_the_first_call_fails_before_it(name, settings, message, monkeypatch):
    for variable in ("AZUREAI_OPENAI_BASE_URL", "VLLM_BASE_URL", "OWN_BOX_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UserError, match=message) as error:
        ApiJudge(name, **settings)
    assert KEY not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("vllm/m", "VLLM_BASE_URL"),
        ("openai/m", "OPENAI_BASE_URL"),
        ("openai-api/own-box/m", "OWN_BOX_BASE_URL"),
        ("openai/azure/m", "AZUREAI_OPENAI_BASE_URL"),
    ],
)
def test_a_password_in_an_address_of_the_environment_is_refused(name, variable, monkeypatch):
    monkeypatch.setenv("OWN_BOX_API_KEY", KEY)
    monkeypatch.setenv("AZUREAI_OPENAI_API_KEY", KEY)
    monkeypatch.setenv(variable, "http://me:swordfish@127.0.0.1/v1")
    with pytest.raises(UserError, match=f"address in {variable} holds a user name") as error:
        ApiJudge(name)
    assert "swordfish" not in str(error.value)
    # a path may hold a key there: it is not written anywhere
    monkeypatch.setenv(variable, f"http://127.0.0.1/{KEY}/v1")
    assert KEY not in repr(ApiJudge(name))


@pytest.mark.parametrize("missing", ["inspect_ai", "openai"])
def test_a_missing_package_is_named(missing, monkeypatch):
    there = providers._importable
    monkeypatch.setattr(providers, "_importable", lambda m: m != missing and there(m))
    with pytest.raises(UserError, match=rf"{missing}.*pip install 'faithscope\[judge\]'"):
        ApiJudge("openai/m")


@pytest.mark.parametrize("name", providers.PROVIDERS)
def test_every_provider_opens_with_a_key(name, monkeypatch):
    provider = providers.PROVIDERS[name]
    if not providers._importable(provider.module):
        with pytest.raises(UserError, match=provider.install):
            ApiJudge(f"{name}/m")
        return
    for variable in provider.keys[:1]:
        monkeypatch.setenv(variable, KEY)
    model = "own/m" if name == "openai-api" else "m"
    hook = sys.excepthook
    judge = ApiJudge(f"{name}/{model}", base_url="http://127.0.0.1:9/v1")
    assert judge.name == f"{name}/{model}"
    assert sys.excepthook is hook
    assert KEY not in repr(judge)
