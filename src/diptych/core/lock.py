"""One process per run folder: a small file says who is at work there, as long as it lasts."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from diptych.core.errors import StorageError, UsageError

LOCK = "training.lock"
"""Process and machine that are at work in a folder."""

_HELD: set[Path] = set()


def training_lock(folder: Path | str) -> AbstractContextManager[None]:
    """Keep other processes from training in a run's ``folder``; see :func:`folder_lock`."""
    return folder_lock(folder, "trained")


@contextmanager
def folder_lock(folder: Path | str, being: str) -> Iterator[None]:
    """Keep other processes from working in a ``folder`` while the block lasts.

    The lock of a process of this machine that is no more, a killed one's, is taken over.
    """
    file = Path(folder).resolve() / LOCK
    while not _made(file):
        _clear(file, being)
    _HELD.add(file)
    try:
        yield
    finally:
        _HELD.discard(file)
        file.unlink(missing_ok=True)


def _made(file: Path) -> bool:
    """Write the lock; False where there is one."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(file, "x", encoding="utf-8") as handle:
                try:
                    handle.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}) + "\n")
                    handle.flush()
                except OSError:
                    file.unlink(missing_ok=True)  # a lock that names nobody would be respected for ever
                    raise
        except FileExistsError:
            return False
    except OSError as error:
        raise StorageError(
            f"cannot write {file}: {error.strerror or error}", "check the folder's permissions"
        ) from error
    return True


def _clear(file: Path, being: str) -> None:
    """Remove the lock of a process that is no more."""
    try:
        found = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return  # given back meanwhile
    _refuse(file, found, being)
    # Of two that find the same dead lock one moves it aside, and must not have moved the other's new one.
    aside = file.with_name(f".{LOCK}.{os.getpid()}.tmp")
    try:
        file.rename(aside)
    except FileNotFoundError:
        return
    moved = aside.read_text(encoding="utf-8")
    if moved != found:
        aside.rename(file)
        _refuse(file, moved, being)
    aside.unlink(missing_ok=True)


def _refuse(file: Path, content: str, being: str) -> None:
    """Raise where a lock's process is there, or cannot be asked."""
    try:
        said = json.loads(content)
        pid, host = int(said["pid"]), str(said["host"])
    except (ValueError, TypeError, KeyError):
        who = "a process that does not say which"  # between making and writing, or killed there
    else:
        here = host == socket.gethostname()
        if here and (file not in _HELD if pid == os.getpid() else not _alive(pid)):
            return
        who = f"process {pid}" + ("" if here else f" of {host}")
    raise UsageError(
        f"{file.parent} is being {being} by {who}",
        f"wait until that is done; if nothing is at work there any more, remove {file}",
    )


def _alive(pid: int) -> bool:
    """Whether a process of this machine runs; one that was killed and not yet cleared away does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True  # no such folder here
    return state.rpartition(")")[2].split()[0] not in ("Z", "X")
