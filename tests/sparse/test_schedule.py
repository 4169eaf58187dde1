from __future__ import annotations

import pytest

from diptych.sparse.distillation import rate_share


def test_it_rises_and_falls_in_straight_lines() -> None:
    shares = [rate_share(step, 10, 3) for step in range(10)]
    assert shares == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7])


def test_without_warm_up_it_begins_at_the_top() -> None:
    assert [rate_share(step, 2, 0) for step in range(2)] == [1.0, 0.5]


def test_all_warm_up() -> None:
    assert [rate_share(step, 3, 3) for step in range(3)] == pytest.approx([1 / 4, 2 / 4, 3 / 4])
