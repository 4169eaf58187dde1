"""Lanes: what waits is done together, and nothing is lost or mixed up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from itertools import chain

import pytest

from diptych.service.lanes import BusyError, Lane


class Slow:
    """Doubles numbers, a batch at a time, when it may; keeps the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = threading.Event()

    def __call__(self, jobs: Sequence[int]) -> list[object]:
        self.go.wait(10)
        self.batches.append(list(jobs))
        return [ValueError(f"{job} is odd") if job % 2 else 2 * job for job in jobs]


def test_what_waits_is_done_together_and_answers_find_their_askers() -> None:
    work = Slow()
    lane = Lane(work, batch=8)

    async def ask() -> list[object]:
        asked = [asyncio.create_task(lane.do(number)) for number in range(20)]
        await asyncio.sleep(0.05)
        work.go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(ask())
    lane.close()
    assert [one if isinstance(one, int) else str(one) for one in found] == [
        f"{number} is odd" if number % 2 else 2 * number for number in range(20)
    ]
    assert sorted(chain(*work.batches)) == list(range(20))
    assert max(map(len, work.batches)) == 8
    assert len(work.batches) <= 5


def test_a_full_queue_refuses_with_a_time_and_takes_again_later() -> None:
    work = Slow()
    lane = Lane(work, limit=3)

    async def ask() -> tuple[BusyError, object]:
        first = asyncio.create_task(lane.do(0))
        await asyncio.sleep(0.05)  # it is being done; the queue is empty
        waiting = [asyncio.create_task(lane.do(2)) for _ in range(3)]
        await asyncio.sleep(0.01)
        with pytest.raises(BusyError) as refused:
            await lane.do(4)
        work.go.set()
        await asyncio.gather(first, *waiting)
        return refused.value, await lane.do(6)

    error, later = asyncio.run(ask())
    lane.close()
    assert (later, error.seconds >= 1) == (12, True)
    assert "the queue holds 3" in error.message


def test_a_request_larger_than_the_queue_is_done_when_nothing_waits() -> None:
    lane = Lane(lambda jobs: list(jobs), limit=2)
    assert asyncio.run(lane.do("large", items=5)) == "large"
    lane.close()


def test_functions_are_called_between_batches_in_their_order() -> None:
    work, seen = Slow(), []
    lane = Lane(work)

    async def ask() -> list[object]:
        first = asyncio.create_task(lane.do(0))
        await asyncio.sleep(0.02)
        rest = [lane.do(2), lane.do(lambda: seen.append(len(work.batches)) or "called"), lane.do(4)]
        tasks = [asyncio.create_task(one) for one in rest]
        await asyncio.sleep(0.02)
        work.go.set()
        return [await first, *await asyncio.gather(*tasks)]

    assert asyncio.run(ask()) == [0, 4, "called", 8]
    assert seen == [2]
    lane.close()


def test_nobody_who_left_is_worked_for_and_closing_finishes_the_rest() -> None:
    work = Slow()
    lane = Lane(work)

    async def ask() -> int:
        first = asyncio.create_task(lane.do(0))
        await asyncio.sleep(0.02)
        left, stays = asyncio.create_task(lane.do(2)), asyncio.create_task(lane.do(4))
        await asyncio.sleep(0.01)
        left.cancel()
        await asyncio.sleep(0.01)
        work.go.set()
        await asyncio.to_thread(lane.close)
        assert await first == 0
        return int(await stays)

    assert asyncio.run(ask()) == 8
    assert 2 not in chain(*work.batches)
    with pytest.raises(BusyError):
        asyncio.run(lane.do(1))


def test_clients_that_come_again_are_waited_for() -> None:
    """Two groups of clients, which would take turns, are done together."""
    sizes: list[int] = []

    def process(jobs: Sequence[int]) -> Sequence[int]:
        sizes.append(len(jobs))
        time.sleep(0.01)
        return jobs

    lane = Lane(process, wait=0.5)

    async def client(start: float) -> None:
        await asyncio.sleep(start)
        for _ in range(10):
            await lane.do(1)

    async def ask() -> None:
        await asyncio.gather(*(client(0.015 * (place % 2)) for place in range(4)))

    asyncio.run(asyncio.wait_for(ask(), 60))
    lane.close()
    assert sum(sizes) == 40
    assert sizes.count(4) >= 5
