"""Files that are either wholly there or not there: temporary name, flush, rename."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from diptych.core.alone import lock_folder
from diptych.core.errors import StorageError, UsageError
from diptych.core.fingerprint import fingerprint

if TYPE_CHECKING:
    import numpy as np


_NAME_BYTES = 100


def cache_root() -> Path:
    """Where things that can be computed again are kept: ``$DIPTYCH_CACHE`` or ``~/.cache/diptych``."""
    given = os.environ.get("DIPTYCH_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "diptych"


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _storage_error(target: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        fix = "free some space and resume; what was there before is whole"
    else:
        fix = "check the folder's permissions"
    return StorageError(f"cannot write {target}: {error.strerror or error}", fix)


@contextmanager
def atomic_path(target: Path | str) -> Iterator[Path]:
    """Give a temporary path to write to; it takes the target's name only when the block succeeds."""
    target = Path(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _sync(temporary)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _storage_error(target, error) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_folder(target: Path | str, marker: str | None = None) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes the target's place only when the block succeeds.

    An existing target is moved aside first and removed last, so that at every moment one whole
    version exists under the target's name or under ``.NAME.old``.
    """
    target = Path(target)
    if marker is not None:
        check_replaceable(target, marker)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        recover_folder(target)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
    except OSError as error:
        raise _storage_error(target, error) from error
    try:
        with _in_use(temporary):
            yield temporary
            temporary.chmod(0o755)
            replace_folder(temporary, target)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise _storage_error(target, error) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def _in_use(folder: Path) -> Iterator[None]:
    """Mark a folder as somebody's who is alive: the system takes the mark off when the process ends, however."""
    handle = lock_folder(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process at a time into the block, where the system can say so; for folders of the cache.

    Without it two that make the same folder would take each other's half of it for what a kill left.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on Windows: both write, the last stays
        yield
        return
    lock = folder.with_name(f".{folder.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = open(lock, "w")  # noqa: SIM115
    except OSError as error:
        raise StorageError(
            f"cannot write {lock}: {error.strerror}", "name another cache folder with DIPTYCH_CACHE"
        ) from None
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for left in folder.parent.glob(f".{folder.name}.*.tmp"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        yield


def check_replaceable(target: Path | str, marker: str) -> None:
    """See that a folder is not there, is empty, or holds ``marker``, as every folder of its kind does."""
    target = Path(target)
    if target.exists() and not (target / marker).exists():
        strange = not target.is_dir() or any(target.iterdir())
        if strange:
            raise UsageError(f"{target} holds other things (no {marker})", "give a new or empty folder")


def replace_folder(source: Path | str, target: Path | str) -> None:
    """Give a complete folder the name ``target``; an older one of that name is removed last.

    Killed in between, :func:`recover_folder` puts the older one back.
    """
    source, target = Path(source), Path(target)
    old = target.with_name(f".{target.name}.old")
    for file in source.rglob("*"):
        if file.is_file():
            _sync(file)
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    source.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def recover_folder(target: Path | str) -> None:
    """Put right what a kill inside :func:`atomic_folder` can leave: the old version under ``.NAME.old``,
    half-written ones under ``.NAME.*.tmp``. Those that another process is filling at this moment stay."""
    target = Path(target)
    old = target.with_name(f".{target.name}.old")
    if old.exists() and not target.exists():
        old.rename(target)
    for leftover in target.parent.glob(f".{target.name}.*.tmp"):
        try:
            with _in_use(leftover):
                shutil.rmtree(leftover, ignore_errors=True)
        except BlockingIOError:
            continue


def create_array(path: Path | str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """A new .npy file of that type and shape, memory-mapped for writing, with its space reserved.

    Without the reservation a disk that fills up would kill the process in the middle of a write.
    """
    import numpy as np

    rows = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        size = os.path.getsize(path)
        with open(path, "r+b") as handle:
            os.posix_fallocate(handle.fileno(), 0, max(1, size))
    return rows


def write_bytes(target: Path | str, content: bytes) -> None:
    """Write ``content`` atomically."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)


def write_text(target: Path | str, content: str) -> None:
    """Write ``content`` atomically as UTF-8."""
    write_bytes(target, content.encode())


def write_json(target: Path | str, value: Any) -> None:
    """Write ``value`` atomically as indented JSON; NaN is refused, for JSON has none."""
    write_text(target, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path | str) -> Any:
    """Read a JSON file."""
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StorageError(f"{path} does not exist", "check the folder's name, or make it again") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} is not JSON: {error}", "it is damaged: make it again") from None


def safe_name(text: str) -> str:
    """Return ``text`` as the name of a file or folder; what is not of [A-Za-z0-9._-] is percent-encoded.

    A name that is safe already stays as it is. None is empty, ``.`` or ``..``, nor longer than 100 bytes; of a
    longer one the beginning is kept, with a fingerprint of the whole.
    """
    name = quote(text, safe="", errors="surrogatepass").replace("~", "%7E")
    if not name.strip("."):
        name = name.replace(".", "%2E") or "%"
    if len(name) > _NAME_BYTES:
        name = f"{name[: _NAME_BYTES - 17]}-{fingerprint(text)}"
    return name
