"""A folder that one process at a time works in, going on where a killed one left it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.core.errors import StorageError


@contextmanager
def alone_in(folder: Path | str) -> Iterator[None]:
    """Make the folder if it is not there, and keep other processes out of it while the block runs.

    What killed processes left half-written in it (``.NAME.*.tmp``, at any depth) is removed first. The folder may be
    renamed meanwhile; nothing is written to it or beside it. Where the system has no locks nobody is kept out.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror or error}", "check the folder's permissions"
        ) from error
    try:
        handle = lock_folder(folder)
    except BlockingIOError:
        raise StorageError(f"another process is at work in {folder}", "wait until it has ended") from None
    try:
        for left in folder.rglob(".*.tmp"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
        yield
    finally:
        if handle is not None:
            os.close(handle)  # the system unlocks what is closed, and what a killed process held


def lock_folder(folder: Path) -> int | None:
    """Lock a folder until what is given is closed or the process ends, however; nothing is written for it.

    Returns:
        An open handle; None where the system, or the drive, has no such locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # some network drives lock no folders
        os.close(handle)
        return None
    return handle
