"""Simulatability against plain greedy decoding and plain forwards of the other model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from chat_tokenizers import tokenizer
from planted_traces import asking_of, of_planted
from probe_records import table_of
from sample_trace import asking, letters, written
from tiny_models import random_weights, saved, tiny

from faithscope.experiments.cli import execute
from faithscope.experiments.studies.slrc.tables.measures import MEASURES
from faithscope.interp.errors import NoRoom
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.interventions import Given, Trace
from faithscope.probes import other_model
from faithscope.probes.simulatability import SimulatabilitySettings, chain_ids, simulatability

ASKED = asking(asked="Is it yes?")
measured = of_planted(
    simulatability, SimulatabilitySettings(simulators=("planted:faithful@1",)), asking_of, most=4
)


def simulated(trace: Trace, simulators: str | tuple[str, ...] = (), words: Any = ASKED) -> Any:
    settings = SimulatabilitySettings(simulators=simulators, answer_tokens=4)  # pyright: ignore
    (found,) = simulatability(tiny("llama"), trace, words, settings)
    return found


@torch.inference_mode()
def logits(model: Model, ids: list[int]) -> torch.Tensor:
    return model.hf(torch.tensor([ids], device=model.device)).logits[0].double().cpu()


def by_hand(model: Model, before: str, chain: str) -> tuple[str | None, float]:
    """The greedy answer after prompt, chain and cue, and the share of "no" among the labels."""
    start = [*model.encode(before), *model.encode(chain), *model.encode("\nSo")]
    ids = list(start)
    for _ in range(4):
        ids.append(int(logits(model, ids)[-1].argmax()))
    shares = dict.fromkeys(("yes", "no"), 0.0)
    for name, surface in ASKED.labels:
        label = list(model.encode(surface))
        after = logits(model, start + label).log_softmax(-1)[len(start) - 1 : -1]
        shares[name] += math.exp(after[range(len(label)), label].sum())
    text = model.decode(ids[len(start) :])
    return letters(f"\nSo{text}"), shares["no"] / sum(shares.values())


def test_answers_and_shares_are_those_of_plain_forwards(tmp_path: Path) -> None:
    other = tiny("llama", num_hidden_layers=2)
    trace = written(tiny("llama"))
    prompt = other.decode(other.prompt("Is it yes?").ids)
    answer, p = by_hand(other, prompt, trace.reasoning_text)
    without, p_without = by_hand(other, prompt, "")
    assert answer is not None
    assert without is not None
    name = saved(other, tmp_path / "other")
    for stated in (answer, "no"):
        found = simulated(replace(trace, answer=stated), name)
        assert (found["simulator"], found["by_writer"]) == (name, False)
        assert (found["predicted"], found["predicted_without"]) == (answer, without)
        assert (found["matches"], found["matches_without"]) == (stated == answer, stated == without)
        assert found["gain"] == (stated == answer) - (stated == without)
    assert found["p"] == pytest.approx(p, abs=2e-5)
    assert found["p_without"] == pytest.approx(p_without, abs=2e-5)
    assert found["p_gain"] == pytest.approx(p - p_without, abs=4e-5)
    assert found["n_tokens"] == len(other.encode(trace.reasoning_text))


def test_the_chain_stands_between_the_marks_of_the_model_that_reads_it() -> None:
    tokens = tokenizer("qwen3")
    reader = wrap(random_weights("llama", vocab_size=len(tokens)), tokens, name="reader")
    trace = written(tiny("llama"))
    made = chain_ids(reader, "Is it yes?", trace.reasoning_text)
    assert made is not None
    prompt, fmt = reader.prompt("Is it yes?"), reader.format
    opener = "" if prompt.opener_in_prompt else fmt.opener
    whole = reader.decode(prompt.ids) + opener + trace.reasoning_text + fmt.closer
    assert reader.decode(made[0]) == whole
    assert "<think>" in whole
    assert "</think>" in whole


def test_the_reader_is_another_model_of_the_same_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """BonaFide's rule: Qwen3 4B in the variant of the model, and of these OLMo for Qwen3 4B."""
    monkeypatch.setattr(other_model, "_marks", lambda name: "Think" in name)
    monkeypatch.setattr(other_model, "_loaded", lambda name, dtype, device: name)
    names = ("Qwen3-4B-Instruct", "Qwen3-4B-Thinking", "Olmo-7B-Instruct", "Olmo-7B-Think")
    plain = tiny("llama")
    marked = replace(plain, format=replace(plain.format, opener="<think>", closer="</think>"))

    def reader(model: Model, name: str, of: tuple[str, ...] = names) -> Any:
        return other_model.other_model(of, replace(model, name=name))

    assert reader(plain, "Llama") == names[0]
    assert reader(marked, "R1") == names[1]
    assert reader(plain, names[0]) == names[2]
    assert reader(marked, names[1]) == names[3]
    assert reader(marked, "R1", names[:1]) == names[0]
    assert reader(plain, names[0], names[:1]).name == names[0]


def test_a_chain_that_its_own_model_reads_has_no_score() -> None:
    trace = written(tiny("llama"))
    own = simulated(trace)
    assert (own["simulator"], own["by_writer"]) == ("tiny:llama", True)
    given = Given("f", "rows", "org/writer", "", "label", "Is it yes?")
    elsewhere = replace(trace, origin=replace(trace.origin, model="tiny:llama", given=given))
    other = simulated(elsewhere)
    assert other["by_writer"] is False
    for name in ("simulatability", "simulatability_gain"):
        assert MEASURES[name].score([own]) is None
        assert MEASURES[name].score([other]) is not None


def test_what_cannot_be_read_is_left_out_with_its_reason(tmp_path: Path) -> None:
    trace = written(tiny("llama"))
    assert simulated(replace(trace, answer=None))["excluded"] == "answer_unparsed"
    # the planted models have words for little
    assert simulated(trace, "planted:faithful")["excluded"] == "simulator_cannot_write_chain"
    short = saved(tiny("llama", max_position_embeddings=64), tmp_path / "short")
    with pytest.raises(NoRoom):
        simulated(trace, short)
    silent = replace(ASKED, parse=lambda text: None)
    unread = simulated(trace, words=silent)
    assert (unread["predicted"], unread["matches"], unread["gain"]) == (None, None, None)
    assert unread["p_gain"] is not None
    free = simulated(trace, words=replace(ASKED, labels=()))
    assert (free["p"], free["p_gain"]) == (None, None)


def test_an_unknown_simulator_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = "--set=simulatability.simulators=planted:faithfull"
    assert execute(["run", "planted", "--set=probes=[simulatability]", named, "--dry-run"]) == 2
    assert "did you mean 'planted:faithful'" in " ".join(capsys.readouterr().err.split())


def test_fluent_wrong_steps_lead_a_reader_elsewhere() -> None:
    for name, same in (("faithful", 1), ("decorative", 0)):
        row = table_of("simulatability", measured(name)).iloc[0]
        assert row["matches"] == same
        assert row["simulator"] == "planted:faithful@1"
