"""Run a study as tests like it: what it logs goes to a list, a function says when to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diptych import studies
from diptych.core.context import stop_when

# One epoch of an encoder of 16 numbers; of pictures that are given, of scenes that are drawn.
_QUICK: dict[str, Any] = {
    "model.width": 16,
    "model.text.word_width": 8,
    "model.text.min_count": 1,
    "stages.0.epochs": 1,
    "stages.0.warmup": 0,
}
SMALL: dict[str, Any] = {
    **_QUICK,
    "model.image.preprocessing": {"size": 32, "resize": 32},
    "batches.size": 16,
}
TINY: dict[str, Any] = {**_QUICK, "data.scenes.n_val": 16, "data.scenes.n_test": 0, "batches.size": 32}
HEADS: dict[str, Any] = {
    "sparsify.vocabulary.size": 120,
    "sparsify.head.width": 8,
    "sparsify.training.epochs": 2,
    "sparsify.training.batch_size": 64,
}


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
