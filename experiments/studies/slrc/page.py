"""One self-contained report.html of a run over traces: opens offline, asks nothing of any
network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from faithscope.experiments.analysis.by_unit import UNIT_WORDS, told_apart, units_apart
from faithscope.experiments.analysis.html import (
    HtmlTable,
    drawing,
    flat,
    html_table,
    read_json,
    render_page,
)
from faithscope.experiments.analysis.records import place_of
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.ledger import calls_of, in_words
from faithscope.experiments.files import write_atomically
from faithscope.experiments.studies.slrc.figures.figures import pictures
from faithscope.experiments.studies.slrc.figures.model_reading import model_readings
from faithscope.experiments.studies.slrc.measures import SLICES
from faithscope.experiments.studies.slrc.tables.results import Results
from faithscope.experiments.studies.slrc.tables.verdict import (
    IGNORED,
    MATTERS,
    WORDS,
    Check,
    instrument_checks,
    verdicts,
)
from faithscope.experiments.studies.slrc.traceview import (
    EDIT_SHORT,
    EDIT_WORDS,
    MARKS,
    MEANINGS,
    STEP_EDITS,
    trace_view,
    typical,
)

LABELS = {
    "n": "items",
    "order_sensitivity": "order sensitivity",
    "slrc": "SLRC",
    "redundancy_bound": "routes implied",
    "n_steps": "steps",
    "mean_steps": "steps per item",
    "n_unparsed": "unparsed",
    "n_packs": "packs",
    "noise_floor": "noise floor (nats)",
    "n_flips": "flips",
    "flips_within_floor": "flips within the floor",
    "within_floor": "verdicts within the floor",
    "n_items": "items",
    "n_edits": "edits",
    "flip_rate": "answer changed",
    "n_no_room": "edits without room",
    "total_variation": "total variation",
    "log_odds_drop": "log-odds drop",
    "beyond_control": "beyond control",
    "multi_step": "two or more steps",
    "sd_steps": "s.d.",
    "median_steps": "median",
    "min_steps": "min",
    "max_steps": "max",
    "mean_step_tokens": "tokens per step",
    "mean_step_chars": "characters per step",
    "mean_reasoning_tokens": "tokens of reasoning",
    "between": "compared",
    "n_cut": "cut off",
    "direct_accuracy": "accuracy, direct",
    "cot_accuracy": "accuracy, reasoned",
    "n_same": "same mode",
    "n_genuine": "genuine",
    "n_scaffolding": "scaffolding",
    "n_decorative": "decorative",
    "n_empty": "empty",
    "own_agreement": "agrees with its own",
    "sycophancy": "agrees with a wrong one",
    "unit": "unit of removal",
    "n_tasks": "tasks",
    "n_sycophancy_tasks": "tasks (sycophancy)",
    "n_error_tasks": "tasks (errors)",
    "n_direct_tasks": "tasks (direct)",
    "open": "weights at hand",
    "active_parameters": "active parameters",
    "r_without_one_least": "least, without one model",
    "r_without_one_most": "most, without one model",
    "p_value": "p",
    "p_permutation": "p, permuted",
    "ris": "RIS",
    "beyond_threshold": "beyond threshold",
    "step_spearman": "spearman of steps",
    "n_ranked": "items (steps)",
    "same_highest": "same highest step",
    "n_highest": "items (highest step)",
    "n_layers": "layers",
    "auroc": "AUROC",
    "auroc_confound": "AUROC, confound",
    "auroc_hint": "AUROC, hint",
    "auroc_2_steps": "AUROC, 2 steps",
    "auroc_5_steps": "AUROC, 5 steps",
    "spearman_p": "Spearman with p",
    "step_hit_rate": "step hit rate",
    "step_chance": "by chance",
    "calibration_mae": "distance from p",
    "forwards": "calls",
}
COUNTED = {
    "agreement": "pairs",
    "threshold_sensitivity": "models × tasks",
    "model_correlations": "models",
}
"""What `n` counts where it is not items."""
REASONS = {
    "total": "all items",
    "included": "measured",
    "failed": "failed with an error",
    "not_run": "not reached",
    "fewer_than_2_steps": "fewer than 2 steps",
    "empty_generation": "nothing generated",
    "reasoning_unclosed": "reasoning never ended",
    "no_thinking_shown": "its thinking is not shown",
    "reply_declined": "no answer: refused, filtered, too long, or cut off before it",
    "refused": "the model declined",
    "filtered": "its provider's filter stopped it",
    "overflow": "longer than it reads",
    "answer_unparsed": "no answer found",
    "baseline_unparsed": "no answer to the unedited reasoning",
    "fewer_than_2_labels": "fewer than 2 answers to score",
    "low_label_mass": "the answers that are scored have too little of the probability",
    "no_room": "no room in the model's positions",
}


@dataclass(frozen=True)
class Waterfall:
    """Where the items of one model and task went: stages with (reason, n) summing to a total."""

    model: str
    task: str
    total: int
    lost: list[tuple[str, int]]
    included: int
    stages: list[tuple[str, list[tuple[str, int]], int]]
    """Per framing and reading: what was lost there, and what was measured."""


def write_report(found: Results) -> Path:
    """Write `report.html` of a run; gives its path."""
    path = found.run_dir / "report.html"
    write_atomically(path, render(found))
    return path


def render(found: Results) -> str:
    """The page as text."""
    run_dir, made = found.run_dir, found.tables
    places = {place_of(r) for r in found.records}
    shown = typical(found.records, found.report.traces)
    checks = instrument_checks(made["slrc"], made["edits"], made["edits_by_step"])
    drawn = {p.name: drawing(p) for p in pictures(made)}
    named = told_apart(made)
    ready = {name: _table(name, table) for name, table in made.items()}
    return render_page(
        "template.html.jinja",
        name=visible(run_dir.resolve().name),
        n_models=len({model for model, _, _ in places}),
        n_tasks=len({task for _, task, _ in places}),
        n_traces=sum(
            r["n"] for r in rows(where(made["exclusions"], stage="trace", reason="total"))
        ),
        n_waiting=_waiting(made["exclusions"]),
        probes=found.probes,
        verdicts=verdicts(named["slrc"], named["edits"]),
        several_units=[
            {"model": visible(model), "task": task, "units": [UNIT_WORDS[u] for u in units]}
            for (model, task), units in units_apart(made).items()
        ],
        words=WORDS,
        matters=MATTERS,
        ignored=IGNORED,
        checks=checks,
        instrument=_instrument(checks),
        figures=drawn,
        tables=ready,
        sections=_sections(ready, drawn),
        traces=[trace_view(found.whole(place)) for place in shown],
        marks=MARKS,
        meanings=MEANINGS,
        edit_words=EDIT_WORDS,
        edit_short=EDIT_SHORT,
        step_edits=STEP_EDITS,
        waterfalls=waterfalls(made["exclusions"]),
        reasons=REASONS | {k: v for s in SLICES.values() for k, v in s.reasons.items()},
        taxonomy=found.taxonomy,
        readings=model_readings(made["models"], made["model_correlations"])
        if "models" in drawn
        else [],
        failures=[
            {
                "model": visible(u.model),
                "task": u.task,
                "item": visible(u.item),
                "stage": u.stage,
                "why": visible(u.failed or ""),
            }
            for u in found.failures
        ],
        spent=in_words(calls_of(run_dir)),
        environment=flat(read_json(run_dir / "environment.json")),
        config=visible((run_dir / "config.yaml").read_text("utf-8")),
    )


def _table(name: str, table: pd.DataFrame) -> HtmlTable:
    of_slices = {column: label for s in SLICES.values() for column, label in s.labels.items()}
    return html_table(name, table, LABELS | of_slices | {"n": COUNTED.get(name, "items")})


def _sections(tables: Mapping[str, HtmlTable], drawn: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sections of the measures that this run has, each with its figures and tables."""
    found: dict[str, dict[str, Any]] = {}
    for part in SLICES.values():
        made = [t for t in part.tables if t.name in tables]
        if part.section is None or not made:
            continue
        section = part.section
        begun = {
            "name": section.name,
            "title": section.title,
            "short": section.short or section.title,
            "text": Markup(section.text),
            "parts": [],
        }
        found.setdefault(section.name, begun)["parts"].append(
            {
                # a measure has one figure, which is named for it
                "figures": [part.probe] if part.probe in drawn else [],
                "tables": [(tables[t.name], t.caption) for t in made if not t.folded],
                "folded": [(tables[t.name], t.caption, t.folded) for t in made if t.folded],
            }
        )
    return list(found.values())


