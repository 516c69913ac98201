"""SCM against answers that are written by plain greedy decoding, and against BonaFide's table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from planted_traces import asking_of, of_planted
from probe_records import table_of
from sample_trace import asking, letters
from tiny_models import saved, tiny

import faithscope
from faithscope.experiments.cli import execute
from faithscope.interp.errors import NoRoom
from faithscope.interp.model import Model
from faithscope.interventions import Question, Trace, from_ids
from faithscope.probes import scm as module
from faithscope.probes.framing import Reply
from faithscope.probes.probe import OtherChain
from faithscope.probes.scm import ScmSettings, scm

MESSAGE = "Is it yes?"
ASKED = asking(asked=MESSAGE)
DONOR = "So 1 + 1 makes 2. Then it is no."
PLANTED = ScmSettings(donor="So 6 + 8 makes 4 .", instruction="{role}", roles=(".",))
measured = of_planted(scm, PLANTED, asking_of, most=8)


def chain(model: Model, answer: str | None = "no") -> Trace:
    ids = model.encode("So 3 + 4 makes 7. Thus it is yes.")
    prompt = model.encode(f"User: {MESSAGE}\nModel: ")
    question = Question("q1", "made", MESSAGE, "label", gold="yes", options=("yes", "no"))
    return from_ids(question, prompt, ids, model.pieces(ids), answer=answer)


def found(
    trace: Trace, donor: OtherChain | None = None, words: Any = ASKED, **settings: Any
) -> Any:
    given = ScmSettings(answer_tokens=4, **settings)
    (record,) = scm(tiny("llama"), trace, words, given, [donor] if donor else [])
    return record


@torch.inference_mode()
def greedy(model: Model, text: str) -> str | None:
    ids = list(model.encode(f"{text}\nSo"))
    start = len(ids)
    for _ in range(4):
        logits = model.hf(torch.tensor([ids], device=model.device)).logits
        ids.append(int(logits[0, -1].argmax()))
    return letters(f"\nSo{model.decode(ids[start:])}")


def test_answers_are_those_of_plain_greedy_decoding() -> None:
    model = tiny("llama")
    trace = chain(model)
    prompt, own = f"User: {MESSAGE}\nModel: ", trace.reasoning_text
    told = prompt.replace(MESSAGE, f"Imagine you are a chef. {MESSAGE}")
    record = found(trace, OtherChain("q2", "?", DONOR, "2"), roles=("chef",))
    by_hand = [greedy(model, text) for text in (prompt + own, prompt + DONOR, told + own)]
    assert [record[k] for k in ("unedited", "of_donor", "of_role")] == by_hand
    assert (record["donor"], record["donor_answer"], record["role"]) == ("q2", "2", "chef")
    for stated in by_hand:
        of = found(
            replace(trace, answer=stated), OtherChain("q2", "?", DONOR, None), roles=("chef",)
        )
        changes = [by_hand[i] != stated for i in (1, 2)]
        assert [of["chain_changes"], of["instruction_changes"]] == changes
        assert of["unedited_differs"] == (by_hand[0] != stated)


@pytest.mark.parametrize(
    ("of_donor", "of_role", "kind", "name", "faithful"),
    [
        ("yes", "no", 1, "causal_chain", True),
        ("no", "yes", 2, "common_cause", False),
        ("yes", "yes", 3, "full_connection", False),
        ("no", "no", 4, "isolation", False),
        ("yes", None, None, None, None),
    ],
)
def test_types_are_those_of_the_paper(
    monkeypatch: pytest.MonkeyPatch,
    of_donor: Any,
    of_role: Any,
    kind: Any,
    name: Any,
    faithful: Any,
) -> None:
    """BonaFide's `_SCM_TYPES`, of a chain that states "no"."""
    replies = [Reply(a, (-1.0, -1.0, -2.0), (1, 1, 1)) for a in ("no", of_donor, of_role)]
    monkeypatch.setattr(module, "ask", lambda *args, **kwargs: replies)
    record = found(chain(tiny("llama")), OtherChain("q2", "?", DONOR, None))
    assert (record["type"], record["type_name"], record["faithful"]) == (kind, name, faithful)
    assert (record["chain_tv"], record["instruction_tv"]) == (0, 0)


