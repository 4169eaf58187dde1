"""Files and folders that are either wholly there or not there: temporary name, fsync, rename, fsync of the parent."""

from __future__ import annotations

import csv
import errno
import glob
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote

from diptych.core.errors import StorageError, UsageError
from diptych.core.fingerprint import fingerprint

if TYPE_CHECKING:
    import numpy as np

_NAME_BYTES = 100

# What safetensors writes to before it renames.
_TENSORS = re.compile(r"\.tmp[A-Za-z0-9]{6}")


def cache_root() -> Path:
    """Return the folder of what can be computed again: ``$DIPTYCH_CACHE`` or ``~/.cache/diptych``."""
    given = os.environ.get("DIPTYCH_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diptych"


@contextmanager
def storage_errors(target: Path, fix: str = "") -> Iterator[None]:
    """Turn an OSError of the block, which writes ``target``, into a StorageError."""
    try:
        yield
    except OSError as error:
        if not fix:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            intact = "free some space and resume; the old version is intact"
            fix = intact if is_full else "check the folder's permissions"
        raise StorageError(f"cannot write {target}: {error.strerror or error}", fix) from error


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EACCES):  # some drives cannot flush folders
            raise
    finally:
        os.close(handle)


@contextmanager
def atomic_path(target: Path | str) -> Iterator[Path]:
    """Yield a temporary path to write; it takes the target's name only when the block succeeds.

    Raises:
        StorageError: the write failed (disk full, no permission); the old file is untouched.
    """
    target = Path(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with storage_errors(target):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            sync(temporary)
            os.replace(temporary, target)
            sync(target.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def atomic_folder(target: Path | str, marker: str | None = None) -> Iterator[Path]:
    """Yield a temporary folder to fill; it takes the target's place only when the block succeeds.

    An existing target is moved aside first and removed last, so that at every moment one complete
    version exists under the target's name or under ``.NAME.old``; :func:`recover_folder` restores it.

    Args:
        target: the folder.
        marker: a file that every folder of this kind holds; a folder with other contents and without
            the marker is not replaced.

    Raises:
        UsageError: the folder holds other things.
        StorageError: the write failed; the old folder is untouched.
    """
    if marker is not None:
        check_replaceable(target, marker)
    target = Path(os.path.abspath(target))
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        recover_folder(target)
        with _temporary_folder(target) as temporary:
            try:
                yield temporary
                temporary.chmod(0o755)
                replace_folder(temporary, target)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise


@contextmanager
def _temporary_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder next to ``target``, locked: no other process takes it for one that a kill left."""
    from diptych.core.locking import locked

    with ExitStack() as held:
        while True:
            temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
            with suppress(BlockingIOError):  # one was quicker than the lock, and removes it
                held.enter_context(locked(temporary))
                if temporary.is_dir():
                    break
        yield temporary


def check_replaceable(target: Path | str, marker: str, parts: Collection[str] = ()) -> None:
    """Raise UsageError unless a folder is missing, is empty, or holds ``marker`` or ``parts`` as its kind does."""
    target = Path(target)
    if target.exists() and not (target / marker).exists():
        own = {*parts, *(f"{part}.unfinished" for part in parts)}
        if not target.is_dir() or any(
            entry.name not in own and not _is_leftover(entry) for entry in target.iterdir()
        ):
            raise UsageError(f"{target} holds other things (no {marker})", "give a new or empty folder")


def _is_leftover(path: Path) -> bool:
    return path.name.startswith(".") and (path.name.endswith(".tmp") or bool(_TENSORS.fullmatch(path.name)))


def replace_folder(source: Path | str, target: Path | str) -> None:
    """Give a complete folder the name ``target``; an older one of that name is removed last."""
    from diptych.core.locking import locked

    source, target = Path(source), Path(target)
    old = target.with_name(f".{target.name}.old")
    for path in sorted(source.rglob("*"), reverse=True):
        if path.is_file() or path.is_dir():
            sync(path)
    sync(source)
    shutil.rmtree(old, ignore_errors=True)
    with ExitStack() as held:
        with suppress(BlockingIOError):  # the caller may hold it
            held.enter_context(
                locked(target)
            )  # until the new one has its name no process recovers the old one
        if target.exists():
            os.rename(target, old)
        os.rename(source, target)
        sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover_folder(target: Path | str) -> None:
    """Repair what a kill inside :func:`atomic_folder` can leave next to ``target``: restore the old version
    where the new one has not taken its name, remove half-written ones that no process is filling."""
    target = Path(os.path.abspath(target))
    old = target.parent / f".{target.name}.old"
    if old.exists():
        from diptych.core.locking import locked

        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            with locked(old, wait=True):  # a process that is replacing it ends that first
                if old.exists() and not target.exists():
                    os.rename(old, target)
                    sync(target.parent)
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        _remove_unused(leftover)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left half-written in a folder, at any depth (``.NAME.*.tmp``, ``.tmpXXXXXX``)."""
    for leftover in list(folder.rglob(".*tmp*")):
        if _is_leftover(leftover):
            _remove_unused(leftover)


def _remove_unused(leftover: Path) -> None:
    from diptych.core.locking import locked

    if leftover.is_symlink() or not leftover.is_dir():
        leftover.unlink(missing_ok=True)
        return
    with suppress(BlockingIOError), locked(leftover):  # another process may be filling it
        shutil.rmtree(leftover, ignore_errors=True)


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


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest ends of paths that tell them apart."""
    parts = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{part[-1]} ({number})" for number, part in enumerate(parts)]


def create_array(path: Path | str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Create a .npy file, memory-mapped for writing, with its space reserved.

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
    with atomic_path(target) as temporary, open(temporary, "wb") as handle:
        handle.write(content)


def write_text(target: Path | str, content: str) -> None:
    write_bytes(target, content.encode())


def write_csv(target: Path | str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table atomically, row by row; a text that a spreadsheet would run as a formula gets a ``'`` before it."""
    with (
        atomic_path(target) as temporary,
        open(temporary, "w", encoding="utf-8", errors="replace", newline="") as handle,
    ):
        write_rows(handle, columns, rows)


def write_rows(handle: TextIO, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    table = csv.writer(handle, lineterminator="\n")
    table.writerow([_inert(name) for name in columns])
    for row in rows:
        table.writerow([_inert(cell) for cell in row])


def _inert(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    cell = cell.replace(
        "\r", "\n"
    )  # the csv module leaves a \r outside quotes, where readers begin a new row
    if not cell.startswith(("=", "+", "-", "@", "\t", "\n")):
        return cell
    try:
        float(cell.replace(",", "").replace("%", ""))
    except ValueError:
        return f"'{cell}"
    return cell


def write_json(target: Path | str, value: Any) -> None:
    """Write ``value`` atomically as indented JSON; NaN is refused, for JSON has none."""
    write_text(target, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
