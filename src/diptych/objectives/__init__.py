"""Losses: pure functions of scores and positives, declared in a registry; and what scores are.

Every function takes ``scores`` (n_images, n_texts), in most cases cosines; ``positives``, a boolean matrix of that
shape with one or several true entries per row and column; the hyper-parameters of its loss; and by name:

- ``direction``: ``"both"`` (default), ``"i2t"`` or ``"t2i"``. Most average the two, some add them.
- ``reduction``: ``"mean"`` or ``"sum"`` over the queries of each direction, or ``"none"`` for one value per query,
  image queries first, not halved. A query's loss is the mean over its positives unless the loss says otherwise.
- ``compat``: ``"pairs"`` treats other captions of an image as negatives, as published; ``"none"`` (default) does not.

They raise UsageError for an impossible hyper-parameter, shapes that differ, a query without a positive or a batch
without a negative, and NumericalError for a score or a learned number that has become NaN or infinite.
"""

from diptych.objectives.convse import ConVSE, ConVSEPlusPlus, convse, convse_plus_plus
from diptych.objectives.cosine_distance import CosineDistance, cosine_distance
from diptych.objectives.declaration import OBJECTIVES, Objective, Within
from diptych.objectives.ifm import IFM, InfoNCEIFM, ifm, infonce_ifm
from diptych.objectives.infonce import InfoNCE, NTXent, infonce
from diptych.objectives.mvn import MVN, mvn
from diptych.objectives.siglip import SigLIP, siglip
from diptych.objectives.similarity import (
    SIMILARITIES,
    cosine_similarity,
    order_similarity,
    similarity_of,
)
from diptych.objectives.smoothap import SmoothAP, smoothap
from diptych.objectives.triplet import Triplet, TripletHardest, TripletTop, triplet

__all__ = [
    "IFM",
    "MVN",
    "OBJECTIVES",
    "SIMILARITIES",
    "ConVSE",
    "ConVSEPlusPlus",
    "CosineDistance",
    "InfoNCE",
    "InfoNCEIFM",
    "NTXent",
    "Objective",
    "SigLIP",
    "SmoothAP",
    "Triplet",
    "TripletHardest",
    "TripletTop",
    "Within",
    "convse",
    "convse_plus_plus",
    "cosine_distance",
    "cosine_similarity",
    "ifm",
    "infonce",
    "infonce_ifm",
    "mvn",
    "order_similarity",
    "siglip",
    "similarity_of",
    "smoothap",
    "triplet",
]
