"""Doing many small things ahead of time, in threads, in order, with bounded memory.

Pillow and NumPy let go of the interpreter while they decode and resize, so threads are enough, and
what comes out does not depend on how many there are.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def default_workers() -> int:
    """Threads for reading: as many as the process may use processors, at most 16."""
    return max(1, min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4))


def read_ahead(
    function: Callable[[A], B], items: Iterable[A], workers: int | None = None, depth: int | None = None
) -> Iterator[B]:
    """``map(function, items)`` in order, with up to ``depth`` results being worked on ahead."""
    workers = default_workers() if workers is None else workers
    if workers == 0:
        yield from map(function, items)
        return
    depth = depth or 4 * workers
    pending: deque[Future[B]] = deque()
    source = iter(items)
    with ThreadPoolExecutor(workers, thread_name_prefix="read-ahead") as pool:
        try:
            for item in source:
                pending.append(pool.submit(function, item))
                if len(pending) >= depth:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def batched(items: Iterable[A], size: int) -> Iterator[list[A]]:
    """Lists of ``size`` items, the last one shorter."""
    batch: list[A] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
