"""JSON files of datasets, gzipped or not: read whole, or just looked at."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError

MAX_UNPACKED_BYTES = 1 << 31
"""What a gzipped file may unpack to (2 GiB): a few megabytes can hold any number of zeros."""

_PIECE = 1 << 24


def load_json(path: Path, unique_keys: bool = False) -> Any:
    """What a JSON file holds; ``.gz`` is unpacked, a byte order mark passed over."""
    hook = _once if unique_keys else None
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as handle:
            text = (_whole(path, handle) if path.suffix == ".gz" else handle.read()).decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=hook)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist", "check the path given with --data") from None
    except _TwiceError as error:
        raise DataError(f"{path} has the key {error.args[0]!r} twice", "fetch the file again") from None
    except (ValueError, RecursionError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path} is not JSON: {error!s:.200}", "fetch the file again") from None
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}", "check the path given with --data"
        ) from None


def beginning_of(path: Path, n_characters: int) -> str:
    """The first characters of a text file, ``.gz`` unpacked; empty where it cannot be read as text."""
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", errors="replace") as handle:
            return str(handle.read(n_characters))
    except (OSError, zlib.error, EOFError):
        return ""


class _TwiceError(Exception):
    """A key that an object says twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(key)
        found[key] = value
    return found


def _whole(path: Path, handle: Any) -> bytes:
    content = bytearray()
    while piece := handle.read(_PIECE):
        content += piece
        if len(content) > MAX_UNPACKED_BYTES:
            raise DataError(
                f"{path} unpacks to more than {MAX_UNPACKED_BYTES:,} bytes",
                "if it is what it should be, unpack it with gunzip and give that",
            )
    return bytes(content)
