"""Collections: images, captions, and which describes which."""

from diptych.data.batches import Batch, BatchPlan
from diptych.data.collection import Collection, ImageSource
from diptych.data.readers import READERS, read_collection
from diptych.data.regions import RegionSource
from diptych.data.vocabulary import Vocabulary, words

__all__ = [
    "READERS",
    "Batch",
    "BatchPlan",
    "Collection",
    "ImageSource",
    "RegionSource",
    "Vocabulary",
    "read_collection",
    "words",
]
