"""What stands in a run's place where models of a catalogue are measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from diptych.studies.catalogue_options import CatalogueOptions
from diptych.studies.measurement import Measuring
from diptych.studies.study import Row

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation


@dataclass(frozen=True)
class CatalogueRow:
    """A row and seed of a study of a catalogue.

    Attributes:
        row: of the study.
        seed: of training.
        folder: where what it gives is kept.
        evaluation: of all models that the study asks for.
        options: how it was made.
        dataset: the catalogue's name.
        products: how many it has, of all splits.
        by_hand: the command that makes the like of the evaluation; empty for generated products.
    """

    row: Row
    seed: int
    folder: Path
    evaluation: ModelsEvaluation
    options: CatalogueOptions
    dataset: str
    products: int
    by_hand: str = ""


class CatalogueMeasuring(Measuring, Protocol):
    """How rows of a catalogue are read from an evaluation of models."""

    def needs(self, row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Models and settings that the row is read from."""

    def is_trained(self, row: Row) -> bool:
        """Whether there is a row per seed."""

    def seconds(self, made: CatalogueRow) -> float:
        """Processor time of its models."""
