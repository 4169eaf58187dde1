"""Purchase intent: sessions, what sets buyers apart, features, models and a scorer (thesis chapter 6).

Names are imported when they are used, so that the command line loads no library that it does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HERE = "diptych.commerce.purchase_intent"
_HOMES = {
    "Evaluation": f"{_HERE}.evaluation",
    "Log": "diptych.data.logs",
    "Scorer": f"{_HERE}.scoring",
    "audit": f"{_HERE}.auditing",
    "describe": f"{_HERE}.statistics",
    "evaluate": f"{_HERE}.evaluation",
    "ingest": "diptych.data.logs",
    "make_features": f"{_HERE}.features",
    "open_features": f"{_HERE}.features",
    "sessionise": f"{_HERE}.sessions",
    "train": f"{_HERE}.scoring",
}

__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.auditing import audit as audit
    from diptych.commerce.purchase_intent.evaluation import Evaluation as Evaluation
    from diptych.commerce.purchase_intent.evaluation import evaluate as evaluate
    from diptych.commerce.purchase_intent.features import make_features as make_features
    from diptych.commerce.purchase_intent.features import open_features as open_features
    from diptych.commerce.purchase_intent.scoring import Scorer as Scorer
    from diptych.commerce.purchase_intent.scoring import train as train
    from diptych.commerce.purchase_intent.sessions import sessionise as sessionise
    from diptych.commerce.purchase_intent.statistics import describe as describe
    from diptych.data.logs import Log as Log
    from diptych.data.logs import ingest as ingest


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
