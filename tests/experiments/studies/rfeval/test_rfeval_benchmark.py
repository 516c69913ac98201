"""What a benchmark holds, and what people say of its r′: Tables 1, 5 to 7 and 15."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import pytest
from rf_benchmark import frame_of, items_of, reviews, reviews_of_the_paper
from rf_frames import tables_of
from rf_items import item
from rf_posed import LOGIC, NUMBER, TABLE
from rf_published import grid

from faithscope.experiments.analysis.published import layout
from faithscope.experiments.studies.rfeval.items import Naming
from faithscope.experiments.studies.rfeval.paper import PAPER


def printed_tables(**observed: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The paper's tables of what was observed, as the paper prints them."""
    printed = layout.printed_tables(PAPER, tables_of(**observed))
    return {table.name.removeprefix("paper_rfeval_"): table.printed for table in printed}


def test_items_by_task_and_source() -> None:
    items = [replace(item(i), source="mmlu" if i else "bar") for i in range(3)]
    made = tables_of(items=frame_of([*items, TABLE]))["rf_items"]
    at = made.set_index(["task", "source"])["n"]
    assert at["legal_decision"].to_dict() == {"bar": 1, "mmlu": 2, "overall": 3}
    assert at["overall", "overall"] == 4
    printed = printed_tables(items=frame_of([*items, TABLE]))["table1"]
    assert printed.to_dict("split")["data"] == [
        ["Table Reasoning", "1", f"{TABLE.source} (1)"],
        ["Legal Decision", "3", "bar (1), mmlu (2)"],
        ["Total", "4", "–"],
    ]


@pytest.mark.parametrize(
    ("naming", "logic", "table"),
    [
        ("letters", "A, B", "A, B, C"),
        ("paper", "correct, incorrect", "supported, not enough info, rebutted"),
    ],
)
def test_stances_are_named_as_a_run_names_them(naming: Naming, logic: str, table: str) -> None:
    many = replace(item(0), task="mathematical_reasoning", options=tuple("wxyz"), answer="A")
    items = [replace(i, naming=naming) for i in (LOGIC, TABLE, NUMBER, many)]
    printed = printed_tables(items=frame_of(items))["table15"]
    at = printed.set_index("task")["Primary Stance Set"]
    assert at["Logical Reasoning"] == logic
    # Table 15 prints other words for the same stances
    assert at["Table Reasoning"] == table
    # as Table 15 has it, in the order of the items
    assert at["Mathematical Reasoning"] == "correct, incorrect or A, B, C, …"
    assert "I don't know" not in " ".join(at)


def test_tables_5_and_6_come_back_from_reviews_that_they_determine() -> None:
    """Ten items a task with two reviews each: their yes rate and agreement fix every statistic."""
    agreed, accepted = grid(5, "task"), grid(6, "task")
    labels = reviews_of_the_paper()
    printed = printed_tables(annotations=pd.DataFrame(labels), items=items_of(labels))
    fifth, sixth = (printed[f"table{number}"].set_index("task") for number in (5, 6))
    assert fifth.index.tolist() == [*agreed.index]
    for name in agreed.index.drop("Overall"):
        shown = ["NaN" if math.isnan(x) else f"{x + 0:.3f}" for x in agreed.loc[name]]
        # rounding leaves a negative zero in ours alone
        own = fifth.loc[name, agreed.columns]
        assert [cell.replace("−", "-").replace("-0.000", "0.000") for cell in own] == shown
        n, yes, rate, low, high = accepted.loc[name]
        row = [str(int(n)), str(int(yes)), f"{rate:.3f}", f"{low:.3f}", f"{high:.3f}"]
        assert sixth.loc[name].tolist() == row
    seventh = printed["table7"].set_index("metric")["Value"]
    assert seventh["Overall percent agreement"] == fifth.loc["Overall", "Percent agreement"]
    low = "Wilson 95% CI (low)"
    assert seventh[f"Overall yes rate {low}"] == sixth.loc["Overall", low]


def test_agreement_of_several_reviewers() -> None:
    labels = reviews("yyy", "yyn", "nny")
    table = tables_of(annotations=pd.DataFrame(labels), items=items_of(labels))["rf_reviews"]
    row = table.set_index("task").loc["legal_decision"]
    assert (row["n"], row["n_items"], row["n_accepted"]) == (9, 3, 6)
    assert row["agreement"] == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    assert row["pabak"] == pytest.approx(2 * row["agreement"] - 1)
    assert row["fleiss_kappa"] == pytest.approx((5 / 9 - 5 / 9) / (4 / 9))
    assert row["reason"] == ""


@pytest.mark.parametrize(
    ("verdicts", "n_items", "reason"),
    [
        (("yy", "yy"), 2, "all verdicts are one and the same"),
        (("y.", ".n"), 0, "no item with two verdicts"),
        (("yyn", "yn.", "n.."), 2, "items differ in their number of reviewers"),
    ],
)
def test_why_a_statistic_of_agreement_is_missing(
    verdicts: Sequence[str], n_items: int, reason: str
) -> None:
    labels = reviews(*verdicts)
    table = tables_of(annotations=pd.DataFrame(labels), items=items_of(labels))["rf_reviews"]
    row = table.set_index("task").loc["overall"]
    assert (row["n_items"], row["reason"]) == (n_items, reason)
    assert math.isnan(row["fleiss_kappa"])


def test_reviews_are_of_the_run_and_given_once() -> None:
    labels = reviews("yy", "yn")
    items = items_of(labels).head(1)
    table = tables_of(annotations=pd.DataFrame(labels), items=items)["rf_reviews"]
    assert table["n"].tolist() == [2, 2]
    # labels of outputs are in no review, and reviews in no comparison with the judge
    other = {"item": items["item"][0], "component": "baseline_r", "decision": "stance"}
    decided = pd.DataFrame([other | {"label": "A"}])
    both = pd.DataFrame([*labels, other | {"annotator": "0", "label": "A"}])
    made = tables_of(annotations=both, items=items, evaluator=decided)
    assert made["rf_reviews"]["n"].tolist() == [2, 2]
    assert set(made["rf_evaluator"]["decision"]) == {"stance"}
    with pytest.raises(ValueError, match="two rows of"):
        tables_of(annotations=pd.DataFrame([*labels, labels[0]]), items=items)
