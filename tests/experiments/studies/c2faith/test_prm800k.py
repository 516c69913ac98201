"""PRM800K as released and as plain rows, and the perfect chains in it."""

from __future__ import annotations

import hashlib
import json
import shutil
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from prm800k_rows import completion, human, row, solved, step
from run_files import write_rows

from faithscope.experiments.studies.c2faith.benchmark.items import Chain, perfect
from faithscope.experiments.studies.c2faith.benchmark.prm800k import (
    REPOSITORY,
    REVISION,
    read_prm800k,
)
from faithscope.interp.errors import UserError

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "prm800k"


def test_the_chosen_path_is_read(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "phase1_train.jsonl",
        row(
            "What is $3+4$?",
            step(completion("no", -1), completion("Add.", 1), chosen=1),
            step(completion("bad", -1), chosen=None, human=human("I say 7.")),
            step(completion("meh", 0)),
            step(completion("unrated", None)),
            step(completion("the only one", 1), chosen=None, human={"text": None}),
        ),
        row(
            "Q",
            step(completion("a")),
            step(completion("b", -1), completion("c"), chosen=None),
            finish="give_up",
        ),
    )
    (first, second), (source,) = read_prm800k(path)
    assert first.id == "phase1_train-0"
    assert first.problem == "What is $3+4$?"
    assert first.steps == ("Add.", "I say 7.", "meh", "unrated", "the only one")
    # a step that the rater wrote has no rating: it is right
    assert first.ratings == (1, 1, 0, None, 1)
    assert (first.complete, first.answered) == (True, True)
    assert (second.steps, second.complete, second.answered) == (("a",), False, False)
    assert source.name == "phase1_train.jsonl"
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert source.n_rows == 2
    assert not source.as_released


def real_rows(folder: Path, **splits: str) -> Path:
    """Real rows under the names of the splits they are in: split="prm800k_phase1.jsonl".

    Of openai/prm800k (MIT, OpenAI), from `datasets/examples/` of tongyx361/reward-by-prm800k at
    f7cac6e; of the 27 steps of the row that was given up, the first four and the last two.
    """
    for split, file in splits.items():
        shutil.copy(Path(__file__).with_name(file), folder / f"{split}.jsonl")
    return folder


def test_real_rows_of_phase_1_say_what_the_reader_gives(tmp_path: Path) -> None:
    path = real_rows(tmp_path, phase1_train="prm800k_phase1.jsonl") / "phase1_train.jsonl"
    (pencils, gave_up, base_9), (source,) = read_prm800k(path)
    assert (source.n_rows, source.as_released) == (3, False)
    # one step is the rater's own, as all proposed were wrong; of the last five the fifth is taken
    assert pencils.problem.startswith("Three pencils and a jumbo eraser cost $\\$1.24$.")
    assert len(pencils.steps) == 6
    assert pencils.steps[1] == "We have $3p+e=1.24$ and $5p+e=1.82$."
    assert pencils.steps[5] == "That means a pencil costs 29 cents.\n\n# Answer\n\n29"
    assert pencils.ratings == (1,) * 6
    assert (pencils.complete, pencils.answered) == (True, True)
    # raters wrote steps where all proposed were right but led nowhere, too
    assert base_9.steps[0] == "Subtraction works the same in base $9$ as in base $10$."
    assert base_9.steps[1].endswith("which is $8-8=0$.")
    assert base_9.ratings == (1,) * 6
    # given up among seven proposals that nobody rated: the path ends before them
    assert gave_up.steps[-1].startswith("There are $8$ of them.")
    assert (len(gave_up.steps), gave_up.complete, gave_up.answered) == (5, False, False)
    found = perfect([pencils, gave_up, base_9])
    assert [c.id for c in found.chains] == ["phase1_train-0", "phase1_train-2"]
    assert dict(found.left_out) == {"phase1_train-1": "unfinished"}


def test_a_real_row_of_phase_2_ends_at_its_first_error(tmp_path: Path) -> None:
    path = real_rows(tmp_path, phase2_test="prm800k_phase2.jsonl")
    (senate,), _ = read_prm800k(path, ("phase2_test",))
    assert senate.id == "phase2_test-0"
    (row,) = map(json.loads, (path / "phase2_test.jsonl").read_text().splitlines())
    # what stands after the error was written in advance, and rated by nobody
    written = row["question"]["pre_generated_steps"]
    assert len(written) == 13
    assert list(senate.steps) == written[:6]
    assert senate.ratings == (1, 0, 1, 1, 1, 1)
    assert (senate.complete, senate.answered) == (False, False)
    assert perfect([senate]).counts == {"kept": 0, "unfinished": 1}


