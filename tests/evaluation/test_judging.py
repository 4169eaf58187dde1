"""A relevance model's rows and people's judgements of what was embedded."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import MismatchError
from diptych.data.judgements import Judged
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation.evaluate_encoder import evaluate_encoded, relevance_of
from diptych.evaluation.judgements import JUDGEMENTS_FILE, judge_encoded

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
    assert relevance_of(one, turned).name == "other other"  # of the same data, as far as it says
    again = relevance_of(one, turned)
    assert np.array_equal(again.texts, same.texts)
    assert np.array_equal(again.images, same.images)
    with pytest.raises(MismatchError, match=r"other other has no row for text '4' \(1 of 4 are missing\)"):
        relevance_of(one, replace(other, texts=replace(other.texts, ids=["1", "2", "3", "5"])))
    with pytest.raises(MismatchError, match="similarity 'order', which gives penalties"):
        relevance_of(one, encoded(3, similarity="order"))


def of_data(one: EncodedCollection, data: str, **encoder: object) -> EncodedCollection:
    return replace(one, about={**one.about, "data": data, "encoder": {"name": "other", **encoder}})


def test_rows_of_other_data_with_the_same_ids_are_refused() -> None:
    one, other = encoded(0), encoded(10, 3, "other")
    with pytest.raises(MismatchError, match="the same ids: of data e, and d is evaluated"):
        relevance_of(one, of_data(other, "e"))
    larger = replace(
        of_data(other, "e"),
        texts=replace(
            other.texts, ids=["1", "2", "3", "4", "5"], rows=np.vstack([other.texts.rows, unit(5, 1, 3)])
        ),
    )
    assert relevance_of(one, larger).name == "other other (rows of data e)"
    # Fingerprints of region features and of given rows are never those of pictures: it is said, not refused.
    regions, given = of_data(other, "e", image={"takes": "regions"}), of_data(other, "e", family="rows")
    for by in (regions, given):
        assert relevance_of(one, by).name == "other other (rows of data e)"
    assert relevance_of(given, of_data(other, "f", family="rows")).name == "other other (rows of data f)"
    with pytest.raises(MismatchError, match="of data f, and e is evaluated"):
        relevance_of(regions, of_data(other, "f", image={"takes": "regions"}))


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
    pairs = [(0, 2), (1, 1)]
    near = [
        max(0.0, float(one.images.rows[i].astype(float) @ one.texts.rows[t].astype(float))) for i, t in pairs
    ]
    worth = found.pairs[1].coefficients["pearson"].value
    assert worth == pytest.approx(np.corrcoef([1, near[0], 1, near[1]], [4, 2, 3, 1])[0, 1])
    written = json.loads((tmp_path / "e" / JUDGEMENTS_FILE).read_text())
    assert written == json.loads(json.dumps(asdict(found)))
    by_other = judge_encoded(one, result, JUDGED, relevance=other, samples=0)
    names = [agreement.what for agreement in by_other.pairs if agreement.over == "all pairs"]
    assert names[2:] == ["similarity by other other", "score of the evaluated model"]
    rows = [(0, 0), (0, 2), (1, 2), (1, 1)]
    similar = [float(other.images[i].astype(float) @ other.texts[t].astype(float)) for i, t in rows]
    value = by_other.pairs[2].coefficients["pearson"].value
    assert value == pytest.approx(np.corrcoef(similar, [4, 2, 3, 1])[0, 1])
    ordered = encoded(0, similarity="order")
    result = evaluate_encoded(ordered, None, ["R@1"], samples=0)
    found = judge_encoded(ordered, result, JUDGED, samples=0)  # penalties are scores and no gains
    assert {agreement.what for agreement in found.pairs} == {"label", "score of the evaluated model"}
