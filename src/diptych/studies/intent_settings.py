"""How the studies of thesis chapter 6 are measured: on the shop's own log, on any other, on generated scenes."""

from __future__ import annotations

from diptych.studies.study import Column, Setting, SettingName

COUNTED_BY = ("gap", "by", "ddof", "journey")
PREDICTED_BY = ("gap", "by", "compat", "split", "folds", "steps", "sessions", "seed", "jobs")

SHARES = (
    Column("purchase", decimals=2),
    Column("non-purchase", decimals=2),
    Column("standardised", decimals=2),
)
"""Columns of tables of channels and devices."""

BESIDES = "What a log has besides stands in the table below, and is part of its standardised rates."

_OWN = "the shop's own log, which was not published: for whoever has it, under the name thesis-shop"
_SCENES = {"visitors": 30_000}
_EVENTS = "a few seconds per million events on a processor, once they are imported"
_FITS = "one to two hours on a processor for all six models, the SVM most of it"
_SAMPLED = 29_301
"""As many sessions as the thesis has in both settings together."""

COUNTING: dict[SettingName, Setting] = {
    "paper": Setting(description=_OWN, recipes={}, time=_EVENTS),
    "data": Setting(description="any log", recipes={}, time=_EVENTS),
    "quick": Setting(
        description="a generated shop log with planted effects",
        recipes={},
        log=_SCENES,
        time="half a minute on a processor for all of them together",
    ),
}
"""Of statistics."""

PREDICTING: dict[SettingName, Setting] = {
    "paper": Setting(
        description=f"{_OWN}; populations and random folds as in the thesis",
        recipes={},
        measure={"compat": "published", "split": "random", "folds": 10, "sessions": _SAMPLED},
        time=_FITS,
    ),
    "data": Setting(
        description="any log, at most as many sessions as in the thesis, folds by visitor, no purchase near the step",
        recipes={},
        measure={"split": "grouped", "folds": 10, "sessions": _SAMPLED},
        time=_FITS,
    ),
    "quick": Setting(
        description="a generated shop log with planted effects, four steps and three folds by visitor",
        recipes={},
        measure={"split": "grouped", "folds": 3, "steps": [0, 1, 5, 10], "sessions": 2000},
        log=_SCENES,
        time="a minute on a processor for both",
    ),
}
"""Of predictions."""

_DECLARATIONS = Setting(description="features as this package declares them", recipes={}, time="at once")

DECLARED: dict[SettingName, Setting] = {"paper": _DECLARATIONS, "quick": _DECLARATIONS}
"""Of what needs no log."""
