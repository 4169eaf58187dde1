from __future__ import annotations

import threading

import pytest

from diptych.data.loading import batched, read_ahead


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_results_come_in_order(workers: int) -> None:
    assert list(read_ahead(lambda x: x * x, range(50), workers)) == [x * x for x in range(50)]


def test_no_more_than_depth_items_are_taken_ahead() -> None:
    taken = 0
    lock = threading.Lock()

    def items():  # type: ignore[no-untyped-def]
        nonlocal taken
        for item in range(100):
            with lock:
                taken += 1
            yield item

    results = read_ahead(lambda x: x, items(), workers=2, depth=5)
    next(results)
    assert taken == 5
    results.close()  # type: ignore[attr-defined]


def test_an_error_comes_at_its_turn() -> None:
    results = read_ahead(lambda x: 1 // (3 - x), range(10), workers=3)
    assert [next(results) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_batched() -> None:
    assert list(batched(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batched([], 2)) == []
