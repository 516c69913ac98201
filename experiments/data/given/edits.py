"""Edits of given chains' steps that were made elsewhere, and rollouts from a step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from faithscope.experiments.data.given.cells import text
from faithscope.experiments.data.given.chain import GivenChain, rows_of_file
from faithscope.experiments.data.tasks.sources.files import readable
from faithscope.experiments.data.tasks.sources.rows import SourceRow, cell, has, text_of
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.edited import GIVEN_EDITS

ROLLOUT = "rollout"
"""The kind of rows whose answers become labels of steps; others are texts for a step's place."""


def with_edits(chains: Sequence[GivenChain], path: Path) -> list[GivenChain]:
    """The chains with the edits of a file: rows of `id` (the chain's), `step` (from 0), `kind` and
    `text`; of rollouts `answer` alone counts. `model` tells chains of one id apart, and `original`
    is checked to be the step.

    Raises:
        UserError: a row is of no chain or no step, its kind is unknown, or a step has two edits of
            one kind.
    """
    with readable(path):
        rows = rows_of_file(path) if path.exists() else None
    if rows is None:
        raise UserError(f"traces.edits: no such file: {str(path)!r}; check the path")
    by_id: dict[str, list[int]] = defaultdict(list)
    for i, chain in enumerate(chains):
        by_id[chain.id].append(i)
    edits: dict[str, dict[int, dict[int, str]]] = {}
    answers: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        at = _chain_of(row, chains, by_id)
        step, kind = _step_of(row, chains[at]), text_of(row, ("kind",)).lower()
        if kind == ROLLOUT:
            answers[at][step].append(text_of(row, ("answer",)))
            continue
        if kind not in GIVEN_EDITS:
            known = (*GIVEN_EDITS, ROLLOUT)
            guess = did_you_mean(kind, known) or f"; known: {', '.join(known)}"
            raise UserError(f"{row.where}: unknown kind of edit {kind!r}{guess}")
        of_chain = edits.setdefault(kind, {}).setdefault(at, {})
        if step in of_chain:
            raise UserError(
                f"{row.where}: step {step} of {chains[at].id!r} has a second {kind}; keep one, or "
                "give the others in a file of their own"
            )
        said, own = text_of(row, ("text",)), chains[at].reasoning[slice(*_span(chains[at], step))]
        if said == own.strip():
            raise UserError(f"{row.where}: the {kind} is step {step} itself; take the row out")
        of_chain[step] = said
    return [
        replace(
            chain,
            edits={kind: of.get(i, {}) for kind, of in edits.items()},
            step_labels={**chain.step_labels, **_shares(chain, answers.get(i, {}))},
        )
        for i, chain in enumerate(chains)
    ]


def _chain_of(row: SourceRow, chains: Sequence[GivenChain], by_id: Mapping[str, list[int]]) -> int:
    own, model = text_of(row, ("id",)), text(row, "model")
    meant = [i for i in by_id.get(own, ()) if model in (None, chains[i].model)]
    if len(meant) == 1:
        return meant[0]
    if not meant:
        guess = did_you_mean(own, tuple(by_id)) or "; give the id of a chain of traces.path"
        raise UserError(f"{row.where}: no chain has the id {own!r}{guess}")
    raise UserError(
        f"{row.where}: {len(meant)} chains have the id {own!r}; say whose it is in a column 'model'"
    )


def _step_of(row: SourceRow, chain: GivenChain) -> int:
    if chain.steps is None:
        raise UserError(
            f"{row.where}: the chain {chain.id!r} has no given steps, so that its step could be "
            "another one; give the chain's 'steps'"
        )
    said = cell(row, "step")
    try:
        step = None if isinstance(said, bool) else int(str(said))
    except ValueError:
        step = None
    if step is None or not 0 <= step < len(chain.steps):
        raise UserError(
            f"{row.where}: 'step' is {said!r}, and {chain.id!r} has {len(chain.steps)} steps; give "
            "its index from 0"
        )
    own = chain.reasoning[slice(*_span(chain, step))]
    if has(row, "original") and (other := text_of(row, ("original",))).split() != own.split():
        raise UserError(
            f"{row.where}: 'original' ({other[:60]!r}) is not step {step} of {chain.id!r} "
            f"({own.strip()[:60]!r}); steps count from 0"
        )
    return step


def _span(chain: GivenChain, step: int) -> tuple[int, int]:
    assert chain.steps is not None  # `_step_of` has seen to it
    return chain.steps[step]


def _shares(chain: GivenChain, answers: Mapping[int, Sequence[str]]) -> dict[str, Any]:
    """Step labels of rollouts from a step: how many there are, and the share that ends in the
    chain's own answer."""
    if not answers:
        return {}
    n = len(chain.steps or ())
    own = None if chain.answer is None else " ".join(chain.answer.split()).casefold()
    share = {
        i: sum(" ".join(a.split()).casefold() == own for a in said) / len(said)
        for i, said in answers.items()
    }
    labels = {"rollouts": tuple(len(answers[i]) if i in answers else None for i in range(n))}
    if own is None:
        return labels
    return labels | {"rollouts_same_answer": tuple(map(share.get, range(n)))}
