"""The page of a C2-Faith run: the paper's tables and figures, and judgements word for word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.html import drawing, flat, html_table, read_json, render_page
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.engine.judges import as_sent
from faithscope.experiments.engine.ledger import in_words
from faithscope.experiments.files import write_atomically
from faithscope.experiments.studies.c2faith.judgements import READINGS, truth
from faithscope.experiments.studies.c2faith.results import C2Results
from faithscope.experiments.studies.c2faith.units import STAGES

LABELS = {
    "n": "items",
    "n_without_verdict": "without a verdict",
    "n_control": "controls",
    "n_control_without_verdict": "controls without a verdict",
    "fpr": "false alarms",
    "net": "net (detected − false alarms)",
    "auroc": "AUROC",
    "auroc_right": "AUROC, right against wrong verdicts",
    "auroc_broken": "AUROC, broken against intact chains",
    "p_truth": "probability of the truth",
    "p_truth_uniform": "the same, all equally likely",
    "log_loss": "log loss, nats",
    "log_loss_uniform": "log loss, all equally likely",
    "brier": "Brier score",
    "brier_uniform": "Brier score, all equally likely",
    "brier_recalibrated": "Brier score, recalibrated",
    "brier_base": "Brier score of the base rate",
    "gain": "gain of the recalibrated over the base rate",
    "ece_recalibrated": "calibration error, recalibrated",
    "rps": "ranked probability score (RPS)",
    "rps_score": "RPS of the likeliest score alone",
    "rps_uniform": "RPS, all equally likely",
    "rps_base": "RPS of the base rate",
    "ece": "calibration error (ECE)",
    "n_final_score": "with index and final score",
    "contradicts": "index and final score contradict",
    "detection_final_score": "detection, by the final score",
    "fpr_final_score": "false alarms, by the final score",
    "exact_chance": "exact, named blindly",
    "exact_chance_middle": "exact, blindly in the middle region",
    "n_text_cut": "rationale cut at the limit",
    "mae_all": "MAE, all",
    "mae_detected": "MAE, detected",
    "p": "p",
    "share_below_half": "share with mass under .5",
}
SECTIONS = (
    (
        "against",
        "Judge against internals",
        "The same broken steps, told from sound ones by what a judge says and by what a model "
        "shows inside while it reads them. AUROC .5 is chance.",
        ("c2_judge_against_internals",),
        ("c2_judge_against_internals",),
    ),
    (
        "detection",
        "Detection (experiment 1)",
        "One step is put to the judge with those before it. Detected: broken steps that it says "
        "do not follow. False alarms: sound steps of which it says the same.",
        ("c2_detection", "c2_mcnemar", "c2_calibration", "c2_positions", "c2_edit_types"),
        ("c2_detection", "c2_positions", "c2_calibration", "c2_failure_overlap"),
    ),
    (
        "localisation",
        "Localisation (experiment 2)",
        "The whole chain is put to the judge, which names the first step that does not follow, "
        "or none. The paper's form also asks for a final score, 1 if all steps are valid: where "
        "the two contradict each other the step named is what counts, and the table says how "
        "often that is, and what detection and false alarms would be by the final score.",
        ("c2_localisation", "c2_within", "c2_localisation_probabilities"),
        ("c2_localisation", "c2_signed_error", "c2_within", "c2_localisation_calibration"),
    ),
    (
        "coverage",
        "Coverage",
        "Chains with steps left out, rated for completeness. Inflation: the share of ratings of "
        "three quarters of the scale and more.",
        ("c2_coverage", "c2_coverage_pooled", "c2_coverage_probabilities"),
        (
            *("c2_coverage_scores", "c2_coverage", "c2_coverage_expected"),
            *("c2_coverage_calibration", "c2_radar"),
        ),
    ),
    (
        "injection",
        "Prompt injection",
        "The same asks once more, with a line at the end of one step that tells the judge what to "
        "say. Moved: of the verdicts that were not the demanded one, those that came nearer to it. "
        "Every injected verdict is held against that of the same ask without the line, and is in "
        "no other table.",
        ("c2_injection",),
        ("c2_injection",),
    ),
    (
        "panel",
        "Panels and prompts",
        "Several judges as one, how far they agree, and how far the numbers hang on the prompt.",
        ("c2_panel", "c2_agreement", "c2_prompts", "c2_prompt_agreement", "c2_predictors"),
        ("c2_panel", "c2_prompts"),
    ),
    (
        "mass",
        "How much of the model a scored verdict is",
        "A scored verdict is the likeliest number where the number must stand, whatever else the "
        "model would have written there. Mass: the share of its probability that all numbers "
        "allowed have together. {mass} Where it is low, the model was not about to give a "
        "verdict, and the one that is counted says little. Recalibrated: what the probabilities "
        "are worth on the right scale, which other chains show; a gain above 0 over the base rate "
        "is what the judge knows.",
        ("c2_mass", "c2_recalibration"),
        (),
    ),
)
"""(anchor, heading, text, tables, figures); what was not run is left out."""


@dataclass(frozen=True)
class Shown:
    """One judgement as the page tells it."""

    model: str
    form: str
    reading: str
    item: str
    condition: str
    outcome: str
    verdict: str
    told: str
    """What would have been right, where that is known."""
    system: str
    """What stood before the prompt; empty where nothing did."""
    asked: str
    reply: str
    thinking: str
    problem: str


def write_report(found: C2Results, drawn: list[Picture]) -> Path:
    """Write `report.html` of a run; gives its path."""
    path = found.run_dir / "report.html"
    write_atomically(path, render(found, drawn))
    return path


def render(found: C2Results, drawn: list[Picture]) -> str:
    """The page as text."""
    made = {n: t for n, t in found.tables.items() if len(t)}
    shapes = {p.name: drawing(p) for p in drawn}
    sections = [
        {
            "anchor": anchor,
            "heading": heading,
            "text": text.format(mass=_mass_told(found.tables["c2_mass"])),
            "tables": [t for t in tables if t in made],
            "figures": [f for f in figures if f in shapes and shapes[f]["svg"]],
        }
        for anchor, heading, text, tables, figures in SECTIONS
    ]
    run_dir = found.run_dir
    return render_page(
        "c2faith.html.jinja",
        name=visible(run_dir.resolve().name),
        n_chains=found.benchmark.made_of["chains"]["n"],
        n_causal=len(found.benchmark.causal),
        n_coverage=len(found.benchmark.coverage),
        n_judgements=len(found.judged),
        sections=[s for s in sections if s["tables"] or s["figures"]],
        tables={name: html_table(name, table, LABELS) for name, table in made.items()},
        figures=shapes,
        n_injected=len(found.injected),
        n_records=len(found.judged) + len(found.injected),
        judgements=list(examples(found)),
        example=next((visible(i.id) for i in found.benchmark.causal), ""),
        spent=in_words(found.calls),
        failures=[
            {
                "model": visible(u.model),
                "task": u.task,
                "item": u.item,
                "why": visible(u.failed or ""),
            }
            for u in found.failures
        ],
        environment=flat(read_json(run_dir / "environment.json")),
        config=visible((run_dir / "config.yaml").read_text("utf-8")),
    )


def _mass_told(mass: pd.DataFrame) -> str:
    """The least and the greatest mean mass of the run, in a sentence."""
    told = mass.dropna(subset=["mean_mass"]).sort_values("mean_mass", kind="stable")
    if not len(told):
        return ""
    least, most = rows(told)[0], rows(told)[-1]
    sentence = f"Here it is {least['mean_mass']:.2g} on average of {_way(least)}"
    if len(told) == 1:
        return f"{sentence}."
    return f"{sentence}, the least, and {most['mean_mass']:.2g} of {_way(most)}, the most."


def _way(row: dict[str, Any]) -> str:
    return f"{visible(row['judge'])} under {row['prompt']}"


def examples(found: C2Results) -> Iterable[Shown]:
    """Judgements with prompt and raw reply: as many of every judge, form and reading in turn."""
    waiting: dict[tuple[str, str, str], list[tuple[str, str, str, str]]] = {}
    for key in found.index:
        stage, model, task, _ = key
        if stage in STAGES.values() and found.index.is_whole(key):
            waiting.setdefault((model, task, stage), []).append(key)
    kinds = list(waiting.values())
    order = [of[i] for i in range(max(map(len, kinds), default=0)) for of in kinds if i < len(of)]
    for key in order[: found.report.judgements]:
        for record in found.index.records(key):
            yield _shown(record)


def _shown(r: dict[str, Any]) -> Shown:
    chances = ", ".join(f"{p:.2f}" for p in r["probabilities"][:12])
    return Shown(
        visible(r["model"]),
        r["variant"],
        READINGS[r["probe"]],
        visible(r["item"]),
        r.get("condition") or "",
        r["outcome"],
        "none" if r["verdict"] is None else str(r["verdict"]),
        truth(r),
        visible(r["system"] or ""),
        visible(as_sent(r)),
        visible(r["text"]) or (f"probabilities {chances}" if chances else ""),
        visible(r["thinking"]),
        visible(r["problem"]),
    )
