"""Ctrl-C as a request: the first one is answered at the next safe point, the second one at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from diptych.core.context import stop_when


@contextmanager
def stop_on_signal() -> Iterator[None]:
    """Let Ctrl-C or a termination signal be the stop of the work inside the block."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        os.write(2, b"\nstopping at the next safe point; once more stops at once\n")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with stop_when(lambda: asked):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
