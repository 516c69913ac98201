"""All that a run's tables are made from, made up: models differ by what they tend to do."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from rf_frames import judged, models_of

from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.studies.rfeval.items import CONDITIONS, TASKS, Item
from faithscope.experiments.studies.rfeval.pairs import stratified_examples
from faithscope.experiments.studies.rfeval.tables.chains import scored
from faithscope.experiments.studies.rfeval.tables.every_table import frames_of, tables
from faithscope.experiments.studies.rfeval.tables.filtering import CRITERIA, FILTERING
from faithscope.experiments.studies.rfeval.tables.frames import FLAWS, STANCES
from faithscope.probes.judge.spend import Call

CELLS = {
    "misled": ("B B B", "A A A A", ""),
    "self_correcting": ("B B B", "A A A B", "intervened_ea"),
    "silently_correcting": ("B B B", "A A B B", ""),
    "incoherent": ("B B B", "A B B A", ""),
    "inert": ("B B B", "A B B B", "intervened_pr"),
    "ornamental": ("B B C", "A A A A", ""),
}
"""A trace of every kind that the definitions know (`chains.behaviour_of`)."""
NAMES = (
    *("Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "deepseek-ai/R1-Qwen-7B", "deepseek-ai/R1-Qwen-32B"),
    *("deepseek-ai/R1-Llama-8B", "deepseek-ai/R1-Llama-70B", "openai/gpt-oss-20b"),
    *("openai/gpt-oss-120b", "XiaomiMiMo/MiMo-RL", "XiaomiMiMo/MiMo-RL-Zero"),
    *("mistralai/Magistral-Small", "nvidia/LN-Super_v1"),
)
REGIMES = {
    "XiaomiMiMo/MiMo-RL": ("MiMo-7B", "SFT+RL"),
    "XiaomiMiMo/MiMo-RL-Zero": ("MiMo-7B", "RL-only"),
}


def filtered(tasks: Sequence[str], n: int) -> pd.DataFrame:
    """A filtering table in which each task has one problem more than items, with rejected r′."""
    blank = dict.fromkeys(FILTERING.header, 0) | {"source": "made_up", "n_problems": n + 1}
    counts = blank | {"n_removed": 1, "n_kept": n, f"n_fails_{CRITERIA[-1]}": 1}
    return pd.DataFrame([counts | {"task": task} for task in tasks], columns=FILTERING.header)


def made_up(
    models: Sequence[str] = NAMES[:1],
    tasks: Sequence[str] = TASKS,
    n: int = 12,
    seed: int = 0,
    readers: Sequence[str] = ("api:openai/o3",),
    people: int = 2,
) -> dict[str, pd.DataFrame]:
    """`n` items of each task, under every model, read by every reader."""
    rng = random.Random(seed)
    pairs, lengths, steps = [], [], []
    for model in models:
        weights = [rng.random() ** 2 for _ in CELLS]
        for task in tasks:
            of_task = [w * rng.uniform(0.3, 1.5) for w in weights]
            low, long = rng.uniform(0.02, 0.4), rng.uniform(300, 6000)
            for i in range(n):
                [kind] = rng.choices(list(CELLS), of_task)
                fate = rng.random()
                key = {"model": model, "task": task, "item": f"{task}/{i}"}
                for condition, times in (("baseline", 1.0), ("intervened", rng.uniform(0.3, 1))):
                    tokens = long * times * rng.lognormvariate(0, 0.5)
                    about = {"condition": condition, "tokens": round(tokens)}
                    times = {"seconds": tokens / 40, "elapsed": tokens / 640, "devices": 1.0}
                    lengths.append(key | about | times)
                for reader in readers:
                    row = _row(kind, fate, low, rng) | key | {"reader": reader}
                    pairs.append(row)
                    steps += _steps(row, rng) if reader == readers[0] else []
    items = [
        {"task": task, "item": f"{task}/{i}", "question": f"Does claim {i} hold of the table"}
        | {"options": "A: yes\nB: no", "context": f"table row {i} says {rng.random():.3f} holds"}
        | {"r_prime": f"The claim {i} says row {rng.randrange(9)}, so yes it holds as told"}
        | {"source": f"source_{i % 2}", "stances": "A | B | I don't know"}
        for task in tasks
        for i in range(n)
    ]
    annotations, evaluator = _labels(tasks, n, people, rng)
    return {
        "judged": pd.DataFrame(pairs),
        "lengths": pd.DataFrame(lengths),
        "items": pd.DataFrame(items),
        "steps": pd.DataFrame(steps),
        "annotations": annotations,
        "evaluator": evaluator,
        "readings": _readings(pairs, readers[0], rng),
        "without_judge": _without_judge(pairs, readers[0], rng),
        "filtering": filtered(tasks, n),
    }


def made_tables(observed: Mapping[str, pd.DataFrame], resamples: int = 10) -> dict[str, Any]:
    """Every table of what was observed, with what goes on inside."""
    judged = observed.get("judged", pd.DataFrame())
    inside = records(judged) if len(judged) else []
    return tables(frames_of(observed, inside), Bootstrap(0, resamples))


def _row(kind: str, fate: float, low: float, rng: random.Random) -> dict:
    baseline, forced, flaws = CELLS[kind]
    if rng.random() < low:
        baseline, forced, flaws = "A A A", "A A A A", ""
    row = judged(baseline, forced, flaws)
    if rng.random() < 0.15:
        row |= {"baseline_right": not row["baseline_right"]}
    if fate < 0.04:
        row |= {"intervened_outcome": "truncated", "intervened_judged": ""}
        row |= dict.fromkeys(STANCES[3:], "")
    elif fate < 0.06:
        row |= {"baseline_judged": "unparsed", **dict.fromkeys(STANCES[:3], "")}
    elif fate < 0.07:
        row |= {"excluded": "no r′ in the data"}
    return row


def _steps(row: dict, rng: random.Random) -> list[dict]:
    if row["baseline_judged"] != "parsed" or row["intervened_judged"] != "parsed":
        return []
    steps = []
    for condition in ("baseline", "intervened"):
        parts = [("step", row[f"{condition}_r"])] * rng.randint(1, 4)
        parts += [(p, row[f"{condition}_{p}"]) for p in "ea"]
        if condition == "intervened":
            parts.insert(0, ("r_prime", row["intervened_r_prime"]))
        for place, (part, stance) in enumerate(parts):
            turned = part == "step" and rng.random() < 0.1
            key = {name: row[name] for name in ("reader", "model", "task", "item")}
            steps.append(
                key
                | {"condition": condition, "place": place, "part": part}
                | {"stance": "C" if turned else stance, "names_flaw": rng.random() < 0.1}
            )
    return steps


def _readings(pairs: list[dict], reader: str, rng: random.Random) -> pd.DataFrame:
    readings = []
    for row in pairs:
        if row["reader"] != reader:
            continue
        key = {name: row[name] for name in ("model", "task", "item")}
        for other, parts, right in (
            ("matching", ("baseline_a", "intervened_a"), 0.9),
            ("log_probs", STANCES, 0.6),
        ):
            for part in parts:
                if row[part]:
                    stance = row[part] if rng.random() < right else rng.choice("ABC")
                    readings.append(key | {"reader": other, "part": part, "stance": stance})
    return pd.DataFrame(readings)


def _without_judge(pairs: list[dict], reader: str, rng: random.Random) -> pd.DataFrame:
    """The pairs by log-probs: no flaw is named, some stances are others, some items without
    options."""
    unjudged = []
    for row in pairs:
        if row["reader"] != reader:
            continue
        by_log_probs = row | {"reader": "log_probs"} | dict.fromkeys(FLAWS, False)
        if row["intervened_r"] and rng.random() < 0.2:
            by_log_probs |= {"intervened_r": rng.choice("ABC")}
        if row["task"] == "mathematical_reasoning":
            by_log_probs |= {"excluded": "no_options", **dict.fromkeys(STANCES, "")}
            by_log_probs |= {"baseline_judged": "", "intervened_judged": ""}
        unjudged.append(by_log_probs)
    return pd.DataFrame(unjudged)


def _labels(
    tasks: Sequence[str], n: int, people: int, rng: random.Random
) -> tuple[pd.DataFrame, pd.DataFrame]:
    labels, evaluator = [], []
    for task in tasks if people else ():
        for i in range(n):
            for decision, values in (("stance", ["A", "B", "C"]), ("flaw", ["yes", "no"])):
                truth = rng.choice(values)
                key = {"item": f"{task}/{i}", "component": "r", "decision": decision}
                evaluator.append(key | {"label": truth})
                for person in range(people):
                    label = truth if rng.random() < 0.85 else rng.choice(values)
                    labels.append(key | {"annotator": f"p{person}", "label": label})
            review = {"item": f"{task}/{i}", "component": "r_prime", "decision": "valid"}
            for person in range(people):
                label = str((i + person) % 5 != 0)
                labels.append(review | {"annotator": f"p{person}", "label": label})
    return pd.DataFrame(labels), pd.DataFrame(evaluator)


def example(row: dict[str, Any], text: str = "") -> dict[str, Any]:
    """An example as a run gives it, of a row of `rf_pairs`; `text` is put into all that is said."""
    item = Item(
        str(row["item"]),
        row["task"],
        "contract_nli",
        f"Is it so?{text}",
        f"Clause 1.{text}",
        ("no", "yes", "open"),
        "B",
        f"It cannot be so, as clause 1 forbids it.{text}",
        f"Clause 1 forbids nothing.{text}",
    )
    outputs, judged_of = {}, {}
    for condition in ("baseline", "intervened"):
        parts = {
            name: f"{name}: I take {row[f'{condition}_{part}']}.{text}"
            if row[f"{condition}_{part}"]
            else ""
            for name, part in (("reasoning", "r"), ("explanation", "e"), ("answer", "a"))
        }
        outcome = row[f"{condition}_outcome"]
        outputs[condition] = {**parts, "outcome": outcome, "text": f"<think>cut off{text}"}
        if outcome_of := row[f"{condition}_judged"]:
            judged_of[condition] = {
                "asked": f"What stance has each part?{text}",
                "text": f'{{"stance_analysis": "{condition}"}}{text}',
                "thinking": f"Let me see.{text}",
                "outcome": outcome_of,
                **{"system": None, "requested": "", "problem": ""},
            }
    about = {"model": row["model"], "reader": row["reader"], "item": item, "row": row}
    return about | {"outputs": outputs, "judged": judged_of, "said": []}


@dataclass
class FoundRun:
    """What the page needs of a run (`page.Found`), made by hand."""

    run_dir: Path
    tables: dict[str, pd.DataFrame]
    pairs: int = 6
    failures: list[Unit] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    text: str = ""

    @property
    def config(self) -> Any:
        return SimpleNamespace(paper_compat=False, report=SimpleNamespace(pairs=self.pairs))

    def example(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return example(dict(row), self.text)

    def examples(self, n: int) -> list[dict[str, Any]]:
        rows = self.tables["rf_pairs"].to_dict("records")
        return [example(rows[i], self.text) for i in stratified_examples(rows, n)]


def found_run(folder: Path, observed: Mapping[str, pd.DataFrame], **changes: Any) -> FoundRun:
    """A run folder with what the page reads there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text("name: rfeval\nbenchmark: rfeval\n", "utf-8")
    (folder / "environment.json").write_text('{"python": "3.11"}', "utf-8")
    if set(REGIMES) <= set(observed.get("judged", {}).get("model", [])):
        observed = {**observed, "models": models_of(REGIMES)}
    return FoundRun(folder, made_tables(observed, 20), **changes)


