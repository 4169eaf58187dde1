"""A plug-in: the tests of an installation without the extra ``commerce`` (``pytest -p without_commerce``).

Libraries of the extra alone cannot be imported, and files about shops alone are left out; all others have to pass.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

import pytest

from diptych.core.errors import MissingExtraError

LIBRARIES = {"Stemmer", "bm25s", "duckdb", "ibis", "pyspark", "skops", "sqlglot"}


class Absent(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name.partition(".")[0] in LIBRARIES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def pytest_configure() -> None:
    sys.meta_path.insert(0, Absent())


_OF_SHOPS = ("commerce/", "test_intent", "test_categories", "test_cti")


def pytest_ignore_collect(collection_path: Any) -> bool | None:
    """Leave out what is about shops alone."""
    name = str(collection_path)
    return True if "/tests/" in name and any(part in name for part in _OF_SHOPS) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip what makes a log, a scorer or a catalogue's model of its own, in a fixture or by Python."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, MissingExtraError) and "diptych[commerce]" in error.fix:
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {error.message}")
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out refusals of shops' verbs."""
    items[:] = [
        one
        for one in items
        if not str(getattr(one, "callspec", None) and one.callspec.params.get("case")).startswith(
            ("intent ", "categories ")
        )
    ]
