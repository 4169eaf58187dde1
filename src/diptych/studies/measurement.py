"""What is measured of a run, and how a study says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from diptych.studies.evidence import Trajectory
from diptych.studies.verdict import Measured

PUBLISHED = "|published"
"""Ends the name of a value that was counted as the paper counts, where that is not the right way."""


@dataclass(frozen=True)
class Measurement:
    """What one run gives on one ground truth.

    Attributes:
        values: column → value, in the paper's unit. Where the paper's own way of counting differs from
            the right one, the number to hold against its cell stands under ``COLUMN|published``.
        on: what they were measured on.
        protocol: everything they depend on, in one line.
        commands: what repeats the measurement by hand; ``{run}`` stands for the run's folder.
        trajectory: how the training went, for studies that look at it.
        kept: a folder inside the run's with what is too large for an entry, e.g. values per query; see
            :mod:`diptych.studies.kept`. Empty for none.
    """

    values: Mapping[str, float]
    on: Measured
    protocol: str
    commands: tuple[str, ...] = ()
    trajectory: Trajectory | None = None
    kept: str = ""


@dataclass(frozen=True)
class Subject:
    """What is measured: a finished run and the collection it was trained on.

    Attributes:
        run: the run (:class:`diptych.training.run.Run`), or what stands in its place: dense rows that were
            given, a head, a search.
        collection: all splits (:class:`diptych.data.collection.Collection`).
        features: folder of cached features.
        positives: further judgements to measure by, as ``NAME:PATH``.
        begun_with: where the encoder that training began with is today; where the run's recipe says, when
            not given.
        measuring: what a person set about measuring (``--set measure.words=FILE``).
        should_stop: asked now and then where measuring takes long.
    """

    run: Any
    collection: Any
    features: Any
    positives: str | None = None
    begun_with: str | None = None
    measuring: Mapping[str, Any] = field(default_factory=dict)
    should_stop: Callable[[], bool] = lambda: False


class Measuring(Protocol):
    """How a study's columns are measured."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run; JSON-able."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one run: on its collection's own pairs first, then by further judgements."""
