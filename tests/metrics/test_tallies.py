from __future__ import annotations

import numpy as np
import pytest

from diptych.metrics import GroundTruth
from diptych.metrics.tiles import Counter, count_columns, count_rows


@pytest.mark.parametrize(
    "shape", [(1, 8), (3, 16), (254, 8), (255, 8), (256, 2040), (511, 2048), (600, 4088)]
)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_counts_agree_with_numpy_and_no_byte_overflows(shape: tuple[int, int], share: float) -> None:
    mask = np.random.default_rng(0).random(shape) < share
    assert count_rows(mask).tolist() == mask.sum(axis=1).tolist()
    assert count_columns(mask).tolist() == mask.sum(axis=0).tolist()


def test_layers_hold_the_best_positives_first() -> None:
    truth = GroundTruth.from_pairs([0, 0, 2, 2, 2], [0, 1, 0, 1, 2], 4, 3)
    tally = Counter(truth.i2t, np.array([0.5, 0.7, 0.1, 0.9, 0.9]), every=True)
    assert tally.rows.tolist() == [1, 0, 2, 1, 0]  # tied: the later row first
    assert [layer.queries.tolist() for layer in tally.layers] == [[0, 2], [0, 2], [2]]
    assert [layer.entries.tolist() for layer in tally.layers] == [[0, 2], [1, 3], [4]]
    assert tally.layers[0].within(1, 4).queries.tolist() == [2]
    assert tally.layers[0].within(1, 4).entries.tolist() == [2]
    best = Counter(truth.i2t, np.array([0.5, 0.7, 0.1, 0.9, 0.9]), every=False)
    assert len(best.layers) == 1
