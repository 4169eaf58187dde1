"""Engines: where a pass over a log runs, DuckDB in this process or Spark.

Sessions, statistics and features are written once, as Ibis expressions over integers and keys; an engine reads
files into tables, runs expressions and writes what comes out. Nothing else knows which engine it is.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from diptych.commerce.logs.ingest import duckdb_errors, mebibytes
from diptych.core.errors import DataError, StorageError, UnknownNameError
from diptych.core.extras import require

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


@dataclass(frozen=True)
class Ordered:
    """Rows for windows: those of one key lie together, and in the order that was asked for."""

    rows: ir.Table
    # columns that windows have to name to see them so; none where the rows themselves come in that order
    partition: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    def window(self, **frame: Any) -> Any:
        """Return an Ibis window over the rows; ``frame`` as :func:`ibis.window` takes it."""
        import ibis

        return ibis.window(group_by=self.partition or None, order_by=self.order or None, **frame)


class Engine(ABC):
    """What runs expressions. It is closed after use: ``with open_engine("duckdb") as engine``."""

    name: str
    rows_at_once: int | None = (
        None  # events that one pass should hold; None where the engine divides its work
    )

    def __init__(self, spill: Path | None) -> None:
        if spill is not None:
            spill.mkdir(parents=True, exist_ok=True)
        self._spill = Path(tempfile.mkdtemp(prefix="diptych-spill-", dir=spill))
        self._remove_spilled = weakref.finalize(self, shutil.rmtree, self._spill, ignore_errors=True)

    @abstractmethod
    def read(self, files: Sequence[Path]) -> ir.Table:
        """Return the rows of Parquet files, one file after another."""

    @abstractmethod
    def to_arrow(self, expression: ir.Table) -> pa.Table:
        """Run an expression whose result is small."""

    @abstractmethod
    def write(self, expression: ir.Table, file: Path) -> None:
        """Run an expression and write its rows, in its order, to one Parquet file."""

    @abstractmethod
    def held(self, expression: ir.Table) -> AbstractContextManager[ir.Table]:
        """Run an expression once and keep its rows, in its order, while the block asks for them several times."""

    @abstractmethod
    def ordered(
        self, rows: ir.Table, keys: Sequence[str], order: Sequence[str], *, is_so: bool = False
    ) -> AbstractContextManager[Ordered]:
        """Make rows ready for windows by ``keys`` in ``order``; ``is_so`` where the file is in that order."""

    def close(self) -> None:
        """Release memory, processes and spilled files."""
        self._remove_spilled()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DuckDBEngine(Engine):
    """DuckDB inside this process: the default. Beyond a limit of memory it spills to a folder."""

    name = "duckdb"
    rows_at_once = 1_000_000

    def __init__(
        self, memory_limit: str | None = None, threads: int | None = None, spill: Path | None = None
    ) -> None:
        limit = None if memory_limit is None else mebibytes(memory_limit)
        require("duckdb", "commerce", "reading a log")
        ibis = require("ibis", "commerce", "reading a log")
        super().__init__(spill)
        self._connection = ibis.duckdb.connect(
            temp_directory=str(self._spill),
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
        with duckdb_errors():
            return self._connection.read_parquet([str(file) for file in files], hive_partitioning=False)

    def to_arrow(self, expression: ir.Table) -> pa.Table:
        with duckdb_errors():
            return self._connection.to_pyarrow(expression)

    def write(self, expression: ir.Table, file: Path) -> None:
        with duckdb_errors():
            self._connection.to_parquet(expression, str(file), compression="zstd", compression_level=1)

    @contextmanager
    def held(self, expression: ir.Table) -> Iterator[ir.Table]:
        self._held += 1
        name = f"held_{self._held}"
        with duckdb_errors():
            table = self._connection.create_table(name, expression, temp=True)
        try:
            yield table
        finally:
            self._connection.raw_sql(f"DROP TABLE {name}")

    @contextmanager
    def ordered(
        self, rows: ir.Table, keys: Sequence[str], order: Sequence[str], *, is_so: bool = False
    ) -> Iterator[Ordered]:
        """Yield rows in order: one sort at most costs a third of what two windows cost that sort each for itself."""
        if is_so:
            yield Ordered(rows)
            return
        with self.held(rows.order_by([*keys, *order])) as table:
            yield Ordered(table)

    def close(self) -> None:
        self._connection.disconnect()
        super().close()


_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
"""What results depend on; set in a session that was running, too."""


class SparkEngine(Engine):
    """A Spark session, for logs too large for one process: the running one, which is left open, or its own."""

    name = "spark"

    def __init__(
        self,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: Path | None = None,
        master: str | None = None,
    ) -> None:
        limit = None if memory_limit is None else mebibytes(memory_limit)
        require("pyspark", "spark", "the engine spark")
        ibis = require("ibis", "commerce", "reading a log")
        super().__init__(spill)
        with _without_warnings():
            from pyspark.sql import SparkSession

            running = SparkSession.getActiveSession()
            self._is_own = running is None
            self._session: Any = running or _start(master, threads, limit, self._spill)
            self._connection = ibis.pyspark.connect(self._session)
        for name, value in _SETTINGS.items():
            self._session.conf.set(name, value)
        self._views = 0

    def read(self, files: Sequence[Path]) -> ir.Table:
        with _spark_errors():
            # Spark would take brackets and the like in a name for a pattern.
            frame = self._session.read.parquet(
                *(re.sub(r"([\[\]{}*?,\\])", r"\\\1", str(file)) for file in files)
            )
        return self._view(frame)

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
        """Run an expression once, when it is first asked for."""
        with _spark_errors():
            frame = self._frame(expression).persist()
        try:
            yield self._view(frame)
        finally:
            frame.unpersist()

    @contextmanager
    def ordered(
        self, rows: ir.Table, keys: Sequence[str], order: Sequence[str], *, is_so: bool = False
    ) -> Iterator[Ordered]:
        """Yield rows as they are: Spark promises no order but inside a window, whatever the file's."""
        yield Ordered(rows, tuple(keys), tuple(order))

    def close(self) -> None:
        if self._is_own:
            self._session.stop()
        super().close()

    def _frame(self, expression: ir.Table) -> Any:
        with _without_warnings():
            return self._session.sql(self._connection.compile(expression))

    def _view(self, frame: Any) -> ir.Table:
        self._views += 1
        name = f"diptych_{id(self)}_{self._views}"
        frame.createOrReplaceTempView(name)
        return self._connection.table(name)


