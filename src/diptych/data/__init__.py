"""Collections: images, captions, and which describes which."""

from diptych.data.batches import Batch, BatchPlan
from diptych.data.captions import choose_captions
from diptych.data.checking import Check, check_dataset
from diptych.data.collection import Collection, ImageSource
from diptych.data.known import KNOWN, KnownDataset
from diptych.data.readers import READERS, read_collection
from diptych.data.regions import RegionSource
from diptych.data.vocabulary import Vocabulary, words

__all__ = [
    "KNOWN",
    "READERS",
    "Batch",
    "BatchPlan",
    "Check",
    "Collection",
    "ImageSource",
    "KnownDataset",
    "RegionSource",
    "Vocabulary",
    "check_dataset",
    "choose_captions",
    "read_collection",
    "words",
]
