"""Checking a dataset before anything is made of it: is everything there, and is it what it should be."""

from diptych.data.checking.check import check_collection, check_dataset
from diptych.data.checking.inspection import Check, Pictures, Problem, Some, SplitCheck

__all__ = ["Check", "Pictures", "Problem", "Some", "SplitCheck", "check_collection", "check_dataset"]
