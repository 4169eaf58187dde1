"""From a recipe's data section to the collection it means."""

from __future__ import annotations

from diptych.data.collection import Collection
from diptych.encoders.origin import read_data
from diptych.training.sections import Data


def collection_of(data: Data) -> Collection:
    """Read or generate the data of a recipe."""
    return read_data(dict(data))
