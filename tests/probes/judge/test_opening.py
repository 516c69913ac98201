"""What a judge behind an API needs before its first call: provider, key, address, price."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_judge import account
from fault_server import KEY

from faithscope.interp.errors import UserError
from faithscope.probes.judge.api import ApiJudge

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("opnai/gpt-4.1", {}, "Model API opnai of model 'opnai/gpt-4.1' not recognized"),
        ("gpt-4.1", {}, "should be in the format"),
        ("openai-api/own", {"base_url": "http://127.0.0.1/v1"}, "must include a service prefix"),
        ("anthropic/claude", {}, "No ANTHROPIC_API_KEY"),
        ("together/m", {}, "No TOGETHER_API_KEY"),
        ("openai/azure/gpt", {"base_url": "https://x.test"}, "azure-identity"),
        ("openai-api/own-box/m", {"base_url": "http://10.0.0.1/v1"}, "No OWN_BOX_API_KEY"),
        ("vllm/m", {}, "give base_url, or set VLLM_BASE_URL"),
        ("openai/m", {"base_url": "10.0.0.1:80"}, "base_url must be http"),
        ("openai/m", {"base_url": f"http://h/{KEY}/v1"}, "variable that is a key; keys are read"),
    ],
)
@pytest.mark.in_time(4)
def test_what_would_fail_at_the_first_call_fails_before_it(name, settings, message):
    with pytest.raises(UserError, match=message) as error:
        ApiJudge(name, **settings)
    assert KEY not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_limited_cost_needs_a_price(tmp_path):
    with pytest.raises(UserError, match=r"'openai/plane' has no price.*add it to the prices"):
        ApiJudge("openai/plane", account=account(tmp_path, max_cost=1.0))
    ApiJudge("openai/plane", account=account(tmp_path, max_calls=1))


@pytest.mark.parametrize("missing", ["inspect_ai", "openai"])
def test_a_missing_package_is_named(missing, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=rf"{missing}.*pip install"):
        ApiJudge("openai/m")


@pytest.mark.parametrize(
    "name", ["openai/m", "vllm/m", "sglang/m", "ollama/m", "openai-api/own/m", "openai/azure/m"]
)
def test_a_server_on_this_machine_needs_no_key(name, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    hook = sys.excepthook
    judge = ApiJudge(name, base_url="http://127.0.0.1:9/v1")
    assert judge.name == name
    assert sys.excepthook is hook


def test_extensions_of_inspect_for_models_on_this_machine_are_left_alone(monkeypatch):
    """TransformerLens has two: each judge would wait for `torch`, and hold it."""
    from inspect_ai._util import entrypoints
    from inspect_ai.hooks import _startup

    loaded = []

    class Extension(EntryPoint):
        def load(self):
            loaded.append(self.name)

    values = ["transformer_lens.a", "faithscope.b", "transformer_lens_not", "hooks.of_a_company"]
    known = [Extension(name=v, value=v, group="inspect_ai") for v in values]
    monkeypatch.setattr(entrypoints, "entry_points", lambda group: known)
    monkeypatch.setattr(entrypoints, "_inspect_ai_eps_loaded_all", False)
    monkeypatch.setattr(_startup, "_registry_hooks_loaded", False)
    ApiJudge("openai/m", base_url="http://127.0.0.1:9/v1")
    assert loaded == values[2:]
    # whoever uses Inspect later has them all
    entrypoints.ensure_entry_points()
    assert loaded == values[2:] + values


def test_no_judge_shows_its_key():
    assert KEY not in repr(ApiJudge("openai/m", base_url="http://127.0.0.1:9/v1"))