def test_what_stands_in_two_phases_is_taken_once(tmp_path: Path) -> None:
    same = "prm800k_phase1.jsonl"
    path = real_rows(tmp_path, phase1_train=same, phase2_train=same)
    solutions, sources = read_prm800k(path)
    assert [s.n_rows for s in sources] == [3, 3]
    found = perfect(solutions)
    assert [c.id for c in found.chains] == ["phase1_train-0", "phase1_train-2"]
    assert found.counts == {"kept": 2, "repeated": 2, "unfinished": 2}


@pytest.mark.parametrize("finish", ["solution", "give_up", "found_error", "bad_problem"])
def test_how_rating_ended_says_whether_there_is_an_answer(finish: str, tmp_path: Path) -> None:
    """The path says whether it is whole; of four ways to end one alone is an answer."""
    five = [step(completion(f"step {i}")) for i in range(5)]
    (solution,), _ = read_prm800k(write_rows(tmp_path / "a.jsonl", row("P", *five, finish=finish)))
    assert solution.complete
    assert solution.answered == (finish == "solution")
    assert len(perfect([solution], answered=True).chains) == (finish == "solution")


def test_plain_rows_are_read(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"row": 7, "problem": "P", "steps": ["a", "b"], "ratings": [1, 0], "ends_in_answer": False},
        {"problem": "P", "steps": ["a", "b\n\n# Answer\n\n1"], "ratings": [1, -1]},
    ]
    (first, second), _ = read_prm800k(write_rows(tmp_path / "mine.jsonl", *rows))
    assert (first.id, first.ratings, first.answered) == ("mine-7", (1, 0), False)
    assert (second.id, second.answered) == ("mine-1", True)


def test_splits_of_a_folder_are_read_in_their_order_wherever_they_lie(tmp_path: Path) -> None:
    write_rows(tmp_path / "prm800k" / "data" / "phase2_train.jsonl", solved("B", 5))
    write_rows(tmp_path / "prm800k" / "data" / "phase1_train.jsonl", solved("A", 5))
    write_rows(tmp_path / "prm800k" / "data" / "phase1_test.jsonl", solved("C", 5))
    write_rows(tmp_path / "prm800k" / "math_splits" / "train.jsonl", {"problem": "no labels"})
    solutions, sources = read_prm800k(tmp_path)
    assert [s.id for s in solutions] == ["phase1_train-0", "phase2_train-0"]
    assert [s.name for s in sources] == ["phase1_train.jsonl", "phase2_train.jsonl"]
    tests, _ = read_prm800k(tmp_path, ("phase1_test",))
    assert [s.problem for s in tests] == ["C"]
    with pytest.raises(UserError, match=r"has no phase2_test\.jsonl; it holds .*phase1_test"):
        read_prm800k(tmp_path, ("phase1_test", "phase2_test"))


def test_a_folder_with_one_file_needs_no_names(tmp_path: Path) -> None:
    write_rows(tmp_path / "subset.jsonl", solved("A", 5))
    assert [s.id for s in read_prm800k(tmp_path)[0]] == ["subset-0"]


GOOD = row("P", step(completion("a")))
BAD: list[tuple[Any, str]] = [
    ({"problem": "P"}, "no field 'label' .* or 'steps' .*; it has problem"),
    ([1], "is a list; give one object"),
    ({"label": GOOD["label"]}, "'question' is missing"),
    ({**GOOD, "question": {}}, "'question.problem'"),
    ({**GOOD, "label": {"steps": "a"}}, r"'label\.steps' is a str"),
    (row("P", step(completion("a"), chosen=3)), r"label\.steps\[0\]\.chosen_completion is 3"),
    (row("P", step(completion("a"), chosen=True)), "chosen_completion is True"),
    (row("P", step(completion("a", 2))), r"completions\[0\]: rating 2; give -1, 0 or 1"),
    (row("P", step({"rating": 1})), r"completions\[0\]\.text is a NoneType"),
    (row("P", step(chosen=None, human={"text": 4})), r"human_completion\.text is a int"),
    ({"problem": "P", "steps": ["a"], "ratings": []}, "1 'steps' but 0 'ratings'"),
    ({"problem": "P", "steps": ["a"], "ratings": ["good"]}, r"ratings\[0\]: rating 'good'"),
    ({"problem": "P", "steps": [4], "ratings": [1]}, r"steps\[0\]\.text is a int"),
    ({"problem": "P", "steps": ["a"], "ratings": [1], "ends_in_answer": "yes"}, "'yes'"),
]


