from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest

from diptych.data import loading
from diptych.data.loading import read_ahead, reserve


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


def test_results_that_nobody_takes_hold_the_next_ones_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MAX_DECODED_BYTES", 1_000)
    begun: list[int] = []

    def large(row: int) -> np.ndarray:
        begun.append(row)
        return np.zeros(600, dtype=np.uint8)

    results = read_ahead(large, range(40), workers=4, depth=30)
    assert [next(results).nbytes for _ in range(3)] == [600] * 3
    time.sleep(0.05)
    assert len(begun) < 12  # two that wait to be taken, and one per thread
    assert len(list(results)) == 37
    assert sorted(begun) == list(range(40))
    left = read_ahead(large, range(40), workers=4, depth=30)
    next(left)
    left.close()  # type: ignore[attr-defined]


def test_what_holds_some_never_waits_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MAX_DECODED_BYTES", 1_000)

    def both(row: int) -> int:
        with reserve(600), reserve(600):
            return row

    assert list(read_ahead(both, range(20), workers=4)) == list(range(20))


def test_what_nobody_takes_may_be_ended_by_a_thread_of_its_own() -> None:
    taken = threading.Event()
    ended: Future[None] = Future()

    def work(row: int) -> None:
        if row == 1:
            taken.wait(5)
            try:
                ended.set_result(results.close())  # type: ignore[attr-defined]
            except RuntimeError as error:
                ended.set_exception(error)

    results = read_ahead(work, range(2), workers=1)
    next(results)
    taken.set()
    ended.result(10)
