"""One lock: a folder belongs to one process at a time, and the system releases it when that process ends."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from diptych.core.errors import StorageError
from diptych.core.files import remove_leftovers, storage_error

logger: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")


def try_lock(path: Path) -> int | None:
    """Lock a file or folder with ``flock`` until the handle is closed or the process ends.

    Returns:
        An open handle; None where the system or the drive has no such locks.

    Raises:
        BlockingIOError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # some network drives lock nothing
        os.close(handle)
        return None
    return handle


@contextmanager
def exclusive_folder(folder: Path | str) -> Iterator[Path]:
    """Create the folder if needed and keep other processes out of it while the block runs.

    What killed processes left half-written in it is removed first. Nothing is written for the lock, so
    nothing can outlive its owner: not a kill, a restart of the machine or a copy of the folder.

    Raises:
        StorageError: another process works in it, or it cannot be created.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(folder, error) from error
    try:
        handle = try_lock(folder)
    except BlockingIOError:
        raise StorageError(f"another process is working in {folder}", "wait until it has ended") from None
    try:
        remove_leftovers(folder)
        yield folder
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def taking_turns(target: Path | str) -> Iterator[None]:
    """Wait until no other process creates ``target`` (a file or folder of the cache), then run the block.

    The lock is a file next to it, because ``target`` itself is replaced as a whole.
    """
    try:
        import fcntl
    except ImportError:  # Windows: both create it, the last one stays
        yield
        return
    target = Path(target)
    lock = target.with_name(f".{target.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        fix = "name another cache folder with DIPTYCH_CACHE"
        raise StorageError(f"cannot write {lock}: {error.strerror or error}", fix) from error
    try:
        with suppress(OSError):  # some network drives lock nothing
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def cached(target: Path, read: Callable[[Path], T], make: Callable[[Path], object]) -> T:
    """Return ``read(target)``; where it is missing or corrupt, one process creates it first.

    Args:
        target: a file or folder of the cache, named by all that it depends on.
        make: writes it, all or nothing (:func:`~diptych.core.files.atomic_folder`, an artifact's ``save``).
    """

    def there() -> T | None:
        if not target.exists():
            return None
        try:
            return read(target)
        except (StorageError, OSError) as error:
            logger.warning("%s is corrupt and recreated: %s", target, error)
            return None

    found = there()
    if found is not None:  # also from a cache that this process may not write to
        return found
    with taking_turns(target):
        found = there()  # another process may have been quicker
        if found is None:
            make(target)
            found = read(target)
    return found
