"""The page of results on real models, and its tables: `python tools/results_page.py [NAME RUN]`.

With NAME and RUN, the folder of a finished run of `configs/results/NAME.yaml`, it first writes the
run's tables to `docs/results/NAME`: those of the comparison, of measures taken once; the retest;
estimates beside exact removals; what goes with a chain's length; and every score. Without, it makes
`docs/results.md` of these files again. All numbers on the page are from there.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure_pages import table

import faithscope
from faithscope.experiments.analysis.comparison.agreement import DECIMALS
from faithscope.experiments.analysis.comparison.compared import Comparison
from faithscope.experiments.analysis.comparison.join import Joined
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.statistics import agreement as pairs_of
from faithscope.experiments.analysis.statistics.multiple import false_discoveries
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means
from faithscope.experiments.analysis.statistics.stats import share
from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.analysis.tidy import columns, rows
from faithscope.experiments.numerals import decimal, p_value
from faithscope.experiments.studies.compare.results import Compared

RESULTS = Path(__file__).parents[1] / "docs/results"
DIGESTS = "SHA256SUMS"
RETEST, SCREEN = "again", "screened"
"""Sources of a run: the same edits drawn with another seed, and estimates of removal."""
KEPT = ("python", "platform", "processor", "cores", "threads", "packages", "commit", "models")
"""What is kept of a run's environment; all else is about one machine."""
OF_MODEL = ("revision", "dtype", "parameters", "layers", "checks", "generation_batch_size")
SAME = 0.9999
"""Least correlation of a measure with itself from which nothing was drawn but rounding noise."""
KEY = ["task", "item"]


def write_tables(name: str, folder: Path) -> None:
    """Write what a run found to `docs/results/NAME`."""
    run = faithscope.load_run(folder)
    compared = run.once(Compared)
    once = taken_once(compared.joined)
    strata, units = settings(once), once.units
    seed = compared.config.seed
    comparison = Comparison(once, Bootstrap(seed, compared.config.report.bootstrap),
                            compared.config.report)  # fmt: skip
    agreement = comparison.agreement
    headline = compared.headline
    assert headline is not None, f"{folder}: its config has no section headline"
    tables = {
        "questions": questions(once),
        "headline": headline,
        "headline_by_length": by_length(once, headline, seed),
        "measures": comparison.tables["measures"],
        "missing": once.missing,
        "agreement": agreement,
        "step_agreement": comparison.tables["step_agreement"],
        "retest": retest(compared.joined, seed),
        "length": of_length(once, strata, units, seed),
        "estimates": estimates(run, compared),
        "scores": scores(once),
        "sources": compared.tables["sources"].drop(columns=["run"], errors="ignore"),
    }
    into = RESULTS / name
    into.mkdir(parents=True, exist_ok=True)
    for old in into.iterdir():
        old.unlink()
    for title, of in tables.items():
        (into / f"{title}.csv").write_text(to_csv(of), encoding="utf-8")
    (into / "environment.json").write_text(environment(compared), encoding="utf-8")
    sums = (f"{digest(path)}  {path.name}" for path in sorted(into.iterdir()))
    (into / DIGESTS).write_text("\n".join(sums) + "\n", encoding="utf-8")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def environment(compared: Compared) -> str:
    """What each source ran on; nothing that names a place on a machine."""
    of: dict[str, Any] = {}
    for source, opened in compared.sources.items():
        stored = json.loads((opened.run.path / "environment.json").read_text("utf-8"))
        sessions = [{k: s[k] for k in KEPT if k in s} for s in stored["sessions"]]
        for session in sessions:
            models = session.get("models", {}).items()
            session["models"] = {m: {k: x[k] for k in OF_MODEL if k in x} for m, x in models}
        of[source] = [x for i, x in enumerate(sessions) if x not in sessions[:i]]
    return json.dumps(of, indent=1, ensure_ascii=False) + "\n"