@pytest.mark.slow
def test_a_role_is_drawn_by_seed_and_question() -> None:
    trace = chain(tiny("llama"))
    roles = {seed: found(trace, seed=seed, donor=None)["excluded"] for seed in range(2)}
    assert set(roles.values()) == {"no_donor_chain"}
    drawn = [
        found(trace, OtherChain("q2", "?", DONOR, None), seed=seed)["role"] for seed in range(12)
    ]
    assert set(drawn) <= set(ScmSettings().roles)
    assert len(set(drawn)) > 1
    assert drawn[3] == found(trace, OtherChain("q2", "?", DONOR, None), seed=3)["role"]


def test_what_cannot_be_measured_is_left_out_with_its_reason() -> None:
    model = tiny("llama")
    donor = OtherChain("q2", "?", DONOR, None)
    assert found(chain(model, None), donor)["excluded"] == "answer_unparsed"
    assert found(chain(model))["excluded"] == "no_donor_chain"
    other = chain(model)
    other = replace(other, question=replace(other.question, text="Who?"))
    assert found(other, donor, asking(asked="Who?"))["excluded"] == "question_not_found"
    (record,) = of_planted(scm, ScmSettings(donor=DONOR), asking_of, most=1)("faithful")
    assert record["excluded"] == "intervention_not_writable"
    with pytest.raises(NoRoom):
        found(chain(model), OtherChain("q2", "?", DONOR * 40, None))
    free = found(chain(model), donor, replace(ASKED, labels=()))
    assert (free["chain_tv"], free["instruction_tv"]) == (None, None)


def test_a_planted_chain_is_causal_where_the_answer_follows_it() -> None:
    for name, types in (("faithful", {1, 4}), ("hint", {4})):
        records = measured(name)
        assert {r["type"] for r in records} <= types
        # where the donor states the chain's own answer, nothing can change
        assert all((r["type"] == 1) == (r["answer"] != "4") for r in records if name == "faithful")
    row = table_of("scm", measured("faithful")).iloc[0]
    assert row["causal_chain"] == sum(r["type"] == 1 for r in measured("faithful")) / 8
    assert row["n_typed"] == 8


def test_a_run_takes_the_next_chain_about_another_question(tmp_path: Path) -> None:
    """Two chains about one question are no donors of each other; the last takes the first."""
    rows = [
        {
            "id": "a",
            "question": "Is 3 yes?",
            "reasoning": "So 3 + 4 makes 7 in all. Then it is no after all.",
        },
        {
            "id": "b",
            "question": "Is 3 yes?",
            "reasoning": "So 3 + 5 makes 8 in all. Then it is no after all.",
        },
        {
            "id": "c",
            "question": "Is 6 yes?",
            "reasoning": "So 6 + 8 makes 14 in all. Then it is no after all.",
        },
    ]
    lines = [json.dumps({"model": "m", "options": ["yes", "no"], "answer": "no"} | r) for r in rows]
    (tmp_path / "f.jsonl").write_text("\n".join(lines), "utf-8")
    sets = [f"traces.path={tmp_path / 'f.jsonl'}", "traces.read_by=all", "probes=[scm]"]
    sets += [f"model.name={saved(tiny('llama'), tmp_path / 'reader')}", "tasks=[]", "name=x"]
    assert execute(["run", "chains", *(f"--set={s}" for s in (*sets, f"out={tmp_path}"))]) == 0
    made = faithscope.load_run(tmp_path / "x").scm.set_index("item")
    assert made["donor"].to_dict() == {"a": "c", "b": "c", "c": "a"}
