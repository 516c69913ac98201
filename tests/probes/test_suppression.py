"""The suppression matrix against one forward per step, and on models whose source is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from planted_traces import of_planted
from probe_records import table_of
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.experiments.studies.slrc.measures.suppression import REPORT
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model
from faithscope.probes.framing import prefix_ids
from faithscope.probes.knockout import cut_of
from faithscope.probes.suppression import (
    SuppressionSettings,
    attention_received,
    suppressed,
    suppression,
)

measured = of_planted(suppression, SuppressionSettings())


def mean(name: str) -> np.ndarray:
    return np.mean([r["arrays"]["matrix"] for r in measured(name)], axis=0)


def test_the_faithful_answer_needs_the_last_step_and_each_step_needs_the_one_before() -> None:
    faithful, hint = mean("faithful"), mean("hint")
    assert faithful[2, 3] > 1
    assert faithful[:2, 3].max() < 0.1
    assert hint[:, 3].max() < 0.05
    # both write the same words, and take each result up in the next step alone
    for matrix in (faithful, hint):
        assert matrix[0, 1] > 10 * matrix[0, 2]
        assert matrix[1, 2] > 0.1
        assert np.isnan(matrix[np.tril_indices(3)]).all()
    for r in measured("faithful"):
        matrix = r["arrays"]["matrix"]
        assert r["to_answer"] == pytest.approx(matrix[:, 3].tolist(), abs=1e-5)
        assert r["later"][0] == pytest.approx(np.mean(matrix[0, 1:3]), abs=1e-5)
        assert (r["later"][-1], r["received"][0]) == (None, None)
        assert r["by_distance"][0] == pytest.approx((matrix[0, 1] + matrix[1, 2]) / 2, abs=1e-5)
        best = max([(0, 1), (0, 2), (1, 2)], key=lambda edge: matrix[edge])
        assert (r["edge_from"][0] - 1, r["edge_to"][0] - 1) == best


@pytest.mark.parametrize("execution", ["packed", "dense", "loop"])
def test_every_entry_is_that_of_a_forward_of_its_own(
    llama: Model, monkeypatch: pytest.MonkeyPatch, execution: str
) -> None:
    trace = written(llama)
    # so few rows that steps are parted, too
    monkeypatch.setattr("faithscope.probes.suppression.ROWS", 7)
    matrix, cost = suppressed(llama, trace, asking(), execution)
    assert cost["execution"] == execution
    ids, start = prefix_ids(llama, asking(), trace), len(trace.prompt_ids)

    def log_p(*edits) -> torch.Tensor:
        everywhere = tuple(range(len(ids)))
        run = llama.run([Branch(ids, everywhere, edits)], execution="loop")
        return run.branches[0].logits.double().log_softmax(-1)

    whole = log_p()
    for i in range(4):
        cut = log_p(cut_of(trace, i, "later"))
        kl = (whole.exp() * (whole - cut)).sum(-1).numpy()
        for j, step in enumerate(trace.counted_steps):
            # where its tokens are predicted; by the step that is cut off itself nothing changes
            (a, b), after = step.tokens, trace.counted_steps[i].tokens[1]
            expected = kl[start + max(a - 1, after) : start + b - 1].mean() if j > i else np.nan
            assert matrix[i, j] == pytest.approx(expected, abs=2e-5, nan_ok=True)
        assert matrix[i, 4] == pytest.approx(kl[-1], abs=2e-5)


@pytest.mark.parametrize("apart", [1, 2])
def test_attention_received_is_the_mean_of_later_steps_rows(llama: Model, apart: int) -> None:
    trace = written(llama)
    ids, start = trace.prompt_ids + trace.reasoning_ids, len(trace.prompt_ids)
    every = tuple(range(len(ids)))
    (read,) = llama.run([Branch(ids, every)], rows=True).branches
    spans = [(start + a, start + b) for a, b in (s.tokens for s in trace.counted_steps)]
    received = attention_received(llama, trace, apart)
    for k, (x, y) in enumerate(spans):
        blocks = [
            np.mean([read.rows[t][..., x:y].mean(-1).numpy() for t in range(a, b)], axis=0)
            for q, (a, b) in enumerate(spans)
            if q - k >= apart
        ]
        if blocks:
            assert np.allclose(received[..., k], np.mean(blocks, axis=0), atol=1e-6)
        else:
            assert np.isnan(received[..., k]).all()


def test_a_model_whose_attention_cannot_be_cut_is_left_out() -> None:
    falcon = tiny("falcon")
    (r,) = suppression(falcon, written(falcon), asking(), SuppressionSettings())
    assert r["excluded"] == "no_attention_knockout"


def test_tables_are_means_over_items() -> None:
    records = measured("faithful")
    (row,) = table_of("suppression", records).to_dict("records")
    matrix = mean("faithful")
    assert row["to_answer"] == pytest.approx(matrix[:, 3].mean(), abs=1e-4)
    distance = table_of("suppression_by_distance", records)
    assert distance["distance"].tolist() == [1, 2]
    assert distance["kl"].tolist() == pytest.approx(
        [(matrix[0, 1] + matrix[1, 2]) / 2, matrix[0, 2]], abs=1e-4
    )
    stored = [((r["model"], r["task"], r["item"]), r["arrays"]) for r in records]
    cells = table_of("suppression_map", records, arrays=lambda probe: stored)
    assert len(cells) == 3 + 3
    answer = cells[cells["to_position"] == "answer"]
    assert answer["kl"].tolist() == pytest.approx(matrix[:, 3].tolist(), abs=1e-4)
    score = {m.name: m for m in REPORT.measures}["suppression_to_answer"]
    assert score.forwards(records[:1]) == 4
    assert score.steps is not None
    assert max(credit := score.steps(records[:1]), key=lambda s: credit[s]) == 2
