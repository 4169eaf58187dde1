"""What a study shows besides its printed table: a figure, and tables of what follows from the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from diptych.studies.evidence import Evidence


class StudyFigure(Protocol):
    """What a report draws besides."""

    @property
    def name(self) -> str:
        """Of its place on the page."""

    @property
    def title(self) -> str:
        """Above it."""

    @property
    def note(self) -> str:
        """How it is to be read."""

    @property
    def wide(self) -> bool:
        """Whether a panel takes the whole width of the page."""

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """Its panels as HTML, mostly ``<svg>``; ``labels`` of rows."""


@dataclass(frozen=True)
class FurtherTable:
    """A table beside the published one, of words and numbers.

    Attributes:
        title: above it.
        note: how it is to be read.
        header: of its columns.
        rows: its cells as they are printed.
    """

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
