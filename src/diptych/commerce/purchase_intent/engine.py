"""Engines: where a pass over a log runs, DuckDB in this process or Spark.

Sessions, statistics and features are written once, as queries of integers and keys in DuckDB's words, which Ibis
translates for Spark; an engine reads files into tables, runs queries and writes what comes out.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from diptych.commerce.logs.database import duckdb_errors, literal, mebibytes
from diptych.core.errors import DataError, UnknownNameError
from diptych.core.extras import require

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


class _Engine:
    """Run expressions. It is closed after use: ``with open_engine("duckdb") as engine``."""

    name: str
    rows_at_once: int | None = None  # events that one pass should hold; None: the engine divides its work
    keeps_order = False  # whether windows without an order see rows in that of their file or held table

    _connection: Any  # of Ibis

    def __init__(self) -> None:
        self._spill = Path(tempfile.mkdtemp(prefix="diptych-spill-"))
        self._remove_spilled = weakref.finalize(self, shutil.rmtree, self._spill, ignore_errors=True)

    def sql(self, query: str) -> ir.Table:
        """Return the rows of a query in DuckDB's words over tables by name."""
        with warnings.catch_warnings(
            action="ignore", category=DeprecationWarning
        ):  # of DuckDB 1.5, by Ibis 12
            found: ir.Table = self._connection.sql(query, dialect="duckdb")
        return found

    def close(self) -> None:
        self._remove_spilled()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DuckDBEngine(_Engine):
    """DuckDB inside this process: the default. Beyond a limit of memory it spills to a folder."""

    name = "duckdb"
    rows_at_once = 1_000_000
    keeps_order = True

    def __init__(self, memory_limit: str | None, threads: int | None) -> None:
        limit = None if memory_limit is None else f"{mebibytes(memory_limit)}MiB"
        given = {"memory_limit": limit, "threads": threads, "preserve_insertion_order": True}
        settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name in ("autoinstall_known", "autoload_known", "allow_community"):
            settings[f"{name}_extensions"] = False
        require("duckdb", "commerce", "reading a log")
        ibis = require("ibis", "commerce", "reading a log")
        super().__init__()
        self._connection = ibis.duckdb.connect(temp_directory=str(self._spill), **settings)
        self._run("SET enable_progress_bar = false")  # library code prints nothing
        # Passes over parts of a log run the same expressions, and compiling takes as long as a tenth of one.
        self._compiled = cache(self._connection.compile)
        self._held = 0

    def read(self, files: Sequence[Path], name: str | None = None) -> ir.Table:
        """Return the rows of Parquet files, one file after another; a table read by this name before is replaced."""
        paths = [str(file) for file in files]
        with duckdb_errors():
            return self._connection.read_parquet(paths, table_name=name, hive_partitioning=False)

    def to_arrow(self, expression: ir.Table) -> pa.Table:
        with duckdb_errors():
            return self._connection.to_pyarrow(expression)

    def write(self, expression: ir.Table, file: Path) -> None:
        """Run an expression and write its rows, in its order, to one Parquet file."""
        self._run(f"COPY ({self._compiled(expression)}) TO {literal(str(file))} (FORMAT parquet)")  # snappy

    @contextmanager
    def held(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Run an expression once and keep its rows, in its order, inside the block."""
        name = f"held_{self._held}"
        self._run(f"CREATE TEMP TABLE {name} AS {self._compiled(expression)}")
        self._held += 1
        try:
            yield self._connection.table(name)
        finally:
            self._held -= 1
            self._run(f"DROP TABLE {name}")

    def close(self) -> None:
        self._connection.disconnect()
        super().close()

    def _run(self, sql: str) -> None:
        with duckdb_errors():
            self._connection.raw_sql(sql)


# Results depend on them; they are set in a session that was running, too.
_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}


class SparkEngine(_Engine):
    """A Spark session, for logs too large for one process: the running one, which is left open, or its own."""

    name = "spark"

    def __init__(self, memory_limit: str | None, threads: int | None) -> None:
        limit = None if memory_limit is None else mebibytes(memory_limit)
        sql = require("pyspark.sql", "spark", "the engine spark").SparkSession
        ibis = require("ibis", "commerce", "reading a log")
        super().__init__()
        self._is_own, self._views = sql.getActiveSession() is None, 0
        settings = {
            "spark.app.name": "diptych",
            "spark.master": f"local[{threads or '*'}]",
            "spark.sql.shuffle.partitions": 4 * (threads or os.cpu_count() or 1),  # 200 are for clusters
            "spark.ui.enabled": False,
            "spark.log.level": "ERROR",
            "spark.local.dir": str(self._spill),
            "spark.driver.memory": f"{limit or 1024}m",
        }
        with (
            warnings.catch_warnings(action="ignore"),
            _spark_errors("it needs Java 17 or newer; see JAVA_HOME"),
        ):
            builder = sql.builder.config(map=settings if self._is_own else {})
            self._session: Any = builder.getOrCreate()
            self._connection = ibis.pyspark.connect(self._session)
        for name, value in _SETTINGS.items():
            self._session.conf.set(name, value)

    def read(self, files: Sequence[Path], name: str | None = None) -> ir.Table:
        names = (re.sub(r"([\[\]{}*?,\\])", r"\\\1", str(file)) for file in files)  # no patterns
        with _spark_errors():
            return self._view(self._session.read.parquet(*names))

    def to_arrow(self, expression: ir.Table) -> pa.Table:
        with _spark_errors():
            table = self._frame(expression).toArrow()
        return table.cast(expression.schema().to_pyarrow())

    def write(self, expression: ir.Table, file: Path) -> None:
        """Run an expression; what its processes wrote is put into one file, in order."""
        import pyarrow.parquet as pq

        parts = file.with_name(f".{file.name}.parts")
        with _spark_errors():
            self._frame(expression).write.mode("overwrite").parquet(str(parts))
        schema = expression.schema().to_pyarrow()
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for part in sorted(parts.glob("part-*.parquet")):
                for batch in pq.ParquetFile(part).iter_batches():
                    writer.write_batch(batch.cast(schema))
        shutil.rmtree(parts)

    @contextmanager
    def held(self, expression: ir.Table) -> Iterator[ir.Table]:
        with _spark_errors():
            frame = self._frame(expression).persist()
        try:
            yield self._view(frame)
        finally:
            frame.unpersist()

    def close(self) -> None:
        if self._is_own:
            self._session.stop()
        super().close()

    def _frame(self, expression: ir.Table) -> Any:
        with warnings.catch_warnings(action="ignore"):
            return self._session.sql(self._connection.compile(expression))

    def _view(self, frame: Any) -> ir.Table:
        self._views += 1
        name = f"diptych_{id(self)}_{self._views}"
        frame.createOrReplaceTempView(name)
        return self._connection.table(name)


@contextmanager
def _spark_errors(fix: str = "a file may be corrupt or gone, or memory not suffice") -> Iterator[None]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings(action="ignore"):  # of pandas 3, which is not used here
            yield
    except (Py4JJavaError, PySparkException) as error:
        line = str(error).strip().split("\n", 1)[0]
        raise DataError(f"Spark failed: {line}", fix) from None


Engine = DuckDBEngine | SparkEngine
ENGINES: dict[str, type[Engine]] = {"duckdb": DuckDBEngine, "spark": SparkEngine}


def rows_of(engine: Engine, query: str, files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the rows of a query over files, which stand for its braces."""
    table = engine.to_arrow(engine.sql(query.format(engine.read(files).get_name())))
    return [*table.to_pylist()]


def open_engine(
    name: str = "duckdb", *, memory_limit: str | None = None, threads: int | None = None
) -> Engine:
    """Open an engine; close it after use. Spark is the session that runs, else one on this machine."""
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    return ENGINES[name](memory_limit, threads)
