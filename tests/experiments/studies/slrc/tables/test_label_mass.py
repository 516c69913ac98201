"""Label mass: in the records of every arm, in tables, and as a reason to leave an item out."""

from figure_fit import drawing_problems

from faithscope.experiments.studies.slrc.figures.figures import label_mass_picture
from faithscope.experiments.studies.slrc.tables.exclusions import exclusions_table
from faithscope.experiments.studies.slrc.tables.label_mass import (
    LOW,
    label_mass_table,
    without_low_mass,
)


def records(*masses: float | None) -> list[dict]:
    made = []
    for i, mass in enumerate(masses):
        place = {"model": "m", "task": "gsm8k", "item": f"q{i}", "seed": 0}
        made.append(place | {"probe": "trace", "variant": "", "excluded": None})
        for reading in ("generated", "scored"):
            of_reading = {"probe": "slrc", "variant": f"prefix.{reading}", "excluded": None}
            if reading == "scored":
                of_reading["label_mass"] = mass
            made.append(place | of_reading)
    return made


def test_items_of_low_mass_leave_the_scored_reading_alone_and_are_counted():
    marked = without_low_mass(records(0.9, 0.0, 0.09, 0.1), 0.1)
    left_out = [(r["item"], r["variant"]) for r in marked if r["excluded"]]
    assert left_out == [("q1", "prefix.scored"), ("q2", "prefix.scored")]
    counts = exclusions_table(marked)
    scored = counts[counts["stage"] == "slrc.prefix.scored"]
    assert dict(zip(scored["reason"], scored["n"], strict=True)) == {
        "total": 4,
        LOW: 2,
        "included": 2,
    }


def test_another_threshold_needs_no_other_records():
    kept = records(0.9, 0.0, 0.09, None)
    assert not any(r["excluded"] for r in without_low_mass(kept, 0.0))
    assert sum(r["excluded"] == LOW for r in without_low_mass(kept, 0.5)) == 2


def test_the_table_has_every_scored_record_also_those_left_out():
    table = label_mass_table(without_low_mass(records(0.9, 0.05, None), 0.1))
    assert table["label_mass"].tolist() == [0.9, 0.05]
    assert table["left_out"].tolist() == [False, True]


def test_the_figure_has_a_strip_per_task_and_one_legend():
    of_tasks = [{**r, "task": task} for task in "ab" for r in records(0.9, 0.05)]
    figure = label_mass_picture(label_mass_table(without_low_mass(of_tasks, 0.1))).figure
    assert figure is not None
    assert drawing_problems(figure) == []
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["counted", "left out"]
