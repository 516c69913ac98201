"""What holds of every probe: its calls, samples of steps, few labels, the answer that it follows,
and that its report shows what it measured.

Every test runs over `PROBES` and takes what it expects from the probe's own declaration. The chain
is one in which every edit can be made, so a new probe needs no entry here.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from tiny_circuits import Made
from tiny_models import tiny
from tiny_nla import checkpoints

from faithscope.experiments.analysis.picture import Picture, svg
from faithscope.experiments.analysis.stored_records import Place, place_of
from faithscope.experiments.data.traces import to_record
from faithscope.experiments.studies.slrc.figures.figures import pictures
from faithscope.experiments.studies.slrc.frames import FRAMES, tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model
from faithscope.interventions import Origin, Question, Trace, from_ids
from faithscope.probes import PROBES, Asking, Message, Record
from faithscope.probes.causal_effects import NOT_SAMPLED
from faithscope.probes.circuits import attributed
from faithscope.probes.framing import FEWER_LABELS
from faithscope.probes.probe import OtherChain, Probe, Size
from faithscope.probes.record import ARRAYS
from faithscope.probes.settings import Settings

QUESTION = "Ann has 2 bags of 3 red and 4 blue pens, and 5 more. How many?"
"""It has as many numbers as `interchange` expects of a question."""
STEPS = (
    "So 3 + 4 = 7 in a bag. ",
    "Then 7 * 2 = 14 in both. ",
    "Now 14 + 5 = 19 are hers. ",
    "So 4 + 3 = 7 in every bag. ",
    "Thus 5 + 14 = 19 in all.",
)
"""Every step can be corrupted, reworded by rule, filled and removed. A list of a record with as
many entries has one per step."""
OWN, OTHER = "19", "18"
SETTINGS: dict[str, dict[str, Any]] = {
    # every corruption counts as one with an effect
    "patching": {"least": 1e-9},
    "cc_shap": {"evaluations": 12},
    # a random model rewords nothing
    "paraphrase": {"writers": ("rule",)},
    "regex_baseline": {"pattern": "bag|pens"},
    "fur": {"samples": 2},
    "simulatability": {"changes": 2},
    "sycophancy": {"cues": ("metadata",)},
    # a table of its own
    "attention": {"spans": {"first": "step 1"}},
    "suppression": {"spans": {"first": "step 1"}},
    "span_knockout": {"writes": True},
}
"""Settings under which no question of a probe depends on the random model's replies."""
ESTIMATED = {("paraphrase", "writers"), ("tracing", "every"), ("resample", "rounds")}
"""Settings of which `calls` is an estimate: rewordings that cannot be used are not asked about,
some ends of steps are cuts at equal distances, too, and how many draws come back is not known."""
OTHERS = [OtherChain(f"{i}", f"{i}?", f"So {i} + 1 = {i + 1}.", str(i + 1)) for i in range(8)]
"""Chains about other questions, for probes that need some."""
RUNNING = ("run", "likelihood", "ask", "generate")
"""Methods of a model that run texts, their first argument."""
NOT_RUNNING = {"lens", "to_transformer_lens", "to_nnsight"}
WRITTEN = "generated"
"""The reading of an answer that takes no labels."""
OF_THE_TEXT = {"steps", "step_text"}
"""Lists that say which the steps are, and nothing of what was measured."""


def number(text: str) -> str:
    """The last number after the cue, or an answer for whatever else a random model writes."""
    return (re.findall(r"\d+", text) or [OTHER])[-1]


ASKING = Asking(
    answer_cue="\nSo it is",
    labels=((OWN, f" {OWN}"), (OTHER, f" {OTHER}")),
    parse=lambda text: number(said) if (said := text.partition("\nSo it is")[2]) else None,
    necessity_prompt="Well? {}".format,
    sufficiency_prompt="Only: {}".format,
    kind="label",
    reprompt_cue="\nSo it is",
    asked=QUESTION,
    direct_prompts={name: Message(f"{name}: {QUESTION}") for name in ("a", "b", "c")},
    # a response to any cue goes over to the answer that it points to
    parse_reply=lambda reply: OTHER,
)


@cache
def model() -> Model:
    """A random model that reads long prompts, and ends a text at any of some letters."""
    ends = [*range(58, 100)]
    return tiny("llama", max_position_embeddings=4096, num_hidden_layers=2, eos_token_id=ends)


def trace(item: str = "q") -> Trace:
    """A chain with every edit possible, under the model's own prompt; its first step is
    prefilled."""
    ids = model().encode("".join(STEPS))
    question = Question(item, "made", QUESTION, "label", gold=OWN, options=(OWN, OTHER))
    prompt = model().prompt(QUESTION).ids
    origin = Origin(model="tiny", prefilled=len(model().encode(STEPS[0])))
    return from_ids(question, prompt, ids, model().pieces(ids), answer=OWN, origin=origin)


