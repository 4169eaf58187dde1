"""Which captions describe which pictures beyond a collection's own pairs; one file per format."""

from diptych.data.extended_positives.choose import read_extended_positives
from diptych.data.extended_positives.declaration import EXTENDED_POSITIVES, Listed, PositivesReader
from diptych.data.extended_positives.match import ExtendedPositives, match

__all__ = [
    "EXTENDED_POSITIVES",
    "ExtendedPositives",
    "Listed",
    "PositivesReader",
    "match",
    "read_extended_positives",
]