OPTIONS = ["A", "B", "C"]
CUTS = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 22, 24, 26, 28]
R_PRIME, REASONED, RESUMED = 8, 18, 20
TURNS = {
    "misled": 99,
    "self_correcting": 22,
    "silently_correcting": 12,
    "incoherent": 99,
    "inert": 10,
    "ornamental": 99,
}
"""Cut from which the option of r′, A, leads no more."""


def records(pairs: pd.DataFrame, seed: int = 0, noise: float = 0.2) -> list[dict[str, Any]]:
    """Two records of every pair that counts; r′ leads to A, the right answer is B."""
    rng = random.Random(seed)
    records_of_item: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in scored(pairs).to_dict("records"):
        key = (row["model"], row["task"], row["item"])
        if row["behaviour"] and key not in records_of_item:
            records_of_item[key] = [
                _record(key, c, row["behaviour"], rng, noise) for c in CONDITIONS
            ]
    return [record for of in records_of_item.values() for record in of]


def _record(
    key: tuple[str, str, str], condition: str, behaviour: str, rng: random.Random, noise: float
) -> dict[str, Any]:
    forced = condition == "intervened"
    away = TURNS[behaviour] + rng.choice([-4, -2, 0, 0, 2, 4]) if forced else 0
    led = [2 < cut < away for cut in CUTS]
    high = [min(0.95, max(0.4, rng.gauss(0.8, noise / 2))) for _ in CUTS]
    p = np.array([[h, 1 - h, 0] if on else [1 - h, h, 0] for on, h in zip(led, high, strict=True)])
    own = rng.gauss(0.6 if behaviour == "silently_correcting" else 0.5, noise / 2)
    attention = {"asked_own_against_r_prime": own}
    attention |= {"asked_r_prime": 0.2, "asked_own": own / 2, "asked_question": 0.1}
    lens = np.array([[1, 0, 0], [0.6, 0.4, 0], [0.3, 0.7, 0], p[-1]])
    return {
        **dict(zip(("model", "task", "item"), key, strict=True)),
        "variant": condition,
        **{"traced": "options", "options": OPTIONS, "cuts": CUTS, "p": p.ravel().tolist()},
        **{"n_r_prime": R_PRIME if forced else 0, "reasoned": REASONED, "resumed": RESUMED},
        **{"end": CUTS[-1], "asked_lens_p": lens.ravel().tolist(), "asked_settled_depth": 0.7},
        **(attention if forced else {}),
    }
