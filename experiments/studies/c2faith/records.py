"""One flat record per judgement."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from faithscope.experiments.config.judge import Reading
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem
from faithscope.experiments.studies.c2faith.inside import DATASET
from faithscope.experiments.studies.c2faith.units import STAGES, Judged
from faithscope.probes.judge.form import Reply
from faithscope.probes.record import head

TEXTS = frozenset(["system", "asked", "requested", "text", "thinking", "problem"])
"""What no table counts: what the judge was told and what it wrote."""
FINAL_SCORE = "final_score"
"""The field of localisation's form in which a reply says once more whether all steps are valid."""


def judged_record(item: Judged, reading: Reading, reply: Reply, seed: int) -> dict[str, Any]:
    """Who was asked what of which item, and what came back, word for word."""
    of = item.of
    about: dict[str, Any] = {"chain": of.chain, "condition": item.condition}
    if isinstance(of, CausalItem):
        about |= {"target": of.target, "n_steps": len(of.steps)}
    else:
        about |= {"level": of.level, "n_middle": of.n_middle, "n_removed": len(of.removed)}
    if item.injected is not None:
        about |= vars(item.injected)
    verdict = reply.values.get(item.ask.form.verdict)
    return {
        **head(
            dataset=DATASET,
            task=item.form.task,
            item=of.id,
            model=None,
            judge=item.model,
            probe=STAGES[reading],
            variant=item.ask.form.name,
            seed=seed,
        ),
        "ask": item.ask.id,
        **about,
        "outcome": reply.outcome,
        "verdict": verdict,
        "values": dict(reply.values),
        "probabilities": list(reply.probabilities),
        "mass": reply.mass,
        "form_sha256": item.ask.form.sha256,
        "system": item.ask.form.system,
        "asked": item.ask.prompt,
        "requested": reply.requested,
        "text": reply.text,
        "thinking": reply.thinking,
        "problem": reply.problem,
        **asdict(reply.usage),
        "from_cache": reply.from_cache,
        "served": reply.served,
    }
