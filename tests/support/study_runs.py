"""Run a study as tests like it: what it logs goes to a list, a function says when to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diptych import studies
from diptych.core.context import stop_when


class _List(logging.Handler):
    def __init__(self, tell: Callable[[str], Any]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


def run_study(
    study: studies.Study,
    folder: Path,
    *given: Any,
    tell: Callable[[str], Any] = lambda line: None,
    should_stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> studies.Results:
    """Run it, on the processor."""
    options.setdefault("accelerator", "cpu")
    logger, handler = logging.getLogger("diptych.studies"), _List(tell)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with stop_when(should_stop):
            return studies.run_study(study, folder, *given, **options)
    finally:
        logger.removeHandler(handler)
