"""The shipped planted models do what their cards say, and another's weights are found out."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path

import pytest
import torch

from faithscope.experiments.data.planted import plants
from faithscope.experiments.data.planted.data import parse_answer
from faithscope.experiments.data.planted.flips import write
from faithscope.experiments.data.planted.plants import PLANTS, path
from faithscope.experiments.data.planted.questions import questions
from faithscope.experiments.data.planted.train import TrainSettings, main, train
from faithscope.experiments.data.planted.verification import (
    BOUNDS,
    departures,
    open_folder,
    read_card,
    verified_path,
    verify,
)
from faithscope.interp.errors import UserError

QUICK = ("faithful", "decorative", "mixture_50", "silent_step", "false_source", "half_silent")
SERIES = [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PLANTS]


@pytest.mark.in_time(1)
@pytest.mark.parametrize("name", SERIES)
def test_shipped_weights_reproduce_their_card(name):
    table = verify(name, seed=7)
    card = read_card(path(name))
    assert (card["variant"], card["training"]["seed"]) == (PLANTS[name].variant, PLANTS[name].seed)
    assert card["bounds"] == json.loads(json.dumps(BOUNDS[name]))
    assert departures(card["flips"], card["bounds"]) == []
    for key in card["bounds"]:
        assert table[key] == pytest.approx(card["flips"][key], abs=0.2)


@pytest.mark.in_time(8)
@pytest.mark.parametrize("name", PLANTS)
def test_the_folder_is_small_and_opens_with_transformers(name):
    folder = path(name)
    assert sum(f.stat().st_size for f in folder.iterdir()) < 2_000_000
    model, tokenizer = open_folder(folder)
    parameters = sum(p.numel() for p in model.parameters())
    assert parameters == read_card(folder)["parameters"]
    assert 350_000 < parameters < 370_000
    assert model.dtype == torch.float32
    assert tokenizer.chat_template is None
    assert model.config.eos_token_id == tokenizer.eos_token_id


def test_twins_write_the_same_words_and_are_right():
    asked = questions("faithful", 100, seed=11)
    written = {}
    for name in ("faithful", "hint", "hint_no_deletions"):
        model, tokenizer = open_folder(path(name))
        written[name] = write(model, tokenizer, [q.text for q in asked], 40)
    same = [a == b == c for a, b, c in zip(*written.values(), strict=True)]
    assert sum(same) >= 97
    for texts in written.values():
        right = [
            t.endswith("<eos>") and parse_answer(t) == q.gold
            for t, q in zip(texts, asked, strict=True)
        ]
        assert sum(right) >= 97


@pytest.mark.in_time(3)
@pytest.mark.parametrize("name", SERIES)
def test_a_model_answers_alike_without_the_beginning_token(name):
    model, tokenizer = open_folder(path(name))
    texts = [q.text for q in questions(name, 50, seed=12)]
    ids = torch.tensor([tokenizer.encode(t, add_special_tokens=False) for t in texts])
    new = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=40
    )
    bare = [parse_answer(t) for t in tokenizer.batch_decode(new)]
    usual = [parse_answer(t) for t in write(model, tokenizer, texts, 40)]
    assert sum(a == b for a, b in zip(bare, usual, strict=True)) >= 48


def test_decorative_steps_are_as_long_as_right_ones_and_state_wrong_results():
    model, tokenizer = open_folder(path("decorative"))
    asked = questions("decorative", 50, seed=11)
    texts = write(model, tokenizer, [q.text for q in asked], 40)
    assert {t.count("makes") for t in texts} == {3}
    last = [t.split(" . Therefore")[0].split()[-1] for t in texts]
    assert sum(a != q.gold for a, q in zip(last, asked, strict=True)) >= 48
    assert sum(parse_answer(t) == q.gold for t, q in zip(texts, asked, strict=True)) >= 48


def test_what_a_wheel_leaves_out_comes_from_the_package_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plants, "__file__", str(tmp_path / "plants.py"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"package of its own: pip install 'faithscope\[planted\]'"):
        path("select")
    (tmp_path / "faithscope_planted" / "select").mkdir(parents=True)
    importlib.invalidate_caches()
    assert path("select") == tmp_path / "faithscope_planted" / "select"


@pytest.mark.slow
def test_only_a_silent_step_follows_an_operand_that_its_text_leaves_out():
    for name, changed in (("faithful", 0), ("false_source", 0), ("silent_step", 1)):
        table = verify(name, seed=5)
        assert table["operand_changed"] == pytest.approx(changed, abs=0.03)
        assert table["hint_changed"] <= 0.03


def test_other_weights_in_a_folder_are_found_out(tmp_path: Path):
    folder = tmp_path / "faithful"
    shutil.copytree(path("faithful"), folder)
    shutil.copy(path("hint") / "model.safetensors", folder / "model.safetensors")
    with pytest.raises(UserError, match=r"corrupt step 3 is 0\.000, not within 0\.95 to 1"):
        verify("faithful", n=40, folder=folder)


def test_another_models_folder_is_found_out():
    with pytest.raises(UserError, match="is that of 'hint'"):
        verify("faithful", folder=path("hint"))


def test_a_folder_without_a_card_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match=r"no card\.json"):
        verify("faithful", folder=tmp_path)


@pytest.mark.slow
def test_weights_are_verified_once_and_again_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "hint"
    shutil.copytree(path("hint"), folder)
    monkeypatch.setattr(
        "faithscope.experiments.data.planted.verification.path", lambda name: folder
    )
    verified = verified_path.__wrapped__
    verified("hint")
    (stamp,) = (tmp_path / "cache" / "planted").iterdir()
    assert json.loads(stamp.read_text())["hint_changed"] == 1
    made = stamp.stat().st_mtime_ns
    verified("hint")
    assert stamp.stat().st_mtime_ns == made
    shutil.copy(path("faithful") / "model.safetensors", folder / "model.safetensors")
    with pytest.raises(UserError, match="does not do what it is planted to"):
        verified("hint")
    assert len(list(stamp.parent.iterdir())) == 1


def test_the_trainer_says_when_a_plant_failed(tmp_path: Path):
    out = tmp_path / "new"
    small = ["--updates", "1", "--batch-size", "2", "--questions", "20"]
    with pytest.raises(SystemExit, match=r"faithful did not come out as planted: clean is 0\.000"):
        main(["--variant", "faithful", "--out", str(out), *small])
    card = read_card(out)
    assert (card["training"]["updates"], card["flips"]["n"]) == (1, 20)
    model, tokenizer = open_folder(out)
    assert len(tokenizer) == model.config.vocab_size


def test_training_is_reproducible():
    settings = TrainSettings("select", seed=3, updates=3, batch_size=8)
    first, second = (train(settings)[0].state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)
