"""Where expressions run: DuckDB in this process, or Spark."""

from diptych.commerce.purchase_intent.engine.contract import ENGINES, Engine, Ordered, open_engine

__all__ = ["ENGINES", "Engine", "Ordered", "open_engine"]
