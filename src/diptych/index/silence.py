"""Libraries that print: what they write to the terminal while they work goes nowhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def silenced() -> Iterator[None]:
    """Send standard output and error to nowhere, those of compiled code too.

    They belong to the process, so what other threads print meanwhile is lost as well.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        with open(os.devnull, "w") as sink, redirect_stdout(sink), redirect_stderr(sink):
            yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
