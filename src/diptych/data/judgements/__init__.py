"""How relevant people found captions to pictures; one file per format."""

from diptych.data.judgements.declaration import JUDGEMENTS, Judged, JudgementReader
from diptych.data.judgements.match import MatchedJudgements, match_judgements, read_judgements

__all__ = [
    "JUDGEMENTS",
    "Judged",
    "JudgementReader",
    "MatchedJudgements",
    "match_judgements",
    "read_judgements",
]