def waterfalls(exclusions: pd.DataFrame) -> list[Waterfall]:
    """The exclusion table as one entry per model and task."""
    found: dict[tuple[str, str], dict[str, list[tuple[str, int]]]] = {}
    for row in rows(exclusions):
        stages = found.setdefault((row["model"], row["task"]), {})
        stages.setdefault(row["stage"], []).append((row["reason"], int(row["n"])))
    falls = []
    for (model, task), stages in sorted(found.items(), key=lambda f: (model_order(f[0][0]), f[0])):
        (_, total), *lost, (_, included) = stages.pop("trace")
        later = [
            (
                stage.removeprefix("slrc.").replace(".", ", ").replace("_", " "),
                reasons[1:-1],
                reasons[-1][1],
            )
            for stage, reasons in stages.items()
        ]
        falls.append(Waterfall(visible(model), task, total, lost, included, later))
    return falls


def _waiting(exclusions: pd.DataFrame) -> int:
    """Traces that some framing and reading has not got to."""
    most: dict[tuple[str, str], int] = {}
    for row in rows(where(exclusions, reason="not_run")):
        pair = (row["model"], row["task"])
        most[pair] = max(most.get(pair, 0), row["n"])
    return sum(most.values())


def _instrument(checks: list[Check]) -> str:
    if not checks:
        return "absent"
    return "passes" if all(check.passed for check in checks) else "fails"
