"""Ground truth and measures: by hand, against every order written out, the published code and other libraries."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking import ranks_from_scores
from refusals import refused
from slow_ranking import slow_values

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.evaluation import evaluate
from diptych.metrics import TIE_RULES, GroundTruth, Measure, Sum, measure, tie_groups
from diptych.metrics.measuring import resolve


def test_relevant_pairs_by_hand() -> None:
    truth = GroundTruth.from_caption_image([0, 0, 2, 0, 2], 4)
    assert [truth.i2t.of(image).tolist() for image in range(4)] == [[0, 1, 3], [], [2, 4], []]
    assert [truth.t2i.of(text).tolist() for text in range(5)] == [[0], [0], [2], [0], [2]]
    assert (truth.i2t.gallery, truth.t2i.gallery) == (5, 4)
    assert truth.text_image.tolist() == [0, 0, 2, 0, 2]
    assert truth.without_positive == {"i2t": 2, "t2i": 0}
    truth = GroundTruth.from_pairs([1, 0, 1, 1], [0, 2, 2, 0], 2, 4)
    assert [truth.i2t.of(image).tolist() for image in range(2)] == [[2], [0, 2]]
    assert [truth.t2i.of(text).tolist() for text in range(4)] == [[1], [], [0, 1], []]
    assert truth.text_image.tolist() == [1, -1, 0, -1]
    assert truth.without_positive == {"i2t": 0, "t2i": 2}
    truth = GroundTruth.from_pairs([0, 1, 1, 2], [0, 1, 2, 2], 3, 3, text_image=[0, 1, 1])
    part = truth.subset(np.array([2, 1]), np.array([1, 2]))
    assert [part.i2t.of(image).tolist() for image in range(2)] == [[1], [0, 1]]
    assert part.text_image.tolist() == [1, 1]
    assert truth.subset(np.array([2]), np.array([1, 2])).text_image.tolist() == [-1, -1]


def test_what_is_no_ground_truth_and_no_change_to_one() -> None:
    caption_image = np.array([0, 1])
    truth = GroundTruth.from_caption_image(caption_image, 2)
    caption_image[0] = 1
    assert truth.t2i.of(0).tolist() == [0]
    with pytest.raises(ValueError, match="read-only"):
        truth.i2t.rows[0] = 1
    for images, texts, message in (
        ([0, 2], [0, 1], r"image row 2 \(entry 1\) is not in \[0, 2\)"),
        ([0, -1], [0, 1], r"image row -1 \(entry 1\)"),
        ([0, 1], [0, 3], r"text row 3 \(entry 1\) is not in \[0, 3\)"),
        ([0], [0, 1], "1 images and 2 texts are not pairs"),
        ([0.5], [0], "must be a list of whole numbers, got an array of float64"),
        ([[0]], [0], "must be a list of whole numbers"),
    ):
        refused(DataError, message, GroundTruth.from_pairs, images, texts, 2, 3)
    pairs = GroundTruth.from_pairs
    refused(DataError, "1 entries for 2 texts", pairs, [0], [0], 1, 2, text_image=[0])
    refused(DataError, r"text_image row 1 \(entry 0\)", pairs, [0], [0], 1, 1, text_image=[1])
    way = GroundTruth.from_caption_image([0], 1).positives
    refused(UnknownNameError, "unknown direction 'i2i'", way, "i2i")


BEST = ranks_from_scores(np.ones((2, 2)), GroundTruth.from_caption_image([0, 1], 2))["i2t"]

# What the slow implementation calls them.
CUT = ("R@1", "R@3", "R@100", "MRR@2", "mAP@1", "mAP@4", "P@1", "P@3", "P@100", "R-cap@3", "R-cap@100")
CUT += ("mAP-positives@3", "mAP-cutoff@3", "mAP-hits@1", "mAP-hits@3", "mAP-hits@100")
WHOLE = {
    "meanr": "rank",
    "medr": "rank",
    "MRR": "MRR",
    "mAP": "mAP",
    "R-precision": "R-precision",
    "mAP@R": "mAP@R",
}
PLAIN: dict[str, tuple[str, int | None]] = {name: (kind, None) for name, kind in WHOLE.items()}
PLAIN |= {name: (name.partition("@")[0], int(name.partition("@")[2])) for name in CUT}


def plain(name: str) -> Measure:
    found = measure(name)
    assert isinstance(found, Measure)
    return found


def values(
    scores: np.ndarray, truth: GroundTruth, name: str, rule: str = "expected", direction: str = "i2t"
) -> list[float]:
    one = plain(name)
    ranks = ranks_from_scores(scores, truth, every=one.positives == "all")
    return one.values(tie_groups(ranks[direction], rule)).tolist()  # type: ignore[index]


def test_four_by_eight_with_ties_by_hand() -> None:
    scores = np.zeros((4, 8))
    scores[0, :4] = 1  # image 0: texts 0 and 1 are right, 2 and 3 tie with them
    scores[1] = 5  # image 1: texts 2 and 3 are right, everything ties
    scores[2, 4:6] = [3, 2]  # image 2: both right ones are first, alone
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(4), 2), 4)
    # Image 3: texts 6 and 7 are right, everything is 0 and ties.
    by_hand = {
        # One of 4 places, 2 of them right; one of 8 places, 2 of them right.
        ("R@1", "expected"): [2 / 4, 2 / 8, 1, 2 / 8],
        ("R@1", "optimistic"): [1, 1, 1, 1],
        ("R@1", "pessimistic"): [0, 0, 1, 0],
        ("R@1", "compat"): [0, 0, 1, 1],  # later texts first: image 3's are the last of all
        # The first of 2 among n tied is expected at (n + 1) / 3.
        ("meanr", "expected"): [5 / 3, 3, 1, 3],
        ("meanr", "optimistic"): [1, 1, 1, 1],
        ("meanr", "pessimistic"): [3, 7, 1, 7],
        ("meanr", "compat"): [3, 5, 1, 1],
        ("P@2", "expected"): [2 / 4, 2 / 8, 1, 2 / 8],
        ("mAP", "pessimistic"): [(1 / 3 + 2 / 4) / 2, (1 / 7 + 2 / 8) / 2, 1, (1 / 7 + 2 / 8) / 2],
    }
    for (name, rule), expected in by_hand.items():
        assert values(scores, truth, name, rule) == pytest.approx(expected), (name, rule)


@settings(max_examples=200)
@given(data=st.data())
def test_agrees_with_every_order_written_out(data: st.DataObject) -> None:
    n, m = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = random.integers(0, data.draw(st.integers(1, 6)), (n, m)).astype(np.float64)
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((n, m)) < 0.4), n, m)
    rule, name = data.draw(st.sampled_from(TIE_RULES)), data.draw(st.sampled_from(sorted(PLAIN)))
    direction = data.draw(st.sampled_from(["i2t", "t2i"]))
    positives = truth.positives(direction)
    slow = slow_values(
        scores if direction == "i2t" else scores.T,
        [set(positives.of(query).tolist()) for query in range(positives.n_queries)],
        *PLAIN[name],
        rule,
    )
    assert values(scores, truth, name, rule, direction) == pytest.approx(slow, abs=1e-12)


def test_the_published_median_is_rounded_down() -> None:
    assert plain("medr").aggregate.of(np.array([1.0, 4.0])) == 2.5
    floor = plain("medr-floor")
    assert floor.aggregate.of(np.array([1.0, 4.0])) == 2.0  # floor(median of 0 and 3) + 1
    assert floor.compat
    assert not plain("medr").compat


def test_chance_is_what_a_collapsed_model_gets() -> None:
    uneven = [(0, 0), (1, 3), (2, 5), (2, 6), (3, 1), (3, 2), (3, 4), (3, 7), (3, 8), (5, 9), (6, 0), (6, 1)]
    several = GroundTruth.from_pairs(*map(list, zip(*uneven, strict=True)), 7, 30)
    for truth in (GroundTruth.from_caption_image(np.repeat(np.arange(6), 5), 6), several):
        scores = np.zeros((truth.n_images, truth.n_texts))
        for direction in ("i2t", "t2i"):
            relevant, gallery = truth.positives(direction).counts, truth.positives(direction).gallery
            for name in sorted(set(PLAIN) - {"medr"}):
                got = float(np.mean(values(scores, truth, name, "expected", direction)))
                assert got == pytest.approx(plain(name).chance(relevant, gallery), rel=1e-12), name


def test_chance_in_closed_form() -> None:
    assert plain("R@1").chance(np.full(5000, 5), 25_000) == pytest.approx(5 / 25_000)
    assert plain("R@10").chance(np.full(25_000, 1), 5_000) == pytest.approx(10 / 5_000)
    missed = (24_995 / 25_000) * (24_994 / 24_999)
    assert plain("R@2").chance(np.full(3, 5), 25_000) == pytest.approx(1 - missed)
    assert plain("R@50").chance(np.array([40]), 50) == 1.0
    assert plain("meanr").chance(np.array([1]), 1_000) == 500.5
    assert plain("medr").chance(np.array([1]), 1_000) == 500
    assert plain("medr").chance(np.array([0, 0, 1]), 1_000) == 1001
    relevant = [1, 1, 2, 5, 0, 1, 3]  # half of all first hits of all queries lie up to the median
    missed = [[math.comb(30 - rank, n) / math.comb(30, n) for n in relevant] for rank in range(31)]
    median = next(rank for rank, each in enumerate(missed) if np.mean(each) <= 0.5)
    assert plain("medr").chance(np.array(relevant), 30) == median
    assert plain("R@1").chance(np.array([10_000, 1]), 20_000) == pytest.approx((0.5 + 1 / 20_000) / 2)
    assert plain("mAP").chance(np.array([20_000]), 20_000) == pytest.approx(1.0)
    harmonic = np.sum(1 / np.arange(1, 20_001))
    assert plain("MRR").chance(np.array([1]), 20_000) == pytest.approx(harmonic / 20_000)


def test_names_sums_and_figures() -> None:
    refused(UsageError, "unknown measure 'Recall@5'.*did you mean 'R@5'", measure, "Recall@5")
    refused(UnknownNameError, "unknown measure 'rsums'.*did you mean 'rsum'", measure, "rsums")
    refused(UsageError, "'R@k' needs a cut-off", measure, "R@k")
    refused(UsageError, "cut-off of 'R@k' is 0", measure, "R@0")
    refused(UsageError, "'medr' takes no cut-off", plain("medr").at, 3)
    refused(UsageError, "no measure was requested", resolve, [])
    refused(UsageError, "needs the ranks of all", plain("mAP@5").values, tie_groups(BEST, "expected"))
    refused(UnknownNameError, "unknown tie rule 'random'", tie_groups, BEST, "random")
    assert isinstance(measure("rsum"), Sum)
    measures, sums = resolve(["R@5", "rsum", "R@5"])
    assert [one.name for one in measures] == ["R@5", "R@1", "R@10"]
    assert [one.name for one in sums] == ["rsum"]
    recalls = [plain("R@1").show(value) for value in (0.5512, 0.0002, 0.0, 0.00999999)]
    assert recalls == ["55.1", "0.02", "0.0", "1.0"]
    assert plain("medr").show(2.0) == "2.0"
    names = ["R@3", "R-cap@3", "mAP@3", "mAP-positives@3", "mAP-cutoff@3", "mAP-hits@3"]
    result = evaluate(np.eye(8), None, GroundTruth.from_caption_image(np.arange(8), 8), names)
    assert result.protocol.compat == ("R-cap@3", "mAP-cutoff@3", "mAP-hits@3")
    assert result.score("R-cap@3", "i2t").chance == pytest.approx(3 / 8)


# mAP at a cut-off has four denominators in the field; each has a name of its own here.
GOLDEN = Path(__file__).parents[3] / "shared" / "golden" / "cti_metrics.json"
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


def of_ranks(rankings: list[list[int]], size: int) -> tuple[np.ndarray, GroundTruth]:
    """Queries whose gallery is in the order of the columns, and their positives."""
    scores = np.tile(np.arange(size, 0, -1.0), (len(rankings), 1))
    pairs = [(query, rank - 1) for query, ranks in enumerate(rankings) for rank in ranks]
    return scores, GroundTruth.from_pairs(*map(list, zip(*pairs, strict=True)), len(rankings), size)


def test_precision_at_a_cut_off_by_hand() -> None:
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
    # All 3,000 texts tie, 5 are right: the first hit decides with k = 1, and chance is 5 / 3000.
    truth, ties = GroundTruth.from_pairs([0] * 5, range(5), 1, 3_000), np.zeros((1, 3_000))
    assert values(ties, truth, "mAP-hits@1") == pytest.approx([5 / 3_000], rel=1e-12)
    assert values(ties, truth, "mAP-hits@3000") == pytest.approx(values(ties, truth, "mAP"), rel=1e-9)
    # As table 5.2 prints it: R@1 is a hit, R@5 and R@10 are shares of the five captions.
    scores = np.arange(11, 0, -1.0)[None]
    truth = GroundTruth.from_pairs([0] * 5, [0, 2, 6, 9, 10], 1, 11)
    assert [values(scores, truth, f"R-cap@{k}")[0] for k in (1, 5, 10)] == pytest.approx([1, 2 / 5, 4 / 5])


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
