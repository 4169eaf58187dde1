"""A folder that grows while one process works in it, and that is marked as of its kind from the beginning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.core.alone import alone_in
from diptych.core.files import check_replaceable

__all__ = ["check_free", "working_in"]


def check_free(folder: Path, marker: str) -> None:
    """See that a folder can be worked in, before anything costly is done for it.

    Raises:
        UsageError: it holds other things.
    """
    for left in folder.glob(f".{marker}.*.tmp"):  # killed at the very beginning
        left.unlink(missing_ok=True)
    check_replaceable(folder, marker)


@contextmanager
def working_in(folder: Path, marker: str) -> Iterator[None]:
    """Keep a folder, which may be new, to this process while the block runs.

    Args:
        folder: new, empty, or with ``marker`` in it.
        marker: the file that every folder of this kind holds; the block writes it first.

    Raises:
        UsageError: it holds other things.
        StorageError: another process works there just now; or it cannot be made.
    """
    check_free(folder, marker)
    with alone_in(folder):
        yield
