"""Read files that may be wrong: bounded in bytes, and every fault is one error that names the file.

An untrusted file, or a corrupt one of ours, can be missing, a folder, a loop of links, a device without
end, larger than the memory, packed a thousand times over, nested without end, cut short, or hold numbers,
shapes and types that no writer makes. Who reads through this module need not know the ways::

    header = read_json(folder / "run.json", fix="train it again")
    with file_errors(folder):  # its values may have another form than expected
        return cls(**header)

The error is a StorageError, as of a file that Diptych wrote; ``error=DataError`` for a dataset's.
"""

from __future__ import annotations

import errno
import functools
import io
import json
import math
import os
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar, cast

from diptych.core.errors import DiptychError, StorageError, nearest_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike

F = TypeVar("F", bound=Callable[..., Any])

# Larger texts and JSON files (2 GiB) are not read whole.
MAX_TEXT_BYTES = 1 << 31

# Longer lines (4 MiB) are refused: what unpacks to one endless line must not fill the memory.
MAX_LINE_BYTES = 1 << 22

# Bytes that one packed byte may become; text is packed 4 to 30 times, a bomb about 1,000 times.
MAX_RATIO = 100

# Texts that unpack to less (16 MiB) may be packed as tightly as they like.
MIN_UNPACKED_BYTES = 1 << 24

# The same of arrays (256 MiB): a million equal numbers are packed a thousand times over, and nothing is wrong.
MIN_ARRAY_BYTES = 1 << 28

_REASON_LENGTH = 200  # characters
_MOST_PADDING = 1 << 16


class _TooLargeError(Exception):
    """More bytes than allowed."""


class _OverpackedError(Exception):
    """More bytes than what was packed can honestly be."""


def open_regular(path: Path | str) -> BinaryIO:
    """Open a regular file for reading; OSError at once for anything else, such as a device or a pipe."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


@contextmanager
def file_errors(
    path: Path | str, error: type[DiptychError] = StorageError, fix: str = "", noun: str = ""
) -> Iterator[None]:
    """Turn whatever a missing, unreadable or corrupt file makes the block raise into one ``error``.

    Args:
        path: what the block reads; named in the message.
        fix: what to do about a corrupt file; by default to recreate it, or to fetch a dataset's again.
        noun: what the file should be, e.g. "JSON", for the message.
    """
    fix = fix or ("recreate it" if issubclass(error, StorageError) else "fetch it again")
    try:
        yield
    except OSError as wrong:
        raise error(*_refusal(wrong, path, fix)) from None
    except _TooLargeError as wrong:
        raise error(f"{path} {wrong}", f"check the path, or {fix}") from None
    except _OverpackedError as wrong:
        raise error(f"{path} {wrong}", f"{fix}; if it is right, unpack it and give that") from None
    except _malformed() as wrong:
        what = f"is not {noun}" if noun else "is corrupt"
        raise error(f"{path} {what}: {_reason(wrong)}", fix) from None


def opening(fix: str) -> Callable[[F], F]:
    """Put a method that opens its first argument inside :func:`file_errors`."""

    def decorated(function: F) -> F:
        @functools.wraps(function)
        def opened(owner: Any, path: Path | str, *rest: Any, **options: Any) -> Any:
            with file_errors(path, fix=fix):
                return function(owner, path, *rest, **options)

        return cast(F, opened)

    return decorated


def _refusal(wrong: OSError, path: Path | str, fix: str) -> tuple[str, str]:
    path = wrong.filename if isinstance(wrong.filename, str | Path) else path
    if wrong.errno is None:  # of a library that reads the content
        return f"{path} is corrupt: {_reason(wrong)}", fix
    if wrong.errno in (errno.ENOENT, errno.ENOTDIR):
        fix = fix if fix.startswith("check ") else f"check the path, or {fix}"
        return f"{path} does not exist", nearest_path(path) + fix
    if wrong.errno == errno.EISDIR:
        return f"{path} is a folder, a file is expected", "check the path"
    if wrong.errno == errno.ENAMETOOLONG:
        return f"{str(path)[:_REASON_LENGTH]}… is too long for the name of a file", "check the path"
    if wrong.errno in (errno.EACCES, errno.EPERM):
        return f"{path} cannot be read: {wrong.strerror}", "check its permissions"
    return f"{path} cannot be read: {wrong.strerror or _reason(wrong)}", f"check the path, or {fix}"


def _malformed() -> tuple[type[Exception], ...]:
    """Return what parsers raise on corrupt content, and what code raises that meets another form."""
    import csv
    import struct
    import tokenize
    import zipfile
    import zlib

    return (
        *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, EOFError),
        *(AssertionError, RecursionError, NotImplementedError, RuntimeError, SyntaxError),
        *(csv.Error, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
    )


def _reason(wrong: Exception) -> str:
    if isinstance(wrong, RecursionError):
        return "it is nested too deeply"
    if isinstance(wrong, KeyError) and wrong.args:
        return f"{wrong.args[0]!r} is missing"
    return " ".join(str(wrong).split())[:_REASON_LENGTH] or type(wrong).__name__


class _Packed:
    """A packed file as the gzip module reads it, which takes names and padding byte by byte, however long."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed, self._single = packed, 0

    def read(self, size: int = -1) -> bytes:
        self._single = self._single + 1 if size == 1 else 0
        if self._single > _MOST_PADDING:
            raise _OverpackedError(f"holds more than {_MOST_PADDING:,} bytes of padding")
        return self._packed.read(size)


