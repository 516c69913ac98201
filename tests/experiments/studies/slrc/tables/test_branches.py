"""Arrays of branches say what reading every record branch by branch says, and read each record
a few times however many steps it has; packed records read as those that were packed."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_records import TABLES, slrc_outcome, table_of

from faithscope.experiments.analysis.records import Packer, Record, Records
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables import branches
from faithscope.experiments.studies.slrc.tables.outcomes import (
    EDITS,
    alone,
    flips,
    graded,
    margins,
    within_floor,
)

FIELDS = {
    "remove": ("necessary", "removed"),
    "corrupt": ("corrupt_flips", "corrupted"),
    "regenerate": ("regenerate_flips", "regenerated"),
    "control": ("control_flips", "controlled"),
    "keep_only": ("sufficient", "alone"),
    "shuffle": ("reordered", "shuffled"),
}
FLOAT = st.floats(-5, 5)


@st.composite
def slrc_records(draw: st.DrawFn) -> Record:
    n = draw(st.integers(1, 3))

    def some(values: st.SearchStrategy[Any]) -> list[Any] | None:
        return draw(st.none() | st.lists(st.none() | values, min_size=n, max_size=n))

    record: dict[str, Any] = {"n_steps": n, "noise_floor": draw(st.none() | FLOAT)}
    record["corruptible"] = draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n))
    for changed, answered in FIELDS.values():
        record[changed] = some(st.booleans())
        if record[changed] is not None:
            for name in ("margin", "tv", "log_odds"):
                record[f"{answered}_{name}"] = some(FLOAT)
    return record


def alike(values: list[float], expected: list[Any]) -> None:
    assert [None if math.isnan(x) else x for x in values] == expected


@pytest.mark.slow
@given(st.lists(slrc_records(), max_size=4))
def test_arrays_of_branches_say_what_the_records_say(plain: list[Record]):
    packer = Packer()
    same = Records(map(packer.record, plain))
    for edit in EDITS:
        expected = [flip for r in plain for flip in flips(r, edit)]
        alike(branches.flips_of(same, edit).values.tolist(), expected)
        for measure in ("tv", "log_odds"):
            known = [x for r in plain for x in graded(r, edit, measure)]
            flipped = branches.flips_of(same, edit).values
            found = branches.measure_of(same, edit, measure)
            # a graded number counts where there was a branch
            alike(
                [x for x, f in zip(found, flipped, strict=True) if not math.isnan(f)],
                [x for x, f in zip(known, expected, strict=True) if f is not None],
            )
        close = [x for r in plain for x in within_floor(r, flips(r, edit), margins(r, edit))]
        assert branches.outcomes_of(branches.close_of(same, edit)) == close
    assert branches.necessary(same) == [
        f for r in plain for f in flips(r, "remove") if f is not None
    ]
    assert branches.sufficient(same) == [a for r in plain for a in alone(r) if a is not None]
    counts = branches.step_counts(same).tolist()
    for row, r in zip(counts, plain, strict=True):
        removed = [f for f in flips(r, "remove") if f is not None]
        back = [a for a in alone(r) if a is not None]
        assert row == [sum(removed), len(removed), sum(back), len(back)]


def test_lists_of_one_record_that_differ_in_length_are_refused():
    record = {"necessary": [True, False], "removed_tv": [0.5]}
    with pytest.raises(ValueError, match="differ in length"):
        branches.measure_of([record], "remove", "tv")


def test_steps_that_had_no_room_are_counted_where_no_step_of_their_item_had_any():
    wrote = slrc_outcome("m", "t", "0", [True, False], [True, True], True)
    wrote |= {"regenerate_flips": [True, None], "regenerated_excluded": [None, "no_room"]}
    full = slrc_outcome("m", "t", "1", [True, False], [True, True], True)
    full |= {"regenerate_flips": None, "regenerated_excluded": ["no_room", "no_room"]}
    of_edits = table_of("edits", [wrote, full]).set_index("edit").loc["regenerate"]
    assert (of_edits["n_items"], of_edits["n_edits"], of_edits["n_no_room"]) == (1, 1, 3)
    of_places = table_of("edits_by_step", [wrote, full])
    regenerated = of_places[of_places["edit"] == "regenerate"]
    counted = [regenerated[name].tolist() for name in ("step", "n_edits", "n_no_room")]
    assert counted == [[1], [1], [1]]


class Read(dict):
    """A record that counts how often it is asked for something."""

    times: ClassVar[Counter[str]] = Counter()

    def __getitem__(self, name: str) -> Any:
        self.times[name] += 1
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.times[name] += 1
        return super().get(name, default)


@pytest.mark.parametrize("name", ["slrc", "edits", "edits_by_step", "agreement"])
def test_a_table_reads_a_record_as_often_whatever_its_number_of_steps(name: str):
    def reads(n_steps: int) -> int:
        records = [
            Read(slrc_outcome("m", "t", str(i), [True] * n_steps, [False] * n_steps, True))
            for i in range(4)
        ]
        Read.times.clear()
        table = TABLES[name].make(Records(records), how=SlrcAnalysis(resamples=2))
        assert len(table) or name == "agreement"
        return Read.times.total()

    assert reads(2) == reads(20)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 1)
    | st.sampled_from([0.0, -0.0, 1.0])
    | st.text("ab"),
    lambda of: st.lists(of, max_size=3),
    max_leaves=6,
)


def plainly(value: Any) -> Any:
    """With every number's type and sign, and whatever holds it as a list."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return repr(value)
    return [plainly(x) for x in value]


@given(st.lists(st.dictionaries(st.sampled_from("xyz"), JSON), max_size=4))
def test_packed_records_read_as_they_were(records: list[dict[str, Any]]):
    packer = Packer()
    for packed, record in [(packer.record(r), r) for r in records]:
        assert list(packed) == list(record)
        assert {k: plainly(v) for k, v in packed.items()} == {
            k: plainly(v) for k, v in record.items()
        }
        assert packed.get("nothing", "default") == "default"
        assert {**packed}.keys() == record.keys()
