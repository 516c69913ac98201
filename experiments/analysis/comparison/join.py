"""Joins the scores of several runs by trace: which traces are the same, what is missing, and why.

A trace is named by dataset, task, item and model. Where two runs have a trace of the same name,
their scores are joined only if the traces agree as far as the config asks (`same`): in their token
ids, in their text, or in the question alone; readings of one given chain, by the hash of the chain
in its file, have one text. An equal name alone never joins two traces.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.scores import (
    FAMILIES,
    NOT_RUN,
    PLACE,
    SAME,
    TRACES,
    Scores,
)
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import (
    check_rows,
    count,
    keep,
    numbers,
    only,
    values_of,
    where,
)
from faithscope.experiments.data.question_groups import Sets
from faithscope.interp.errors import UserError

Groups = Mapping[str, Mapping[str, Mapping[str, str]]]
KEY = (*PLACE, "trace")
"""Columns that identify a row of the comparison; `trace` is the digest of what has to be the same
in all runs (token ids, text or question)."""
SOURCE = Column("source", meaning="The run that it is from.")
JOINS = computed_table("joins", (
    *(SOURCE, "other"),
    Column("n_source", "traces", "Traces of the first of the two runs."),
    Column("n_other", "traces of the other", "Traces of the second of the two runs."),
    Column("n_common", "names in common", "Traces of the same data set, task, item and model."),
    Column("n_same_ids", "same token ids", "Shared ids whose token ids are equal, those "
           "of prompt and reasoning."),
    Column("n_same_text", "same text, other ids", "Shared ids whose texts are equal: the same "
           "reasoning as text, but other token ids or none."),
    Column("n_same_question", "same question only", "Shared ids with the same "
           "question and another reasoning."),
    Column("n_nothing_same", "another question", "Shared ids whose questions differ; not joined."),
    Column("n_joined", "joined", "Traces joined across sources, by the config's rule."),
))  # fmt: skip
"""A row per pair of source runs: how many traces they share, and how far these agree."""
MISSING = computed_table("missing", (
    *("measure", "family", SOURCE, "reason"),
    Column("n", meaning="Traces of which the measure has no score for the reason, or has one."),
    Column("n_items", "items", "All traces."),
))  # fmt: skip
"""A row per measure and reason for having no value, with the number of traces; the reason
`measured` counts the traces with a value."""
OTHER_TRACE = "measured of another trace of this item"
OTHER_MODEL = "its run has no trace by this model"
TRAITS = ("n_steps", "n_tokens", "correct", "settled")
"""Columns of `Joined.traces` by which traces are described (length, correctness, …)."""


@dataclass(frozen=True)
class Joined:
    """All scores of several runs, joined by trace."""

    items: pd.DataFrame
    """A row per trace and measure, with `KEY`, the source, and the columns of `scores.ITEMS`."""
    steps: pd.DataFrame
    """A row per trace, measure and step, with `KEY`, the source, and the columns of
    `scores.STEPS`."""
    traces: pd.DataFrame
    """A row per trace, with `KEY` and the columns of `scores.TRACES`."""
    joins: pd.DataFrame
    """The table `JOINS`: how many traces each pair of sources shares."""
    features: Mapping[str, pd.DataFrame]
    """Name of a feature vector -> a row per trace, a column per number of the vector."""
    origins: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]]
    """(source, place of a trace as that source names it) -> `KEY` of the joined trace."""
    n_left_out: int = 0
    """Number of traces that were dropped because not every source has them."""
    groups: Groups = field(default_factory=dict)
    """Source -> data set -> item, as that source names it -> group of items that are not
    independent."""

    @cached_property
    def units(self) -> np.ndarray:
        """(traces,) the unit of each trace, which is drawn and exchanged as a whole: its question,
        which several models may have answered, with all questions that some source has in one
        group."""
        question = self.traces["question"].astype(str).tolist()
        of_key = dict(zip(self.index, question, strict=True))
        sets = Sets()
        for (source, (dataset, _, item, _)), key in self.origins.items():
            group = self.groups.get(source, {}).get(dataset, {}).get(item)
            if group is not None and key in of_key:
                sets.join(of_key[key], ("group", dataset, group))
        return np.array([str(sets.top(q)) for q in question], dtype=str)

    @cached_property
    def measures(self) -> pd.DataFrame:
        """A row per measure (labels excluded), sorted by family: its probe and judge, its
        direction, whether it is a probability, and its rule."""
        return self._of_kind(label=False)

    @cached_property
    def labels(self) -> pd.DataFrame:
        """A row per label, with the columns of `measures`."""
        return self._of_kind(label=True)

    def _of_kind(self, label: bool) -> pd.DataFrame:
        columns = [
            "measure",
            "family",
            "probe",
            "judge",
            "higher_is_faithful",
            "probability",
            "rule",
        ]
        one = self.items.loc[(self.items["family"] == "label") == label]
        one = only(one.drop_duplicates(["measure", "higher_is_faithful"]), columns)
        check_rows("measures of several runs", one, columns, ["measure"])
        order = one["family"].map(FAMILIES.index)
        return (
            one.assign(_o=order)
            .sort_values("_o", kind="stable")
            .drop(columns="_o")
            .set_index("measure")
        )

    @cached_property
    def index(self) -> pd.MultiIndex:
        """`KEY` of every trace, in the order of `traces`."""
        return pd.MultiIndex.from_frame(only(self.traces, KEY))

    def wide(self, column: str = "value") -> pd.DataFrame:
        """A row per trace and a column per measure and label, filled from a column of `items`; NaN
        where a trace has none."""
        table = self.items.pivot(index=list(KEY), columns="measure", values=column)
        names = [*self.measures.index, *self.labels.index]
        return table.reindex(index=self.index, columns=names)

    @cached_property
    def oriented(self) -> pd.DataFrame:
        """The values of `wide`, each turned so that more is more faithful."""
        both = pd.concat([self.measures, self.labels])
        sign = np.where(both["higher_is_faithful"].astype(bool), 1.0, -1.0)
        return self.wide() * sign

    @cached_property
    def reasons(self) -> dict[str, list[str]]:
        """Measure or label -> for every trace, in the order of `index`, why it has no value; empty
        where it has one."""
        of_items = zip(*values_of(self.items, "measure", *KEY), strict=True)
        items = dict(zip(of_items, *values_of(self.items, "missing"), strict=True))
        named = set(zip(*values_of(self.items, "measure", *PLACE), strict=True))
        models = self.items.groupby("measure", sort=False)["model"].agg(set)

        def reason(measure: Any, key: tuple[str, ...]) -> str:
            known = items.get((measure, *key))
            if known is not None:
                return known
            if key[PLACE.index("model")] not in models[measure]:
                return OTHER_MODEL
            return OTHER_TRACE if (measure, *key[:-1]) in named else NOT_RUN

        names, keys = [*self.measures.index, *self.labels.index], list(self.index)
        return {name: [reason(name, key) for key in keys] for name in names}

    @cached_property
    def missing(self) -> pd.DataFrame:
        """The table `MISSING`: number of traces by measure and reason for having no value."""
        table = []
        both = pd.concat([self.measures, self.labels])
        of_measures = self.items.groupby("measure", sort=False)
        sources = of_measures["source"].agg(lambda s: ", ".join(dict.fromkeys(s)))
        for measure, family in both["family"].items():
            reasons = Counter(self.reasons[str(measure)])
            measured = reasons.pop("", 0)
            about = {"measure": measure, "family": family, "source": sources[measure]}
            about |= {"n_items": len(self.index)}
            counts = [("measured", measured), *sorted(reasons.items())]
            table += [about | {"reason": reason, "n": n} for reason, n in counts]
        return MISSING.filled(table)


def join(
    sources: Mapping[str, Scores],
    labels: pd.DataFrame | None,
    same: str,
    common: bool = False,
    groups: Groups | None = None,
) -> Joined:
    """Joins the scores of several runs by trace.

    Args:
        sources: name of a run -> its scores.
        labels: labels from a file, as `labels.labels_of` gives them.
        same: what two traces must share to be joined, one of `scores.SAME`.
        common: whether to drop traces that not every source has.
        groups: name of a run -> its groups of items that are not independent (`Run.groups`).

    Raises:
        UserError: no trace is in two of several sources, no label is of any trace, or a label has
            two values for one trace.
    """
    as_named = {name: _places(scores.traces) for name, scores in sources.items()}
    sources = _with_one_text(_with_one_name(sources))
    names, of_features = (_names(sources, of) for of in (_measured, _read))
    traces, items, steps = [], [], []
    features: dict[str, dict[tuple[str, ...], np.ndarray]] = {}
    digests = _digests(sources, same)
    origins: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    for source, scores in sources.items():
        keys = digests[source]
        for own, place in zip(as_named[source], _places(scores.traces), strict=True):
            origins[source, own] = (*place, keys[place])
        traces.append(scores.traces.assign(trace=[keys[p] for p in _places(scores.traces)]))
        for kind, frame in ((items, scores.items), (steps, scores.steps)):
            named = frame["measure"].map(lambda m, s=source: names.get((s, m), m))
            trace = [keys[p] for p in _places(frame)]
            kind.append(frame.assign(measure=named, trace=trace, source=source))
        for name, of in scores.features.items():
            into = features.setdefault(of_features.get((source, name), name), {})
            into |= {(*place, keys[place]): vector for place, vector in of.items()}
    joins = _joins(sources, digests)
    _check_common(sources, joins, same)
    of_traces = _one_per_trace(pd.concat(traces, ignore_index=True))
    of_items, of_steps = (pd.concat(frames, ignore_index=True) for frames in (items, steps))
    n_all = len(of_traces)
    if common:
        kept = set.intersection(*({(*p, k) for p, k in of.items()} for of in digests.values()))
        if not kept:
            raise UserError(f"common: no trace is in all of {', '.join(sources)}; give false")
        of_traces, of_items, of_steps = (_of(kept, f) for f in (of_traces, of_items, of_steps))
        origins = {own: key for own, key in origins.items() if key in kept}
        features = {
            name: {key: vector for key, vector in of.items() if key in kept}
            for name, of in features.items()
        }
    if labels is not None:
        of_items = pd.concat([of_items, _labelled(labels, of_traces)], ignore_index=True)
    _check_labels(of_items, same)
    # two runs of one trace have its labels twice: a value goes before a gap
    of_items = of_items.sort_values("missing", key=lambda why: why != "", kind="stable")
    of_items = of_items.drop_duplicates([*KEY, "measure"]).sort_index().reset_index(drop=True)
    of_steps = of_steps.drop_duplicates([*KEY, "measure", "step"]).reset_index(drop=True)
    tables = _tables({name: of for name, of in features.items() if of})
    n_left_out = n_all - len(of_traces)
    return Joined(of_items, of_steps, of_traces, joins, tables, origins, n_left_out, groups or {})


def _of(kept: set[tuple[str, ...]], frame: pd.DataFrame) -> pd.DataFrame:
    here = pd.MultiIndex.from_frame(only(frame, KEY).astype(str)).isin(kept)
    return keep(frame, here).reset_index(drop=True)


def _with_one_name(sources: Mapping[str, Scores]) -> dict[str, Scores]:
    """The sources with unified names of items and tasks.

    A run that was given chains of several models or data sets has both in the item's id
    (`data.given.reading`); they are removed. A trace without a task takes the task that other
    sources have for the same item and model, if there is exactly one.
    """
    known: dict[tuple[str, ...], set[str]] = {}
    for scores in sources.values():
        for dataset, task, item, model in _places(scores.traces):
            place = (dataset, _bare(dataset, item, model), model)
            known.setdefault(place, set()).update(filter(None, [task]))

    def named(place: tuple[str, ...]) -> tuple[str, ...]:
        dataset, task, item, model = place
        item = _bare(dataset, item, model)
        of = known[dataset, item, model]
        return (dataset, next(iter(of)) if not task and len(of) == 1 else task, item, model)

    def told(frame: pd.DataFrame) -> pd.DataFrame:
        places = [named(place) for place in _places(frame)]
        return frame.assign(task=[p[1] for p in places], item=[p[2] for p in places])

    def asked(traces: pd.DataFrame) -> list[str]:
        places = zip(_places(traces), traces["asked"], strict=True)
        return [_bare(dataset, of, model) for (dataset, _, _, model), of in places]

    resolved = {}
    for name, s in sources.items():
        features = {k: {named(p): v for p, v in of.items()} for k, of in s.features.items()}
        traces = told(s.traces).assign(asked=asked(s.traces))
        resolved[name] = Scores(told(s.items), traces, told(s.steps), features)
    return resolved


def _with_one_text(sources: Mapping[str, Scores]) -> dict[str, Scores]:
    """The sources with one digest of the text for each given chain.

    Readers of one given chain may hold different parts of it: a model that marks no reasoning
    leaves out the closing statement of the answer, and a judge reads it. The digest is that of a
    trace that was not given, where one of the same place has one of these texts, such as the trace
    of the run that wrote the chain.
    """
    every = pd.concat([scores.traces for scores in sources.values()])
    texts: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    written: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for place, given, text in zip(_places(every), every["given"], every["text"], strict=True):
        (texts[*place, given] if given else written[place]).add(text)
    one = {key: min(of & written[key[:-1]] or of) for key, of in texts.items() if len(of) > 1}

    def named(frame: pd.DataFrame) -> pd.DataFrame:
        rows_of = zip(_places(frame), frame["given"], frame["text"], strict=True)
        return frame.assign(text=[one.get((*place, given), text) for place, given, text in rows_of])

    return {
        name: Scores(s.items, named(s.traces), s.steps, s.features) for name, s in sources.items()
    }


def _bare(dataset: str, item: str, model: str) -> str:
    start, end = f"{dataset}/", f" by {model or 'unknown'}"
    # the name of a sample stands after it
    bare, found, sample = item.removeprefix(start).rpartition(end)
    return bare + sample if item.startswith(start) and found and sample[:1] in ("", "#") else item


def _places(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(zip(*(frame[name].astype(str) for name in PLACE), strict=True))


def _digests(sources: Mapping[str, Scores], same: str) -> dict[str, dict[tuple[str, ...], str]]:
    """Source -> place of a trace -> digest of what has to be the same (ids, text or question).

    Where a source has no token ids for a trace, those that other sources have for the same place
    and text are used if they agree with each other, and the digest of the text otherwise.
    """
    every = pd.concat([scores.traces for scores in sources.values()])
    with_ids = keep(every, every["ids"] != "").groupby([*PLACE, "text"])
    ids = pd.DataFrame(with_ids["ids"].agg(["first", "nunique"]))
    of_text = keep(ids, ids["nunique"] == 1)["first"].to_dict()
    return {
        source: {
            place: own or of_text.get((*place, text), text)
            for place, own, text in zip(
                _places(of.traces), of.traces[same], of.traces["text"], strict=True
            )
        }
        for source, of in sources.items()
    }


def _measured(scores: Scores) -> dict[str, set[tuple[str, ...]]]:
    """Measure -> places of the traces that it scores; labels are left out, since a label is the
    same in all sources."""
    scored = keep(scores.items, scores.items["family"] != "label")
    return {str(m): set(_places(of)) for m, of in scored.groupby("measure", sort=False)}


def _read(scores: Scores) -> dict[str, set[tuple[str, ...]]]:
    """Name of a feature vector -> places of the traces that have it."""
    return {name: set(vectors) for name, vectors in scores.features.items()}


def _names(
    sources: Mapping[str, Scores], places_of: Callable[[Scores], dict[str, set[tuple[str, ...]]]]
) -> dict[tuple[str, str], str]:
    """(source, name) -> name with the source added, for names that two sources use for the same
    traces, so that different numbers do not share a name."""
    of: dict[str, dict[str, set[tuple[str, ...]]]] = defaultdict(dict)
    for source, scores in sources.items():
        for name, places in places_of(scores).items():
            of[name][source] = places
    return {
        (source, name): f"{name} [{source}]"
        for name, by_source in of.items()
        if any(a & b for a, b in itertools.combinations(by_source.values(), 2))
        for source in by_source
    }


def _joins(
    sources: Mapping[str, Scores], digests: Mapping[str, Mapping[tuple[str, ...], str]]
) -> pd.DataFrame:
    traces = {
        source: scores.traces.assign(joined=[digests[source][p] for p in _places(scores.traces)])
        for source, scores in sources.items()
    }
    table = []
    for one, other in itertools.combinations(sources, 2):
        both = traces[one].merge(traces[other], on=list(PLACE), suffixes=("", "_other"))
        equal = {level: both[level] == both[f"{level}_other"] for level in (*SAME, "joined")}
        # two empty digests are equal, but say nothing about the traces
        known = [equal[level] & (both[level] != "") for level in SAME]
        finest = Counter(np.select(known, SAME, "nothing").tolist())
        row = {"source": one, "other": other, "n_common": len(both)}
        row |= {"n_source": len(traces[one]), "n_other": len(traces[other])}
        row |= {f"n_same_{level}": finest[level] for level in SAME}
        row |= {"n_nothing_same": finest["nothing"], "n_joined": count(equal["joined"])}
        table.append(row)
    return JOINS.filled(table)


def _check_common(sources: Mapping[str, Scores], joins: pd.DataFrame, same: str) -> None:
    if len(sources) < 2 or numbers(joins["n_joined"]).sum():
        return
    n_common = int(numbers(joins["n_common"]).max())
    if n_common:
        looser = (
            "; --same question joins them by their question alone" if same != "question" else ""
        )
        raise UserError(
            f"{', '.join(sources)}: {n_common} items have the same names, but none has the same "
            f"{same} in two of these runs: they were measured on different traces{looser}"
        )
    of = "; ".join(
        f"{name} has {len(s.traces)} of {', '.join(sorted(set(s.traces['task']))[:4])} by "
        f"{', '.join(sorted(set(s.traces['model']))[:4]) or 'no model of its own'}"
        for name, s in sources.items()
    )
    raise UserError(
        f"no item is in two of these runs ({of}); give runs with the same tasks, seed and models"
    )


def _one_per_trace(traces: pd.DataFrame) -> pd.DataFrame:
    """One row per trace; each column has the value of the first source that knows it."""
    columns = [c for c in TRACES if c not in PLACE]
    text = ["ids", "text", "given", "question", "asked", "excluded"]
    table = traces.replace({c: {"": None} for c in text})
    first = table.groupby(list(KEY), sort=False, dropna=False)[columns].first().reset_index()
    first[text] = first[text].fillna("")
    return first.sort_values(list(KEY), kind="stable").reset_index(drop=True)


def _labelled(labels: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    """A row per label and matching trace; a key column that a label leaves empty matches any
    value."""
    traces = only(traces, KEY).astype(str)
    found = [
        of.drop(columns=[name for name in PLACE if name not in named]).merge(traces, on=named)
        for given, of in labels.groupby([labels[name] != "" for name in PLACE], sort=False)
        if (
            named := [
                name for name, is_given in zip(PLACE, cast(tuple, given), strict=True) if is_given
            ]
        )
    ]
    labelled = pd.concat(found, ignore_index=True)
    if labelled.empty:
        raise UserError(
            f"labels: none of {len(labels)} is of a trace of these runs; the first is of item "
            f"{labels['item'].iloc[0]!r}, the runs have {traces['item'].iloc[0]!r} and others"
        )
    return labelled.assign(source="labels")


def _check_labels(items: pd.DataFrame, same: str) -> None:
    """Checks that no label has two values for one trace, since one of them would be lost.

    In runs that are joined by question alone, labels may differ because they are about different
    reasoning; then a label is checked only where a file gives one of its values.

    Raises:
        UserError: a label has two values for a trace.
    """
    known = items.loc[(items["family"] == "label") & (items["missing"] == "")]
    of_trace = known.assign(file=known["source"] == "labels").groupby([*KEY, "measure"], sort=False)
    apart = of_trace["value"].transform("nunique") > 1
    if same == "question":
        apart &= of_trace["file"].transform("any")
    apart = known.loc[apart]
    if len(apart):
        first = apart.iloc[0]
        of_label = where(apart, measure=first["measure"])
        names = " and ".join(dict.fromkeys(of_label["source"]))
        n = len(only(of_label, KEY).drop_duplicates())
        raise UserError(
            f"the label {first['measure']!r} has different values in {names} for {n:,} traces, the "
            f"first of item {first['item']!r}; give it another name in the file of labels, or "
            "leave one of the runs out"
        )


def _tables(features: Mapping[str, Mapping[tuple[str, ...], np.ndarray]]) -> dict[str, Any]:
    """Title -> table of feature vectors, a row per trace; vectors of different lengths, as
    different models have them, get separate tables."""
    tables = {}
    for name, of in features.items():
        for width in sorted({len(vector) for vector in of.values()}):
            same = {key: vector for key, vector in of.items() if len(vector) == width}
            index = pd.MultiIndex.from_tuples(list(same), names=list(KEY))
            title = name if len({len(v) for v in of.values()}) == 1 else f"{name}, {width} wide"
            tables[title] = pd.DataFrame(np.stack(list(same.values())), index=index)
    return tables