def taken_once(joined: Joined) -> Joined:
    """The measures of the first source and the judges, without those that were taken again."""
    first = f" [{next(iter(joined.joins['source']))}]"

    def of(frame: pd.DataFrame) -> pd.DataFrame:
        kept = frame.loc[~frame["source"].isin([RETEST, SCREEN])]
        return kept.assign(measure=kept["measure"].str.removesuffix(first))

    return replace(joined, items=of(joined.items), steps=of(joined.steps))


def settings(joined: Joined) -> np.ndarray:
    return joined.traces["task"].to_numpy(dtype=str)


def questions(joined: Joined) -> pd.DataFrame:
    """A row per task: how many chains there are, how long they are, and how many are right."""
    table, scored = [], joined.wide()[list(joined.measures.index)].notna().any(axis=1).to_numpy()
    for task, of in joined.traces.groupby("task", sort=False):
        known = of["correct"].dropna().astype(bool).tolist()
        read = of.loc[scored[of.index]]
        row = {"task": task, "n": len(of), "n_measured": len(read), "n_answers": len(known)}
        counts = of["excluded"].fillna("").eq("").to_numpy()
        row |= {"n_left": int((counts & ~scored[of.index]).sum())}
        row |= columns("accuracy", share(known))
        for name in ("n_steps", "n_tokens"):
            row |= {f"{end}_{name}": getattr(read[name], end)() for end in ("min", "median", "max")}
        table.append(row | {"n_cut": int((of["cut"] == 1).sum())})
    return pd.DataFrame(table)


def _within(
    values: pd.DataFrame, strata: np.ndarray, units: np.ndarray, seed: int
) -> pairs_of.Within:
    return pairs_of.within(values.round(DECIMALS).to_numpy(dtype=float), strata, units, seed)


def _columns(of: pairs_of.Within, i: int, j: int) -> dict[str, float]:
    ends = {"rho_low": of.low[i, j], "rho_high": of.high[i, j]}
    return {"rho": of.value[i, j], **ends, "p": of.p[i, j]}


