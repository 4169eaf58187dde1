"""A probability for the session that runs just now, and why: train, score, stream."""

from diptych.commerce.purchase_intent.options import TrainOptions
from diptych.commerce.purchase_intent.scoring.request import Reason, Score, SessionStream
from diptych.commerce.purchase_intent.scoring.scorer import Scorer
from diptych.commerce.purchase_intent.scoring.training import train

__all__ = ["Reason", "Score", "Scorer", "SessionStream", "TrainOptions", "train"]
