"""The frame of branches says what reading every record branch by branch says; packed records read
as those that were packed."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_records import slrc_outcome, table_of

from faithscope.experiments.analysis.cells import one_row
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.stored_records import Packer, Record
from faithscope.experiments.studies.slrc.tables.branch_frame import (
    NECESSITY,
    branch_frame,
    step_counts,
)
from faithscope.experiments.studies.slrc.tables.outcomes import (
    ANSWERS,
    EDITS,
    alone,
    flips,
    graded,
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


@pytest.mark.slow
@given(st.lists(slrc_records(), max_size=4))
def test_frame_of_branches_says_what_the_records_say(plain: list[Record]):
    records = [
        {**slrc_outcome("m", "t", str(i), [True], [True], True), **r} for i, r in enumerate(plain)
    ]
    frame = branch_frame(records)
    of_edits = {edit: of for edit, of in frame.groupby("edit", observed=False)}
    for edit in EDITS:
        of_edit = of_edits[edit]
        expected = [flip for r in records for flip in flips(r, edit)]
        assert known(of_edit["flip"]) == [flip for flip in expected if flip is not None]
        counted = of_edit[of_edit["flip"].notna()]
        for measure in ("tv", "log_odds"):
            values = [x for r in records for x in graded(r, edit, measure)]
            # a graded number counts where there was a branch
            flipped = zip(values, expected, strict=True)
            assert alike(counted[measure], [x for x, f in flipped if f is not None])
        close = [x for r in records for x in within_floor(r, edit)]
        assert known(of_edit["close"]) == close
    counts = step_counts(frame).to_numpy().tolist() if records else []
    for row, r in zip(counts, records, strict=True):
        removed = [f for f in flips(r, "remove") if f is not None]
        back = [a for a in alone(r) if a is not None]
        assert row == [sum(removed), len(removed), sum(back), len(back)]


def known(values: Any) -> list[float]:
    return values.dropna().tolist()


def alike(values: Any, expected: list[Any]) -> bool:
    return [None if math.isnan(x) else x for x in values] == expected


def within_floor(record: Record, edit: str) -> list[bool]:
    """Whether each flip of known margin is within the noise floor."""
    margins = record.get(f"{ANSWERS[edit]}_margin") or []
    if record["noise_floor"] is None:
        return []
    pairs = zip(flips(record, edit), margins, strict=False)
    return [m <= record["noise_floor"] for flip, m in pairs if flip and m is not None]


def test_lists_of_one_record_that_differ_in_length_are_refused():
    record = slrc_outcome("m", "t", "0", [True, False], [True, False], True)
    with pytest.raises(ValueError, match="'tv' has not one value per branch"):
        branch_frame([record | {"removed_tv": [0.5]}])


def test_steps_of_a_sample_count_by_the_inverse_of_their_inclusion_probability():
    record = slrc_outcome("m", "t", "0", [True, False], [True, False], True)
    frame = branch_frame([record | {"inclusion": [0.25, 1.0]}])
    removed = frame[frame["edit"] == "remove"]
    assert removed["weight"].tolist() == [4.0, 1.0]
    row = one_row((NECESSITY,), frame, Bootstrap())
    assert row["necessity"] == 4 / 5
    assert set(frame.loc[frame["edit"] == "baseline", "weight"]) == {1.0}


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
