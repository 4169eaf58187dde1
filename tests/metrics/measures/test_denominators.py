"""mAP at a cut-off has four denominators in the field; each has a name of its own here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranking import ranks_from_scores

from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth, Measure, measure, tie_groups

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


def test_a_tie_across_the_cut_off_by_hand() -> None:
    # One right text first, then a tie of one right and two wrong, of which one place counts.
    truth = GroundTruth.from_pairs([0, 0], [0, 1], 1, 4)
    scores = np.array([[2.0, 1.0, 1.0, 1.0]])
    assert values(scores, truth, "mAP-hits@2") == pytest.approx([1.0])  # (1 + 1) / 2 or 1 / 1
    # The tie alone: the first place is right or not, then nothing else counts.
    assert values(scores[:, 1:], GroundTruth.from_pairs([0], [0], 1, 3), "mAP-hits@1") == pytest.approx(
        [1 / 3]
    )
    # Two of three right, two places: right first 1, or (1 + 1) / 2; wrong first 1/2.
    two = GroundTruth.from_pairs([0, 0], [0, 1], 1, 3)
    assert values(np.zeros((1, 3)), two, "mAP-hits@2") == pytest.approx([(1 + 1 + 1 / 2) / 3])


def test_large_tie_groups_stay_exact() -> None:
    # All 3,000 texts tie, 5 are right: the first hit alone decides with k = 1, and chance is 5 / 3000.
    truth = GroundTruth.from_pairs([0] * 5, range(5), 1, 3_000)
    assert values(np.zeros((1, 3_000)), truth, "mAP-hits@1") == pytest.approx([5 / 3_000], rel=1e-12)
    assert values(np.zeros((1, 3_000)), truth, "mAP-hits@3000") == pytest.approx(
        values(np.zeros((1, 3_000)), truth, "mAP"), rel=1e-9
    )


def test_the_two_ways_of_the_papers_lie_far_apart() -> None:
    """With five right texts of 1,000 for each of 200 images; see the published Table 1."""
    random = np.random.default_rng(0)
    images = random.normal(size=(200, 64))
    texts = np.repeat(images, 5, axis=0) + 3.5 * random.normal(size=(1_000, 64))
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(200), 5), 200)
    result = evaluate(images @ texts.T, None, truth, ("mAP@5", "mAP-hits@5", "mAP@R"))
    assert result.value("mAP-hits@5", "i2t") > 2 * result.value("mAP@5", "i2t")
    assert result.value("mAP@R", "i2t") == pytest.approx(result.value("mAP@5", "i2t"))  # R is 5 here
    assert "compat mAP-hits@5" in result.protocol_line()


def test_recall_by_hand() -> None:
    """As table 5.2 prints it: R@1 is a hit, R@5 and R@10 are shares of the five captions."""
    scores = np.arange(11, 0, -1.0)[None]
    truth = GroundTruth.from_pairs([0] * 5, [0, 2, 6, 9, 10], 1, 11)
    assert [values(scores, truth, f"R-cap@{k}")[0] for k in (1, 5, 10)] == pytest.approx([1, 2 / 5, 4 / 5])


def test_which_are_published_conventions() -> None:
    names = ["R@3", "R-cap@3", "mAP@3", "mAP-positives@3", "mAP-cutoff@3", "mAP-hits@3"]
    result = evaluate(np.eye(8), None, GroundTruth.from_caption_image(np.arange(8), 8), names)
    assert result.protocol.compat == ("R-cap@3", "mAP-cutoff@3", "mAP-hits@3")
    assert result.score("R-cap@3", "i2t").chance == pytest.approx(3 / 8)
