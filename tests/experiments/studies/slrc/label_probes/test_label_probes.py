"""Labels read off hidden states: on planted models first, then on what cannot be read."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from probe_records import base, table_of

from faithscope import interp
from faithscope.experiments.analysis.run import Run, load_run
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.cli.run import carry_out, report
from faithscope.experiments.console import DONE, FAILED_ITEMS
from faithscope.experiments.data.planted.data import ANSWER_CUE, draw_problem, true_answer
from faithscope.experiments.data.planted.plants import path
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.label_probes.values import Lengths, RunLabels
from faithscope.experiments.studies.slrc.plan import READ, plan
from faithscope.experiments.studies.slrc.scores import scores
from faithscope.interp.directions import Direction, load_directions, save_directions
from faithscope.interp.errors import UserError
from faithscope.probes.linear_probe import LinearProbeSettings

ITEMS = 120


@cache
def chains(name: str, items: int = ITEMS, seed: int = 0) -> tuple[dict[str, Any], ...]:
    """The chains of a planted model on questions whose hint is random, so right only by chance; a
    label for each source that an answer may follow: the half of the digits that it is in."""
    rng = random.Random(seed)
    problems = [draw_problem(rng, 3, select=False) for _ in range(items)]
    problems = [replace(p, hint=rng.randrange(10)) for p in problems]
    model = interp.load(str(path(name)), verify_model=False)
    written = model.generate([model.prompt(p.text).ids for p in problems], 64)
    made = []
    for i, (p, said) in enumerate(zip(problems, written, strict=True)):
        reasoning, _, answer = "".join(model.pieces(said.ids)).partition(ANSWER_CUE)
        assert p.hint is not None
        labels = {
            "hint_is_high": p.hint > 4,
            "steps_are_high": int(true_answer(p)) > 4,
            "drawn": rng.random() < 0.5,
            "hint": p.hint,
            "only": "one",
            "own_digit": str(p.hint),
            "rare": True if i < 9 else None,
        }
        row = {"id": f"q{seed}.{i}", "question": p.text, "kind": "label", "labels": labels}
        steps = re.findall(r"So .*? \.", reasoning)
        row["steps"] = [
            {"text": x, "labels": {"result_is_high": int(x.split()[-2]) > 4}} for x in steps
        ]
        row |= {"options": list("0123456789"), "reasoning": reasoning, "problem": f"{seed}.{i}"}
        made.append(row | {"answer": answer.split()[0], "model": f"planted:{name}"})
    return tuple(made)


def run(folder: Path, name: str, of: Sequence[Mapping[str, Any]], *more: str) -> tuple[int, Path]:
    file = folder / f"{name}.jsonl"
    file.write_text("\n".join(map(json.dumps, of)))
    values = [
        *(f"name={name}", f"out={folder}", f"traces.path={file}", "traces.task=planted"),
        *("traces.group=problem", "model.name=planted:hint", "probes=[linear_probe]"),
        *("linear_probe.positions=1", "linear_probe.step_state=mean", "report.traces=0"),
        *("report.bootstrap=50", "linear_probe.shuffles=199"),
    ]
    return carry_out("slrc", [*values, *more]), folder / name


LABELS = "linear_probe.labels=[hint_is_high,steps_are_high,drawn]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("labels")


@pytest.fixture(scope="module")
def of_hint(folder: Path) -> Run:
    code, at = run(folder, "hint", chains("hint"), LABELS)
    assert code == DONE
    return load_run(at)


def cell(made: pd.DataFrame, **of: Any) -> dict[str, Any]:
    (row,) = rows(where(made, **of))
    return row


@pytest.mark.slow
def test_the_source_that_planted_hint_follows_is_read_and_the_other_is_not(of_hint: Run) -> None:
    made = of_hint.tables["label_probe"]
    last = {"position": "after", "layer": 3}
    followed = cell(made, label="hint_is_high", **last)
    assert followed["auroc"] >= 0.95
    assert followed["auroc_low"] >= 0.9
    assert followed["readable"]
    assert followed["over_length"] >= 0.4
    assert abs(followed["control"] - 0.5) < 0.05
    ignored = cell(made, label="steps_are_high", **last)
    assert not ignored["readable"]
    assert ignored["auroc_low"] < 0.5
    # the steps say it, all the same
    assert cell(made, label="steps_are_high", position="during 1/1", layer=1)["readable"]
    assert not any(where(made, label="drawn")["readable"])
    page = (of_hint.path / "report.html").read_text()
    assert "What hidden states tell of labels" in page
    assert (of_hint.path / "figures" / "label_probe.png").is_file()


@pytest.mark.slow
def test_the_faithful_twin_shows_the_reverse(folder: Path) -> None:
    more = ("model.name=planted:faithful", LABELS)
    code, at = run(folder, "faithful", chains("faithful"), *more)
    assert code == DONE
    made, last = load_run(at).tables["label_probe"], {"position": "after", "layer": 3}
    assert cell(made, label="steps_are_high", **last)["auroc"] >= 0.95
    assert not cell(made, label="hint_is_high", **last)["readable"]


@pytest.mark.slow
def test_directions_are_stored_with_what_they_were_fitted_to(of_hint: Run) -> None:
    found = {
        d.name: d for d in load_directions(of_hint.path / "directions/linear_probe.safetensors")
    }
    places, layers, labels = 3, 3, 3
    assert len(found) == places * layers * labels * 2
    one = found["hint_is_high|after|3|logistic"]
    assert (one.layer, one.site) == (3, "residual")
    about = {k: one.about[k] for k in ("model", "place", "label", "level", "n", "classes", "run")}
    assert about == {
        **{"model": "planted:hint", "place": "after", "label": "hint_is_high", "level": "chain"},
        **{"n": ITEMS, "classes": ["0", "1"], "run": "hint"},
    }
    assert len(one.about["sha256"]) == 64
    states = np.stack([a["states"][2, 2] for _, a in of_hint.arrays("linear_probe")]).astype(float)
    items = [item for (_, _, item), _ in of_hint.arrays("linear_probe")]
    high = {r["id"]: r["labels"]["hint_is_high"] for r in chains("hint")}
    truth = np.array([high[item] for item in items])
    logits = states @ one.vector.double().numpy() + one.about["intercept"]
    assert ((logits > 0) == truth).mean() > 0.97
    means = found["hint_is_high|after|3|difference_of_means"]
    between = states[truth].mean(0) - states[~truth].mean(0)
    assert means.vector.numpy() == pytest.approx(between, abs=1e-5)
    middle = (states[truth].mean(0) + states[~truth].mean(0)) / 2
    assert middle @ between + means.about["intercept"] == pytest.approx(0, abs=1e-4)


@pytest.mark.slow
def test_directions_are_read_on_another_run_without_a_fit(
    of_hint: Run, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = of_hint.path / "directions/linear_probe.safetensors"
    more = (f"linear_probe.apply={file}", "linear_probe.each_step=true")
    code, at = run(folder, "other", chains("hint", 40, seed=1), *more)
    assert code == DONE
    other = load_run(at)
    told = other.tables["label_probe_applied"]
    row = cell(told, direction="hint_is_high|after|3|logistic")
    assert (row["n"], row["n_labelled"], row["reason"]) == (40, 40, "")
    assert row["auroc"] >= 0.95
    assert row["own_score"] >= 0.95
    chosen = where(told, chosen=True)
    assert sorted(chosen["label"]) == ["drawn", "hint_is_high", "steps_are_high"]
    read = scores(other)
    name = "linear_probe: direction of hint_is_high"
    assert len(where(read.items, measure=name)) == 40
    assert len(where(read.steps, measure=name)) == 3 * 40
    of_file = other.tables["label_probe_scores"]
    assert len(where(of_file, measure=name)) == 4 * 40
    stored = file.read_bytes()
    file.unlink()
    assert report(str(at)) == FAILED_ITEMS
    assert "the file of directions cannot be read" in capsys.readouterr().err
    file.write_bytes(stored)
    assert not (at / "directions").exists() or not list((at / "directions").iterdir())


@pytest.mark.slow
def test_labels_of_steps_are_read_off_the_states_of_every_step(folder: Path) -> None:
    more = ("linear_probe.each_step=true", "linear_probe.step_labels=[result_is_high]")
    code, at = run(folder, "steps", chains("hint", 60, seed=4), *more)
    assert code == DONE
    made = load_run(at).tables["label_probe"]
    assert made["position"].tolist() == ["step"] * 3
    assert set(made["level"]) == {"step"}
    assert made["n"].tolist() == [180] * 3
    assert made["n_questions"].tolist() == [60] * 3
    assert all(made["readable"])
    assert float(made["auroc"].to_numpy(dtype=float).max()) > 0.8
    (direction, *_) = load_directions(at / "directions/linear_probe.safetensors")
    assert (direction.about["place"], direction.about["level"]) == ("step", "step")


@pytest.mark.slow
def test_labels_are_read_off_states_at_declared_spans(folder: Path) -> None:
    code, at = run(
        *(folder, "spans", chains("hint", seed=5), "probes=[states]", "states.shuffles=199"),
        *("states.labels=[hint_is_high]", "states.step_labels=[result_is_high]"),
        *("states.layers=[2,3]", "states.sites=[residual,mlp]", "states.pool=mean"),
        "states.spans={hint: {regex: 'Hint : .', in: prompt}, answer: answer, step: step}",
    )
    assert code == DONE
    made = load_run(at).tables["states_label_probe"]
    of_chains = where(made, level="chain")
    assert list(dict.fromkeys(of_chains["position"])) == [
        "hint",
        "hint mlp",
        "answer",
        "answer mlp",
    ]
    for place in ("hint", "answer"):
        found = cell(of_chains, position=place, layer=3)
        assert found["auroc"] > 0.75
        assert found["readable"]
    steps = where(made, level="step")
    assert list(dict.fromkeys(steps["position"])) == ["step", "step mlp"]
    assert all(steps["readable"])
    found = load_directions(at / "directions/states.safetensors")
    assert {(d.about["place"], d.site) for d in found} == {
        (place, site) for place in ("hint", "answer", "step") for site in ("residual", "mlp")
    }


@pytest.mark.slow
def test_labels_may_be_named_later_and_only_tables_are_made_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_hint = chains("hint", 40, seed=2)
    code, at = run(folder, "later", of_hint)
    assert code == DONE
    assert "label_probe" not in load_run(at).tables
    before = {p.name: p.read_bytes() for p in (at / "records").iterdir()}
    code, _ = run(folder, "later", of_hint, "linear_probe.labels=[own_digit]")
    assert code == DONE
    assert {p.name: p.read_bytes() for p in (at / "records").iterdir()} == before
    made = load_run(at).tables["label_probe"]
    assert set(made["label"]) == {"own_digit"}
    assert made["n"].iloc[0] + made["n_left_out"].iloc[0] == 40
    assert list((at / "directions").iterdir())
    # no right answer is known, so the label is of no chain
    code, _ = run(folder, "later", of_hint, "linear_probe.labels=[correct]")
    assert code == FAILED_ITEMS
    assert "nothing was measured by label correct, which linear_probe.labels asks for" in (
        capsys.readouterr().err
    )
    (row,) = load_run(at).tables["label_probe"].to_dict("records")
    assert (row["label"], row["reason"]) == ("correct", "fewer_than_2_classes")
    assert not list((at / "directions").iterdir())
    assert report(str(at)) == FAILED_ITEMS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("labels=[hint_is_hihg]", "no label 'hint_is_hihg'; did you mean 'hint_is_high'"),
        ("labels=[zzz]", "no label 'zzz'; there are hint_is_high, steps_are_high, drawn"),
        ("labels=[only]", "label 'only' has one value, one, on all 40 chains"),
        ("labels=[rare]", "label 'rare' has one value, 1, on all 9 chains"),
        ("min_items=41", "label 'hint' is known of 40 chains, fewer than linear_probe.min_items"),
        ("step_labels=[zzz]", "set each_step to true"),
        ("apply=/no/such.safetensors", r"linear_probe.apply: /no/such.safetensors: no such file"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_measured(
    folder: Path, setting: str, problem: str
) -> None:
    more = ["linear_probe.labels=[hint]"] if setting.startswith("min") else []
    with pytest.raises(UserError, match=problem):
        run(folder, "refused", chains("hint", 40, seed=2), *more, f"linear_probe.{setting}")


def test_a_changed_file_of_directions_is_another_input(tmp_path: Path) -> None:
    chain = {"question": "Add.", "reasoning": "So it is. So it was. So.", "answer": "1"}
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(chain | {"id": "q", "kind": "label", "options": list("0123456789")}))
    file = tmp_path / "d.safetensors"

    def inputs() -> tuple[str | None, set[str]]:
        values = {
            "name": "x",
            "model": {"name": ["planted:hint"]},
            "traces": {"path": str(rows), "task": "planted", "read_by": "all"},
            "probes": ["linear_probe"],
            "linear_probe": {"apply": str(file)},
        }
        planned = plan(RunConfig.model_validate(values))
        units = {unit for item in planned.items for unit in item.units.values()}
        return planned.inputs()[READ], units

    save_directions(file, [Direction("d", torch.ones(96), 1)])
    (one, units), same = inputs(), inputs()
    save_directions(file, [Direction("d", -torch.ones(96), 1)])
    other, others = inputs()
    assert one is not None
    assert (one, units) == same
    assert one != other, "finished tables are made anew"
    assert units == others, "and no state is read again"


@pytest.mark.slow
def test_directions_of_another_model_are_refused_unless_said(of_hint: Run, folder: Path) -> None:
    file = of_hint.path / "directions/linear_probe.safetensors"
    others, model = chains("faithful", 40, seed=3), "model.name=planted:faithful"
    apply = f"linear_probe.apply={file}"
    with pytest.raises(UserError, match="are of planted:hint, and this run has the model"):
        run(folder, "stranger", others, model, apply)
    said = "linear_probe.apply_to_any_model=true"
    code, at = run(folder, "stranger", others, model, apply, said)
    assert code == DONE
    assert set(load_run(at).tables["label_probe_applied"]["reason"]) == {""}
    narrow = save_directions(folder / "narrow.safetensors", [Direction("d", torch.ones(9), 1)])
    with pytest.raises(UserError, match="have 9 numbers, and the states of 'planted:faithful' 96"):
        run(folder, "wide", others, model, f"linear_probe.apply={narrow}")


SETTINGS = LinearProbeSettings(labels=("label",), shuffles=99)


def record(item: int, group: str = "", **more: Any) -> dict[str, Any]:
    return base("linear_probe", "m", "t", str(item), "") | {
        **{"answer": None, "gold": None, "group": group or str(item)},
        **{"positions": ["before", "after"], "layers": [1, 2], "n_layers": 2, **more},
    }


def table(values: Sequence[Any], features: np.ndarray, **settings: Any) -> pd.DataFrame:
    """The table of a label of chains, whose states are (items, places, layers, D)."""
    records = [record(i) for i in range(len(values))]
    places = [("m", "t", str(i)) for i in range(len(values))]
    labels = RunLabels(
        {"label": lambda: dict(zip(places, values, strict=True))},
        lengths={at: Lengths(10 + i % 7, {0: 5, 1: 5}) for i, at in enumerate(places)},
    )
    of = SETTINGS.model_copy(update=settings)
    stored = [(at, {"states": x}) for at, x in zip(places, features, strict=True)]
    told: dict[str, Any] = {"arrays": lambda probe: stored, "settings": lambda probe: of}
    return table_of("label_probe", records, 50, labels=lambda: labels, **told)


def drawn(n: int = 60) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng, rng.normal(size=(n, 2, 2, 6))


def test_a_class_and_a_number_are_read_where_they_stand() -> None:
    rng, features = drawn()
    number = rng.normal(size=60)
    features[:, 1, 1, 0] = 5 * number
    made = table([bool(x > 0) for x in number], features)
    assert made["fit"].tolist() == ["logistic"] * 4
    assert made["readable"].tolist() == [False, False, False, True]
    assert made["auroc"].iloc[3] > 0.95
    assert all(made["spearman"].isna())
    made = table([*map(float, number)], features)
    assert made["fit"].tolist() == ["ridge"] * 4
    assert made["readable"].tolist() == [False, False, False, True]
    assert made["spearman"].iloc[3] > 0.9
    assert made["spearman_low"].iloc[3] < made["spearman"].iloc[3] < made["spearman_high"].iloc[3]
    # and with more classes than two, each from the rest
    three = ["abc"[int(x > -0.4) + int(x > 0.4)] for x in number]
    made = table(three, features)
    assert made["n_classes"].tolist() == [3] * 4
    assert made["readable"].tolist() == [False, False, False, True]


def test_what_goes_with_length_is_told_by_length() -> None:
    _, features = drawn()
    long = [i % 7 > 3 for i in range(60)]
    features[:, 0, 0, 0] = [5.0 if x else -5.0 for x in long]
    made = table(long, features)
    first = cell(made, position="before", layer=1)
    assert first["auroc"] == first["length"] == 1
    assert first["over_length"] == 0


@pytest.mark.parametrize(
    ("values", "more", "reason"),
    [
        ([True] * 60, {}, "fewer_than_2_classes"),
        ([True, False] * 5 + [None] * 50, {}, "too_few_items"),
        ([2.5] * 60, {}, "fewer_than_2_values"),
        (["a", "b"] * 30, {"fit": "ridge"}, "not_a_number"),
        ([["a"], {"b": 1}] * 30, {}, "fewer_than_2_classes"),
        ([True, False] * 30, {"labels": ("other",)}, "no_such_label"),
        ([True, False] * 30, {"labels": (), "step_labels": ("label",)}, "no_such_label"),
    ],
)
def test_a_label_that_cannot_be_read_has_a_row_with_the_reason(
    values: list[Any], more: dict[str, Any], reason: str
) -> None:
    (row,) = table(values, drawn()[1], **more).to_dict("records")
    assert row["reason"] == reason
    assert np.isnan(row["auroc"])
    assert not row["readable"]
