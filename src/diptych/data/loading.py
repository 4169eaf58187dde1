"""Do many small things ahead of time, in threads, in order, with bounded memory.

Pillow and NumPy let go of the interpreter while they decode and resize, so threads are enough, and
what comes out does not depend on how many there are. What all threads together hold of decoded images is
bounded: who decodes one calls :func:`reserve`, and waits while others hold too many.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from diptych.core.context import track
from diptych.core.processes import available_cores

if TYPE_CHECKING:
    from diptych.data.collection import Collection

A = TypeVar("A")
B = TypeVar("B")

# What all threads together may decode at once (512 MiB); a larger image is decoded by itself.
MAX_DECODED_BYTES = 1 << 29

_THREADS = "read-ahead"

_changed = threading.Condition()
_reserved = 0


class _Task(threading.local):
    """The bytes that this thread's work has reserved, and whether they are kept until the work is done."""

    kept = False
    held = 0


_task = _Task()


@contextmanager
def reserve(n_bytes: int) -> Iterator[None]:
    """Wait until ``n_bytes`` more may be decoded, and count them while the block runs.

    In a function that :func:`read_ahead` runs they count until it returns. Who holds some never waits for
    more, so that no two wait for each other.
    """
    global _reserved
    share = min(n_bytes, MAX_DECODED_BYTES)
    with _changed:
        if not _task.held:
            _changed.wait_for(lambda: _reserved + share <= MAX_DECODED_BYTES)
        _reserved += share
    _task.held += share
    try:
        yield
    finally:
        if not _task.kept:
            _give_back(share)


def _give_back(n_bytes: int) -> None:
    global _reserved
    _task.held -= n_bytes
    with _changed:
        _reserved -= n_bytes
        _changed.notify_all()


def default_workers() -> int:
    return min(16, available_cores())


class _Results:
    """The number of results that were taken, and the bytes of those that wait to be taken."""

    def __init__(self) -> None:
        self.taken = self.waiting_bytes = 0

    def work(self, number: int, function: Callable[[A], B], item: A) -> B:
        """Run ``function`` unless too much waits to be taken already; the next to be taken never waits."""
        with _changed:
            _changed.wait_for(lambda: self.waiting_bytes < MAX_DECODED_BYTES or number <= self.taken)
        _task.kept = True
        try:
            result = function(item)
            with _changed:
                self.waiting_bytes += _size(result)
            return result
        finally:
            _task.kept = False
            _give_back(_task.held)

    def take(self, future: Future[B]) -> B:
        result = future.result()
        self.skip(_size(result))
        return result

    def skip(self, n_bytes: int = 0, count: int = 1) -> None:
        with _changed:
            self.taken += count
            self.waiting_bytes -= n_bytes
            _changed.notify_all()


def _size(result: Any) -> int:
    if isinstance(result, tuple | list):
        return sum(map(_size, result))
    if hasattr(result, "nbytes"):
        return int(result.nbytes)
    picture = getattr(result, "picture", result)
    return 4 * picture.width * picture.height if hasattr(picture, "getbands") else 0


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
    results = _Results()
    pool = ThreadPoolExecutor(workers, thread_name_prefix=_THREADS)
    try:
        for number, item in enumerate(items):
            pending.append(pool.submit(results.work, number, function, item))
            if len(pending) >= depth:
                yield results.take(pending.popleft())
        while pending:
            yield results.take(pending.popleft())
    finally:
        for future in pending:
            future.cancel()
        results.skip(count=len(pending) + 1)  # those that wait need wait no longer
        # Where not all results were taken, the garbage collector may end this in a thread of the pool itself.
        pool.shutdown(wait=not threading.current_thread().name.startswith(_THREADS))


def batched(items: Iterable[A], size: int) -> Iterator[list[A]]:
    """Lists of ``size`` items, the last one shorter."""
    rest = iter(items)
    return iter(lambda: list(islice(rest, size)), [])


NO_PICTURE = "no picture"


def each_picture_content(collection: Collection) -> Iterator[str]:
    """Yield one fingerprint per image, of its file's bytes, when it is needed; reads every file once, in parallel.

    Of an item without an image it is :data:`NO_PICTURE`.
    """
    source = collection.source
    found = read_ahead(
        lambda row: source.content(int(row)) if row >= 0 else NO_PICTURE, collection.source_rows
    )
    yield from track(found, "reading images", collection.n_images, "images")


def picture_contents(collection: Collection) -> list[str]:
    return list(each_picture_content(collection))
