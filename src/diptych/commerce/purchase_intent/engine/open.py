"""Engines by name."""

from __future__ import annotations

from pathlib import Path

from diptych.commerce.purchase_intent.engine.contract import Engine
from diptych.core.errors import UnknownNameError

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
