from __future__ import annotations

import numpy as np
import pytest

from diptych.core.errors import UsageError
from diptych.metrics import Bootstrap, GroundTruth
from diptych.metrics.bootstrap import FLOOR_MEDIAN, MEAN, MEDIAN, clusters, interval, resample


@pytest.mark.parametrize("aggregate", [MEAN, MEDIAN, FLOOR_MEDIAN], ids=lambda one: one.name)
def test_weights_are_the_same_as_repeating_the_clusters(aggregate: object) -> None:
    random = np.random.default_rng(0)
    cluster = random.integers(0, 6, 25)
    values = random.integers(1, 12, 25).astype(np.float64)
    weights = random.integers(0, 4, (40, 6)).astype(np.float64)
    found = aggregate.resampled(values, cluster, weights)  # type: ignore[attr-defined]
    for row, got in zip(weights, found, strict=True):
        repeated = np.repeat(values, row[cluster].astype(int))
        assert got == pytest.approx(aggregate.of(repeated))  # type: ignore[attr-defined]


@pytest.mark.parametrize("aggregate", [MEAN, MEDIAN, FLOOR_MEDIAN], ids=lambda one: one.name)
def test_a_resample_without_a_query_has_no_value(aggregate: object) -> None:
    found = aggregate.resampled(np.array([3.0]), np.array([1]), np.array([[2.0, 0.0], [1.0, 1.0]]))  # type: ignore[attr-defined]
    assert np.isnan(found[0])
    assert found[1] == 3.0
    assert interval(found, 0.9) == (3.0, 3.0)
    assert interval(found[:1], 0.9) is None


def test_a_text_without_an_image_is_its_own_cluster() -> None:
    of, size = clusters(GroundTruth.from_pairs([0, 1], [2, 0], 2, 4))
    assert size == 4
    assert of["i2t"].tolist() == [0, 1]
    assert of["t2i"].tolist() == [1, 2, 0, 3]


def intervals(truth: GroundTruth, values: np.ndarray, **options: float) -> tuple[float, float]:
    how = Bootstrap(**{"samples": 2000, **options})  # type: ignore[arg-type]
    key = ("t2i", "R@1")
    found = resample(how, 0, truth, {key: values}, {key: MEAN})  # type: ignore[dict-item]
    ends = interval(found[key], how.confidence)  # type: ignore[index]
    assert ends is not None
    return ends


def test_the_seed_decides_and_chunks_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = GroundTruth.from_caption_image(np.arange(50), 50)
    values = np.random.default_rng(0).random(50)
    whole = intervals(truth, values)
    assert intervals(truth, values) == whole
    assert intervals(truth, values, seed=2) != whole
    monkeypatch.setattr("diptych.metrics.bootstrap._CHUNK_NUMBERS", 350)
    assert intervals(truth, values) == pytest.approx(whole, rel=1e-12)


def test_numbers_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="samples are -1"):
        Bootstrap(samples=-1)
    with pytest.raises(UsageError, match=r"confidence is 95"):
        Bootstrap(confidence=95)
