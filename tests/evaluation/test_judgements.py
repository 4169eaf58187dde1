from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_gains import slow_best, slow_discounted

from diptych.data.judgements import MatchedJudgements
from diptych.evaluation.judgements import Agreement, agreement_with_people, condensed_gain
from diptych.metrics import Bootstrap, GroundTruth
from diptych.metrics.sources import GivenScores

LOG3 = math.log2(3)


def test_a_condensed_list_by_hand() -> None:
    # Query 0: judged items in the model's order have 0, 3 and 1; query 1 has one; query 2 nothing but zeros;
    # query 3 two that tie, of which one is relevant; query 4 was not judged.
    queries = np.array([0, 0, 0, 1, 2, 2, 3, 3])
    scores = np.array([0.1, 0.9, 0.5, 0.3, 0.2, 0.1, 0.4, 0.4])
    gains = np.array([1.0, 0, 3, 2, 0, 0, 2, 0])
    values, left_out = condensed_gain(scores, queries, gains, 5)
    assert values[0] == pytest.approx((3 / LOG3 + 1 / 2) / (3 + 1 / LOG3))
    assert values[3] == pytest.approx((1 + 1 / LOG3) / 2)
    assert np.isnan(values[[1, 2, 4]]).all()
    assert left_out == {"fewer than 2 judged items": 1, "nothing relevant to people": 1}


@settings(max_examples=60)
@given(data=st.data())
def test_condensed_lists_agree_with_every_order(data: st.DataObject) -> None:
    m = data.draw(st.integers(2, 6))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores, gains = random.integers(0, 4, m) / 1.0, random.integers(0, 4, m) / 1.0
    found, _ = condensed_gain(scores, np.zeros(m, dtype=np.int64), gains, 1)
    best = slow_best((1, m), lambda _, row: float(gains[row]), m)[0]
    if best == 0:
        assert np.isnan(found[0])
        return
    slow = slow_discounted(scores[None], lambda _, row: float(gains[row]), m)[0]
    assert found[0] == pytest.approx(slow / best, abs=1e-12)


TRUTH = GroundTruth.from_caption_image(np.repeat(np.arange(30), 2), 30)


def planted() -> tuple[np.ndarray, MatchedJudgements, np.ndarray]:
    """Scores, judgements that follow a hidden relevance, and that relevance, of 30 images and 60 texts."""
    random = np.random.default_rng(2)
    relevance = random.random((30, 60))
    relevance[TRUTH.i2t.queries, TRUTH.i2t.rows] = 1.0
    images, texts = np.nonzero(random.random((30, 60)) < 0.3)
    ratings = np.round(1 + 3 * relevance[images, texts])  # from 1 to 4
    judged = MatchedJudgements("planted", images, texts, ratings, 1.0, 4.0, {})
    return relevance, judged, relevance[images, texts]


def tau(one: Agreement) -> float:
    value = one.coefficients["tau_b"].value
    assert value is not None
    return value


def test_what_was_planted_is_found() -> None:
    relevance, judged, gain = planted()
    random = np.random.default_rng(3)
    noise = random.random(len(gain))
    per_query = {"i2t": {"DCG_CM@10": random.random(30), "meanr": random.random(30)}}
    found = agreement_with_people(
        judged,
        GivenScores(relevance),
        TRUTH,
        {"label": TRUTH.i2t.holds(judged.images, judged.captions) * 1.0, "true": gain, "noise": noise},
        per_query,
        Bootstrap(40),
    )
    by_name = {(one.what, one.over): one for one in found.pairs}
    assert {over for _, over in by_name} == {"all pairs", "pairs that are no match"}
    assert ("label", "pairs that are no match") not in by_name  # it is constant there
    for over in ("all pairs", "pairs that are no match"):
        true, none = (by_name[name, over].coefficients["tau_b"] for name in ("true", "noise"))
        assert (true.value or 0) > 0.8
        assert -1 < (none.low or -1) < 0 < (none.high or 1) < (true.low or 0)
    assert tau(by_name["label", "all pairs"]) < tau(by_name["true", "all pairs"])
    assert [one.what for one in found.queries] == ["DCG_CM@10"]  # of ranks less is better: left out
    assert found.queries[0].n == 30
    assert "planted" in found.line
    assert "judged pairs of 30 images" in found.line


def test_a_measure_that_says_what_people_say_is_found() -> None:
    _, judged, _ = planted()
    random = np.random.default_rng(4)
    scores = random.random((30, 60))
    order = np.argsort(judged.images, kind="stable")
    human, _ = condensed_gain(
        scores[judged.images, judged.captions][order], judged.images[order], judged.ratings[order] - 1, 30
    )
    per_query = {"i2t": {"nDCG@10": human, "R@1": random.random(30), "R@5": np.full(30, np.nan)}}
    found = agreement_with_people(judged, GivenScores(scores), TRUTH, {}, per_query)
    by_name = {one.what: one for one in found.queries}
    assert tau(by_name["nDCG@10"]) == pytest.approx(1.0)
    assert abs(tau(by_name["R@1"])) < 0.4
    assert by_name["R@5"].n == 0  # nobody was asked
    assert by_name["R@5"].coefficients["pearson"].value is None
    assert set(found.left_out) == {"i2t", "t2i"}