@cache
def verbalised() -> dict[str, Any]:
    """Settings of the probe that needs a checkpoint of its own."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    av, ar = checkpoints(model(), folder)
    return {"verbaliser": str(av), "reconstructor": str(ar), "pattern": "a"}


@cache
def traced() -> dict[str, Any]:
    """Settings of the probe that needs a graph of each chain: one of the chain here."""
    asked = attributed(model(), ASKING, trace())
    assert not isinstance(asked, str)
    ids, target = asked
    ((p,),) = model().run([Branch(ids)]).branches[0].logits.softmax(-1)[:, [target]].tolist()
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    made = Made(ids, [(0, len(ids) - 1)], 1, [target], [p], {})
    made.effects.update({(made.logit(0), i): 1.0 for i in (0, *map(made.embedding, range(9)))})
    made.effects.update({(0, made.embedding(len(ids) - 9)): 1.0})
    made.write(folder / "graph.pt")
    return {"graphs": str(folder)}


def settings_of(probe: Probe, **changes: Any) -> Settings:
    """A probe's settings with short texts, so that a random model does not write to its limit."""
    short = {n: 8 for n in probe.settings.of_a_config() if n.endswith("_tokens")}
    made = {"nla": verbalised, "circuits": traced}.get(probe.name)
    own = made() if made else SETTINGS.get(probe.name, {})
    return probe.settings(**short, **own | changes)


def changes_of(probe: Probe) -> Iterator[dict[str, Any]]:
    """Every setting of a probe with other values: parts of a list, the other truth value, small
    numbers."""
    default = settings_of(probe)
    for name in probe.settings.of_a_config():
        if name in probe.settings.afterwards() or name.endswith("_tokens"):
            continue
        value = getattr(default, name)
        others: Sequence[Any] = ()
        if isinstance(value, tuple):
            of_class = probe.settings.model_fields[name].default
            others = [of_class[:n] for n in range(1, len(of_class))] + [(x,) for x in of_class[1:]]
        elif isinstance(value, bool):
            others = [not value]
        elif value is None or isinstance(value, int):
            others = [1, 2]
        for other in others:
            try:
                settings_of(probe, **{name: other})
            except ValidationError:
                continue
            yield {name: other}


class Case(NamedTuple):
    probe: str
    changes: dict[str, Any]

    def __str__(self) -> str:
        return "-".join([self.probe, *(f"{name}={x}" for name, x in self.changes.items())])


CASES = [Case(name, changes) for name, probe in PROBES.items() for changes in changes_of(probe)]


class Asked:
    """Counts the texts that a model runs, whatever it runs them for."""

    def __init__(self, model: Model, patch: pytest.MonkeyPatch) -> None:
        self.texts = self._depth = 0
        for name in RUNNING:
            patch.setattr(model, name, self._counted(getattr(model, name)), raising=False)

    def _counted(self, method: Any) -> Any:
        def counted(texts: Any, *args: Any, **options: Any) -> Any:
            texts = list(texts)
            self.texts += 0 if self._depth else len(texts)
            self._depth += 1
            try:
                return method(texts, *args, **options)
            finally:
                self._depth -= 1

        return counted


def test_every_method_that_runs_texts_is_counted() -> None:
    methods = {name for name in vars(Model) if not name.startswith("_")}
    assert methods == NOT_RUNNING | set(RUNNING)


class Measured(NamedTuple):
    records: list[Record]
    texts: int
    """Number of texts that the model ran for them."""


@cache
def measured(name: str) -> Measured:
    """The chain, measured by a probe with all its steps."""
    return counted(name, {})


def counted(name: str, changes: Mapping[str, Any]) -> Measured:
    with pytest.MonkeyPatch.context() as patch:
        asked = Asked(model(), patch)
        return Measured(records_of(name, trace(), **changes), asked.texts)


def records_of(name: str, chain: Trace, asking: Asking = ASKING, **changes: Any) -> list[Record]:
    probe = PROBES[name]
    more = {"others": OTHERS[: probe.takes_others]} if probe.takes_others else {}
    return probe.measure(model(), chain, asking, settings_of(probe, **changes), **more)