class _Stream(io.RawIOBase):
    """A stream that closes the file behind it with itself."""

    _file: BinaryIO

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


class _Bounded(_Stream):
    """An unpacked stream that ends in an error after ``limit`` bytes."""

    def __init__(self, unpacked: Any, packed: BinaryIO, limit: int) -> None:
        self._unpacked, self._file, self._limit, self._read = unpacked, packed, limit, 0

    def readinto(self, buffer: Any) -> int:
        count: int = self._unpacked.readinto(buffer)
        self._read += count
        if self._read > self._limit:
            raise _OverpackedError(f"unpacks to more than {self._limit:,} bytes")
        return count


def open_bytes(path: Path | str, gzipped: bool | None = None) -> BinaryIO:
    """Open a regular file for reading, unpacked as it is read; used inside :func:`file_errors`.

    Args:
        gzipped: whether it is; by default where its name ends in ``.gz``.
    """
    packed = open_regular(path)
    if not (Path(path).suffix == ".gz" if gzipped is None else gzipped):
        return packed
    import gzip

    limit = max(MIN_UNPACKED_BYTES, MAX_RATIO * os.fstat(packed.fileno()).st_size)
    unpacked = gzip.GzipFile(fileobj=cast(BinaryIO, _Packed(packed)))
    return io.BufferedReader(_Bounded(unpacked, packed, limit), 1 << 17)


