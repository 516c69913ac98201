"""Simulatability against plain greedy decoding and plain forwards of the other model."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from chat_tokenizers import tokenizer
from planted_traces import asking_of, of_planted, planted
from probe_records import table_of
from sample_trace import asking, letters, written
from tiny_models import random_weights, saved, tiny

from faithscope.experiments.cli import execute
from faithscope.experiments.data.planted.data import ANSWER_CUE, problem_of
from faithscope.experiments.studies.slrc.tables.measures import MEASURES, all_scores
from faithscope.interp.errors import NoRoom
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.interventions import Given, Question, Trace, from_ids, program_of
from faithscope.interventions.alterations import moved
from faithscope.interventions.program import inputs_alone
from faithscope.probes import other_model
from faithscope.probes.framing import Asking, Reply
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


def sign(text: str) -> str | None:
    """Any text is an answer, so that random models are right now and then."""
    return ("yes", "no")[sum(map(ord, text)) % 2] if text.strip() else None


MANY = "Ann has 3 pens, buys 14 more and loses 2. How many?"
TALE = "So 3 + 14 = 17. Then 17 - 2 = 15."


def about(
    question: str = MANY, text: str = TALE, answer: str | None = "no"
) -> tuple[Trace, Asking]:
    """A chain to a question with numbers, under the model's own prompt."""
    model = tiny("llama")
    ids = model.encode(text)
    asked = f"{question} Well?"
    of = Question("q1", "made", question, "label", gold="yes", options=("yes", "no"))
    trace = from_ids(of, model.prompt(asked).ids, ids, model.pieces(ids), answer=answer)
    told = asking(asked=asked, parse=lambda t: sign(t.partition("\nSo")[2]), parse_reply=sign)
    return trace, told


def of_changes(trace: Trace, words: Asking, reader: str, n: int = 3, **more: Any) -> Any:
    settings = SimulatabilitySettings(
        simulators=(reader,), answer_tokens=4, changes=n, max_new_tokens=6, **more
    )
    found = simulatability(tiny("llama"), trace, words, settings)
    # a reason that holds for both has no variant
    assert [r["variant"] for r in found] in (["question", "changed"], [""])
    return found[-1]


def greedy(model: Model, text: str, n: int) -> str:
    ids = list(model.encode(text))
    for _ in range(n):
        ids.append(int(logits(model, ids)[-1].argmax()))
    return model.decode(ids[-n:])


def test_predictions_of_changed_questions_are_those_of_plain_decoding(tmp_path: Path) -> None:
    model, other = tiny("llama"), tiny("llama", num_hidden_layers=2)
    trace, words = about()
    found = of_changes(trace, words, saved(other, tmp_path / "other"))
    assert len(found["changed"]) == 3
    answers, told, untold = [], [], []
    for change in found["changed"]:
        old, new = change.split(" -> ")
        asked = re.sub(rf"\b{old}\b", new, words.asked)
        assert asked != words.asked
        answers.append(sign(greedy(model, f"{asked}\n", 6)))
        for of, example in ((told, f"{TALE}\nSo no"), (untold, "So no")):
            turns = f"{words.asked}\n\n{example}\n\n{asked}\n\nSo"
            of.append(sign(greedy(other, turns, 4)))
    assert (found["answers"], found["predictions"]) == (answers, told)
    assert found["predictions_without"] == untold
    right = [a == b for a, b in zip(told, answers, strict=True)]
    without = [a == b for a, b in zip(untold, answers, strict=True)]
    others = [hit for hit, answer in zip(right, answers, strict=True) if answer != "no"]
    assert found["simulated"] == pytest.approx(sum(right) / 3, abs=1e-6)
    assert found["simulated_without"] == pytest.approx(sum(without) / 3, abs=1e-6)
    assert found["simulated_gain"] == pytest.approx((sum(right) - sum(without)) / 3, abs=1e-6)
    assert found["moved"] == pytest.approx(len(others) / 3, abs=1e-6)
    assert found["simulated_moved"] == (
        pytest.approx(sum(others) / len(others), abs=1e-6) if others else None
    )
    assert found["n_read"] == 3
    two = [MEASURES[f"simulatability_changed{x}"] for x in ("", "_gain")]
    assert [m.score([found]) for m in two] == [found["simulated"], found["simulated_gain"]]
    assert [m.forwards([found]) for m in two] == [6, 9]


