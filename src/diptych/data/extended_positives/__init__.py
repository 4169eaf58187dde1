"""Which captions describe which pictures beyond a collection's own pairs; one file per format."""

from diptych.data.extended_positives.declaration import EXTENDED_POSITIVES, Listed, PositivesReader
from diptych.data.extended_positives.match import ExtendedPositives, match, read_extended_positives

__all__ = [
    "EXTENDED_POSITIVES",
    "ExtendedPositives",
    "Listed",
    "PositivesReader",
    "match",
    "read_extended_positives",
]
