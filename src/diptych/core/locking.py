"""One lock: a folder belongs to one process at a time, and the system releases it when that process ends."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from diptych.core.errors import StorageError
from diptych.core.files import recover_folder, remove_leftovers, storage_errors

logger: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")


def try_lock(path: Path, wait: bool = False) -> int | None:
    """Lock a file or folder with ``flock`` until the handle is closed or the process ends.

    Args:
        wait: until no other process holds it.

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
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:  # some network drives lock nothing
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return handle


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold :func:`try_lock` while the block runs."""
    handle = try_lock(path, wait)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def exclusive_folder(folder: Path | str) -> Iterator[Path]:
    """Create the folder if needed and keep other processes out of it while the block runs.

    What killed processes left half-written in it is removed first. Nothing is written for the lock, so
    nothing can outlive its owner: not a kill, a restart of the machine or a copy of the folder.

    Raises:
        StorageError: another process works in it, or it cannot be created.
    """
    folder = Path(folder)
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder))
        except BlockingIOError:
            raise StorageError(f"another process is working in {folder}", "wait until it has ended") from None
        remove_leftovers(folder)
        yield folder


@contextmanager
def locked_in_place(folder: Path | str) -> Iterator[None]:
    """Wait until no other process writes a folder that is replaced as a whole, then run the block.

    Who waited for a folder that was replaced meanwhile waits for the new one. A missing folder is not locked.
    """
    folder = Path(folder)
    while True:
        recover_folder(folder)
        handle = try_lock(folder, wait=True)
        try:
            if handle is not None and not _has_name(handle, folder):
                continue
            yield
            return
        finally:
            if handle is not None:
                os.close(handle)


def _has_name(handle: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


@contextmanager
def taking_turns(target: Path | str) -> Iterator[None]:
    """Wait until no other process creates ``target`` (a file or folder of the cache), then run the block.

    The lock is a file next to it, because ``target`` itself is replaced as a whole.
    """
    target = Path(target)
    lock = target.with_name(f".{target.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch(0o644)
    except OSError as error:
        fix = "name another cache folder with DIPTYCH_CACHE"
        raise StorageError(f"cannot write {lock}: {error.strerror or error}", fix) from error
    with locked(lock, wait=True):  # where the system has no locks, both create it, and the last one stays
        yield


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
