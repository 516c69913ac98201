"""The benchmark's items: what is drawn, what is accounted for, and its files."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from faithscope.experiments.data.saved import MANIFEST
from faithscope.experiments.studies.c2faith.benchmark.build import Basis
from faithscope.experiments.studies.c2faith.benchmark.features import features
from faithscope.experiments.studies.c2faith.benchmark.items import (
    LEVELS,
    Chain,
    Selection,
    Settings,
    causal_by_rule,
    coverage_items,
    perfect,
    targets,
)
from faithscope.experiments.studies.c2faith.benchmark.prm800k import Source, read_prm800k
from faithscope.experiments.studies.c2faith.benchmark.rewrites import (
    Refused,
    causal_by_replies,
    rewrite_of,
    rewrite_requests,
)
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark, differences
from faithscope.experiments.studies.c2faith.prompts import acausal_prompt, judge_forms
from faithscope.experiments.studies.c2faith.prompts_of_items import ask_of
from faithscope.interp.errors import UserError
from faithscope.interventions.region import middle_region

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "prm800k"
WORDS = Chain("words", "Why?", ("One says.", "Both agree.", "It is so.", "Fine.", "Done."))

CAUSAL = "causal.jsonl"


def chain(i: int, n: int = 10) -> Chain:
    steps = tuple(f"Adding {20 + 7 * i} again gives $x = {1000 * i + 31 * j}$." for j in range(n))
    return Chain(f"phase1_train-{i}", f"Problem {i}?", steps)


CHAINS = tuple(chain(i, 5 + i) for i in range(20))
SELECTION = Selection((*CHAINS, WORDS), (("phase1_train-99", "too_short"),))
SOURCES = (Source("phase1_train.jsonl", "ab" * 32, 22),)


def test_one_causal_item_a_chain_differs_in_its_target_alone() -> None:
    items, left_out = causal_by_rule(CHAINS, Settings())
    assert not left_out
    for item, given in zip(items, CHAINS, strict=True):
        assert (item.chain, item.problem) == (given.id, given.problem)
        assert item.target in middle_region(len(given.steps))
        different = [i for i, s in enumerate(item.steps) if s != given.steps[i]]
        assert different == [item.target]
        assert item.steps[item.target] == item.replacement
        assert item.original_steps == given.steps


def test_targets_are_uniform_over_the_middle() -> None:
    given = chain(1, 13)
    drawn = Counter(targets(given, Settings(seed=s))[0] for s in range(4000))
    assert set(drawn) == set(middle_region(13))
    assert all(abs(n / 4000 - 1 / 8) < 0.02 for n in drawn.values())


def test_a_chain_without_a_replaceable_step_is_left_out_with_the_reason() -> None:
    items, (left_out,) = causal_by_rule((WORDS, *CHAINS), Settings())
    assert len(items) == len(CHAINS)
    assert (left_out.id, left_out.stage, left_out.reason) == ("words", "causal", "no_rule_applies")
    assert left_out.detail.startswith("step 1: nothing_to_change, step 2: ")


def test_four_coverage_items_a_chain() -> None:
    items = coverage_items(CHAINS, Settings())
    assert len(items) == 4 * len(CHAINS) == len({i.id for i in items})
    for item in items:
        share = Fraction(str(item.level))
        assert len(item.removed) == math.ceil(share * item.n_middle)
        assert len(item.steps) + len(item.removed) == len(item.original_steps)
        assert not set(item.removed_steps) & set(item.steps)
    assert [i.level for i in items[:4]] == list(LEVELS)


def test_what_a_chain_gives_depends_on_seed_and_id_alone() -> None:
    whole = Basis(SELECTION, SOURCES, Settings(seed=3)).by_rule()
    cut = Basis(SELECTION, SOURCES, Settings(seed=3), limit=5).by_rule()
    assert cut.causal == whole.causal[:5]
    assert cut.coverage == whole.coverage[:20]
    assert Counter(o.reason for o in cut.left_out) == {"limit": 16, "too_short": 1}
    turned = Basis(Selection(SELECTION.chains[::-1], ()), settings=Settings(seed=3)).by_rule()
    assert turned.causal == whole.causal[::-1]
    other = Basis(SELECTION, SOURCES, Settings(seed=4)).by_rule()
    assert sum(a != b for a, b in zip(other.causal, whole.causal, strict=True)) > 15


def test_settings_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="levels"):
        Settings(levels=(0.1, 0.1))
    with pytest.raises(ValueError, match="rules"):
        Settings(rules=())
    with pytest.raises(ValueError, match="middle region"):
        Settings(low=0.9, high=0.3)


def test_a_benchmark_is_rebuilt_byte_for_byte_and_read_back(tmp_path: Path) -> None:
    built = Basis(SELECTION, SOURCES).by_rule()
    built.saved.save(tmp_path / "a")
    Basis(SELECTION, SOURCES).by_rule().saved.save(tmp_path / "b")
    files = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert files == [CAUSAL, "coverage.jsonl", "left_out.jsonl", MANIFEST]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert Benchmark.load(tmp_path / "a") == built
    manifest = json.loads((tmp_path / "a" / MANIFEST).read_text())
    assert manifest["made_of"]["settings"]["seed"] == 0
    assert manifest["made_of"]["sources"][0]["sha256"] == "ab" * 32
    assert manifest["made_of"]["replacement"] == {"by": "rule"}
    assert manifest["counts"]["left_out"] == {
        "causal:no_rule_applies": 1,
        "selection:too_short": 1,
    }
    # every solution went somewhere
    assert sum(manifest["counts"]["causal"].values()) + 2 == len(SELECTION.chains) + 1


def test_a_file_that_was_changed_is_named(tmp_path: Path) -> None:
    Basis(SELECTION, SOURCES).by_rule().saved.save(tmp_path)
    whole = (tmp_path / CAUSAL).read_bytes()
    (tmp_path / CAUSAL).write_bytes(whole.replace(b"gives", b"makes", 1))
    with pytest.raises(
        UserError, match=r"causal\.jsonl: is not what was written: 20 rows.*20 rows"
    ):
        Benchmark.load(tmp_path)
    (tmp_path / CAUSAL).write_bytes(whole[: whole.index(b"\n") + 1])
    with pytest.raises(UserError, match=r"causal\.jsonl: .*: 1 rows.* says 20 rows"):
        Benchmark.load(tmp_path)
    (tmp_path / CAUSAL).unlink()
    with pytest.raises(UserError, match=r"causal\.jsonl: cannot be read .*manifest\.json names it"):
        Benchmark.load(tmp_path)
    (tmp_path / CAUSAL).write_bytes(whole)
    manifest = (tmp_path / MANIFEST).read_text()
    (tmp_path / MANIFEST).write_text(manifest.replace('"rule:numeric": ', '"rule:numeric": 1'))
    with pytest.raises(UserError, match=r"counts\.causal\.rule:numeric was 1\d+ and is \d"):
        Benchmark.load(tmp_path)
    (tmp_path / MANIFEST).write_text(manifest.replace('"format": 1', '"format": 9'))
    with pytest.raises(UserError, match="has format 9, this version reads 1"):
        Benchmark.load(tmp_path)
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(UserError, match="is damaged"):
        Benchmark.load(tmp_path)
    with pytest.raises(UserError, match="give the folder of a saved benchmark"):
        Benchmark.load(tmp_path / "none")


def test_what_differs_between_two_benchmarks_is_told() -> None:
    saved = Basis(SELECTION, SOURCES).by_rule()
    assert differences(saved, Basis(SELECTION, SOURCES).by_rule()) == []
    told = differences(saved, Basis(SELECTION, SOURCES, Settings(seed=1), limit=10).by_rule())
    assert told[0] == "settings.seed was 0 and is 1"
    assert any(line.startswith("chains.n was 21 and is 10") for line in told)
    assert any(line.startswith("causal: 10 gone (") for line in told)
    assert any(line.startswith("coverage: 44 gone (") for line in told)
    assert any("changed" in line for line in told)


def test_requests_to_a_writer_show_the_preceding_step_or_all() -> None:
    prompt = acausal_prompt()
    requests = rewrite_requests(CHAINS, Settings(), prompt)
    everything = rewrite_requests(CHAINS, Settings(), prompt, seen="all")
    for request, full, given in zip(requests, everything, CHAINS, strict=True):
        j = request.target
        assert j == targets(given, Settings())[0]
        assert f"Context (Previous steps):\n{given.steps[j - 1]}\n\nTarget" in request.prompt
        assert f'Target Step: "{given.steps[j]}"' in request.prompt
        before = "\n".join(given.steps[:j])
        assert f"Context (Previous steps):\n{before}\n\nTarget" in full.prompt
        assert request.prompt.endswith("Rewrite (just the text):")


@pytest.mark.parametrize(
    ("reply", "taken"),
    [
        ("Adding 27 again gives $x = 9$.", "Adding 27 again gives $x = 9$."),
        ('  "Adding 27 gives $x = 9$." \n', "Adding 27 gives $x = 9$."),
        ("Rewrite: Adding gives $x = 9$.", "Adding gives $x = 9$."),
        ('"a" is not "b"', '"a" is not "b"'),
        ("", "empty"),
        ('""', "empty"),
        (" \n\n", "empty"),
        ("SAME", "unchanged"),
        ('"  SAME"', "unchanged"),
        ("OTHER", "repeats_a_step"),
        ("Sure! Here it is:\nAdding 27 gives 9.", "several_lines"),
        ("Adding 27 gives 9. " * 40, "too_long"),
    ],
)
def test_replies_are_taken_or_refused_with_a_reason(reply: str, taken: str) -> None:
    (request,) = rewrite_requests(CHAINS[1:2], Settings(), acausal_prompt())
    steps = CHAINS[1].steps
    reply = reply.replace("SAME", steps[request.target]).replace("OTHER", steps[-1])
    found = rewrite_of(request, reply)
    assert (found.reason if isinstance(found, Refused) else found) == taken


def test_a_benchmark_of_a_writers_replies(tmp_path: Path) -> None:
    prompt = acausal_prompt()
    selection = Selection(SELECTION.chains[:4], ())
    requests = rewrite_requests(selection.chains, Settings(), prompt)
    replies = {requests[i].id: f"So we get {i}." for i in (0, 1)} | {requests[2].id: ""}
    basis = Basis(selection, SOURCES)

    def items(replies: dict[str, str], chains: tuple[Chain, ...] = selection.chains) -> Any:
        return causal_by_replies(chains, requests, replies, "a-model")

    built = basis.benchmark(*items(replies), {"by": "llm"})
    assert [(i.method, i.author) for i in built.causal] == [("llm", "a-model")] * 2
    assert [i.replacement for i in built.causal] == ["So we get 0.", "So we get 1."]
    assert [o.reason for o in built.left_out] == ["empty", "no_reply"]
    assert built.made_of["replacement"] == {"by": "llm"}
    built.saved.save(tmp_path)
    assert Benchmark.load(tmp_path) == built
    with pytest.raises(ValueError, match="stranger"):
        items({"stranger": "x"})
    with pytest.raises(ValueError, match=CHAINS[3].id):
        items({}, CHAINS[:3])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real PRM800K rows lie beside a checkout only")
def test_the_benchmark_of_real_rows(tmp_path: Path) -> None:
    solutions, sources = read_prm800k(SHARED)
    built = Basis(perfect(solutions), sources).by_rule()
    assert len(built.coverage) == 4 * 168
    assert len(built.causal) == 168
    assert len(built.causal) + len(built.left_out) == len(solutions)
    methods = Counter(i.method for i in built.causal)
    assert methods.keys() == {"rule:numeric", "rule:operator", "rule:comparator"}
    built.saved.save(tmp_path)
    assert Benchmark.load(tmp_path) == built

    frame = features(built.causal)
    assert len(frame) == len(built.causal)
    assert frame.notna().all(axis=None)
    assert set(frame.edit_type) <= {"numeric_swap", "operator_swap", "other_swap", "minor_rewrite"}
    numeric = frame[frame.method == "rule:numeric"]
    assert (numeric.edit_type == "numeric_swap").mean() > 0.95

    # LaTeX's braces stand in every prompt as they are
    forms = judge_forms()
    for item in built.causal:
        for condition in ("perturbed", "control"):
            told = item.replacement if condition == "perturbed" else item.original
            ask = ask_of(item, forms["c2_detection"], condition)
            assert f'Step to evaluate: "{told}"' in ask.prompt
            ask = ask_of(item, forms["c2_localisation"], condition)
            indented = re.sub(r"\n(?=[^\n])", "\n    ", told)
            assert f"\n[Step {item.target}] {indented}\n" in ask.prompt
    for item in built.coverage:
        asked = ask_of(item, forms["c2_coverage_reference"], None)
        assert "\n".join(item.removed_steps) in asked.prompt
