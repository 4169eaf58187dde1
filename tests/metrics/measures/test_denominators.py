"""mAP at a cut-off has four denominators in the field; each has a name of its own here."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking import ranks_from_scores
from slow_ranking import orders

from diptych.evaluation import evaluate
from diptych.metrics import TIE_RULES, GroundTruth, Measure, measure, tie_groups

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "cti_metrics.json"

NAMES = {
    "P@1": "P@1",
    "P@5": "P@5",
    "P@10": "P@10",
    "R-precision": "R-precision",
    "AP@5_den_min(R,k)": "mAP@5",
    "AP@5_den_R": "mAP-positives@5",
    "AP@5_den_hits_in_k": "mAP-hits@5",
    "AP@5_den_k": "mAP-cutoff@5",
    "AP@10_den_min(R,k)": "mAP@10",
    "AP@10_den_R": "mAP-positives@10",
    "AP@10_den_hits_in_k": "mAP-hits@10",
    "AP@10_den_k": "mAP-cutoff@10",
}

# Ranks of the relevant ones among twelve; the same rankings as the golden file's.
RANKINGS = [[4, 8], [7, 12], [5, 6, 11], [], list(range(1, 13)), [12], [3, 5, 9]]


def values(scores: np.ndarray, truth: GroundTruth, name: str, rule: str = "expected") -> list[float]:
    one = measure(name)
    assert isinstance(one, Measure)
    return one.values(tie_groups(ranks_from_scores(scores, truth, every=True)["i2t"], rule)).tolist()


def of_ranks(rankings: list[list[int]], size: int) -> tuple[np.ndarray, GroundTruth]:
    """Queries whose gallery is in the order of the columns, and their positives."""
    scores = np.tile(np.arange(size, 0, -1.0), (len(rankings), 1))
    pairs = [(query, rank - 1) for query, ranks in enumerate(rankings) for rank in ranks]
    return scores, GroundTruth.from_pairs(*map(list, zip(*pairs, strict=True)), len(rankings), size)


def test_by_hand() -> None:
    scores, truth = of_ranks(RANKINGS, 12)
    third = (1 / 5 + 2 / 6 + 3 / 11) / 3  # all of the third query's precisions, at 5, 6 and 11
    assert values(scores, truth, "mAP")[2] == pytest.approx(third)
    sums = [1 / 4, 0, 1 / 5, 0, 5, 0, 1 / 3 + 2 / 5]  # of precisions up to rank 5
    positives, possible, hits = (2, 2, 3, 1, 12, 1, 3), (2, 2, 3, 1, 5, 1, 3), (1, 1, 1, 1, 5, 1, 2)
    for name, denominators in (
        ("mAP-positives@5", positives),
        ("mAP@5", possible),
        ("mAP-hits@5", hits),
        ("mAP-cutoff@5", [5] * 7),
    ):
        assert values(scores, truth, name) == pytest.approx(np.divide(sums, denominators).tolist()), name
    assert values(scores, truth, "P@5") == pytest.approx([0.2, 0, 0.2, 0, 1, 0, 0.4])
    assert values(scores, truth, "R-precision") == pytest.approx([0, 0, 0, 0, 1, 0, 1 / 3])


@pytest.mark.skipif(not GOLDEN.is_file(), reason="no golden file beside the project")
def test_agrees_with_the_golden_file() -> None:
    golden: dict[str, Any] = json.loads(GOLDEN.read_text())
    hits = np.array(golden["rel"])
    assert [(np.flatnonzero(row) + 1).tolist() for row in hits] == RANKINGS
    scores = np.tile(np.arange(hits.shape[1], 0, -1.0), (len(hits), 1))
    truth = GroundTruth.from_pairs(*np.nonzero(hits), *hits.shape)
    assert set(golden["per_query"]) == set(NAMES)
    for theirs, ours in NAMES.items():
        assert values(scores, truth, ours) == pytest.approx(golden["per_query"][theirs], abs=1e-12), ours
        mean = evaluate(scores, None, truth, [ours]).value(ours, "i2t")
        assert mean == pytest.approx(golden["mean"][theirs], abs=1e-12), ours


@settings(max_examples=120)
@given(data=st.data())
def test_agrees_with_every_order_written_out(data: st.DataObject) -> None:
    m, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 8))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = random.integers(0, data.draw(st.integers(1, 5)), (3, m)).astype(np.float64)
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((3, m)) < 0.5), 3, m)
    rule = data.draw(st.sampled_from(TIE_RULES))
    sums = []
    for query in range(3):
        mine = set(truth.i2t.of(query).tolist())
        ways = [_precisions(order, mine, k) for order in orders(scores[query].tolist(), mine, rule)]
        sums.append(sum(ways, Fraction(0)) / len(ways))
    relevant = [max(1, int(count)) for count in truth.i2t.counts]
    for name, denominators in (("mAP-positives", relevant), ("mAP-cutoff", [k] * 3)):
        expected = [float(total / below) for total, below in zip(sums, denominators, strict=True)]
        assert values(scores, truth, f"{name}@{k}", rule) == pytest.approx(expected, abs=1e-12)


def _precisions(order: list[int], positives: set[int], k: int) -> Fraction:
    hits, total = 0, Fraction(0)
    for place, row in enumerate(order[:k], start=1):
        if row in positives:
            hits += 1
            total += Fraction(hits, place)
    return total


def test_agrees_with_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    random = np.random.default_rng(3)
    scores = random.permutation(20 * 50).reshape(20, 50).astype(np.float64)
    relevant = random.random((20, 50)) < 0.2
    truth = GroundTruth.from_pairs(*np.nonzero(relevant), 20, 50)
    qrels = [ir_measures.Qrel(f"q{q}", f"d{d}", int(relevant[q, d])) for q in range(20) for d in range(50)]
    run = [ir_measures.ScoredDoc(f"q{q}", f"d{d}", scores[q, d]) for q in range(20) for d in range(50)]
    for ours, theirs in {
        "P@1": ir_measures.P @ 1,
        "P@10": ir_measures.P @ 10,
        "R-precision": ir_measures.Rprec,
        "mAP-positives@5": ir_measures.AP @ 5,
        "mAP-positives@10": ir_measures.AP @ 10,
    }.items():
        found = {one.query_id: one.value for one in ir_measures.iter_calc([theirs], qrels, run)}
        assert values(scores, truth, ours) == pytest.approx([found[f"q{q}"] for q in range(20)]), ours


def test_chance_is_the_mean_over_orders_and_only_one_is_a_published_convention() -> None:
    truth = GroundTruth.from_pairs([0, 0, 0], [0, 1, 2], 1, 30)
    result = evaluate(np.zeros((1, 30)), None, truth, ["mAP-positives@2", "mAP-cutoff@2"])
    random = np.random.default_rng(0)
    mean = np.mean([float(_precisions(random.permutation(30).tolist(), {0, 1, 2}, 2)) for _ in range(8_000)])
    for name, below in (("mAP-positives@2", 3), ("mAP-cutoff@2", 2)):
        score = result.score(name, "i2t")
        assert score.value == pytest.approx(score.chance)
        assert score.chance == pytest.approx(mean / below, abs=0.004)
    assert result.protocol.compat == ("mAP-cutoff@2",)
