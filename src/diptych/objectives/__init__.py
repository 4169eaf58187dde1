"""Losses: pure functions of scores and positives, declared in a registry; and what scores are."""

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
from diptych.objectives.triplet import Triplet, TripletHardest, triplet

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
