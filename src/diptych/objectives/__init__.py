"""Losses: pure functions of scores and positives, declared in a registry."""

from diptych.objectives.declaration import OBJECTIVES, Objective
from diptych.objectives.infonce import InfoNCE, infonce
from diptych.objectives.triplet import Triplet, TripletHardest, triplet

__all__ = ["OBJECTIVES", "InfoNCE", "Objective", "Triplet", "TripletHardest", "infonce", "triplet"]