def test_changes_follow_the_seed_and_leave_the_rest_as_it_was(tmp_path: Path) -> None:
    reader = saved(tiny("llama", num_hidden_layers=2), tmp_path / "other")
    trace, words = about()
    drawn = {tuple(of_changes(trace, words, reader, seed=s)["changed"]) for s in (0, 0, 1, 2)}
    assert 1 < len(drawn) <= 3
    # each of three numbers near and far
    assert len(of_changes(trace, words, reader, n=50)["changed"]) == 6
    plain = SimulatabilitySettings(simulators=(reader,), answer_tokens=4)
    with_changes = plain.model_copy(update={"changes": 1, "max_new_tokens": 6})
    (alone,) = simulatability(tiny("llama"), trace, words, plain)
    assert simulatability(tiny("llama"), trace, words, with_changes)[0] == {
        **alone,
        "variant": "question",
    }
    for name in ("simulatability", "simulatability_gain"):
        (kept,) = MEASURES[name].records(simulatability(tiny("llama"), trace, words, with_changes))
        assert MEASURES[name].score([kept]) == MEASURES[name].score([alone])
    assert set(plain.model_copy(update={"seed": 3}).decides()) == {"simulators", "answer_tokens"}
    assert {"seed", "changes"} < set(with_changes.decides())


def test_a_model_with_a_template_reads_the_example_as_earlier_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokens = tokenizer("qwen3")
    reader = wrap(random_weights("llama", vocab_size=len(tokens)), tokens, name="reader")
    trace, words = about()
    asked: list[str] = []

    def ask(model: Model, *args: Any, **more: Any) -> list[Reply]:
        asked[:] = [model.decode(ids) for ids in args[2]]
        return [Reply("yes", (0.0,) * 3, (1,) * 3)] * len(asked)

    monkeypatch.setattr("faithscope.probes.simulatability.other_model", lambda *_: reader)
    monkeypatch.setattr("faithscope.probes.simulatability.ask", ask)
    found = of_changes(trace, words, "reader", n=1)
    old, new = found["changed"][0].split(" -> ")
    turns = [
        {"role": "user", "content": words.asked},
        {"role": "assistant", "content": f"{TALE}\nSo no"},
        {"role": "user", "content": re.sub(rf"\b{old}\b", new, words.asked)},
    ]
    whole: Any = tokens.apply_chat_template(
        turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    turns[1]["content"] = "So no"
    alone: Any = tokens.apply_chat_template(
        turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    assert asked == [f"{whole}\nSo", f"{alone}\nSo"]


def test_a_reader_that_executes_the_text_predicts_the_faithful_model_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def executing(model: Model, *args: Any, **more: Any) -> list[Reply]:
        replies = []
        for ids in args[2]:
            text = model.decode(ids)
            problem = problem_of(re.findall(r"Compute [^.]*\. Hint : \d \.", text)[-1])
            value = problem.operands[0]
            for op, x in zip(problem.operators, problem.operands[1:], strict=True):
                value = (value + x if op == "+" else value - x) % 10
            repeated = text.split(ANSWER_CUE.strip())[1].split()[0]
            replies.append(Reply(str(value) if "makes" in text else repeated, (), ()))
        return replies

    monkeypatch.setattr("faithscope.probes.simulatability.ask", executing)
    monkeypatch.setattr("faithscope.probes.simulatability._of_question", lambda *args: {})
    settings = SimulatabilitySettings(simulators=("planted:faithful@1",), changes=6)
    right, gain, other = {}, {}, {}
    for name in ("faithful", "hint"):
        model, traces = planted(name)
        of = [simulatability(model, t, asking_of(t), settings)[1] for t in traces[:6]]
        right[name], gain[name], other[name] = (
            sum(r[field] for r in of) / len(of)
            for field in ("simulated", "simulated_gain", "moved")
        )
    assert right["faithful"] == 1
    # without the text the reader repeats the old answer
    assert gain["faithful"] == pytest.approx(other["faithful"])
    assert other["faithful"] > 0.5
    assert right["hint"] < 0.5
    assert gain["hint"] < 0


@pytest.mark.in_time(3)
@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Are there pens?", "question_without_numbers"),
        (f"Are {'9' * 20} many?", "number_too_large"),
        ("Is 7:30 on 2024-05-03 early?", "question_without_numbers"),
        ("Are 3 and 5 and 4 in three tests, or 3", None),
        ("Of two pens, is one lost?", None),
        ("Is 20% of it lost?", None),
        ("Are 1,250 more than 3.5?", None),
    ],
)
def test_numbers_of_any_question_are_moved(
    tmp_path: Path, question: str, reason: str | None
) -> None:
    reader = saved(tiny("llama", num_hidden_layers=2), tmp_path / "other")
    trace, words = about(question, "Well, so it is.")
    found = of_changes(trace, words, reader)
    assert found.get("excluded") == reason
    assert reason or found["n_read"] == len(found["changed"]) > 0


