"""Run a study as tests like it: what it logs goes to a list, a function says when to stop."""

from __future__ import annotations

import logging

from diptych import studies
from diptych.core.context import stop_when

# One epoch of an encoder of 16 numbers; of pictures that are given, of scenes that are drawn.
_QUICK = {
    "model.width": 16,
    "model.text.word_width": 8,
    "model.text.min_count": 1,
    "stages.0.epochs": 1,
    "stages.0.warmup": 0,
}
SMALL = {**_QUICK, "model.image.preprocessing": {"size": 32, "resize": 32}, "batches.size": 16}
TINY = {**_QUICK, "data.scenes.n_val": 16, "data.scenes.n_test": 0, "batches.size": 32}
HEADS = {
    "sparsify.vocabulary.size": 120,
    "sparsify.head.width": 8,
    "sparsify.training.epochs": 2,
    "sparsify.training.batch_size": 64,
}


class _List(logging.Handler):
    def __init__(self, tell):
        super().__init__()
        self._tell = tell

    def emit(self, record):
        self._tell(record.getMessage())


def run_study(study, folder, *given, tell=lambda line: None, should_stop=lambda: False, **options):
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