class _Lines(_Stream):
    """A stream that ends in an error where a line is too long, before it fills the memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self._file, self._since = stream, 0

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        buffer[: len(piece)] = piece
        end = piece.rfind(b"\n")
        self._since = self._since + len(piece) if end < 0 else len(piece) - end - 1
        if self._since > MAX_LINE_BYTES:
            raise _TooLargeError(f"has a line of more than {MAX_LINE_BYTES:,} bytes")
        return len(piece)


def _open_lines(path: Path | str) -> io.BufferedReader:
    return io.BufferedReader(_Lines(open_bytes(path)))


@contextmanager
def open_text(
    path: Path | str,
    encoding: str = "utf-8-sig",
    errors: str = "strict",
    newline: str | None = None,
    error: type[DiptychError] = StorageError,
    fix: str = "",
) -> Iterator[IO[str]]:
    """Open a text file, ``.gz`` unpacked as it is read; faults of the file in the block are one ``error``.

    Lines are bounded as in :func:`read_lines`.
    """
    with (
        file_errors(path, error, fix),
        _open_lines(path) as handle,
        io.TextIOWrapper(handle, encoding, errors, newline) as text,
    ):
        yield text


def read_text(
    path: Path | str,
    encoding: str = "utf-8-sig",
    errors: str = "strict",
    error: type[DiptychError] = StorageError,
    fix: str = "",
) -> str:
    """Read a text file whole, without a byte order mark, ends of lines as ``\\n``; ``.gz`` is unpacked.

    A file above :data:`MAX_TEXT_BYTES` is refused, before it is read where its size says so.
    """
    held = io.BytesIO()
    with file_errors(path, error, fix), open_bytes(path) as handle:
        size = Path(path).stat().st_size
        while size <= MAX_TEXT_BYTES and (piece := handle.read(MAX_LINE_BYTES)):
            size = max(size, held.tell() + held.write(piece))
        if size > MAX_TEXT_BYTES:
            raise _TooLargeError(f"has {size:,} bytes or more, {MAX_TEXT_BYTES:,} are allowed")
    with file_errors(path, error, fix, noun=f"{encoding.removesuffix('-sig').upper()} text"):
        text = held.getvalue().decode(encoding, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def beginning_of(path: Path | str, n_characters: int) -> str:
    """Return the first characters of a text file, ``.gz`` unpacked; empty where it cannot be read as text."""
    try:
        with open_text(path, "utf-8", errors="replace") as handle:
            return handle.read(n_characters)
    except DiptychError:
        return ""


def read_lines(
    path: Path | str, encoding: str = "utf-8", error: type[DiptychError] = StorageError, fix: str = ""
) -> Iterator[tuple[int, str]]:
    """Yield line numbers, from 1, and lines without their end; ``.gz`` is unpacked as it is read.

    A byte order mark is not part of the first line; one above :data:`MAX_LINE_BYTES` is refused.
    """
    with file_errors(path, error, fix), _open_lines(path) as handle:
        for number, content in enumerate(handle, 1):
            if number == 1:
                content = content.removeprefix(b"\xef\xbb\xbf")
            try:
                line = content.rstrip(b"\r\n").decode(encoding)
            except (UnicodeError, LookupError) as wrong:
                message = f"{path}, line {number} is not {encoding}: {_reason(wrong)}"
                raise error(message, "save it as UTF-8") from None
            yield number, line


def parse_json(
    text: str | bytes,
    path: Path | str,
    line: int = 0,
    error: type[DiptychError] = StorageError,
    fix: str = "",
) -> Any:
    """Return what a JSON text holds.

    Args:
        path: where the text is from, and
        line: in which line, if it is one; both named in the message.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        where = f"{path}, line {line}" if line else str(path)
        with file_errors(where, error, fix, noun="JSON"):
            raise wrong


def read_json(path: Path | str, error: type[DiptychError] = StorageError, fix: str = "") -> Any:
    """Read a JSON file, ``.gz`` unpacked, a byte order mark passed over."""
    return parse_json(read_text(path, error=error, fix=fix), path, 0, error, fix)


def read_jsonl(
    path: Path | str, error: type[DiptychError] = StorageError, fix: str = ""
) -> Iterator[tuple[int, Any]]:
    """Yield line numbers, from 1, and values of a JSON Lines file; blank lines are passed over."""
    for number, line in read_lines(path, error=error, fix=fix):
        if line.strip():
            yield number, parse_json(line, path, number, error, fix)


