"""Lines of text files from strangers, plain or gzipped: one at a time, none without end."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from diptych.core.errors import DataError

MAX_LINE_BYTES = 1 << 22
"""Longer lines (4 MiB) are refused: what unpacks to one endless line must not fill the memory."""


def numbered_lines(
    path: Path, encoding: str = "utf-8", limit: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines without their end; ``.gz`` is unpacked as it is read.

    Args:
        encoding: of its text; a byte order mark is not part of the first line.
        limit: the most bytes of a line.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as handle:
            while content := handle.readline(limit + 1):
                number += 1
                if len(content) > limit:
                    raise DataError(
                        f"{path}, line {number} is longer than {limit:,} bytes",
                        "this is not the file it should be: fetch it again",
                    )
                if number == 1:
                    content = content.removeprefix(b"\xef\xbb\xbf")
                yield number, content.rstrip(b"\r\n").decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number} is not {encoding}: {error}", "save it as UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged after line {number}: {error}", "fetch it again") from None
    except LookupError:
        raise DataError(f"there is no encoding {encoding!r}", "e.g. utf-8 or latin-1") from None
    except FileNotFoundError:
        raise DataError(f"{path} does not exist", "check the path given with --data") from None
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}", "check its permissions"
        ) from None
