"""Purchase intent: sessions, what sets buyers apart, features, models and a scorer (thesis chapter 6).

Names are imported when they are used, so that the command line loads no library that it does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    name: f"diptych.{module}"
    for module, names in {
        "commerce.purchase_intent.auditing": "audit",
        "commerce.purchase_intent.evaluation": "Evaluation evaluate",
        "commerce.purchase_intent.features": "make_features open_features",
        "commerce.purchase_intent.scoring": "Scorer train",
        "commerce.purchase_intent.sessions": "sessionise",
        "commerce.purchase_intent.statistics": "describe",
        "data.logs": "Log ingest",
    }.items()
    for name in names.split()
}

__all__ = [
    "Evaluation",
    "Log",
    "Scorer",
    "audit",
    "describe",
    "evaluate",
    "ingest",
    "make_features",
    "open_features",
    "sessionise",
    "train",
]

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.auditing import audit
    from diptych.commerce.purchase_intent.evaluation import Evaluation, evaluate
    from diptych.commerce.purchase_intent.features import make_features, open_features
    from diptych.commerce.purchase_intent.scoring import Scorer, train
    from diptych.commerce.purchase_intent.sessions import sessionise
    from diptych.commerce.purchase_intent.statistics import describe
    from diptych.data.logs import Log, ingest


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
