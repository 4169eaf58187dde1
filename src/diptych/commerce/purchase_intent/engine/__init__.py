"""Where expressions run: DuckDB in this process, or Spark."""

from diptych.commerce.purchase_intent.engine.contract import Engine, Ordered
from diptych.commerce.purchase_intent.engine.open import ENGINES, open_engine

__all__ = ["ENGINES", "Engine", "Ordered", "open_engine"]