def size_of(chain: Trace) -> Size:
    steps, tokens = len(chain.counted_steps), len(chain.reasoning_ids)
    assert tokens % steps == 0
    heads = model().hf.config.num_attention_heads
    return Size(steps, tokens // steps, model().n_layers, len(chain.prompt_ids), heads=heads)


@pytest.mark.parametrize("name", PROBES)
def test_calls_are_the_texts_that_are_run(name: str) -> None:
    probe = PROBES[name]
    assert measured(name).records
    assert measured(name).texts == probe.calls(size_of(trace()), settings_of(probe))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_calls_are_the_texts_that_are_run_whatever_the_settings(case: Case) -> None:
    probe = PROBES[case.probe]
    texts = counted(case.probe, case.changes).texts
    expected = probe.calls(size_of(trace()), settings_of(probe, **case.changes))
    if {(case.probe, name) for name in case.changes} & ESTIMATED:
        assert texts == pytest.approx(expected, rel=0.4)
    else:
        assert texts == expected


def numbers_of(records: Sequence[Record]) -> list[Record]:
    """Records without what says how they were computed, with rounded numbers."""

    def rounded(value: Any) -> Any:
        if isinstance(value, list):
            return [rounded(x) for x in value]
        return pytest.approx(value, abs=2e-5) if isinstance(value, float) else value

    cost = {"trie_tokens", "naive_tokens", "noise_floor"}
    return [{k: rounded(x) for k, x in r.items() if k not in cost | {ARRAYS}} for r in records]


@pytest.mark.parametrize("name", [name for name, probe in PROBES.items() if probe.samples_steps])
def test_steps_that_are_not_sampled_have_no_numbers(name: str) -> None:
    some = trace().sampling(2, 0)
    edited = [some.is_sampled(step.index) for step in some.counted_steps]
    assert edited.count(True) == 2
    left_out = {None, NOT_SAMPLED}
    for whole, drawn in zip(measured(name).records, records_of(name, some), strict=True):
        lists = {k: x for k, x in drawn.items() if isinstance(x, list) and len(x) == len(edited)}
        lists = {k: x for k, x in lists.items() if k not in OF_THE_TEXT}
        assert lists
        for field, values in lists.items():
            for value, full, there in zip(values, whole[field], edited, strict=True):
                if not there:
                    assert value in left_out, field
                elif isinstance(full, float):
                    assert value == pytest.approx(full, abs=2e-5), field
                else:
                    assert value == full, field
        for field, array in drawn.get(ARRAYS, {}).items():
            if len(edited) in array.shape:
                by_step = np.moveaxis(array, array.shape.index(len(edited)), 0)
                assert [bool(np.isnan(x).all()) for x in by_step] == [not x for x in edited], field


@pytest.mark.parametrize("name", [n for n, probe in PROBES.items() if not probe.samples_steps])
def test_a_probe_that_takes_no_sample_measures_all_steps(name: str) -> None:
    again = records_of(name, trace().sampling(2, 0))
    assert numbers_of(measured(name).records) == numbers_of(again)


@pytest.mark.parametrize("name", PROBES)
def test_a_single_label_is_refused_by_what_reads_labels_alone(name: str) -> None:
    records = records_of(name, trace(), replace(ASKING, labels=ASKING.labels[1:]))
    refused = [r.get("excluded") == FEWER_LABELS for r in records if r.get("reading") != WRITTEN]
    assert refused
    assert all(refused) if PROBES[name].reads_labels else not any(refused)


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_that_follows_an_answer_says_which(name: str) -> None:
    said = {"reference", "stated_answer", "forced_answer", "forced_differs"}
    for record in measured(name).records:
        if record.get("reading") != WRITTEN:
            assert (said <= record.keys()) == bool(said & record.keys())
            assert (said <= record.keys()) == PROBES[name].follows_answer


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    """All tables of the chain, measured by every probe."""
    records = [to_record(trace()), *(r for name in PROBES for r in measured(name).records)]

    def arrays(probe: str) -> list[tuple[Place, Any]]:
        return [(place_of(r), r[ARRAYS]) for r in records if r["probe"] == probe and ARRAYS in r]

    return tables_of(records, (), SlrcAnalysis(resamples=20, arrays=arrays))


@pytest.fixture(scope="module")
def drawn(tables: dict[str, pd.DataFrame]) -> dict[str, Picture]:
    return {picture.name: picture for picture in pictures(tables)}


@pytest.mark.parametrize("name", PROBES)
def test_every_report_shows_what_was_measured(
    name: str, tables: dict[str, pd.DataFrame], drawn: dict[str, Picture]
) -> None:
    report = REPORTS[name]
    for table in report.tables:
        assert len(tables[table.name]), table.name
    if any(table.draw for table in report.tables):
        # the section of the page shows the figure that has the measure's name, or why there is none
        assert drawn[name].absent or svg(drawn[name]).startswith("<svg")
    for frame in (frame for frame in FRAMES if frame.stages == (name,)):
        # some fields are of questions with options, or of those without them, alone
        free = replace(trace(), question=replace(trace().question, kind="number", options=None))
        records = [*measured(name).records, *records_of(name, free)]
        rows = [row for record in records for row in frame.rows(record)]
        assert rows, frame.name
        # the fields of records that were left out, or of a sample of steps
        never = set(frame.columns) - {"excluded", "inclusion"} - {n for row in rows for n in row}
        assert not never, f"{frame.name}: no row has {never}"
