"""A folder that grows while one process works in it, and that is marked as of its kind from the beginning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.core.alone import alone_in
from diptych.core.files import check_replaceable


def check_free(folder: Path, marker: str) -> None:
    """See that a folder can be worked in, before anything costly is done for it."""
    for left in folder.glob(f".{marker}.*.tmp"):  # killed at the very beginning
        left.unlink(missing_ok=True)
    check_replaceable(folder, marker)


@contextmanager
def working_in(folder: Path, marker: str) -> Iterator[None]:
    """Keep a folder, which may be new, to this process while the block runs."""
    check_free(folder, marker)
    with alone_in(folder):
        yield
