"""Provenance of records: the code, libraries, devices and weights of each session of a run.

A run may be begun on one machine and finished on another. Its numbers may then differ from those of
a run on either machine alone, so status and page say so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import starmap
from pathlib import Path
from typing import Any

from faithscope.experiments.engine.folder import read_environment
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.planfile import Planned, counted, missing
from faithscope.experiments.engine.store import LOST
from faithscope.experiments.files import StoreError

Session = Mapping[str, Any]
"""Entry of one start of the run in environment.json."""
DECIDE = ("torch", "transformers")
"""Packages whose versions may change a model's numbers."""


def made_by(run_dir: Path) -> list[str]:
    """Cautions for the reader of a run, one sentence each.

    They are the cautions about its models, everything in which the sessions that made its records
    differ, and a note if the environment of some records was lost.
    """
    environment = read_environment(run_dir)
    sessions = dict(enumerate(environment["sessions"], start=1))
    cautions = [
        f"{model}: {caution}"
        for model, facts in environment["models"].items()
        for caution in facts.get("cautions", ())
    ]
    if len({str(_said(s)) for s in sessions.values()}) == 1:
        return cautions
    units: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    unknown = 0
    for (_, model, *_), entry in counted(run_dir).places():
        session = sessions.get(entry.session, {"worker": LOST})
        unknown += session.get("worker") == LOST
        for what, value in _said(session)["run"].items():
            units["this run"][what][value] += 1
        for what, value in _said(session)["models"].get(model, {}).items():
            units[model][what][value] += 1
    lost = (
        f"what made {unknown:,} unit{'s' * (unknown > 1)} of this run is not known, nor what its "
        "tables say of the models' weights: environment.json was lost; the numbers may differ from "
        "those of other units"
    )
    return (
        cautions
        + [lost] * (unknown > 0)
        + [
            f"{of} was made with more than one {what}: {_shares(values)}; its numbers may differ "
            "from those of either alone"
            for of, facts in units.items()
            for what, values in facts.items()
            if len(values) > 1
        ]
    )


def _shares(values: Counter[str]) -> str:
    ordered = sorted(values.items(), key=lambda of: (-of[1], of[0]))
    return ", ".join(f"{value} ({n:,} unit{'s' * (n > 1)})" for value, n in ordered)


def _said(session: Session) -> dict[str, Any]:
    """The facts of a session that readers are told of if another session's differ: `run` (fact ->
    value), and `models` (model -> fact -> value)."""
    packages = session.get("packages", {})
    run = {f"version of {name}": version for name, version in packages.items()}
    if source := session.get("source"):
        run["state of faithscope's code"] = f"{(session.get('commit') or '')[:7]} {source}".strip()
    if devices := session.get("devices"):
        run["kind of device"] = ", ".join(sorted(set(devices)))
    models = session.get("models", {})
    return {"run": run, "models": {m: _weights(facts) for m, facts in models.items()}}


def _weights(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts on how a model was loaded; empty where it was not loaded, since its texts came from
    elsewhere."""
    if "dtype" not in facts:
        return {}
    kinds = {part.partition(":")[0].strip() for part in str(facts.get("device", "")).split(",")}
    return {
        "dtype": str(facts["dtype"]),
        "kind of place": ", ".join(sorted(kinds)),
        "way to run branches": facts.get("tree_reason") or "packed",
        "reasoning format": str(facts.get("reasoning_format", "unknown")),
        **(facts.get("adapter") or {}),
    }


def _decides(session: Session, model: str) -> dict[str, str]:
    """The facts of a session that can change a loaded model's numbers, down to the last bits."""
    weights = _weights(session.get("models", {}).get(model, {}))
    if not weights:
        return {}
    packages = session.get("packages", {})
    libraries = {name: packages[name] for name in DECIDE if name in packages}
    on_gpus = weights["kind of place"] != "cpu"
    names = {"device": ", ".join(sorted(set(session.get("devices", []))))} if on_gpus else {}
    return {**weights, **libraries, **names}


def check_same(
    run_dir: Path, index: Index, items: Iterable[Planned], model: str, session: int
) -> None:
    """Check that no unfinished item of a model was begun in another dtype, on another kind of
    device or with other libraries than this session has.

    Raises:
        StoreError: there are such items; says what differs, how many there are and what to do.
    """
    sessions = read_environment(run_dir)["sessions"]
    now = _decides(sessions[session - 1], model)
    mixed, differing = [], ""
    for item in items:
        if item.model != model or not (lacking := missing(index, item)):
            continue
        entries = (index.get(item.key(stage)) for stage in item.units if stage not in lacking)
        begun = {e.session for e in entries if e is not None} - {session}
        for then in (_decides(sessions[s - 1], model) for s in begun if s <= len(sessions)):
            if then and (others := {k for k in now if then.get(k) != now[k]}):
                mixed.append(item)
                here = [(k, then.get(k, "unknown"), now[k]) for k in sorted(others)]
                differing = ", ".join(starmap("{}: {} then, {} now".format, here))
                break
    if mixed:
        n = len(mixed)
        begun_items = f"1 item of {model} was" if n == 1 else f"{n} items of {model} were"
        raise StoreError(
            f"{run_dir}: {begun_items} begun otherwise (first: "
            f"{mixed[0].item!r} of task {mixed[0].task!r}; {differing}), and the numbers of an "
            "item are held against each other; go on as they were begun, or mix them all the same "
            "with --mixed, or use another name (--set name=…)"
        )
