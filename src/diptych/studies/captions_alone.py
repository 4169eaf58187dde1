"""Rows for which there is nothing to make: what is measured are the captions of each collection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from diptych.core.errors import UsageError
from diptych.studies.making import Made, Wanted
from diptych.studies.measurement import Subject
from diptych.studies.trained import Collections, Machine
from diptych.studies.ways import not_of_recipes


@dataclass(frozen=True)
class CaptionsAlone:
    """What stands in a run's place.

    Attributes:
        folder: of the row, where its measurements are kept.
    """

    folder: Path


def make_captions(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Say where the row's measurements go."""
    for key in wanted.choices.values:
        if not not_of_recipes(wanted.study, key):
            raise UsageError(
                f"{key} is about a training, and {wanted.study.name} trains nothing",
                f"leave it out; what can be set: {', '.join(f'measure.{one}' for one in wanted.study.measured_by)}",
            )
    return Made(Subject(CaptionsAlone(wanted.target), None, machine.features_root), ("captions",))