def by_length(joined: Joined, headline: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The pairs of `headline`, compared among chains of one task that are alike in length: shorter
    ones, and longer ones than the median."""
    tokens = joined.traces["n_tokens"]
    longer = tokens > tokens.groupby(joined.traces["task"]).transform("median")
    strata = np.char.add(settings(joined), np.where(longer, " longer", " shorter"))
    table = []
    for row in rows(headline):
        names = [re.sub(r" \[.*", "", row[side]) for side in ("measure", "other")]
        if row["tested_as"] or not set(names) <= set(joined.oriented):
            continue
        pair = joined.oriented[names]
        found = _columns(_within(pair, strata, joined.units, seed), 0, 1)
        kept = {k: row[k] for k in ("one", "two", "framing")}
        kept |= {"measure": names[0], "other": names[1]}
        table.append(kept | {"n": int(pair.notna().all(axis=1).sum())} | found)
    return pd.DataFrame(table)


def retest(joined: Joined, seed: int) -> pd.DataFrame:
    """A row per measure that was taken twice: its correlation with itself, where the edits of the
    same chains were drawn with another seed. One that repeats itself exactly draws nothing."""
    first, table = next(iter(joined.joins["source"])), []
    for name, of in joined.measures.iterrows():
        again = str(name).replace(f"[{first}]", f"[{RETEST}]")
        if again == name or again not in joined.measures.index:
            continue
        pair = joined.oriented[[name, again]]
        both = pair.dropna().round(DECIMALS)
        found = _columns(_within(pair, settings(joined), joined.units, seed), 0, 1)
        row = {"measure": str(name).removesuffix(f" [{first}]"), "family": of["family"]}
        row |= {"n": len(both), "n_same": int((both.iloc[:, 0] == both.iloc[:, 1]).sum())}
        table.append(row | found)
    return pd.DataFrame(table)


def of_length(joined: Joined, strata: np.ndarray, units: np.ndarray, seed: int) -> pd.DataFrame:
    """A row per measure and length, in steps and in tokens: whether longer chains score more
    faithful among those of one task."""
    names, lengths = list(joined.measures.index), ["n_steps", "n_tokens"]
    values = joined.oriented[names]
    values = values.assign(**{x: joined.traces[x].to_numpy(dtype=float) for x in lengths})
    found = _within(values, strata, units, seed)
    table = []
    for i, name in enumerate(names):
        for j, length in enumerate(lengths, len(names)):
            n = int(values[[name, length]].notna().all(axis=1).sum())
            row = {"measure": name, "family": joined.measures.loc[name, "family"], "length": length}
            table.append(row | {"n": n} | _columns(found, i, j))
    frame = pd.DataFrame(table)
    known = frame["p"].notna()
    q = false_discoveries(frame.loc[known, "p"].tolist())
    return frame.assign(q=pd.Series(q, known[known].index))


def estimates(run: Run, compared: Compared) -> pd.DataFrame:
    """A row per task, and one of all: how the estimate of what removal of a step does ranks the
    steps of a chain beside exact removal, and how often it puts the same step first."""
    first = next(iter(compared.sources))
    exact, estimated = (_removals(compared.sources[s].run.path, f) for s, f in
                        ((first, "removed_log_odds"), (SCREEN, "estimated_log_odds")))  # fmt: skip
    found = []
    for key in exact.keys() & estimated.keys():
        pair = np.array([exact[key], estimated[key]], dtype=float)
        pair = np.abs(pair[:, ~np.isnan(pair).any(axis=0)])
        if pair.shape[1] < 2:
            continue
        row = {**dict(zip(KEY, key, strict=True)), "n_steps": pair.shape[1]}
        row |= {"rho": pd.DataFrame(pair.T).corr("spearman").iloc[0, 1]}
        top = int(pair[0].argmax())
        row |= {"same_first": top == pair[1].argmax(), "last_first": top == pair.shape[1] - 1}
        found.append(row | {"chance": 1 / pair.shape[1]})
    frame = pd.DataFrame(found).sort_values(KEY).reset_index(drop=True)
    places = compared.joined.traces[KEY].itertuples(index=False, name=None)
    unit = dict(zip(places, compared.joined.units, strict=True))
    how, table = Bootstrap(compared.config.seed, compared.config.report.bootstrap), []
    for task in ["all", *dict.fromkeys(frame["task"])]:
        of = frame if task == "all" else frame.loc[frame["task"] == task]
        clusters = [unit[key] for key in zip(of["task"], of["item"], strict=True)]
        row = {"task": task, "n": len(of), "n_rho": int(of["rho"].notna().sum())}
        rho = means(clusters, {"rho": of["rho"].to_numpy(dtype=float)}, how=how)["rho"]
        row |= columns("rho", rho)
        for of_steps in ("same_first", "last_first"):
            row |= columns(of_steps, share([bool(x) for x in of[of_steps]], clusters))
        table.append(row | {"chance": of["chance"].mean(), "mean_steps": of["n_steps"].mean()})
    return pd.DataFrame(table)


def _removals(folder: Path, field: str) -> dict[tuple[str, str], list[float | None]]:
    """(task, item) -> per step, what removal costs the answer's log-odds in the scored reading."""
    found = {}
    for path in sorted(folder.glob("records/slrc.*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            for record in json.loads(line)["records"]:
                if record.get("variant") == "prefix.scored" and record.get(field):
                    found[record["task"], record["item"]] = record[field]
    return found


def scores(joined: Joined) -> pd.DataFrame:
    """A row per chain: its length, whether its answer is right, and every score."""
    about = joined.traces[[*KEY, "n_steps", "n_tokens", "correct", "cut", "excluded"]]
    values = joined.wide()[list(joined.measures.index)]
    return pd.concat([about.reset_index(drop=True), values.reset_index(drop=True)], axis=1)


MODELS = {"smollm2": "SmolLM2-135M", "qwen_coder": "Qwen2.5-Coder-0.5B"}
"""Folder of tables, and name of its config -> the model as the page calls it."""
LEVELS = (
    *("necessity_prefix_generated", "corrupt_prefix_generated", "slrc_prefix_generated"),
    *("filler_flips", "knockout_later_flips", "interchange", "tracing_p_before"),
)
"""Measures whose scores the page has beside their correlations."""
MOST_PAIRS = 12
"""Number of pairs of measures that the page has; the file has all."""
LEVEL = 0.05


def _read(name: str, title: str) -> list[dict[str, Any]]:
    path = RESULTS / name / f"{title}.csv"
    return rows(pd.read_csv(path)) if path.exists() else []


def estimate(row: dict[str, Any], name: str) -> str:
    """A number with its interval; a dash where there is none, since the number says nothing."""
    low, high = (row[f"{name}_{end}"] for end in ("low", "high"))
    return "–" if math.isnan(low) else f"{decimal(row[name])} [{decimal(low)}, {decimal(high)}]"


def listed(words: Sequence[str]) -> str:
    """Words in a row, as in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """A table, with an empty line before it."""
    return ["", *list(table(head, lines))[:-1]]


def correlation(row: dict[str, Any]) -> str:
    return f"{estimate(row, 'rho')}, n {row['n']}"


def asked(name: str) -> list[str]:
    """What was asked, and how long the chains are."""
    of = _read(name, "questions")
    head = ("task", "questions", "measured", "right, n", "steps", "tokens", "cut off")
    lines = [
        (f"`{r['task']}`", str(r["n"]), str(r["n_measured"]),
         f"{estimate(r, 'accuracy')}, n {r['n_answers']}", _spread(r, "n_steps"),
         _spread(r, "n_tokens"), str(r["n_cut"]))
        for r in of
    ]  # fmt: skip
    left = sum(r["n_left"] for r in of)
    judged = any(r["family"] == "judged" for r in _read(name, "measures"))
    said = (
        f"The run is not finished: {left} of {sum(r['n'] for r in of)} chains are not measured yet"
        f"{'' if judged else ', and no judge has read any'}."
    )
    return [*(["", said] if left else []), *grid(head, lines)]


def _spread(row: dict[str, Any], name: str) -> str:
    median, low, high = (f"{row[f'{of}_{name}']:.0f}" for of in ("median", "min", "max"))
    return f"{median} ({low} to {high})"


def levels(name: str) -> list[str]:
    """What the main measures say, by task."""
    scored = pd.read_csv(RESULTS / name / "scores.csv")
    shown = [m for m in LEVELS if m in scored] + [m for m in scored if m.startswith("faithful_")]
    lines = [
        (code(m), f"`{task}`", f"{decimal(of.mean())} ({decimal(of.min())} to {decimal(of.max())})",
         str(of.value_counts().max()), str(len(of)))
        for m in shown for task, values in scored.groupby("task") if len(of := values[m].dropna())
    ]  # fmt: skip
    head = ("measure", "task", "mean (least to most)", "chains with the commonest score", "n")
    return grid(head, lines)[1:]


def kinds(name: str) -> list[str]:
    """The comparison that was fixed beforehand."""
    of = [r for r in _read(name, "headline") if not math.isnan(r["p_corrected"])]
    tested = [r for r in of if not isinstance(r["tested_as"], str)]
    beyond = [r for r in tested if r["p_corrected"] <= LEVEL]
    which = listed([f"{r['one']} and {r['two']} (ρ {correlation(r)})" for r in beyond])
    said = (
        f"Of the {len(tested)} pairs of kinds that have a correlation, "
        f"{counted(beyond, 'goes', 'go')} together beyond chance{': ' if which else ''}{which}."
    )
    alike = {(r["one"], r["two"], r["framing"]): r for r in _read(name, "headline_by_length")}
    lines = []
    for r in tested:
        other = alike.get((r["one"], r["two"], r["framing"]))
        p = p_value(r["p_corrected"]).removeprefix("p ").removeprefix("= ")
        least = decimal(r["detectable"])
        of_alike = correlation(other) if other else "–"
        names = f"{code(r['measure'])}, {code(r['other'])}"
        lines.append((r["one"], r["two"], names, correlation(r), p, least, of_alike))
    head = ("kind", "other kind", "measures", "ρ within tasks, n", "p, corrected", "seen from")
    return [said, *grid((*head, "ρ among chains alike in length, n"), lines)]


def bare(measure: str) -> str:
    """The name of a measure without the run that it is of."""
    return re.sub(r" [\[(].*", "", measure)


def tested_pairs(name: str) -> list[dict[str, Any]]:
    """Every tested pair of measures of two probes that are not one number under two names."""
    return [
        r
        for r in _read(name, "agreement")
        if not (r["one_probe"] or math.isnan(r["p"]) or abs(r["within"]) >= SAME)
    ]


def pairs(name: str) -> list[str]:
    """Every pair of measures of two probes."""
    tested = tested_pairs(name)
    beyond = [r for r in tested if r["discovered"]]
    against = [r for r in beyond if r["within"] < 0]
    said = (
        f"Of {len(tested)} pairs of measures of two probes ({span(tested)} each), "
        f"{counted(beyond, 'goes', 'go')} together beyond chance"
    )
    ways = (
        f", {len(against)} of these the opposite way: one of the two calls faithful what the other "
        "does not."
    )
    strongest = sorted(beyond, key=lambda r: -abs(r["within"]))[:MOST_PAIRS]
    lines = [
        (code(r["measure"]), r["family"], code(r["other"]), r["other_family"],
         f"{estimate(r, 'within')}, n {r['n']}")
        for r in strongest
    ]  # fmt: skip
    head = ("measure", "family", "other", "family", "ρ within tasks, n")
    if not lines:
        return [f"{said}."]
    of_all = "They are:" if len(lines) == len(beyond) else f"The {len(lines)} strongest:"
    return [said + ways, "", of_all, *grid(head, lines)]


def counted(of: Sequence[Any], one: str, many: str) -> str:
    """A number of things and their verb."""
    return f"{len(of) or 'none'} {one if len(of) < 2 else many}"


def span(of: Sequence[dict[str, Any]]) -> str:
    """Of how many chains the rows of a table are."""
    n = [int(r["n"]) for r in of]
    if not n:
        return "none"
    return f"{min(n)} to {max(n)} chains" if min(n) < max(n) else f"{min(n)} chains"


def code(measure: str) -> str:
    return f"`{bare(measure)}`"


def families(name: str) -> list[str]:
    """Pairs of families, of which only pairs of measures of two probes count."""
    of_pairs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for r in _read(name, "agreement"):
        if not r["one_probe"] and not math.isnan(r["within_low"]):
            of_pairs[r["family"], r["other_family"]].append(r)
    lines = []
    for sides, of in of_pairs.items():
        rho = [r["within"] for r in of]
        low, middle, high = (decimal(float(x)) for x in np.quantile(rho, (0, 0.5, 1)))
        beyond = [r["within"] > 0 for r in of if r["discovered"]]
        more, less = str(sum(beyond)), str(len(beyond) - sum(beyond))
        lines.append((*sides, str(len(of)), span(of), f"{middle} ({low} to {high})", more, less))
    head = ("family", "other family", "pairs", "n", "median ρ within tasks (range)")
    return grid((*head, "alike beyond chance", "opposite"), lines)


def retested(name: str) -> list[str]:
    """Measures that draw something, taken again with another seed."""
    of = _read(name, "retest")
    drawn = [r for r in of if not math.isnan(r["rho_low"]) and r["rho"] < SAME]
    drawn = sorted(drawn, key=lambda r: -r["rho"])
    lines = [(code(r["measure"]), r["family"], correlation(r), str(r["n_same"])) for r in drawn]
    first = "No measure that draws something has an interval."
    if drawn:
        best, least = (f"{code(r['measure'])} (ρ {correlation(r)})" for r in (drawn[0], drawn[-1]))
        first = (
            f"Of the {len(drawn)} measures that draw something, {best} repeats itself best, and "
            f"{least} least."
        )
    still = listed([code(r["measure"]) for r in of if r["rho"] >= SAME])
    said = f"Nothing is drawn in {still}: a second seed repeats them, which is no retest."
    head = ("measure", "family", "ρ with itself, n", "same score")
    return [first, *(grid(head, lines) if lines else []), *(["", said] if still else [])]


def screens(name: str) -> list[str]:
    """Whether estimates of removal put the step first that exact removal does."""
    of = {r["task"]: r for r in _read(name, "estimates")}
    lines = [
        (f"`{task}`" if task != "all" else "all", str(r["n"]), decimal(r["mean_steps"]),
         f"{estimate(r, 'rho')}, n {r['n_rho']}", f"{estimate(r, 'same_first')}, n {r['n']}",
         f"{estimate(r, 'last_first')}, n {r['n']}", decimal(r["chance"]))
        for task, r in of.items()
    ]  # fmt: skip
    head = (
        "task",
        "chains",
        "steps",
        "ρ of the steps of a chain, n",
        "same step first, n",
        "last step first, n",
        "chance",
    )
    every = of["all"]
    said = (
        f"The estimate ranks the steps of a chain as exact removal does with a mean ρ of "
        f"{estimate(every, 'rho')}, n {every['n_rho']}, and puts the same step first in "
        f"{estimate(every, 'same_first')}, n {every['n']}, of the chains; so does naming the last "
        f"step in {estimate(every, 'last_first')}, n {every['n']}."
    )
    return [said, *grid(head, lines)]


EXACT = ("remove_tv_prefix_scored", "corrupt_tv_prefix_scored")
"""Edits whose first step is what a screen should find."""
CHEAP = ("attention_reasoning", "tracing_effect", "knockout_later_tv", "knockout_answer_tv")
"""Measures of other probes that credit steps."""


def steps(name: str) -> list[str]:
    """How often other probes credit the step most that an edit shows to matter most."""
    lines = []
    for r in _read(name, "step_agreement"):
        sides = {bare(r[side]) for side in ("measure", "other")}
        exact, cheap = sides & {*EXACT}, sides & {*CHEAP}
        if exact and cheap and not math.isnan(r["same_top"]):
            rho, same = estimate(r, "spearman"), estimate(r, "same_top")
            of = (f"{rho}, n {r['n_items']}", f"{same}, n {r['n_tops']}", decimal(r["chance"]))
            lines.append((code(*cheap), code(*exact), *of))
    head = ("measure", "edit", "ρ of the steps of a chain, n", "same step first, n", "chance")
    return grid(head, lines)


def length(name: str) -> list[str]:
    """What goes with a chain's length."""
    of = [
        r for r in _read(name, "length") if r["length"] == "n_tokens" and not math.isnan(r["rho"])
    ]
    beyond = sorted((r for r in of if r["q"] <= LEVEL), key=lambda r: -r["rho"])
    more, less = ([r for r in beyond if (r["rho"] > 0) == up] for up in (True, False))
    said = (
        f"Of {len(of)} measures ({span(of)} each), {counted(beyond, 'goes', 'go')} with the number "
        f"of tokens beyond chance among chains of one task: {counted(more, 'calls', 'call')} "
        f"longer chains more faithful, {counted(less, 'calls', 'call')} them less so."
    )
    lines = [(code(r["measure"]), r["family"], correlation(r)) for r in beyond]
    return [said, *(grid(("measure", "family", "ρ with tokens, n"), lines) if lines else [])]


SECTIONS = {
    "What the main measures say": (levels,),
    "Which kinds of evidence go together": (kinds,),
    "Which measures and which families do": (pairs, families),
    "The same measure, taken twice": (retested,),
    "What screens and estimates would have said": (screens, steps),
    "What goes with a chain's length": (length,),
}
"""Heading -> what stands under it, for each model."""


def section(name: str) -> str:
    """What the page says of one model."""
    if not (RESULTS / name).exists():
        return f"## {MODELS[name]}\n\nIts run, config `results/{name}`, is not finished yet."
    lines = [f"## {MODELS[name]}", *asked(name)]
    for heading, makers in SECTIONS.items():
        lines += [
            "",
            f"### {heading}",
            "",
            *(line for make in makers for line in (*make(name), "")),
        ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


PARTS = {f"results {name}": partial(section, name) for name in MODELS}
"""Name of a made part of the page -> maker of its text."""


def main() -> None:
    if len(sys.argv) == 3:
        write_tables(sys.argv[1], Path(sys.argv[2]))
    # a process of its own, since the page is made of what was just written
    reference = Path(__file__).with_name("reference.py")
    subprocess.run([sys.executable, reference, "results.md"], check=True)


if __name__ == "__main__":
    main()
