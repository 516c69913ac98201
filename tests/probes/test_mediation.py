"""Mediation on models whose source is known, and every effect against single forwards."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from planted_traces import ANSWER_CUE, asking_of, by, of_planted, planted
from probe_records import table_of

from faithscope.experiments.studies.slrc.measures.mediation import REPORT
from faithscope.probes import Record
from faithscope.probes.cues import cued_option, offers, write_chains
from faithscope.probes.framing import label_ids
from faithscope.probes.graded import log_distribution, log_odds
from faithscope.probes.mediation import POSITIONS, MediationSettings, mediation

MEASURE = partial(mediation, settings=MediationSettings())


records_of = of_planted(mediation, MediationSettings(), asking_of, most=8)


def measured(name: str) -> dict[str, list[Record]]:
    return by("cue", records_of(name))


def mean(name: str, cue: str, field: str) -> float:
    return float(np.mean([r[field] for r in measured(name)[cue]]))


@pytest.mark.in_time(1)
@pytest.mark.parametrize("cue", ["hint", "question"])
@pytest.mark.parametrize("name", ["hint", "hint_no_deletions", "decorative"])
def test_what_follows_the_hint_is_moved_past_its_reasoning(name: str, cue: str) -> None:
    total = mean(name, cue, "total")
    assert total > 10
    assert mean(name, cue, "direct") == pytest.approx(total, abs=0.5)
    assert mean(name, cue, "indirect") == pytest.approx(0, abs=0.5)


@pytest.mark.in_time(1)
@pytest.mark.parametrize("name", ["faithful", "false_source"])
def test_what_follows_its_steps_is_moved_through_them_and_by_the_hint_not_at_all(name: str) -> None:
    total = mean(name, "question", "total")
    assert total > 10
    assert mean(name, "question", "indirect") == pytest.approx(total, abs=0.5)
    assert mean(name, "question", "direct") == pytest.approx(0, abs=0.5)
    assert not any(r["switched"] for r in measured(name)["hint"])
    assert mean(name, "hint", "direct") == pytest.approx(0, abs=0.5)


def test_an_operation_that_is_not_written_is_a_direct_effect() -> None:
    assert all(r["same_chain"] for r in measured("silent_step")["question"])
    assert all(r["switched"] for r in measured("silent_step")["question"])
    assert mean("silent_step", "question", "direct") > 10
    assert mean("silent_step", "question", "indirect") == 0


def test_half_of_a_mixture_is_moved_either_way() -> None:
    direct, indirect = (mean("mixture_50", "question", x) for x in ("direct", "indirect"))
    assert direct > 5
    assert indirect > 5


def test_the_measures_have_their_directions_and_what_they_are_about() -> None:
    direct, indirect = REPORT.measures
    assert (direct.higher_is_faithful, direct.about) == (False, "faithfulness")
    assert (indirect.higher_is_faithful, indirect.about) == (True, "reliance")


def test_every_number_is_that_of_a_forward_of_its_own_and_chains_keep_their_ids() -> None:
    model, traces = planted("mixture_50")
    trace, words = traces[2], asking_of(traces[2])
    option, _ = cued_option(trace, words, 0)
    assert option is not None
    cue = offers(trace, words, (), 0)["question"].cue
    assert cue is not None
    result = write_chains(model, trace, words, {"question": cue.sent})
    assert result is not None
    chain = result[0]["question"]
    (said,) = model.generate([model.prompt(cue.message).ids], 64)
    assert chain.reasoning_ids == tuple(said.ids)[: len(chain.reasoning_ids)]
    record = {r["cue"]: r for r in MEASURE(model, trace, words)}["question"]
    prompts = {"plain": trace.prompt_ids, "cued": chain.prompt_ids}
    chains = {"plain": trace.reasoning_ids, "cued": chain.reasoning_ids}
    labels = label_ids(model, words, "prefix")

    def alone(prompt: str, written: str, i: int) -> float:
        given = chains[written][: round(i / (POSITIONS - 1) * len(chains[written]))]
        ids = (*prompts[prompt], *given, *model.encode(ANSWER_CUE))
        (answer,) = model.ask([ids], [labels], execution="loop")
        names = [name for name, _ in words.labels]
        return log_odds(log_distribution(answer.log_probs, names), option)

    for prompt in prompts:
        for written in chains:
            curve = record[f"curve_{prompt}_{written}"]
            expected = [alone(prompt, written, i) for i in range(POSITIONS)]
            assert curve == pytest.approx(expected, abs=1e-3)
            assert record[f"y_{prompt}_{written}"] == curve[-1]
    y = {k: record[f"y_{k}"] for k in ("plain_plain", "cued_plain", "plain_cued", "cued_cued")}
    assert record["total"] == pytest.approx(y["cued_cued"] - y["plain_plain"], abs=1e-4)
    assert record["direct"] == pytest.approx(y["cued_plain"] - y["plain_plain"], abs=1e-4)
    assert record["indirect"] == pytest.approx(y["plain_cued"] - y["plain_plain"], abs=1e-4)
    parts = record["direct"] + record["indirect"] + record["interaction"]
    assert parts == pytest.approx(record["total"], abs=1e-4)


def test_branches_share_their_prefixes() -> None:
    record = measured("faithful")["question"][0]
    assert record["n_packs"] == 1
    assert record["trie_tokens"] < record["naive_tokens"] / 5


def test_tables_have_the_share_that_is_indirect_and_the_transplant_curve() -> None:
    (_, curves) = REPORT.tables
    records = [r for name in ("faithful", "hint") for r in measured(name)["question"]]
    lines = {
        line["model"]: line
        for line in table_of("mediation", records, resamples=50).to_dict("records")
    }
    shares = {name: line["indirect_share"] for name, line in lines.items()}
    assert sorted(shares.values()) == pytest.approx([0, 1], abs=0.02)
    # what follows the hint needs no chain for it, what follows its steps needs them
    names = ("effect_without", "effect_with", "effect_drop")
    effects = {model: [line[name] for name in names] for model, line in lines.items()}
    assert effects == {
        "faithful": pytest.approx([0, 1, -1], abs=0.01),
        "hint": pytest.approx([1, 1, 0], abs=0.01),
    }
    table = table_of("mediation_by_cut", records, resamples=50)
    assert len(table) == 2 * POSITIONS
    assert curves.draw is not None
    assert curves.draw(table).figure is not None
