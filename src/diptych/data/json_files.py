"""JSON files of datasets, gzipped or not: read whole, or just looked at."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError

__all__ = ["beginning_of", "load_json"]


def load_json(path: Path) -> Any:
    """What a JSON file holds; ``.gz`` is unpacked.

    Raises:
        DataError: no such file, cut off, damaged or not JSON.
    """
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as handle:
            return json.load(handle)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist", "check the path given with --data") from None
    except (json.JSONDecodeError, UnicodeDecodeError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path} is not JSON: {error}", "fetch the file again") from None


def beginning_of(path: Path, n_characters: int) -> str:
    """The first characters of a text file, ``.gz`` unpacked; empty where it cannot be read as text."""
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", errors="replace") as handle:
            return str(handle.read(n_characters))
    except (OSError, zlib.error, EOFError):
        return ""
