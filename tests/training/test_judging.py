"""A relevance model's rows and people's judgements of what was embedded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import MismatchError
from diptych.data.judgements import Judged
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.encoded import EncodedCollection
from diptych.training.judging import JUDGEMENTS_FILE, judge_encoded
from diptych.training.testing import evaluate_encoded, relevance_of

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


def test_rows_are_matched_by_id() -> None:
    one, other = encoded(0), encoded(10, 3, "other")
    same = relevance_of(one, other)
    assert same.name == "other other"
    rows = np.vstack([unit(5, 1, 3), other.texts.rows[::-1]])
    turned = replace(other, texts=replace(other.texts, ids=["9", "4", "3", "2", "1"], rows=rows))
    again = relevance_of(one, turned)
    assert np.array_equal(again.texts, same.texts)
    assert np.array_equal(again.images, same.images)
    with pytest.raises(MismatchError, match=r"other other has no row for text '4' \(1 of 4 are missing\)"):
        relevance_of(one, replace(other, texts=replace(other.texts, ids=["1", "2", "3", "5"])))
    with pytest.raises(MismatchError, match="similarity 'order', which gives penalties"):
        relevance_of(one, encoded(3, similarity="order"))


def test_kinds_of_gain_and_the_file(tmp_path: Path) -> None:
    one, other = encoded(0), relevance_of(encoded(0), encoded(10, 3, "other"))
    result = evaluate_encoded(one, tmp_path / "e", ["R@1", "nDCG@10"], samples=0)
    found = judge_encoded(one, result, JUDGED, tmp_path / "e", samples=0)
    assert [agreement.what for agreement in found.pairs if agreement.over == "all pairs"] == [
        "label",
        "label or similarity (DCG_CM)",
        "similarity by the evaluated model",
    ]
    # Labelled are a and 1, b and its first caption (3): people liked these best.
    label = found.pairs[0].coefficients["pearson"].value
    assert label == pytest.approx(np.corrcoef([1, 0, 1, 0], [4, 2, 3, 1])[0, 1])
    written = json.loads((tmp_path / "e" / JUDGEMENTS_FILE).read_text())
    assert written == json.loads(json.dumps(found.to_dict()))
    by_other = judge_encoded(one, result, JUDGED, relevance=other, samples=0)
    names = [agreement.what for agreement in by_other.pairs if agreement.over == "all pairs"]
    assert names[2:] == ["similarity by other other", "score of the evaluated model"]
    rows = [(0, 0), (0, 2), (1, 2), (1, 1)]
    similar = [float(other.images[i].astype(float) @ other.texts[t].astype(float)) for i, t in rows]
    value = by_other.pairs[2].coefficients["pearson"].value
    assert value == pytest.approx(np.corrcoef(similar, [4, 2, 3, 1])[0, 1])


def test_penalties_are_scores_and_no_gains() -> None:
    one = encoded(0, similarity="order")
    result = evaluate_encoded(one, None, ["R@1"], samples=0)
    found = judge_encoded(one, result, JUDGED, samples=0)
    assert {agreement.what for agreement in found.pairs} == {"label", "score of the evaluated model"}
