"""Files of a log, written block by block."""

from __future__ import annotations

import gzip
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from diptych.core.extras import require
from diptych.data.scenes.shop_log.raw import WORK

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("csv", "parquet")

_ROWS = 2_000_000
"""Of a Parquet file: another one begins after the block that reaches it."""


class _Files:
    """Tables of the same columns, one after the other; closed at the end of a ``with``."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._writer: Any = None

    def close(self) -> None:
        """Finish the file that is open."""
        self._open.close()
        self._writer = None

    def __enter__(self) -> _Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, table: pa.Table) -> None:
        """Write a table."""
        raise NotImplementedError


class CsvFile(_Files):
    """A compressed CSV file with a header; the same rows are the same bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def write(self, table: pa.Table) -> None:
        """Write a table; missing values are empty."""
        pa, csv = require("pyarrow", "commerce", WORK), require("pyarrow.csv", "commerce", WORK)
        plain = pa.schema([(field.name, _plain(pa, field.type)) for field in table.schema])
        if self._writer is None:
            file = self._open.enter_context(self._path.open("wb"))
            # neither a name nor a time in the header
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=4, mtime=0)
            self._writer = self._open.enter_context(csv.CSVWriter(self._open.enter_context(packed), plain))
        self._writer.write_table(table.cast(plain))


class ParquetFiles(_Files):
    """Parquet files, a row group for every table."""

    def __init__(self, pattern: Path) -> None:
        super().__init__()
        self._pattern = pattern
        self._files = self._rows = 0

    def write(self, table: pa.Table) -> None:
        """Write a table; columns of words by number are plain texts to who reads them."""
        parquet = require("pyarrow.parquet", "commerce", WORK)
        if self._writer is None:
            path = self._pattern.with_name(self._pattern.name.replace("*", f"{self._files:04d}"))
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = self._open.enter_context(
                parquet.ParquetWriter(path, table.schema, compression="zstd", store_schema=False)
            )
            self._files += 1
            self._rows = 0
        self._writer.write_table(table)
        self._rows += len(table)
        if self._rows >= _ROWS and "*" in self._pattern.name:
            self.close()


def _plain(pa: Any, kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
