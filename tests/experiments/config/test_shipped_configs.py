"""What comes with faithscope: configs by name, and the papers' own settings among them."""

from __future__ import annotations

import json
from pathlib import Path

import faithcot_runs
import pytest

from faithscope.experiments.config import shipped
from faithscope.experiments.config.load import load_config

PAPERS = [name for name in shipped.names() if name.startswith("paper/")]
DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.mark.parametrize("name", shipped.names())
def test_every_config_is_one_wherever_it_is_started(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(name, at_hand=False).name == name.replace("/", "_")


def test_a_file_of_the_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = (shipped.FOLDER / "quickstart.yaml").read_text("utf-8").replace("quickstart", "mine")
    Path("slrc").write_text(own, "utf-8")
    assert load_config("slrc", at_hand=False).name == "mine"


def test_a_folder_of_the_name_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slrc").mkdir()
    assert load_config("slrc", at_hand=False).name == "slrc"


def test_what_configs_name_of_ours_is_there() -> None:
    assert shipped.located("shipped:prices.yaml").is_file()
    assert shipped.located("shipped:models").is_dir()
    assert shipped.located("~/x") == Path("~/x").expanduser()


def of_paper(name: str, folder: Path) -> list[str]:
    """The overrides by which a paper's config reads the rows that are here, or some in the layout
    that it is for."""
    if name == "paper/bonafide":
        row = {"id": "a", "label_type": "FAITHFUL_COT", "target_model": "allenai/Olmo-3-7B-Think"}
        row |= {
            "sentence_span_start": 0,
            "sentence_span_end": -1,
            "cot": "We are told that it is B. So the answer has to be B as well.",
        }
        (folder / "b.jsonl").write_text(json.dumps(row | {"question": "?", "model_answer": "B"}))
        return [f"traces.path={folder / 'b.jsonl'}"]
    if name in ("paper/faithcot_compare", "paper/fine_cot"):
        return [f"traces.path={faithcot_runs.chains(folder / 'chains', 1, 'gpt-4o-mini')}"]
    if name == "paper/c2faith":
        return [f"data.path={DATA / 'prm800k' / 'subset.jsonl'}"]
    if name == "paper/rfeval":
        return [f"data.path={DATA / 'rfeval'}"]
    if name == "paper/faithcot":
        files = {"logiqa": "logiqa/logiqa_en.jsonl", "aqua": "aqua/test.jsonl"}
        return [
            f"tasks=[{', '.join(files)}]",
            *(f"data.path.{t}={DATA / f}" for t, f in files.items()),
        ]
    files = {"gsm8k": "gsm8k/test.jsonl", "medqa": "medqa/us_4_options_test.jsonl"}
    return ["tasks=[gsm8k, medqa]", *(f"data.path.{t}={DATA / f}" for t, f in files.items())]


@pytest.mark.in_time(3)
@pytest.mark.skipif(not DATA.is_dir(), reason="the real rows are not beside this checkout")
@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_own_settings_say_items_calls_and_cost(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from faithscope.experiments.cli import execute

    overrides = [*of_paper(name, tmp_path), f"out={tmp_path}"]
    assert execute(["run", name, "--dry-run", *(x for o in overrides for x in ("--set", o))]) == 0
    out = capsys.readouterr().out
    assert "total" in out
    if name not in ("paper/slrc_open", "paper/slrc_attention", "paper/slrc_layers"):
        assert "calls" in out
        assert "dollars" in out
        assert "no price" not in out
