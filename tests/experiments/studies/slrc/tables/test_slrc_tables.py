"""The tables say what the readers behind the sample records do."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from probe_records import asked_in_every_way, bare_trace, base, direct_answer, table_of
from sample_records import (
    FAITHFUL,
    HINT,
    REAL,
    SENTIMENT,
    chain_sample,
    excluded_record,
    records_of,
    sample_run,
    sentiment_sample,
    slrc_record,
    trace_record,
)

from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown, visible
from faithscope.experiments.analysis.traces.exclusions import exclusions_table
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.outcomes import answers, flips

RUN = sample_run()


def one(table: pd.DataFrame, **where: object) -> pd.Series:
    """The only row with these values."""
    found = table
    for name, value in where.items():
        found = found[found[name] == value]
    assert len(found) == 1, f"{len(found)} rows with {where}"
    return found.iloc[0]


def test_slrc_has_the_columns_that_scripts_rely_on():
    table = table_of("slrc", RUN, 50)
    for name in ("accuracy", "necessity", "sufficiency", "order_sensitivity", "slrc"):
        at = list(table.columns).index(name)
        assert list(table.columns[at : at + 3]) == [name, f"{name}_low", f"{name}_high"]
    assert list(table.columns[:5]) == ["model", "task", "framing", "reading", "n"]
    assert len(table) == 3 * 2 * 2


def test_slrc_tells_the_twins_apart():
    table = table_of("slrc", RUN, 200)
    where = {"framing": "prefix", "reading": "generated"}
    faithful, hint = one(table, model=FAITHFUL, **where), one(table, model=HINT, **where)
    assert faithful["accuracy"] == hint["accuracy"] == 1.0
    # Only removing the last of three steps can change what the last step read says.
    assert 0.2 < faithful["necessity"] <= 1 / 3
    assert hint["necessity"] == 0
    assert hint["redundancy_bound"] == math.inf
    assert hint["sufficiency"] == 1
    assert faithful["slrc_low"] > hint["slrc_low"] == hint["slrc"] == 0
    # that no item differs from another makes no certainty
    assert 0 < hint["slrc_high"] < 0.2


def test_slrc_pools_steps_and_multiplies_the_aggregates():
    samples = [sentiment_sample(i) for i in range(30)]
    records = records_of(samples, ["prefix"], ["generated"])
    row = table_of("slrc", records, 50).iloc[0]
    made = [flip for r in records[30:] for flip in r["necessary"]]
    back = [flip for r in records[30:] for flip in r["sufficient"]]
    assert row["necessity"] == sum(made) / len(made)
    assert row["slrc"] == row["necessity"] * (1 - sum(back) / len(back))
    assert row["n_steps"] == len(made)
    assert row["mean_steps"] == len(made) / 30


def test_accuracy_leaves_out_items_without_gold():
    records = [slrc_record(chain_sample("hint", i), "prefix", "generated") for i in range(4)]
    without = [r | {"gold": None, "correct": None} for r in records[:3]]
    row = table_of("slrc", [*without, records[3]], 10).iloc[0]
    assert (row["n"], row["accuracy"]) == (4, 1.0)
    row = table_of("slrc", without, 10).iloc[0]
    assert math.isnan(row["accuracy"])


def test_edits_show_what_each_edit_credits():
    table = table_of("edits", RUN)
    where = {"model": FAITHFUL, "framing": "prefix", "reading": "generated"}
    rate = {edit: one(table, edit=edit, **where)["flip_rate"] for edit in ("corrupt", "regenerate")}
    assert rate == {"corrupt": pytest.approx(1 / 3), "regenerate": 1.0}
    hint = table[(table["model"] == HINT)]
    assert (hint["flip_rate"] == 0).all()


def test_edits_by_step_give_the_planted_flip_table():
    table = table_of("edits_by_step", RUN)
    where = {"model": FAITHFUL, "framing": "prefix", "reading": "generated", "n_steps": 3}
    frozen = [one(table, edit="corrupt", step=s, **where)["flip_rate"] for s in (1, 2, 3)]
    rewritten = [one(table, edit="regenerate", step=s, **where)["flip_rate"] for s in (1, 2, 3)]
    assert (frozen, rewritten) == ([0, 0, 1], [1, 1, 1])


def test_removal_lies_about_a_hint_follower_that_never_saw_deletions():
    records = records_of([chain_sample("hint_no_deletions", i) for i in range(10)])
    table = table_of("edits", records)
    where = {"framing": "prefix", "reading": "generated"}
    assert one(table, edit="remove", **where)["flip_rate"] == 1.0
    assert one(table, edit="corrupt", **where)["flip_rate"] == 0.0


def test_a_step_that_cannot_be_corrupted_is_not_counted():
    record = slrc_record(sentiment_sample(3), "prefix", "scored")
    lacking = record["corruptible"].count(False)
    assert lacking > 0
    assert flips(record, "corrupt").count(None) == lacking
    row = one(table_of("edits", [record]), edit="corrupt")
    assert row["n_edits"] == record["n_steps"] - lacking


def test_an_unparsed_answer_counts_as_another_answer():
    record = slrc_record(chain_sample("hint", 1), "prefix", "generated")
    record |= {"removed": [None, "4", "4"], "necessary": [True, False, False]}
    assert answers(record, "remove")[0] is None
    assert one(table_of("edits", [record]), edit="remove")["flip_rate"] == pytest.approx(1 / 3)


def test_what_is_rewritten_counts_beyond_its_control():
    samples = [sentiment_sample(i) for i in range(30)]
    records = [slrc_record(s, "prefix", "generated") for s in samples]
    rewritten = one(table_of("edits", records), edit="regenerate")
    assert one(table_of("edits", records), edit="control")["flip_rate"] == 0
    assert 0 < rewritten["beyond_control"] <= rewritten["item_rate"] + 1e-9
    assert rewritten["beyond_control_low"] < rewritten["beyond_control"]
    for r in records:  # a model that arrives elsewhere whatever is done
        r["regenerate_flips"] = r["control_flips"] = [c for c in r["corruptible"]]
    unsteady = one(table_of("edits", records), edit="regenerate")
    assert (unsteady["flip_rate"], unsteady["beyond_control"]) == (1, 0)
    planted = table_of("edits", [slrc_record(chain_sample("faithful", 1), "prefix", "generated")])
    assert planted["beyond_control"].isna().all()


def test_graded_readings_average_over_the_branches_made():
    record = slrc_record(chain_sample("faithful", 2), "prefix", "scored")
    table = table_of("edits", [record])
    row = one(table, edit="regenerate")
    assert row["total_variation"] == pytest.approx(0.85)
    assert row["log_odds_drop"] == pytest.approx(4.0)
    generated = table_of("edits", [slrc_record(chain_sample("faithful", 2), "prefix", "generated")])
    assert generated["total_variation"].isna().all()


def test_edits_that_were_not_run_have_no_row():
    record = slrc_record(chain_sample("faithful", 2), "prefix", "generated")
    for name in ("corrupted", "regenerated"):
        record[name] = None
    record |= {"corrupt_flips": None, "regenerate_flips": [None] * 3}
    left = ["remove", "keep_only", "shuffle", "remove_all"]
    assert list(table_of("edits", [record])["edit"]) == left


def test_agreement_of_readings_that_agree_and_of_one_that_does_not():
    table = table_of("agreement", RUN)
    row = one(table, model=REAL, edit="remove", between="generated~scored in prefix")
    assert (row["agreement"], row["kappa"]) == (1.0, 1.0)
    sample = chain_sample("faithful", 4)
    left, right = (slrc_record(sample, f, "generated") for f in ("prefix", "reprompt"))
    right["necessary"] = [not flip for flip in right["necessary"]]
    right["baseline"] = "other"
    table = table_of("agreement", [left, right])
    assert set(table["between"]) == {"prefix~reprompt in generated"}
    assert one(table, edit="remove")["agreement"] == 0
    assert one(table, edit="baseline")["agreement"] == 0
    assert one(table, edit="corrupt")["agreement"] == 1


def test_agreement_needs_the_same_item():
    left = slrc_record(chain_sample("faithful", 1), "prefix", "generated")
    right = slrc_record(chain_sample("faithful", 2), "prefix", "scored")
    assert table_of("agreement", [left, right]).empty


def test_exclusions_add_up_for_every_fate():
    samples = [sentiment_sample(i) for i in range(6)]
    records = [
        *(trace_record(s) for s in samples[:4]),
        trace_record(samples[4], "fewer_than_2_steps"),
        *(slrc_record(s, "prefix", "generated") for s in samples[:2]),
        excluded_record(samples[2], "prefix", "generated"),
    ]
    failures = [
        Unit("u", "trace", REAL, SENTIMENT, samples[5].item, 1, [], "out of memory"),
        Unit("v", "slrc", REAL, SENTIMENT, samples[3].item, 1, [], "out of memory"),
    ]
    table = exclusions_table(records, failures)
    found = {(row.stage, row.reason): row.n for row in table.itertuples()}
    assert found == {
        ("trace", "total"): 6,
        ("trace", "failed"): 1,
        ("trace", "fewer_than_2_steps"): 1,
        ("trace", "included"): 4,
        ("slrc.prefix.generated", "total"): 4,
        ("slrc.prefix.generated", "baseline_unparsed"): 1,
        ("slrc.prefix.generated", "failed"): 1,
        ("slrc.prefix.generated", "included"): 2,
    }


def test_an_item_that_no_probe_reached_is_counted():
    samples = [sentiment_sample(i) for i in range(2)]
    records = [*map(trace_record, samples), slrc_record(samples[0], "prefix", "scored")]
    row = one(exclusions_table(records), stage="slrc.prefix.scored", reason="not_run")
    assert row["n"] == 1


def test_a_task_that_no_probe_reached_is_counted():
    reached, waiting = chain_sample("hint", 1), sentiment_sample(1)
    records = [*map(trace_record, (reached, waiting)), slrc_record(reached, "prefix", "scored")]
    table = exclusions_table(records)
    assert one(table, model=REAL, reason="not_run")["n"] == 1
    refused = trace_record(chain_sample("faithful", 1), "fewer_than_2_steps")
    stages = exclusions_table([*records, refused]).query("model == @FAITHFUL")["stage"]
    assert set(stages) == {"trace"}


def test_included_items_are_those_in_the_slrc_table():
    found = exclusions_table(RUN)
    for row in table_of("slrc", RUN, 10).itertuples():
        stage = f"slrc.{row.framing}.{row.reading}"
        where = {"model": row.model, "task": row.task, "stage": stage, "reason": "included"}
        assert one(found, **where)["n"] == row.n


def test_measurements_without_a_trace_are_refused():
    record = slrc_record(chain_sample("hint", 1), "prefix", "generated")
    trace = trace_record(chain_sample("hint", 2))
    with pytest.raises(StoreError, match="without an included trace"):
        exclusions_table([trace, record])


def test_steps_count_only_counted_steps():
    samples = [chain_sample("faithful", i) for i in range(3)]
    records = [trace_record(s) for s in samples]
    records[0]["steps"][1]["counted"] = False
    records[1]["steps"] = []
    row = table_of("steps", records).iloc[0]
    assert (row["n"], row["n_steps"], row["mean_steps"]) == (3, 5, 2.5)
    assert row["multi_step"] == pytest.approx(2 / 3)
    assert row["mean_step_tokens"] == 7


def test_nothing_in_gives_empty_tables_with_columns():
    for name, table in tables_of([]).items():
        assert table.empty, name
        assert len(to_csv(table).splitlines()) == 1, name
        assert to_latex(table).count(r"\\") == 1, name


@pytest.mark.slow
def test_the_order_of_the_records_does_not_matter():
    forth, back = (
        tables_of(RUN, analysis=SlrcAnalysis(resamples=50)),
        tables_of(RUN[::-1], analysis=SlrcAnalysis(resamples=50)),
    )
    assert {n: to_csv(t) for n, t in forth.items()} == {n: to_csv(t) for n, t in back.items()}


def test_csv_has_six_decimals_no_negative_zero_and_empty_for_nothing():
    table = pd.DataFrame({"a": [1 / 3, -1e-9, math.nan, math.inf], "n": [1, 2, 3, 4]})
    assert to_csv(table) == "a,n\n0.333333,1\n0.000000,2\n,3\ninf,4\n"


def test_markdown_puts_the_interval_beside_its_estimate():
    table = pd.DataFrame(
        {"model": ["a|b"], "slrc": [0.146], "slrc_low": [0.1], "slrc_high": [0.2], "k": [math.nan]}
    )
    assert to_markdown(table) == (
        "| model | slrc | k |\n| --- | ---: | ---: |\n| a\\|b | 0.146 [0.100, 0.200] | – |\n"
    )


def test_latex_is_escaped():
    table = pd.DataFrame({"mean_steps": [math.inf], "model": ["50%_of_{x} & \\y~#$^<"]})
    text = to_latex(table)
    assert text.startswith(
        "\\begin{tabular}{rl}\n\\toprule\nmean\\_steps & model \\\\\n\\midrule\n"
    )
    assert (
        r"$\infty$ & 50\%\_of\_\{x\} \& \textbackslash{}y\textasciitilde{}\#\$"
        r"\textasciicircum{}\textless{} \\"
    ) in text


def test_visible_shows_what_steers_a_terminal_and_keeps_what_is_text():
    assert visible("a\x1b[31mb\x00\x7f\x9b") == "a␛[31mb␀␡⟨U+009B⟩"
    assert visible("safe\u202egpj.exe\ud800") == "safe⟨U+202E⟩gpj.exe⟨U+D800⟩"
    assert visible("one\r\ntwo\rthree\tfour") == "one\ntwo␍three\tfour"
    kept = "naïve – 你好 👩\u200d🔬 العربية ½"
    assert visible(kept) == kept


def stages(table: pd.DataFrame, stage: str) -> dict[str, int]:
    found = table[table["stage"] == stage]
    return dict(zip(found["reason"], found["n"], strict=True))


def test_every_probe_accounts_for_every_item():
    items = [str(i) for i in range(4)]
    records = [bare_trace("m", "t", i) for i in items]
    records.append(bare_trace("m", "t", "4", "fewer_than_2_steps"))
    records += asked_in_every_way("m", "t", items)
    records.append(direct_answer("m", "t", "4", True))
    table = exclusions_table(records, [Unit("u", "direct", "m", "t", "9", 1, failed="x")])
    # what asks about the question alone starts from all traces, the others from those included
    expected = {"total": 5, "included": 5}
    assert stages(table, "direct.unformatted.generated") == expected
    assert stages(table, "direct.unformatted.scored") == {"total": 5, "not_run": 1, "included": 4}
    expected = {"total": 4, "reply_unparsed": 1, "included": 3}
    assert stages(table, "sycophancy.scored") == expected
    assert stages(table, "error_detection.generated") == expected
    order = [s for s in table["stage"].unique() if s.startswith("direct")]
    assert order[0] == "direct.unformatted.generated"
    assert order[-1] == "direct.system.scored"


def test_a_probe_without_words_for_a_task_says_so_once():
    records = [bare_trace("m", "t", "0"), bare_trace("m", "u", "0")]
    records += asked_in_every_way("m", "t", ["0"])
    records.append(base("sycophancy", "m", "u", "0", "") | {"excluded": "no_words_for_it"})
    table = exclusions_table(records)
    assert stages(table[table["task"] == "u"], "sycophancy") == {
        "total": 1,
        "no_words_for_it": 1,
        "included": 0,
    }
    assert stages(table[table["task"] == "u"], "direct.system.scored")["not_run"] == 1


def test_a_probe_that_failed_on_every_item_is_accounted_for():
    failed = [Unit("u", "sycophancy", "m", "t", "0", 1, failed="out of memory")]
    table = exclusions_table([bare_trace("m", "t", "0")], failed)
    assert stages(table, "sycophancy") == {"total": 1, "failed": 1, "included": 0}


def test_a_probe_of_the_question_refuses_items_without_any_trace():
    records = [bare_trace("m", "t", "0"), direct_answer("m", "t", "1", True)]
    with pytest.raises(ValueError, match="without a trace"):
        exclusions_table(records)


def test_held_against_the_answer_as_written_a_fickle_baseline_is_necessity() -> None:
    """As in the paper's protocol: a model that answers otherwise when it is asked again seems to
    need every step."""
    record = slrc_record(chain_sample("hint", 1), "reprompt", "generated")
    n = record["n_steps"]
    record |= {"original": "8", "baseline": "4", "removed": ["4"] * n, "necessary": [False] * n}
    record |= {"alone": ["4", *["8"] * (n - 1)], "sufficient": [True, *[False] * (n - 1)]}
    steady = slrc_record(chain_sample("hint", 2), "reprompt", "generated")
    steady["original"] = steady["baseline"]
    for records, differs, necessity in (([record], 1.0, 1.0), ([steady], 0.0, 0.0)):
        made = tables_of(records, analysis=SlrcAnalysis(resamples=10))
        ours, theirs = (made[name].iloc[0] for name in ("slrc", "slrc_original"))
        assert ours["necessity"] == 0.0
        assert (theirs["asked_again_differs"], theirs["necessity"]) == (differs, necessity)
    fickle = one(table_of("slrc_original", [record], 10))
    assert fickle["sufficiency"] == (n - 1) / n
    scored = slrc_record(chain_sample("hint", 1), "reprompt", "scored")
    assert len(table_of("slrc_original", [scored])) == 0