def _start(master: str | None, threads: int | None, limit: int | None, spill: Path) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    settings = _SETTINGS | {
        "spark.app.name": "diptych",
        "spark.master": master or f"local[{threads or '*'}]",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(spill),
    }
    if master is None:
        # 200 parts, the default, are for clusters.
        settings["spark.sql.shuffle.partitions"] = str(4 * (threads or os.cpu_count() or 1))
    if limit is not None:
        settings["spark.driver.memory"] = f"{limit}m"
    conf = SparkConf().setAll(list(settings.items()))
    said = spill / "start.log"
    try:
        with said.open("w") as output:  # what Java says while it starts is of interest only if it does not
            gateway = SparkContext._gateway or launch_gateway(conf, popen_kwargs={"stderr": output})
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (PySparkRuntimeError, OSError) as error:
        last = (said.read_text().strip().splitlines() or [str(error)])[-1]
        raise StorageError(
            f"Spark does not start: {last}", "it needs Java 17 or newer; see JAVA_HOME"
        ) from None


@contextmanager
def _without_warnings() -> Iterator[None]:
    """PySpark 4 warns of pandas 3, which it is not used with here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Turn Spark's errors into ours."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        with _without_warnings():
            yield
    except (Py4JJavaError, PySparkException) as error:
        line = str(error).strip().split("\n", 1)[0]
        raise DataError(
            f"Spark failed: {line}", "a file may be damaged or gone, or memory not suffice"
        ) from None


ENGINES = {
    "duckdb": "DuckDB inside this process; spills to disk beyond its memory limit",
    "spark": "Apache Spark, on this machine or a cluster; needs Java and the extra spark",
}
"""Name → one line of what it is."""


def open_engine(
    name: str = "duckdb",
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    spill: Path | None = None,
    master: str | None = None,
) -> Engine:
    """Open an engine; close it after use."""
    if name == "duckdb":
        return DuckDBEngine(memory_limit, threads, spill)
    if name == "spark":
        return SparkEngine(memory_limit, threads, spill, master)
    raise UnknownNameError("engine", name, ENGINES)
