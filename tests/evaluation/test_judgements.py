"""A relevance model's rows and people's judgements of what was embedded."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from slow_gains import slow_best, slow_discounted

from diptych.core.errors import MismatchError
from diptych.data.judgements import Judged, MatchedJudgements
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation.evaluate_encoder import evaluate_encoded, relevance_of
from diptych.evaluation.judgements import (
    JUDGEMENTS_FILE,
    Agreement,
    agreement_with_people,
    condensed_gain,
    judge_encoded,
)
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


def test_what_was_planted_is_found() -> None:
    """Judgements that follow a hidden relevance, of 30 images and 60 texts."""
    random, truth = np.random.default_rng(2), GroundTruth.from_caption_image(np.repeat(np.arange(30), 2), 30)
    relevance = random.random((30, 60))
    relevance[truth.i2t.queries, truth.i2t.rows] = 1.0
    images, texts = np.nonzero(random.random((30, 60)) < 0.3)
    gain = relevance[images, texts]
    judged = MatchedJudgements("planted", images, texts, np.round(1 + 3 * gain), 1.0, 4.0, {})
    random = np.random.default_rng(3)
    gains = {"label": truth.i2t.holds(images, texts) * 1.0, "true": gain, "noise": random.random(len(gain))}
    per_query = {"i2t": {"DCG_CM@10": random.random(30), "meanr": random.random(30)}}
    found = agreement_with_people(judged, GivenScores(relevance), truth, gains, per_query, Bootstrap(40))
    tau = {(one.what, one.over): one.coefficients["tau_b"] for one in found.pairs}
    both = ("all pairs", "pairs that are no match")
    assert {over for _, over in tau} == set(both)
    assert ("label", both[1]) not in tau  # it is constant there
    for over in both:
        true, none = tau["true", over], tau["noise", over]
        assert true.value > 0.8
        assert -1 < none.low < 0 < none.high < true.low
    assert tau["label", both[0]].value < tau["true", both[0]].value
    assert [(one.what, one.n) for one in found.queries] == [
        ("DCG_CM@10", 30)
    ]  # of ranks less is better: left out
    assert "planted" in found.line
    assert "judged pairs of 30 images" in found.line


HOME = np.array([0, 0, 1, 1])


def unit(seed: int, count: int, width: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def encoded(seed: int, width: int = 4, name: str = "one", similarity: str = "cosine") -> EncodedCollection:
    images = Embeddings(["a", "b"], unit(seed, 2, width), name, "d", "image", {}, similarity)
    texts = Embeddings(["1", "2", "3", "4"], unit(seed + 1, 4, width), name, "d", "text", {}, similarity)
    about = {"dataset": "mini", "split": "test", "data": "d", "encoder": {"name": name}}
    return EncodedCollection(images, texts, HOME, about)


JUDGED = Judged("people", [("a", "1"), ("a", "3"), ("b", "b#0"), ("b", "2")], [4.0, 2.0, 3.0, 1.0], 1, 4)


def of_data(one: EncodedCollection, data: str, **encoder: object) -> EncodedCollection:
    return replace(one, about={**one.about, "data": data, "encoder": {"name": "other", **encoder}})


def test_rows_are_matched_by_id_and_by_data() -> None:
    one, other = encoded(0), encoded(10, 3, "other")
    same = relevance_of(one, other)
    assert same.name == "other other"
    rows = np.vstack([unit(5, 1, 3), other.texts.rows[::-1]])
    turned = replace(other, texts=replace(other.texts, ids=["9", "4", "3", "2", "1"], rows=rows))
    again = relevance_of(one, turned)
    assert again.name == "other other"  # of the same data, as far as it says
    assert np.array_equal(again.texts, same.texts)
    assert np.array_equal(again.images, same.images)
    fewer = replace(other, texts=replace(other.texts, ids=["1", "2", "3", "5"]))
    larger = replace(of_data(turned, "e"), images=other.images)
    assert relevance_of(one, larger).name == "other other (rows of data e)"
    # Fingerprints of region features and of given rows are never those of images: it is noted, not refused.
    regions, rows_of = of_data(other, "e", image={"takes": "regions"}), of_data(other, "e", family="rows")
    for by in (regions, rows_of):
        assert relevance_of(one, by).name == "other other (rows of data e)"
    assert relevance_of(rows_of, of_data(other, "f", family="rows")).name == "other other (rows of data f)"
    for first, by, message in (
        (one, fewer, r"other other has no row for text '4' \(1 of 4 are missing\)"),
        (one, encoded(3, similarity="order"), "similarity 'order', which gives penalties"),
        (one, of_data(other, "e"), "the same ids: of data e, and d is evaluated"),
        (regions, of_data(other, "f", image={"takes": "regions"}), "of data f, and e is evaluated"),
    ):
        refused(MismatchError, message, relevance_of, first, by)


def test_kinds_of_gain_and_the_file(tmp_path: Path) -> None:
    one, other = encoded(0), relevance_of(encoded(0), encoded(10, 3, "other"))
    ratings, places = [4, 2, 3, 1], [(0, 0), (0, 2), (1, 2), (1, 1)]

    def check(found: Agreement, gains: list[float]) -> None:
        assert found.coefficients["pearson"].value == pytest.approx(np.corrcoef(gains, ratings)[0, 1])

    def cosines(images: np.ndarray, texts: np.ndarray) -> list[float]:
        return [float(images[i].astype(float) @ texts[t].astype(float)) for i, t in places]

    result = evaluate_encoded(one, tmp_path / "e", ["R@1", "nDCG@10"], samples=0)
    found = judge_encoded(one, result, JUDGED, tmp_path / "e", samples=0)
    names = ["label", "label or similarity (DCG_CM)", "similarity by the evaluated model"]
    assert [agreement.what for agreement in found.pairs if agreement.over == "all pairs"] == names
    check(found.pairs[0], [1, 0, 1, 0])  # a and 1, b and its first caption (3): best liked
    near = np.maximum(0, cosines(one.images.rows, one.texts.rows))
    check(found.pairs[1], [1, near[1], 1, near[3]])
    written = json.loads((tmp_path / "e" / JUDGEMENTS_FILE).read_text())
    assert written == json.loads(json.dumps(asdict(found)))
    by_other = judge_encoded(one, result, JUDGED, relevance=other, samples=0)
    names = [agreement.what for agreement in by_other.pairs if agreement.over == "all pairs"]
    assert names[2:] == ["similarity by other other", "score of the evaluated model"]
    check(by_other.pairs[2], cosines(other.images, other.texts))
    ordered = encoded(0, similarity="order")
    result = evaluate_encoded(ordered, None, ["R@1"], samples=0)
    found = judge_encoded(ordered, result, JUDGED, samples=0)  # penalties are scores and no gains
    assert {agreement.what for agreement in found.pairs} == {"label", "score of the evaluated model"}
