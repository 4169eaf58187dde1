"""Rows of the studies of thesis chapter 6: devices, channels, classes of sessions, models, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable

from diptych.data.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.studies.study import Row

DEVICES = dict(zip(THESIS_DEVICES, ("Smartphone", "PC", "Tablet", "Game console", "TV"), strict=True))
"""Device types of the thesis and what its tables call them."""

CHANNELS = dict(zip(THESIS_CHANNELS, ("Direct", "Paid", "Organic", "Other"), strict=True))
"""Channels of the thesis and what its table calls them."""

CLASSES = {"purchase": "Purchase sessions", "non-purchase": "Non-purchase sessions"}
"""The two kinds of sessions."""

MODELS = {
    "random-forest": "RF",
    "gradient-boosting": "GBDT",
    "neural-network": "NN",
    "svm": "SVM",
    "logistic-regression": "LR",
    "k-nearest": "KNN",
}
"""Classifiers of the thesis, those that it finds best first."""

SETS = ("baseline", "extended")
SETTINGS = ("anonymous", "identified")

STEPS = tuple(str(step) for step in range(11))
"""Columns of F1: pages that are open."""


def row_name(name: str) -> str:
    """A device or channel as a row is called: it is part of a folder's name."""
    return name.replace(" ", "-")


def log_row(name: str, label: str, extra: str = "") -> Row:
    """A row of a study of a log."""
    return Row(name, label, extra=extra, log_alone=True)


def device_rows() -> tuple[Row, ...]:
    """A row per device type."""
    return _rows(DEVICES.items())


def channel_rows() -> tuple[Row, ...]:
    """A row per channel."""
    return _rows(CHANNELS.items())


def class_rows() -> tuple[Row, ...]:
    """A row per kind of session, and one of both together."""
    return (*_rows(CLASSES.items()), log_row("either", "all sessions", "of both kinds together"))


def prediction_row(model: str, feature_set: str, setting: str) -> str:
    """The name of what a model does with a feature set in a setting."""
    return f"{model}-{feature_set}-{setting}"


def prediction_rows() -> tuple[Row, ...]:
    """A row per model, feature set and setting."""
    return tuple(
        log_row(prediction_row(model, feature_set, setting), f"{label}, {feature_set}, {setting}")
        for setting in SETTINGS
        for feature_set in SETS
        for model, label in MODELS.items()
    )


def _rows(named: Iterable[tuple[str, str]]) -> tuple[Row, ...]:
    return tuple(log_row(row_name(name), label) for name, label in named)
