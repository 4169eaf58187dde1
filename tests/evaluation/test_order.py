from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, NumericalError, UnknownNameError, UsageError
from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth, similarity
from diptych.metrics.sources import OrderScores
from diptych.metrics.topk import best_of

MEASURES = ("R@1", "R@5", "MRR", "mAP@3", "rsum")


def slow_scores(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Minus the squared excess of every text over every image, one pair at a time."""
    return np.array(
        [
            [
                -sum(max(0.0, float(t) - float(i)) ** 2 for t, i in zip(text, image, strict=True))
                for text in texts
            ]
            for image in images
        ]
    )


def test_by_hand() -> None:
    image, texts = np.array([1, 2], dtype=np.float32), np.array([[1, 1], [2, 3], [0, 5]], dtype=np.float32)

    def scores(name: str) -> np.ndarray:
        return similarity(name).source(image[None], texts).pairs(np.zeros(3, int), np.arange(3))

    assert scores("order").tolist() == [0, -2, -9]
    assert not np.signbit(scores("order")[0])
    assert scores("dot")[1] == 8
    assert scores("cosine")[1] == pytest.approx(8 / 65**0.5)


@settings(max_examples=40)
@given(data=st.data())
def test_the_same_as_the_whole_matrix_whatever_the_block(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    images, texts = (random.integers(0, 3, (n, 3)).astype(np.float32) for n in (4, 5))
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((4, 5)) < 0.4), 4, 5)
    block = data.draw(st.sampled_from([1, 7, 2_500_000]))
    measures = data.draw(st.sampled_from([MEASURES, ("R@1", "MRR", "rsum")]))
    found = evaluate(images, texts, truth, measures, similarity="order", block=block, threads=1)
    given = evaluate(slow_scores(images, texts), None, truth, measures)
    assert found.protocol.similarity == "order"
    assert "similarity order" in found.protocol_line()
    assert "similarity given scores" in given.protocol_line()
    for way in ("i2t", "t2i"):
        for name, expected in given.per_query[way].items():
            assert found.per_query[way][name].tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_bad_input() -> None:
    random = np.random.default_rng(4)
    images, texts = (random.random((size, 7), dtype=np.float32) for size in (20, 40))
    truth, order = GroundTruth.from_caption_image(np.repeat(np.arange(20), 2), 20), {"similarity": "order"}
    unknown = "unknown similarity 'oder'.*did you mean 'order'"
    refused(UnknownNameError, unknown, evaluate, images, texts, truth, similarity="oder")
    refused(DataError, "width 7, text rows 3", evaluate, images, texts[:, :3], truth, **order)
    texts[9, 2] = np.nan
    names = [f"text {n}" for n in range(40)]
    nan = "text 'text 9' \\(row 9\\) is not finite"
    refused(NumericalError, nan, evaluate, images, texts, truth, text_ids=names, **order)
    refused(UsageError, "k is 0", best_of, OrderScores(images, images), "i2t", 0)
    refused(DataError, "a gallery of 0 rows", best_of, OrderScores(images, images[:0]), "i2t", 1)
