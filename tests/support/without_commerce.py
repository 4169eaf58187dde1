"""A pytest plug-in, ``-p without_commerce``: tests as an installation without the extra ``commerce`` has them."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

from diptych.core.errors import MissingExtraError

LIBRARIES = {"Stemmer", "bm25s", "duckdb", "ibis", "pyspark", "skops", "sqlglot"}


def pytest_configure() -> None:
    sys.modules.update(dict.fromkeys(LIBRARIES))  # type: ignore[arg-type]  # None: it cannot be imported


_OF_SHOPS = ("commerce/", "test_intent", "test_categories", "test_cti")


def pytest_ignore_collect(collection_path: Any) -> bool | None:
    """Leave out what is about shops alone."""
    name = str(collection_path)
    return True if "/tests/" in name and any(part in name for part in _OF_SHOPS) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Skip what makes a log, a scorer or a catalogue's model by Python, and refusals of shops' verbs."""
    report, error = (yield), call.excinfo.value if call.excinfo is not None else None
    case = item.callspec.params.get("case", "") if hasattr(item, "callspec") else ""
    is_missing = isinstance(error, MissingExtraError) and "diptych[commerce]" in error.fix
    if report.failed and (is_missing or str(case).startswith(("intent ", "categories "))):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {error}"[:200])
    return report
