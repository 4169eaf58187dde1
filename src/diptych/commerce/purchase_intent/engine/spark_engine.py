"""Apache Spark, on this machine or a cluster: the same expressions where a log is too large for one process."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
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

_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
"""What results depend on; set in a session of somebody else's, too."""


class SparkEngine:
    """A Spark session: the running one where there is one, which is left open, else one of its own."""

    name = "spark"
    rows_at_once = None

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
        if spill is not None:
            spill.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="diptych-spark-", dir=spill))
        self._remove_spilled = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with _without_warnings():
            from pyspark.sql import SparkSession

            running = SparkSession.getActiveSession()
            self._is_own = running is None
            self._session: Any = running or _start(master, threads, limit, folder)
            self._connection = ibis.pyspark.connect(self._session)
        for name, value in _SETTINGS.items():
            self._session.conf.set(name, value)
        self._views = 0

    def read(self, files: Sequence[Path]) -> ir.Table:
        """The rows of Parquet files."""
        with _explained():
            # Spark would take brackets and the like in a name for a pattern.
            frame = self._session.read.parquet(
                *(re.sub(r"([\[\]{}*?,\\])", r"\\\1", str(file)) for file in files)
            )
        return self._view(frame)

    def to_arrow(self, expression: ir.Table) -> pa.Table:
        """Run an expression whose result is small."""
        with _explained():
            table = self._frame(expression).toArrow()
        return table.cast(expression.schema().to_pyarrow())

    def write(self, expression: ir.Table, file: Path) -> None:
        """Run an expression; what its processes wrote is put into one file, in order."""
        import pyarrow.parquet as pq

        parts = file.with_name(f".{file.name}.parts")
        with _explained():
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
        with _explained():
            frame = self._frame(expression).persist()
        try:
            yield self._view(frame)
        finally:
            frame.unpersist()

    @contextmanager
    def ordered(
        self, rows: ir.Table, keys: Sequence[str], order: Sequence[str], *, is_so: bool = False
    ) -> Iterator[Ordered]:
        """Rows as they are: Spark promises no order but inside a window, whatever the file's."""
        yield Ordered(rows, tuple(keys), tuple(order))

    def close(self) -> None:
        """Stop the session if it is its own; let go of spilled files."""
        if self._is_own:
            self._session.stop()
        self._remove_spilled()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
def _explained() -> Iterator[None]:
    """Spark's errors as ours."""
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