def read_log(path: Path | str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line numbers, from 1, and objects of a file that lines are appended to; one that a kill cut is left out."""
    fix = "remove that line"
    with file_errors(path, fix=fix), _open_lines(path) as handle:
        for number, line in enumerate(handle, 1):
            if not line.endswith(b"\n"):
                return
            value = parse_json(line, path, number, fix=fix)
            if not isinstance(value, dict):
                raise StorageError(f"{path}, line {number} is no JSON object", fix)
            yield number, value


def read_toml(path: Path | str, error: type[DiptychError] = StorageError, fix: str = "") -> dict[str, Any]:
    import tomllib

    text = read_text(path, error=error, fix=fix)
    with file_errors(path, error, fix, noun="TOML"):
        return tomllib.loads(text)


def read_arrays(
    path: Path | str,
    names: Sequence[str] | None = None,
    error: type[DiptychError] = StorageError,
    fix: str = "",
    noun: str = "",
) -> dict[str, np.ndarray]:
    """Read arrays of an ``.npz`` file, all or those named, in the order of ``names``; never pickled."""
    import zipfile

    from numpy.lib import format as npy

    arrays: dict[str, np.ndarray] = {}
    with (
        file_errors(path, error, fix, noun),
        open_regular(path) as handle,
        zipfile.ZipFile(handle) as archive,
    ):
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        chosen = {name: members[name] for name in (members if names is None else names)}
        limit = max(MIN_ARRAY_BYTES, MAX_RATIO * os.fstat(handle.fileno()).st_size)
        if sum(member.file_size for member in chosen.values()) > limit:
            raise _OverpackedError(f"unpacks to more than {limit:,} bytes")
        for name, member in chosen.items():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} is packed in a way that NumPy does not write")
            with archive.open(member) as opened:
                _check_header(opened, member.file_size)
            with archive.open(member) as opened:
                arrays[name] = npy.read_array(opened, allow_pickle=False)
                opened.read(1)  # the end, where the checksum is compared
    return arrays


def map_array(
    path: Path | str,
    dtype: DTypeLike | None = None,
    shape: Sequence[int | None] | None = None,
    error: type[DiptychError] = StorageError,
    fix: str = "",
    mode: Literal["r", "r+"] = "r",
) -> np.ndarray:
    """Memory-map a ``.npy`` file.

    Args:
        dtype: its type; any by default.
        shape: its shape, None where a dimension may have any length; any by default.
    """
    import numpy as np

    with file_errors(path, error, fix), open_regular(path) as handle:
        _check_header(handle, os.fstat(handle.fileno()).st_size)
        array: np.ndarray = np.lib.format.open_memmap(path, mode=mode)
    fits = dtype is None or array.dtype == np.dtype(dtype)
    if shape is not None:
        lengths = zip(shape, array.shape, strict=False)
        fits = fits and len(shape) == array.ndim and all(one in (None, found) for one, found in lengths)
    if not fits or not (array.flags.aligned and (shape is None or array.flags.c_contiguous)):
        form = "" if shape is None else f" {tuple('any' if n is None else n for n in shape)}"
        expected = f"{'any type' if dtype is None else np.dtype(dtype)}{form}"
        raise error(f"{path}: {expected} expected, got {array.dtype} {array.shape}", fix or "recreate it")
    return array


def read_array(path: Path | str, *form: Any, **options: Any) -> np.ndarray:
    """Read a ``.npy`` file into memory; arguments as of :func:`map_array`."""
    import numpy as np

    return np.array(map_array(path, *form, **options))


def _check_header(handle: Any, n_bytes: int) -> None:
    """Raise ValueError unless an array of numbers or texts follows that is as large as its header says."""

    from numpy.lib import format as npy

    version = npy.read_magic(handle)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise ValueError(f"it has NumPy's format {version}, (1, 0) or (2, 0) expected")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns about headers that it would not write
        shape, _, dtype = read_header(handle)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, not numbers")
    if any(length < 0 for length in shape) or not (dtype.itemsize or 0 in shape):
        raise ValueError(f"{dtype} {shape} is no array")
    expected, found = math.prod(shape) * dtype.itemsize, n_bytes - handle.tell()
    if expected != found:
        raise ValueError(f"{dtype} {shape} takes {expected:,} bytes, it has {found:,}")
