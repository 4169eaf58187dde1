"""DuckDB inside this process: the default. Memory is bounded by a limit, beyond which it spills to a folder."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from diptych.commerce.purchase_intent.engine.contract import Ordered, mebibytes
from diptych.core.errors import DataError, StorageError
from diptych.core.extras import require

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


class DuckDBEngine:
    """An open DuckDB."""

    name = "duckdb"
    rows_at_once = 2_000_000

    def __init__(
        self, memory_limit: str | None = None, threads: int | None = None, spill: Path | None = None
    ) -> None:
        limit = None if memory_limit is None else mebibytes(memory_limit)
        require("duckdb", "commerce", "reading a log")
        ibis = require("ibis", "commerce", "reading a log")
        if spill is not None:
            spill.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="diptych-spill-", dir=spill)
        self._remove_spilled = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._connection = ibis.duckdb.connect(
            temp_directory=folder,
            # Windows without an order see rows in the order of their file: `ordered` says when that is used.
            preserve_insertion_order=True,
            autoinstall_known_extensions=False,
            autoload_known_extensions=False,
            allow_community_extensions=False,
            **({} if limit is None else {"memory_limit": f"{limit}MiB"}),
            **({} if threads is None else {"threads": threads}),
        )
        self._connection.raw_sql("SET enable_progress_bar = false")  # library code prints nothing
        self._held = 0

    def read(self, files: Sequence[Path]) -> ir.Table:
        """The rows of Parquet files, one file after another."""
        with _explained():
            return self._connection.read_parquet([str(file) for file in files], hive_partitioning=False)

    def to_arrow(self, expression: ir.Table) -> pa.Table:
        """Run an expression whose result is small."""
        with _explained():
            return self._connection.to_pyarrow(expression)

    def write(self, expression: ir.Table, file: Path) -> None:
        """Run an expression and write its rows, in its order, to one file."""
        with _explained():
            self._connection.to_parquet(expression, str(file), compression="zstd", compression_level=1)

    @contextmanager
    def held(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Run an expression once; its rows are spilled where they do not fit into memory."""
        self._held += 1
        name = f"held_{self._held}"
        with _explained():
            table = self._connection.create_table(name, expression, temp=True)
        try:
            yield table
        finally:
            self._connection.raw_sql(f"DROP TABLE {name}")

    @contextmanager
    def ordered(
        self, rows: ir.Table, keys: Sequence[str], order: Sequence[str], *, is_so: bool = False
    ) -> Iterator[Ordered]:
        """Rows in order; windows over them then need no sorting of their own.

        One sort at most, and none of a file that is in order, costs a third of what two windows cost that sort
        each for itself.
        """
        if is_so:
            yield Ordered(rows)
            return
        with self.held(rows.order_by([*keys, *order])) as table:
            yield Ordered(table)

    def close(self) -> None:
        """Let go of memory and spilled files."""
        self._connection.disconnect()
        self._remove_spilled()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _explained() -> Iterator[None]:
    """DuckDB's errors as ours."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException as error:
        raise StorageError(
            f"the memory does not suffice: {_first_line(error)}",
            "give it more with --memory-limit, fewer threads, or the spill folder more space",
        ) from None
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        line = _first_line(error)
        if "No space left" in line:
            raise StorageError(f"the disk is full: {line}", "free some space and do it again") from None
        raise DataError(f"a table cannot be read: {line}", "it is damaged or gone: make it again") from None
    except RuntimeError as error:
        if "interrupted" not in str(error).lower():  # what a key press becomes in some statements
            raise
        raise KeyboardInterrupt from None


def _first_line(error: Any) -> str:
    return str(error).strip().split("\n", 1)[0]
