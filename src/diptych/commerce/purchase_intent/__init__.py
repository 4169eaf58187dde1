"""Purchase intent: sessions, what sets buyers apart, features, models and a scorer (thesis chapter 6)."""

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

if TYPE_CHECKING:
    from diptych.commerce.logs import Log as Log
    from diptych.commerce.logs import ingest as ingest
    from diptych.commerce.purchase_intent.auditing import audit as audit
    from diptych.commerce.purchase_intent.evaluation import Evaluation as Evaluation
    from diptych.commerce.purchase_intent.evaluation import evaluate as evaluate
    from diptych.commerce.purchase_intent.features import make_features as make_features
    from diptych.commerce.purchase_intent.features import open_features as open_features
    from diptych.commerce.purchase_intent.scoring import Scorer as Scorer
    from diptych.commerce.purchase_intent.scoring import train as train
    from diptych.commerce.purchase_intent.sessions import sessionise as sessionise
    from diptych.commerce.purchase_intent.statistics import describe as describe