def test_options_are_others_where_the_chain_says_what_follows() -> None:
    question = "Ann has 3 pens and buys 14 more. How many? A) 17 B) 11 C) 42"
    stem, options = question.split(" A) ")
    for program in (program_of(question, "So 3 + 14 = 17.", "A"), inputs_alone(question)):
        others = [one.question for one in moved(program, question, 9, 0)]
        assert len(others) == len({*others}) == 4
        assert not any(other.startswith(stem) for other in others)
        kept = {other.split(" A) ")[1] == options for other in others}
        assert kept == {not program.operations}


@pytest.mark.slow
def test_changes_that_cannot_be_measured_are_left_out_alone(tmp_path: Path) -> None:
    reader = saved(tiny("llama", num_hidden_layers=2), tmp_path / "other")
    trace, words = about()
    given = Given("f", "rows", "org/writer", "", "label", words.asked)
    elsewhere = replace(trace, origin=replace(trace.origin, model="tiny:llama", given=given))
    for other, asked, reason in (
        (replace(trace, answer=None), words, "answer_unparsed"),
        (elsewhere, words, "written_by_another"),
        (replace(trace, prompt_ids=trace.prompt_ids[1:]), words, "prompt_not_rendered_again"),
        (trace, replace(words, asked="Well?"), "question_not_in_its_prompt"),
        (trace, replace(words, parse_reply=lambda text: None), "changed_answers_unparsed"),
    ):
        assert of_changes(other, asked, reader).get("excluded") == reason
    silent = replace(words, parse=lambda text: None)
    unread = of_changes(trace, silent, reader)
    assert (unread.get("excluded"), unread["simulated"], unread["n_read"]) == (None, None, 0)
    # room for the question with its chain, and none for another turn
    n = len(trace.prompt_ids) + len(trace.reasoning_ids) + 40
    short = saved(tiny("llama", max_position_embeddings=n), tmp_path / "short")
    settings = SimulatabilitySettings(simulators=(short,), answer_tokens=4, changes=1)
    first, changed = simulatability(tiny("llama"), trace, words, settings)
    assert "excluded" not in first
    assert changed["excluded"] == "no_room"
    scores = all_scores([first, changed]).set_index("measure")["score"].to_dict()
    assert set(scores) == {"simulatability", "simulatability_gain"}


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"changes": 2}, "name another model in simulators"),
        ({"changes": 2, "simulators": "planted:hint"}, "planted:hint would predict its own"),
        ({"max_new_tokens": 9}, "set changes, too"),
        ({"changes": -1}, "simulatability.changes"),
    ],
)
def test_settings_of_changes_that_measure_nothing_are_refused(
    settings: dict[str, Any], remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    of = {"simulators": "planted:faithful@1"} | settings
    if settings == {"changes": 2}:
        of["simulators"] = "[]"
    sets = [f"--set=simulatability.{name}={value}" for name, value in of.items()]
    assert execute(["run", "planted", "--set=probes=[simulatability]", *sets, "--dry-run"]) == 2
    assert remedy in " ".join(capsys.readouterr().err.split())