@pytest.mark.parametrize(("bad", "told"), BAD)
def test_a_row_that_is_none_is_named_with_file_line_and_field(
    bad: Any, told: str, tmp_path: Path
) -> None:
    path = write_rows(tmp_path / "data.jsonl", GOOD, bad)
    with pytest.raises(UserError, match=told) as caught:
        read_prm800k(path)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file or folder"):
        read_prm800k(tmp_path / "none")
    with pytest.raises(UserError, match="no data file"):
        read_prm800k(tmp_path)
    pointer = tmp_path / "phase1_train.jsonl"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:f4b3\nsize 829105\n")
    with pytest.raises(UserError, match=r"Git LFS pointer.*git lfs pull"):
        read_prm800k(pointer)
    pointer.write_text("{")
    with pytest.raises(UserError, match="line 1: is not JSON"):
        read_prm800k(pointer)
    pointer.write_text("\n\n")
    with pytest.raises(UserError, match="holds no rows"):
        read_prm800k(pointer)
    with pytest.raises(UserError, match=r"unknown split 'phase_1_train'; did you mean"):
        read_prm800k(pointer, ("phase_1_train",))
    twice = write_rows(
        tmp_path / "t.jsonl", *[{"row": 1, "problem": "P", "steps": [], "ratings": []}] * 2
    )
    with pytest.raises(UserError, match=r"line 2: id 't-1' is that of .*line 1"):
        read_prm800k(twice)


def test_the_hub_copy_is_read_from_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=rf"could not get .* of {REPOSITORY}.*path="):
        read_prm800k()
    snapshot = tmp_path / f"datasets--{REPOSITORY.replace('/', '--')}" / "snapshots" / REVISION
    write_rows(snapshot / "phase1_train.jsonl", solved("A", 5))
    write_rows(snapshot / "phase2_train.jsonl", solved("B", 6))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(tmp_path))
    solutions, _ = read_prm800k()
    assert [s.id for s in solutions] == ["phase1_train-0", "phase2_train-0"]


def test_perfect_chains_and_why_others_are_none(tmp_path: Path) -> None:
    five = [step(completion(f"step {i}")) for i in range(5)]
    path = write_rows(
        tmp_path / "phase1_train.jsonl",
        solved("first", 5),
        row("long, one neutral", *five, step(completion("x", 0))),
        row("unrated", *five, step(completion("x", None))),
        row("short", *five[:4]),
        row("ended", *five, step(completion("x", -1), chosen=None), finish="found_error"),
        row("open", *five, step(completion("x"), completion("y"), chosen=None), finish="give_up"),
        row("given up", *five, finish="give_up"),
        row("empty", *five, step(completion(" "))),
        solved("first", 5),
        solved("first", 6),
    )
    solutions, _ = read_prm800k(path)
    found = perfect(solutions)
    assert [c.id for c in found.chains] == [f"phase1_train-{i}" for i in (0, 6, 9)]
    assert dict(found.left_out) == {
        "phase1_train-1": "not_all_positive",
        "phase1_train-2": "not_all_positive",
        "phase1_train-3": "too_short",
        "phase1_train-4": "not_all_positive",
        "phase1_train-5": "unfinished",
        "phase1_train-7": "empty_step",
        "phase1_train-8": "repeated",
    }
    assert sum(found.counts.values()) == len(solutions)
    strict = perfect(solutions, least=6, answered=True, one_per_problem=True)
    assert [c.id for c in strict.chains] == ["phase1_train-9"]
    assert dict(strict.left_out)["phase1_train-6"] == "too_short"
    one = perfect(solutions, answered=True, one_per_problem=True)
    assert [c.id for c in one.chains] == ["phase1_train-0"]
    assert dict(one.left_out)["phase1_train-6"] == "no_answer"
    assert dict(one.left_out)["phase1_train-9"] == "problem_taken"


def test_a_chains_hash_is_of_its_words() -> None:
    assert Chain("a", "P", ("x", "y")).sha256 == Chain("b", "P", ("x", "y")).sha256
    assert Chain("a", "P", ("x", "y")).sha256 != Chain("a", "P", ("xy",)).sha256


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real PRM800K rows lie beside a checkout only")
def test_the_perfect_chains_of_real_rows() -> None:
    solutions, (source,) = read_prm800k(SHARED)
    assert source.n_rows == 1333
    found = perfect(solutions)
    assert found.counts == {"kept": 168, "not_all_positive": 1156, "too_short": 9}
    assert perfect(solutions, answered=True).chains == found.chains
    assert len(perfect(solutions, one_per_problem=True).chains) == 122
    # the filter of configs/paper/c2faith.yaml: the paper's chains have 8 to 30 steps, 13 in the
    # median
    as_paper = perfect(solutions, least=8, answered=True, one_per_problem=True).chains
    lengths = sorted(len(chain.steps) for chain in as_paper)
    assert len(lengths) == 80
    assert lengths[0] == 8
    assert statistics.median(lengths) == 11.5
    with (SHARED / "subset.jsonl").open() as lines:
        by_row = {r["row"]: r for r in map(json.loads, lines)}
    for chain in found.chains:
        given = by_row[int(chain.id.removeprefix("subset-"))]
        assert list(chain.steps) == given["steps"]
        assert Counter(given["ratings"]).keys() == {1}
