from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from diptych.commerce.purchase_intent.engine import Engine, open_engine


@pytest.fixture(scope="session")
def spark(_cache: None) -> Iterator[Engine]:
    """Spark on one thread; whoever opens the engine spark meanwhile shares its session."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    # Half of the time of small queries is spent on making them fast.
    quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    before = {name: os.environ.get(name) for name in quick}
    os.environ.update(quick)
    try:
        engine = open_engine("spark", threads=1, memory_limit="1GB")
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    with engine:
        yield engine
