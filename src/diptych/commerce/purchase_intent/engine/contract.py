"""What a pass over a log needs of whatever runs it.

Sessions, statistics and features are written once, as Ibis expressions over integers and keys; an engine reads
files into tables, runs expressions and writes what comes out. Nothing else knows which engine it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


@dataclass(frozen=True)
class Ordered:
    """Rows for windows: those of one key lie together, and in the order that was asked for.

    Attributes:
        rows: the table.
        partition, order: columns that windows have to name to see them so; none where the rows themselves come
            in that order, one stream after which nothing is sorted.
    """

    rows: ir.Table
    partition: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    def window(self, **frame: Any) -> Any:
        """An Ibis window over the rows; ``frame`` as :func:`ibis.window` takes it."""
        import ibis

        return ibis.window(group_by=self.partition or None, order_by=self.order or None, **frame)


class Engine(Protocol):
    """What runs expressions. It is closed after use: ``with open_engine("duckdb") as engine``."""

    @property
    def name(self) -> str:
        """As it is asked for and printed."""

    @property
    def rows_at_once(self) -> int | None:
        """How many events one pass should hold; None where the engine divides its work itself."""

    def read(self, files: Sequence[Path]) -> ir.Table:
        """The rows of Parquet files, one file after another."""

    def to_arrow(self, expression: ir.Table) -> pa.Table:
        """Run an expression whose result is small."""

    def write(self, expression: ir.Table, file: Path) -> None:
        """Run an expression and write its rows, in its order, to one Parquet file."""

    def held(self, expression: ir.Table) -> AbstractContextManager[ir.Table]:
        """Run an expression once and keep its rows, in its order, while the block asks for them several times."""

    def ordered(
        self, rows: ir.Table, keys: Sequence[str], order: Sequence[str], *, is_so: bool = False
    ) -> AbstractContextManager[Ordered]:
        """Make rows ready for windows by ``keys`` in ``order``."""

    def close(self) -> None:
        """Let go of memory, processes and spilled files."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""


_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def mebibytes(text: str) -> int:
    """Parse ``"1GB"``, ``"700 MB"``, ``"2GiB"`` as whole MiB, at least 1; a unit always counts 1024."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:I?B)?\s*", text.upper())
    if found is None or not float(found[1]):
        raise UsageError(f"the memory limit is {text!r}", "an amount and a unit, e.g. 1GB or 700MB")
    return max(1, int(float(found[1]) * 1024 ** (_UNITS[found[2]] - 2)))


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
        from diptych.commerce.purchase_intent.engine.duckdb_engine import DuckDBEngine

        return DuckDBEngine(memory_limit, threads, spill)
    if name == "spark":
        from diptych.commerce.purchase_intent.engine.spark_engine import SparkEngine

        return SparkEngine(memory_limit, threads, spill, master)
    raise UnknownNameError("engine", name, ENGINES)
