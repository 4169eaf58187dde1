from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking import ranks_from_scores
from refusals import refused
from slow_ranking import slow_values

from diptych.core.errors import UnknownNameError, UsageError
from diptych.metrics import TIE_RULES, GroundTruth, Measure, Sum, measure, tie_groups
from diptych.metrics.measuring import resolve

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
    scores: np.ndarray, truth: GroundTruth, name: str, rule: str, direction: str = "i2t"
) -> list[float]:
    one = plain(name)
    ranks = ranks_from_scores(scores, truth, every=one.positives == "all")
    return one.values(tie_groups(ranks[direction], rule)).tolist()  # type: ignore[index]


def test_three_by_four_by_hand() -> None:
    scores = np.array([[0.9, 0.1, 0.5, 0.4], [0.2, 0.8, 0.3, 0.1], [0.6, 0.7, 0.5, 0.4]])
    truth = GroundTruth.from_pairs([0, 0, 1, 2], [0, 1, 2, 3], 3, 4)
    # Ranks: image 0 has its texts at 1 and 4, image 1 at 2, image 2 at 4.
    expected = {
        "R@1": [1, 0, 0],
        "R@2": [1, 1, 0],
        "MRR": [1, 1 / 2, 1 / 4],
        "MRR@3": [1, 1 / 2, 0],
        "meanr": [1, 2, 4],
        "P@2": [1 / 2, 1 / 2, 0],
        "R-precision": [1 / 2, 0, 0],
        "mAP": [(1 + 2 / 4) / 2, 1 / 2, 1 / 4],
        "mAP@3": [1 / 2, 1 / 2, 0],
        "mAP@1": [1, 0, 0],
    }
    for name, by_hand in expected.items():
        assert values(scores, truth, name, "expected") == pytest.approx(by_hand), name
    assert plain("medr").aggregate.of(np.array([1.0, 2.0, 4.0])) == 2.0


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


@settings(max_examples=300)
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


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_chance_agrees_with_simulation(name: str) -> None:
    gallery, relevant = 30, np.array([1, 1, 2, 5, 0, 1, 3])
    random = np.random.default_rng(11)
    trials = 4_000
    hits = np.zeros((trials, len(relevant), gallery), dtype=bool)
    for query, count in enumerate(relevant):
        places = random.random((trials, gallery)).argpartition(count, axis=1)[:, :count]
        np.put_along_axis(hits[:, query], places, True, axis=1)
    kind, cutoff = PLAIN[name]
    first = np.where(hits.any(axis=2), hits.argmax(axis=2) + 1, gallery + 1)
    top = hits[:, :, :cutoff]
    within = top.any(axis=2)
    ranks = np.arange(1, top.shape[2] + 1)
    size = np.maximum(relevant, 1)
    precisions = top * top.cumsum(axis=2) / ranks
    sums = precisions.sum(axis=2)
    simulated = {
        "R": within,
        "MRR": within / first,
        "rank": first,
        "P": top.sum(axis=2) / (cutoff or 1),
        "R-precision": np.stack([hits[:, q, :c].sum(axis=1) for q, c in enumerate(relevant)], axis=1) / size,
        "R-cap": top.sum(axis=2) / np.minimum(size, cutoff or gallery),
        "mAP": sums / np.minimum(size, cutoff or gallery),
        "mAP@R": (precisions * (ranks <= size[:, None])).sum(axis=2) / size,
        "mAP-positives": sums / size,
        "mAP-cutoff": sums / (cutoff or 1),
        "mAP-hits": sums / np.maximum(top.sum(axis=2), 1),
    }[kind]
    chance = plain(name).chance(relevant, gallery)
    if name == "medr":  # the median over queries and orders
        assert np.mean(simulated < chance) <= 0.5 <= np.mean(simulated <= chance)
        return
    means = simulated.mean(axis=1)
    error = means.std() / trials**0.5
    assert abs(means.mean() - chance) <= 4 * error + 1e-12


def test_chance_is_what_a_collapsed_model_gets() -> None:
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(6), 5), 6)
    scores = np.zeros((6, 30))
    for direction in ("i2t", "t2i"):
        relevant, gallery = truth.positives(direction).counts, truth.positives(direction).gallery
        for name in sorted(set(PLAIN) - {"medr"}):
            got = float(np.mean(values(scores, truth, name, "expected", direction)))
            assert got == pytest.approx(plain(name).chance(relevant, gallery), rel=1e-12), name


def test_recall_at_chance_in_closed_form() -> None:
    assert plain("R@1").chance(np.full(5000, 5), 25_000) == pytest.approx(5 / 25_000)
    assert plain("R@10").chance(np.full(25_000, 1), 5_000) == pytest.approx(10 / 5_000)
    missed = (24_995 / 25_000) * (24_994 / 24_999)
    assert plain("R@2").chance(np.full(3, 5), 25_000) == pytest.approx(1 - missed)
    assert plain("R@50").chance(np.array([40]), 50) == 1.0
    assert plain("meanr").chance(np.array([1]), 1_000) == 500.5
    assert plain("medr").chance(np.array([1]), 1_000) == 500
    assert plain("medr").chance(np.array([0, 0, 1]), 1_000) == 1001


def test_many_positives_take_neither_memory_nor_precision() -> None:
    relevant = np.array([10_000, 1])
    assert plain("R@1").chance(relevant, 20_000) == pytest.approx((0.5 + 1 / 20_000) / 2)
    assert plain("mAP").chance(np.array([20_000]), 20_000) == pytest.approx(1.0)
    harmonic = np.sum(1 / np.arange(1, 20_001))
    assert plain("MRR").chance(np.array([1]), 20_000) == pytest.approx(harmonic / 20_000)


def test_what_cannot_be() -> None:
    refused(UsageError, "unknown measure 'Recall@5'.*did you mean 'R@5'", measure, "Recall@5")
    refused(UnknownNameError, "unknown measure 'rsums'.*did you mean 'rsum'", measure, "rsums")
    refused(UsageError, "'R@k' needs a cut-off", measure, "R@k")
    refused(UsageError, "cut-off of 'R@k' is 0", measure, "R@0")
    refused(UsageError, "'medr' takes no cut-off", plain("medr").at, 3)
    refused(UsageError, "no measure was asked for", resolve, [])
    refused(UsageError, "needs the ranks of all", plain("mAP@5").values, tie_groups(BEST, "expected"))
    refused(UnknownNameError, "unknown tie rule 'random'", tie_groups, BEST, "random")


def test_names() -> None:
    assert (plain("R@7").name, plain("R@7").cutoff) == ("R@7", 7)
    assert isinstance(measure("rsum"), Sum)


def test_sums_bring_their_parts_and_nothing_comes_twice() -> None:
    measures, sums = resolve(["R@5", "rsum", "R@5"])
    assert [one.name for one in measures] == ["R@5", "R@1", "R@10"]
    assert [one.name for one in sums] == ["rsum"]


def test_figures_are_printed_as_papers_do_and_small_ones_whole() -> None:
    recalls = [plain("R@1").show(value) for value in (0.5512, 0.0002, 0.0, 0.00999999)]
    assert recalls == ["55.1", "0.02", "0.0", "1.0"]
    assert plain("medr").show(2.0) == "2.0"
