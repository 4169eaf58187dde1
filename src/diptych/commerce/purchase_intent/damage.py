"""Files of ours that somebody has changed: whatever goes wrong while one is read is said in one way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.core.errors import StorageError


@contextmanager
def damage_said(where: Path, fix: str) -> Iterator[None]:
    """Turn what reading a file with wrong keys, types or sizes raises into a StorageError that names it."""
    try:
        yield
    except KeyError as error:
        raise StorageError(f"{where} is damaged: no {error}", fix) from error
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError) as error:
        raise StorageError(f"{where} is damaged: {str(error)[:200]}", fix) from error
